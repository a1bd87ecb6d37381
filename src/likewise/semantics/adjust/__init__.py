"""Adjustments of a measure: codes, opposites, differing words, contrast, rank."""
