"""Detection on Spark: hits are routed by key, then composed, in batch and in streams."""
