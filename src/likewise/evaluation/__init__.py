"""Experiments: data sets, ground truth, metrics, and one module per experiment."""
