"""Measures that adjust the scores of another measure: scale them, or set some to 0."""

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
        """Prepare the subscription terms with the inner measure."""

    def apart(self, subscription_term: str, event_term: str) -> str:
        """Why the inner measure counts two terms as unrelated; empty if it does not."""
        return self._measure.apart(subscription_term, event_term)


class Rescaled(Adjusted):
    """Another measure with scaled scores; its reasons are those of the inner measure, scaled in the same way.

    The scale depends on the side, so it is not symmetric.
    """

    symmetric = False

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The reasons of the inner measure, scaled to the score."""
        before, after = self._measure._score(subscribed, published, themes), self._score(subscribed, published, themes)
        reasons = self._measure._reasons(subscribed, published, themes, limit)
        return [Shared(reason.concept, reason.weight * after / before) for reason in reasons] if before > 0 else []


class Parted(Adjusted):
    """Another measure with score 0 for pairs that differ in a way which the subclass defines."""

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure)
        # The inner name is kept, since thresholds and temperatures are chosen by name.
        self.name, self.symmetric = measure.name, measure.symmetric

    @abstractmethod
    def _difference(self, subscription_term: str, event_term: str) -> str:
        """Why two terms count as unrelated, in words; empty if they do not."""

    def apart(self, subscription_term: str, event_term: str) -> str:
        """Why two terms count as unrelated, by this measure or the inner one; empty if they do not."""
        return self._difference(subscription_term, event_term) or super().apart(subscription_term, event_term)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The reasons of the inner measure; none for terms that count as unrelated."""
        if self._difference(subscribed, published):
            return []
        return self._measure._reasons(subscribed, published, themes, limit)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        scores = self._measure._pair_scores(left, right, themes)
        for at in np.flatnonzero(scores):
            if self.apart(left[at], right[at]):
                scores[at] = 0
        return scores


class PreparedParted(ABC):
    """Prepared terms with score 0 for pairs that differ; `rows` gives a row per event term."""

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
        """Which prepared terms (columns) count as unrelated with each event term (row)."""
