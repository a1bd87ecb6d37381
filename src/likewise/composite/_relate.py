"""Relatedness between the values of two members, through a measure."""

from __future__ import annotations

from functools import lru_cache

from likewise.composite._conditions import Relate
from likewise.events import normalise
from likewise.matching import Approach, certainty, default_threshold
from likewise.semantics import Measure

_PLAIN = Approach("approximate")


def usual_relatedness(measure: Measure | None) -> float:
    """From where on two terms count as related by this measure, if nobody says."""
    return default_threshold(_PLAIN, "" if measure is None else measure.name)


def relate_by(measure: Measure | None, least: float) -> Relate | None:
    """A cached probability of being related: none below `least`, even odds where it usually begins, 1 if equal."""
    if measure is None:
        return None
    power = certainty(_PLAIN, measure.name)

    @lru_cache(maxsize=1 << 16)
    def related(left: str, right: str) -> float:
        if normalise(left) == normalise(right):
            return 1.0
        value = min(1.0, float(measure.matrix([left], [right])[0, 0]))
        return value**power if value >= least else 0.0

    return related
