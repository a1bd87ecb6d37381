"""Data sets with ground truth: the thematic data set, real streams, thesauri, a simulated building."""
