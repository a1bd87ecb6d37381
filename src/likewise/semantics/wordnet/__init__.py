"""WordNet: its files, distances, information content, synonyms and opposites."""
