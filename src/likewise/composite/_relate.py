"""Relatedness between the values of two members, through a measure."""

from __future__ import annotations

from functools import lru_cache

from likewise.composite._conditions import Relate
from likewise.events import normalise
from likewise.semantics import Measure


def relate_by(measure: Measure | None, least: float) -> Relate | None:
    """A cached relatedness; below `least` two terms are not related, equal ones wholly."""
    if measure is None:
        return None

    @lru_cache(maxsize=1 << 16)
    def related(left: str, right: str) -> float:
        if normalise(left) == normalise(right):
            return 1.0
        value = min(1.0, float(measure.matrix([left], [right])[0, 0]))
        return value if value >= least else 0.0

    return related
