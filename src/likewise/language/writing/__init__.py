"""Writes subscriptions and patterns as text, and as plain values for JSON."""
