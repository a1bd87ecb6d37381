"""Commands that run on Spark: stream and join."""
