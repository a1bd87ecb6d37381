"""What words mean: spaces, and the measures of relatedness over them."""

from likewise.semantics._measure import Matrix, Measure, Shared

__all__ = ["Matrix", "Measure", "Shared"]
