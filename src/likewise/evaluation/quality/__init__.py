"""How good answers are: approaches, scores, rankings, labels, and tuning by them."""
