"""Measures of relatedness, one module each, all with the same contract."""
