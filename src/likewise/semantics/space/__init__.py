"""Spaces: terms by concepts, built from a corpus, mapped from a folder."""
