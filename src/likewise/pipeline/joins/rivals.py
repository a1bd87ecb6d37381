"""The score of a join: the evidence for a pair, weighed against the rivals of its right term.

Two terms that are compared alone may share a word and still be strangers: a coffee machine is a machine, and so is a
washing machine. In a join the right side lists what there is to choose from, so a pair loses where another term of
the right explains the left term nearly as well, or better. Terms of the right that mean the same are no rivals. It also
tells which words of a left term matter (see `NameReader`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.pipeline.joins.names import NameReader, ReadNames
from likewise.semantics import Evidence, Matrix, Measure, Prepared, Shared, Themes

__all__ = ["AmongRivals", "scoring"]

GAIN: Final = 1.0
"""Bits in favour: what stands in a table to be joined has a partner more often than two terms met by chance."""
MARGIN: Final = 2.0
"""By so many bits a pair must be ahead of its rivals to keep its score."""
SLOPE: Final = 3.0
"""Bits lost for each bit that it is not."""
RIVALS: Final = 4
"""The best terms of the right for a left term, which are looked at as rivals."""
_EDGE: Final = 1e-4
_WEAK: Final = -4.0
"""Pairs below so many bits join nothing, so nobody asks whether they mean the same."""

Bits = NDArray[np.float64]


def scoring(measure: Measure, *, rivals: bool) -> Measure:
    """The measure of a join: evidence is weighed among rivals if these are known; other measures stay as they are."""
    return AmongRivals(measure) if rivals and isinstance(measure, Evidence) else measure


class AmongRivals(Measure):
    """A measure whose probabilities depend on what else there is on the subscription's side.

    For a pair of b bits, and a best rival of r: b + GAIN - SLOPE max(0, r - b + MARGIN). A rival loses the bits
    log2(1 - s) where s is the probability that it means the same. The same term stays 1, and 0 stays 0.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("coffee machine", "espresso maker"): 0.8, ("washing machine", "espresso maker"): 0.6})
    >>> scores = AmongRivals(table).matrix(["coffee machine", "washing machine"], ["espresso maker"])
    >>> [round(float(score), 2) for score in scores[:, 0]]
    [0.7, 0.0]
    """

    name = "evidence"
    symmetric = False

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        ready = self._measure.prepare(subscription_terms, subscription_theme=subscription_theme)
        return _Ranged(self._measure, ready, tuple(subscription_theme))

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        asked = {"subscription_theme": themes.subscription, "event_theme": themes.event}
        return self._measure.reason(mine, theirs, **asked, limit=limit)


class _Ranged:
    """The right side of a join, made ready."""

    def __init__(self, measure: Measure, ready: Prepared, theme: tuple[str, ...]) -> None:
        self._measure = measure
        self._ready = ready
        self._theme = theme
        self._reader = NameReader(ready.terms)
        self._same: dict[tuple[int, int], float] = {}

    @property
    def terms(self) -> tuple[str, ...]:
        return self._ready.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        if not event_terms or not self.terms:
            return self._ready.rows(event_terms, event_theme=event_theme)
        names = ReadNames(self._reader, event_terms)
        scores = self._ready.rows(names.texts, event_theme=event_theme)
        bits = names.best(_bits(scores))
        found = _probability(bits + GAIN - SLOPE * np.maximum(0.0, self._rivals(bits) - bits + MARGIN))
        first = scores[names.first]
        same = (first >= 1) & names.whole[:, None]
        # What no reading has anything in common with stays at nothing.
        found[np.isneginf(names.best(np.where(scores > 0, 0.0, -np.inf)))] = 0
        return np.where(same, first, found).astype(np.float32)

    def _rivals(self, bits: Bits) -> Bits:
        """For each pair the bits of its best rival."""
        count = bits.shape[1]
        if count == 1:
            return np.full(bits.shape, -np.inf)
        # Equal scores go by place, so that every run looks at the same ones.
        order = bits - np.arange(count) * 1e-9
        size = min(RIVALS, count)
        best = np.argpartition(-order, size - 1, axis=1)[:, :size]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(order, best, 1), axis=1), 1)
        top = np.take_along_axis(bits, best, 1)
        rivals = np.repeat(top[:, :1], count, axis=1)
        others = top[:, None, :] + self._apart(best, top)
        np.put_along_axis(rivals, best, others.max(axis=2), 1)
        return rivals

    def _apart(self, best: NDArray[np.int64], top: Bits) -> Bits:
        """For each of the best terms what the others lose as its rivals: all, for the term itself."""
        rows, size = best.shape
        lost = np.zeros((rows, size, size))
        lost[:, np.arange(size), np.arange(size)] = -np.inf
        strong = (top[:, :, None] > _WEAK) & (top[:, None, :] > _WEAK) & np.triu(np.ones((size, size), np.bool_), 1)
        row, one, other = np.nonzero(strong)
        keys = list(zip(best[row, one].tolist(), best[row, other].tolist(), strict=True))
        self._learn(keys)
        lost[row, one, other] = lost[row, other, one] = [self._same[key] for key in keys]
        return lost

    def _learn(self, keys: list[tuple[int, int]]) -> None:
        """How far two terms of the right are from meaning the same, in bits; one that contains the other does not."""
        new = [key for key in dict.fromkeys(keys) if key not in self._same]
        if not new:
            return
        # All of them at once: a row of many pairs costs hardly more than one of a single pair.
        places, at = np.unique(np.array(new), return_inverse=True)
        terms = [self.terms[place] for place in places.tolist()]
        themes = {"subscription_theme": self._theme, "event_theme": self._theme}
        scores = self._measure.matrix(terms, terms, **themes)
        one, other = at.reshape(len(new), 2).T
        same = np.minimum(scores[one, other], scores[other, one]).astype(np.float64)
        self._same |= dict(zip(new, np.log2(np.maximum(1.0 - same, _EDGE)).tolist(), strict=True))


def _bits(scores: Matrix) -> Bits:
    inside = np.clip(scores.astype(np.float64), _EDGE, 1 - _EDGE)
    return np.asarray(np.log2(inside / (1 - inside)))


def _probability(bits: Bits) -> Bits:
    return np.asarray(1 / (1 + np.exp2(-np.clip(bits, -100, 100))))
