"""Streams from end to end: sources, subscriptions that change, sinks, checkpoints."""
