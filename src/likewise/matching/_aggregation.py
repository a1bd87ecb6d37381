"""How the best entries of a profile's predicates become one score."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import prod

from likewise.errors import BuildError


class Aggregation(StrEnum):
    """Product and geometric mean ask for every predicate [000, 004]; the mean forgives one [002 eq 11].

    The geometric mean is the product made comparable between profiles of different length, so one
    threshold serves all of them. But there three good predicates hide a fourth that nothing answers well; the
    cautious mean is the geometric mean of it and the weakest predicate.
    """

    PRODUCT = "product"
    GEOMETRIC = "geometric"
    MEAN = "mean"
    CAUTIOUS = "cautious"

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
    >>> round(aggregate([0.25, 1.0], Aggregation.CAUTIOUS), 3)  # sqrt(0.5 * 0.25)
    0.354
    """
    if how is Aggregation.MEAN:
        return float(sum(similarities) / len(similarities))
    product = float(prod(similarities))
    if how is Aggregation.CAUTIOUS:
        return float((product ** (1.0 / len(similarities)) * min(similarities)) ** 0.5)
    return product if how is Aggregation.PRODUCT else float(product ** (1.0 / len(similarities)))
