"""Composite events: many events against many patterns, in event time."""
