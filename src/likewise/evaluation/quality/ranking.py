"""Quality of rankings: precision, recall, F1, and their means over subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

RankedScores: TypeAlias = NDArray[np.float32]
"""A row per subscription, a column per event."""

Relevance: TypeAlias = NDArray[np.bool_]
"""True where the event is relevant to the subscription; the same shape as the scores."""

RECALLS = np.linspace(0, 1, 11)
"""The eleven recall levels of the interpolated curve [002 sec 6]."""

ROUNDING = 1e-6
"""A score that is below a threshold by no more than this reaches it, as in a matcher."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Precision and recall at every distinct threshold, the highest threshold first."""

    thresholds: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]

    @property
    def f1(self) -> NDArray[np.float64]:
        """F1 at every threshold."""
        total = self.precision + self.recall
        return np.divide(2 * self.precision * self.recall, total, out=np.zeros_like(total), where=total > 0)

    @property
    def best(self) -> tuple[float, float]:
        """The maximal F1 and the threshold that gives it."""
        if not len(self.thresholds):
            return 0.0, 0.0
        place = int(np.argmax(self.f1))
        return float(self.f1[place]), float(self.thresholds[place])

    def best_near(self, preferred: float) -> tuple[float, float]:
        """The maximal F1, and of the thresholds that give it the preferred one, else the middle one.

        >>> separable = curve(np.array([0.9, 0.8, 0.2]), np.array([True, True, False]))
        >>> separable.best_near(0.5), separable.best_near(0.1)
        ((1.0, 0.5), (1.0, 0.5))
        """
        f1, highest = self.best
        below = self.thresholds[self.thresholds < highest]
        lowest = float(below[0]) if len(below) else 0.0
        return f1, preferred if lowest < preferred <= highest else (lowest + highest) / 2


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of one run, and the maximal F1 of each subscription."""

    mean_max_f1: float
    curve_max_f1: float
    global_f1: float
    global_threshold: float
    each: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Precision, recall and F1 at one threshold, as means over subscriptions."""

    precision: float
    recall: float
    f1: float


def delivery(scores: RankedScores, relevant: Relevance, threshold: float) -> Delivery:
    """Precision, recall and F1 at a threshold; a subscription without any delivered event has precision 0.

    Subscriptions without any relevant event do not count.

    >>> delivery(np.array([[0.9, 0.5, 0.1]], np.float32), np.array([[True, False, True]]), 0.5)
    Delivery(precision=0.5, recall=0.5, f1=0.5)
    """
    has_relevant = relevant.any(axis=1)
    scores, relevant = scores[has_relevant], relevant[has_relevant]
    delivered = (scores > 0) & (scores >= threshold - ROUNDING)
    right, given, wanted = ((delivered & relevant).sum(axis=1), delivered.sum(axis=1), relevant.sum(axis=1))
    parts = (right / np.maximum(1, given), right / wanted, 2 * right / (given + wanted))
    return Delivery(*(float(part.mean()) if len(part) else 0.0 for part in parts))


def curve(scores: NDArray[np.floating], relevant: Relevance) -> Curve:
    """Precision and recall at every distinct score as threshold.

    An event with score 0 is never delivered.

    >>> example = curve(np.array([0.9, 0.5, 0.5, 0.0]), np.array([True, True, False, True]))
    >>> example.thresholds.tolist(), example.precision.round(2).tolist(), example.recall.round(2).tolist()
    ([0.9, 0.5], [1.0, 0.67], [0.33, 0.67])
    """
    ordered, right = np.sort(scores), np.sort(scores[relevant])
    thresholds = ordered[np.append(ordered[1:] != ordered[:-1], len(ordered) > 0) & (ordered > 0)][::-1]
    delivered = len(ordered) - np.searchsorted(ordered, thresholds)
    right_delivered = len(right) - np.searchsorted(right, thresholds)
    recall = right_delivered / len(right) if len(right) else np.zeros(len(thresholds))
    return Curve(thresholds.astype(np.float64), right_delivered / delivered, recall)


def max_f1(scores: NDArray[np.floating], relevant: Relevance) -> float:
    """The maximal F1 of one subscription over all thresholds [002 sec 6.2].

    >>> max_f1(np.array([0.9, 0.8, 0.1]), np.array([True, True, False]))
    1.0
    """
    return curve(scores, relevant).best[0]


def interpolated(scores: NDArray[np.floating], relevant: Relevance) -> NDArray[np.float64]:
    """Interpolated precision at eleven recall levels: the best precision at that recall or higher.

    >>> interpolated(np.array([0.9, 0.5]), np.array([False, True])).tolist() == [0.5] * 11
    True
    """
    return _at_recalls(curve(scores, relevant))


def _at_recalls(ranked: Curve) -> NDArray[np.float64]:
    beyond = np.maximum.accumulate(ranked.precision[::-1])[::-1]
    place = np.searchsorted(ranked.recall, RECALLS - 1e-12)
    return np.append(beyond, 0.0)[place]


def curve_max_f1(scores: RankedScores, relevant: Relevance) -> float:
    """The maximal F1 on the eleven-point curve averaged over subscriptions."""
    return _best_of_mean([curve(*row) for row in zip(scores, relevant, strict=True)])


def _best_of_mean(curves: Sequence[Curve]) -> float:
    return best_on_levels(np.mean([_at_recalls(ranked) for ranked in curves], axis=0))[0]


def best_on_levels(precision: NDArray[np.float64]) -> tuple[float, float, float]:
    """The maximal F1 on an eleven-point curve, and recall and precision there [002 tables 5 and 8].

    >>> best_on_levels(np.array([1.0] * 6 + [0.0] * 5))
    (0.6666666666666666, 0.5, 1.0)
    """
    total = precision + RECALLS
    f1 = np.divide(2 * precision * RECALLS, total, out=np.zeros(11), where=total > 0)
    place = int(np.argmax(f1))
    return float(f1[place]), float(RECALLS[place]), float(precision[place])


def global_f1(scores: RankedScores, relevant: Relevance) -> tuple[float, float]:
    """The best mean F1 with one threshold for all subscriptions, and that threshold.

    >>> global_f1(np.array([[0.9, 0.2], [0.6, 0.1]], dtype=np.float32), np.array([[True, False], [True, False]]))
    (1.0, 0.6000000238418579)
    """
    relevant_scores = scores[relevant & (scores > 0)]
    if not len(relevant_scores):
        return 0.0, 0.0
    thresholds = np.unique(np.quantile(relevant_scores.astype(np.float64), np.linspace(0, 1, 400), method="nearest"))
    f1 = np.mean([_f1_at(row, truth, thresholds) for row, truth in zip(scores, relevant, strict=True)], axis=0)
    place = int(np.argmax(f1))
    return float(f1[place]), float(thresholds[place])


def quality(scores: RankedScores, relevant: Relevance) -> Quality:
    """All figures of one run."""
    curves = [curve(*row) for row in zip(scores, relevant, strict=True)]
    best_f1 = np.array([ranked.best[0] for ranked in curves])
    best, threshold = global_f1(scores, relevant)
    return Quality(float(best_f1.mean()), _best_of_mean(curves), best, threshold, best_f1)


def _f1_at(scores: NDArray[np.floating], relevant: Relevance, thresholds: NDArray[np.floating]) -> NDArray[np.float64]:
    ordered, right = np.sort(scores), np.sort(scores[relevant])
    delivered = len(ordered) - np.searchsorted(ordered, thresholds)
    right_delivered = len(right) - np.searchsorted(right, thresholds)
    return np.asarray(2 * right_delivered / np.maximum(1, delivered + len(right)))
