"""The engines of a broker: construction, the thread that runs them, and explanations."""
