"""Metrics, logs, traces and the configuration check."""
