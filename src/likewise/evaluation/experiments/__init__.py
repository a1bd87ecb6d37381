"""The experiments, one module each: `likewise evaluate` finds them by name."""
