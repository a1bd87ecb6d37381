"""Contrast: a pair counts by how much closer it is than the pairs it competes with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.adjust.base import Beside
from likewise.semantics.competitors import Competitors
from likewise.semantics.measures.base import Matrix, Measure, Prepared

TEMPERATURES = {"combined": 0.01, "embedding": 0.05, "esa": 0.005, "thematic": 0.005}
"""How sharply each measure's scores are contrasted, on the scale of its own scores; chosen by matching quality."""

_DEFAULT_TEMPERATURE = 0.02


class Contrast(Beside):
    """r' = r * softmax_tau(r over competitors) / max of it, over any measure.

    The quotient of the two softmax values is exp((r - r_max) / tau), where r_max is the best score that
    the event term has with any competitor or with the subscription term itself: only the maximum of the
    competitors' column is needed. The best partner keeps its score, and identity stays 1. The sides are
    not alike, so it is not symmetric. Without competitors it is the measure itself.
    """

    suffix = "contrast"

    def __init__(self, measure: Measure, competitors: Competitors, *, temperature: float | None = None) -> None:
        self._tau = TEMPERATURES.get(measure.name, _DEFAULT_TEMPERATURE) if temperature is None else temperature
        if not self._tau > 0:
            raise BuildError(f"the temperature of a contrast cannot be {self._tau}", hint="choose a number above 0")
        super().__init__(measure, competitors)

    @property
    def temperature(self) -> float:
        """Differences of scores much larger than this decide; much smaller ones do not count."""
        return self._tau

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedContrast:
        """The subscription side and, once for each theme, the competitors, made ready."""
        theme = tuple(subscription_theme)
        competitors = own = self._beside(theme)
        if tuple(subscription_terms) != competitors.terms:
            own = self._measure.prepare(subscription_terms, subscription_theme=theme)
        return PreparedContrast(own, competitors, self._tau)


class PreparedContrast:
    """Subscription terms and competitors, both prepared; `rows` gives a row per event term."""

    def __init__(self, own: Prepared, competitors: Prepared, tau: float) -> None:
        self._own = own
        self._competitors = competitors
        self._tau = tau

    @property
    def terms(self) -> tuple[str, ...]:
        return self._own.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Contrasted score of every event term (row) with every prepared term (column)."""
        scores = self._own.rows(event_terms, event_theme=event_theme)
        rivals = (
            scores if self._own is self._competitors else self._competitors.rows(event_terms, event_theme=event_theme)
        )
        return contrasted(scores, rivals.max(axis=1, initial=0.0), self._tau)


def contrasted(scores: Matrix, rival: NDArray[np.float32], tau: float) -> Matrix:
    """Scores (a row per event term) against the best score of that event term's competitors.

    >>> contrasted(np.array([[0.5, 0.25]], np.float32), np.array([0.5], np.float32), 0.1).round(2).astype(str).tolist()
    [['0.5', '0.02']]
    """
    best = np.maximum(scores, rival[:, None])
    # In double precision: NumPy's single precision differs in the last digit by the length of an array.
    return np.asarray(scores * np.exp((scores - best).astype(np.float64) / tau), np.float32)


__all__ = ["TEMPERATURES", "Competitors", "Contrast", "PreparedContrast", "contrasted"]
