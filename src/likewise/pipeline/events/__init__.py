"""Events on Spark: reading them, their columns, and how they reach the workers."""
