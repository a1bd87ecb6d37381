"""Rank against a vocabulary: what a lone subscription can be measured by, when nobody competes with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.adjust.base import Beside
from likewise.semantics.competitors import Competitors
from likewise.semantics.measures.base import Matrix, Measure, Prepared
from likewise.semantics.text.phrase import TermPlaces

PATIENCE = 10.0
"""So many nearer terms halve a side's say: a term has about that many synonyms and relatives that do not count."""

OWN_SIDE = 0.2
"""The subscription side's share of the exponent; the rest is the event side's."""

_TIE = np.float32(1e-5)  # scores that differ by rounding only are the same


class Ranked(Beside):
    """r' = r * (1 + n_e / k)^-2(1-w) * (1 + n_s / k)^-2w, over any measure.

    n_e is how many terms of the vocabulary are nearer to the event term than the subscription term is, n_s how
    many are nearer to the subscription term than the event term is. The vocabulary is that of the events seen, so
    it works for a subscription that is alone, where contrast has no competitors; contrast over it serves both. The
    ranks do not depend on the scale of the measure. Identity stays 1; without a vocabulary it is the measure itself.
    It is not symmetric. Scores depend on the vocabulary, so everyone who must score alike has to hold the same version.
    """

    suffix = "rank"

    def __init__(
        self,
        measure: Measure,
        vocabulary: Competitors,
        *,
        patience: float = PATIENCE,
        own_side: float = OWN_SIDE,
    ) -> None:
        if not (patience > 0 and 0 <= own_side <= 1):
            raise BuildError(
                f"terms cannot be ranked with patience {patience} and an own side of {own_side}",
                hint="patience is above 0, own_side from 0 to 1",
            )
        super().__init__(measure, vocabulary)
        self._patience = patience
        self._own_side = own_side

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedRanked:
        """The subscription side and, once for each theme, the vocabulary, made ready."""
        theme = tuple(subscription_theme)
        own = self._measure.prepare(subscription_terms, subscription_theme=theme)
        return PreparedRanked(own, self._beside(theme), patience=self._patience, own_side=self._own_side)


class PreparedRanked:
    """Subscription terms and vocabulary, both prepared; `rows` gives a row per event term."""

    def __init__(self, own: Prepared, vocabulary: Prepared, *, patience: float, own_side: float) -> None:
        self._own = own
        self._vocabulary = vocabulary
        self._patience = np.float32(patience)
        self._own_side = own_side
        self._names = TermPlaces(vocabulary.terms)
        self._of_own: dict[tuple[str, ...], Matrix] = {}

    @property
    def terms(self) -> tuple[str, ...]:
        return self._own.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Ranked score of every event term (row) with every prepared term (column)."""
        scores = self._own.rows(event_terms, event_theme=event_theme)
        around = self._ordered(self._vocabulary.rows(event_terms, event_theme=event_theme), event_terms)
        event_side = 1 + nearer(around, scores) / self._patience
        own_side = 1 + nearer(self._around_own(tuple(event_theme)), scores.T).T / self._patience
        ranked = event_side ** (-2 * (1 - self._own_side)) * own_side ** (-2 * self._own_side)
        # What the measure calls the same stays the same.
        return np.where(scores >= 1, scores, scores * ranked).astype(np.float32)

    def _around_own(self, theme: tuple[str, ...]) -> Matrix:
        """A row per subscription term: its scores with the vocabulary, as terms of an event, in order."""
        if theme not in self._of_own:
            scores = self._own.rows(self._vocabulary.terms, event_theme=theme)
            self._of_own[theme] = self._ordered(np.ascontiguousarray(scores.T), self.terms)
        return self._of_own[theme]

    def _ordered(self, around: Matrix, terms: Sequence[str]) -> Matrix:
        """Each row in order, with 0 where a term meets itself in the vocabulary: nothing else can be as near."""
        ordered = around.copy()
        for row, term in enumerate(terms):
            ordered[row, self._names.columns(term)] = 0
        ordered.sort(axis=1)
        return ordered


def nearer(ordered: Matrix, scores: Matrix) -> NDArray[np.int64]:
    """For every row, how many of its surroundings, given in order, are above each of its scores.

    It is a binary search in all rows at once.

    >>> nearer(np.array([[0.1, 0.5, 0.9]], np.float32), np.array([[0.2, 0.5, 0.95]], np.float32)).tolist()
    [[2, 1, 0]]
    """
    size = ordered.shape[1]
    low, high = np.zeros(scores.shape, np.int64), np.full(scores.shape, size, np.int64)
    if size:
        sought, rows = scores + _TIE, np.arange(len(ordered))[:, None]
        for _ in range(size.bit_length()):
            middle = (low + high) // 2
            below = (low < high) & (ordered[rows, np.minimum(middle, size - 1)] <= sought)
            low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
    above: NDArray[np.int64] = size - low
    return above
