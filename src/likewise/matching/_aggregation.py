"""How the best entries of a profile's predicates become one score."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import prod

from likewise.errors import BuildError


class Aggregation(StrEnum):
    """Product and geometric mean ask for every predicate [000, 004]; the mean forgives one [002 eq 11].

    The geometric mean is the product made comparable between profiles of different length, so one
    threshold serves all of them.
    """

    PRODUCT = "product"
    GEOMETRIC = "geometric"
    MEAN = "mean"

    @classmethod
    def parse(cls, name: str) -> Aggregation:
        """One of them by its name."""
        if name not in list(cls):
            raise BuildError(f"unknown aggregation {name!r}", hint=f"choose {', '.join(cls)}")
        return cls(name)


def aggregate(similarities: Sequence[float], how: Aggregation) -> float:
    """One score from the similarity of every predicate.

    >>> aggregate([0.25, 1.0], Aggregation.GEOMETRIC), aggregate([0.25, 1.0], Aggregation.MEAN)
    (0.5, 0.625)
    """
    if how is Aggregation.MEAN:
        return float(sum(similarities) / len(similarities))
    product = float(prod(similarities))
    return product if how is Aggregation.PRODUCT else float(product ** (1.0 / len(similarities)))
