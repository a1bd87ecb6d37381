"""Formats of log files."""
