"""Precision, recall and F1 at the default threshold of each approach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.evaluation.experiment import Row
from likewise.evaluation.quality.ranking import Delivery, RankedScores, Relevance, delivery


@dataclass(frozen=True, slots=True)
class Usual:
    """A default threshold and its figures, with all subscriptions together and each alone."""

    threshold: float
    together: Delivery
    alone: Delivery

    @classmethod
    def of(
        cls, together: RankedScores, alone: RankedScores, relevant: Relevance, *, threshold: float | None
    ) -> Usual | None:
        """The figures of one run; None for an approach without a default threshold."""
        if threshold is None:
            return None
        return cls(threshold, delivery(together, relevant, threshold), delivery(alone, relevant, threshold))


def usual_figures(found: Sequence[tuple[int, Usual]], *, chosen_on: int) -> Row:
    """Means over the seeds; seeds above `chosen_on` are held out, since nothing was tuned on them.

    >>> figures = Usual(0.5, Delivery(1.0, 0.5, 0.75), Delivery(0.5, 0.5, 0.25))
    >>> usual_figures([(1, figures)], chosen_on=3)["alone F1"]
    0.25
    """
    row: dict[str, float] = {"at": found[0][1].threshold}
    for who in ("together", "alone"):
        for part in ("precision", "recall", "f1"):
            row[f"{who} {part.replace('f1', 'F1')}"] = _mean(found, who, part)
    held_out = [(seed, figures) for seed, figures in found if seed > chosen_on]
    if held_out:
        row |= {"held out": _mean(held_out, "together", "f1"), "alone held out": _mean(held_out, "alone", "f1")}
    return row


def _mean(found: Sequence[tuple[int, Usual]], who: str, part: str) -> float:
    return float(np.mean([getattr(getattr(figures, who), part) for _, figures in found]))


__all__ = ["Usual", "usual_figures"]
