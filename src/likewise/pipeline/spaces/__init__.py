"""Spaces built on Spark: corpora, the inverted index, the folder."""
