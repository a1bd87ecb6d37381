"""Learning the weights of evidence: pairs to learn from, the fit, and pairs to test it on."""
