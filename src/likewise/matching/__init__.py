"""Matching: one event against many subscriptions."""
