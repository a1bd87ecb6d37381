"""Reasons: why a pattern fired or did not, in words and as plain values."""
