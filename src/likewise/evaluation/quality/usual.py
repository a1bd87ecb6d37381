"""What comes through for someone who gives no threshold: the figures at the usual one of each approach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.evaluation.experiment import Row
from likewise.evaluation.quality.ranking import Delivery, RankedScores, Relevance, delivery


@dataclass(frozen=True, slots=True)
class Usual:
    """A usual threshold and what it delivers, all subscriptions together and each alone."""

    threshold: float
    together: Delivery
    alone: Delivery

    @classmethod
    def of(
        cls, together: RankedScores, alone: RankedScores, relevant: Relevance, *, threshold: float | None
    ) -> Usual | None:
        """The figures of one run; none for an approach without a usual threshold."""
        if threshold is None:
            return None
        return cls(threshold, delivery(together, relevant, threshold), delivery(alone, relevant, threshold))


def usual_figures(found: Sequence[tuple[int, Usual]], *, chosen_on: int) -> Row:
    """Means over the seeds; held out are those after the ones that anything was chosen on.

    >>> one = Usual(0.5, Delivery(1.0, 0.5, 0.75), Delivery(0.5, 0.5, 0.25))
    >>> usual_figures([(1, one)], chosen_on=3)["alone F1"]
    0.25
    """
    row: dict[str, float] = {"at": found[0][1].threshold}
    for who in ("together", "alone"):
        for part in ("precision", "recall", "f1"):
            row[f"{who} {part.replace('f1', 'F1')}"] = _mean(found, who, part)
    late = [each for each in found if each[0] > chosen_on]
    if late:
        row |= {"held out": _mean(late, "together", "f1"), "alone held out": _mean(late, "alone", "f1")}
    return row


def _mean(found: Sequence[tuple[int, Usual]], who: str, part: str) -> float:
    return float(np.mean([getattr(getattr(each, who), part) for _, each in found]))


__all__ = ["Usual", "usual_figures"]
