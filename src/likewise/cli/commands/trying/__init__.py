"""Commands to see it work and to measure it: demo, evaluate, bench, dataset."""
