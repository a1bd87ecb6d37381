"""Matching quality: approaches, scores, rankings, labels and tuning."""
