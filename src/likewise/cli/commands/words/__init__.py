"""Commands about what words mean: relate, nearest, space, train."""
