"""Joins by meaning, on DataFrames and in SQL."""
