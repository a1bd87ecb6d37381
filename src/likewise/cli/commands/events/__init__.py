"""Commands about events and their words: convert, vocabulary, themes."""
