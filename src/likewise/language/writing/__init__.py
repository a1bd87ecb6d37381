"""Subscriptions and patterns to text, and to plain values for JSON."""
