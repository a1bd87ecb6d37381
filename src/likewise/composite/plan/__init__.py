"""Plans: what a pattern means, with every name resolved and each condition placed."""
