"""Commands to try and measure Likewise: demo, evaluate, bench, dataset."""
