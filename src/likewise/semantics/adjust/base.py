"""Measures that adjust the scores of another: scale them, or hold some terms apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.semantics.measures.base import Matrix, Measure, Prepared, Scores, Shared, Themes


class Adjusted(Measure):
    """Another measure, adjusted."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    @abstractmethod
    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """The subscription side, made ready by the measure inside."""

    def apart(self, subscription_term: str, event_term: str) -> str:
        """What the measure inside says."""
        return self._measure.apart(subscription_term, event_term)


class Rescaled(Adjusted):
    """Another measure with other scores; its reasons are those of the measure inside, scaled with the score.

    The sides are not alike, so it is not symmetric.
    """

    symmetric = False

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The measure's own reasons, scaled to the score."""
        before, after = self._measure._score(mine, theirs, themes), self._score(mine, theirs, themes)
        shared = self._measure._reasons(mine, theirs, themes, limit)
        return [Shared(one.concept, one.weight * after / before) for one in shared] if before > 0 else []


# Measures that hold some terms apart, however related another measure finds them.


class Parted(Adjusted):
    """Another measure, except for terms that are held apart; what they are is for the kinds of it to say."""

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure)
        # What is chosen by name, such as a temperature, stays right.
        self.name, self.symmetric = measure.name, measure.symmetric

    @abstractmethod
    def _difference(self, subscription_term: str, event_term: str) -> str:
        """What holds two terms apart, in words; empty if nothing does."""

    def apart(self, subscription_term: str, event_term: str) -> str:
        """What holds two terms apart; else what the measure inside says."""
        told = self._difference(subscription_term, event_term)
        return told or super().apart(subscription_term, event_term)

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The measure's own reasons; none for terms that are held apart."""
        return [] if self._difference(mine, theirs) else self._measure._reasons(mine, theirs, themes, limit)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        scores = self._measure._pair_scores(left, right, themes)
        for at in np.flatnonzero(scores):
            if self.apart(left[at], right[at]):
                scores[at] = 0
        return scores


class PreparedParted(ABC):
    """Prepared terms of which some are held apart from an event's; `rows` gives a row per event term."""

    def __init__(self, inner: Prepared) -> None:
        self._inner = inner

    @property
    def terms(self) -> tuple[str, ...]:
        return self._inner.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """A row per event term, a column per prepared term."""
        scores = self._inner.rows(event_terms, event_theme=event_theme)
        apart = self._apart(event_terms)
        return np.where(apart, np.float32(0), scores) if apart.any() else scores

    @abstractmethod
    def _apart(self, event_terms: Sequence[str]) -> NDArray[np.bool_]:
        """Which prepared terms (columns) are held apart from each event term (row)."""
