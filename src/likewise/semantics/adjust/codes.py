"""Codes are not words: "desk 112c" is no more like "desk 113a" than any other desk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise
from likewise.semantics.adjust.base import Parted
from likewise.semantics.measures.base import Matrix, Prepared


class Coded(Parted):
    """A measure that takes terms with different codes as unrelated; all other pairs are as they were.

    A code is a word with a digit in it. Numbers, rooms, models and formulas differ or not, and being
    near in a space says nothing about them. A term without a code is compared by meaning with any other.

    >>> codes("Room 112"), codes("kitchen")
    (frozenset({'112'}), frozenset())
    """

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedCoded:
        """The subscription side and its codes."""
        return PreparedCoded(self._measure.prepare(subscription_terms, subscription_theme=subscription_theme))

    def _difference(self, subscription_term: str, event_term: str) -> str:
        mine, theirs = codes(subscription_term), codes(event_term)
        if not _differ(mine, theirs):
            return ""
        return f"{' '.join(sorted(mine))} and {' '.join(sorted(theirs))} are different codes"


class PreparedCoded:
    """Prepared terms with their codes; `rows` gives a row per event term."""

    def __init__(self, inner: Prepared) -> None:
        self._inner = inner
        self._same: dict[frozenset[str], list[int]] = defaultdict(list)
        for at, own in enumerate(map(codes, inner.terms)):
            self._same[own].append(at)
        self._coded = np.ones(len(inner.terms), np.bool_)
        self._coded[self._same.pop(frozenset(), [])] = False

    @property
    def terms(self) -> tuple[str, ...]:
        return self._inner.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """A row per event term, a column per prepared term."""
        scores = self._inner.rows(event_terms, event_theme=event_theme)
        apart = self._apart(event_terms)
        return np.where(apart, np.float32(0), scores) if apart.any() else scores

    def _apart(self, event_terms: Sequence[str]) -> NDArray[np.bool_]:
        apart = np.zeros((len(event_terms), len(self.terms)), np.bool_)
        for row, theirs in enumerate(map(codes, event_terms)):
            if theirs:
                apart[row] = self._coded
                apart[row, self._same.get(theirs, [])] = False
        return apart


def codes(term: str) -> frozenset[str]:
    """The words of a term that have a digit in them."""
    return frozenset(word for word in normalise(term).split() if any(map(str.isdigit, word)))


def _differ(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and bool(other) and one != other
