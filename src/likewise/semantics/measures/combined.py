"""Several measures or spaces as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Prepared, Scores, Shared, Themes
from likewise.semantics.measures.pairs import same_marked
from likewise.semantics.text.phrase import TermPlaces


class Combined(Measure):
    """Weighted mean of powers of the parts' scores; by default of their square roots.

    Cosines of sparse rows crowd near 0; the root spreads them, so that no part drowns the others. `power=1`
    is the plain mean. It is symmetric if all parts are.
    """

    name = "combined"

    def __init__(
        self, measures: Sequence[Measure], *, weights: Sequence[float] | None = None, power: float = 0.5
    ) -> None:
        shares = [1.0] * len(measures) if weights is None else list(weights)
        if not measures or len(shares) != len(measures) or min(shares) < 0 or sum(shares) <= 0 or not power > 0:
            raise BuildError(
                "measures cannot be combined so", hint="one positive weight for each measure, power above 0"
            )
        self._measures = tuple(measures)
        self._shares = np.array(shares, np.float32) / np.float32(sum(shares))
        self._power = power
        self.symmetric = all(measure.symmetric for measure in measures)

    @property
    def parts(self) -> tuple[Measure, ...]:
        """What it is made of."""
        return self._measures

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedCombined:
        """The subscription side of every part, made ready."""
        parts = [each.prepare(subscription_terms, subscription_theme=subscription_theme) for each in self._measures]
        return PreparedCombined(tuple(subscription_terms), parts, self._shares, self._power)

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The reasons of all parts, each scaled to what its part adds to the score."""
        found: list[Shared] = []
        for measure, share in zip(self._measures, self._shares, strict=True):
            score = measure._score(mine, theirs, themes)
            scale = float(share) * score**self._power / score if score > 0 else 0.0
            found += [Shared(one.concept, one.weight * scale) for one in measure._reasons(mine, theirs, themes, limit)]
        return sorted(found, key=lambda one: (-one.weight, one.concept))[:limit]

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        total = np.zeros(len(left), np.float32)
        for measure, share in zip(self._measures, self._shares, strict=True):
            total += share * np.power(measure._pair_scores(left, right, themes), np.float32(self._power))
        return same_marked(np.minimum(total, np.float32(1)), left, right)


class PreparedCombined:
    """All parts prepared for the same terms; `rows` gives a row per event term."""

    def __init__(
        self, terms: tuple[str, ...], parts: Sequence[Prepared], shares: NDArray[np.float32], power: float
    ) -> None:
        self.terms = terms
        self._names = TermPlaces(terms)
        self._parts = parts
        self._shares = shares
        self._power = np.float32(power)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Combined score of every event term (row) with every prepared term (column)."""
        total = np.zeros((len(event_terms), len(self.terms)), np.float32)
        for part, share in zip(self._parts, self._shares, strict=True):
            total += share * np.power(part.rows(event_terms, event_theme=event_theme), self._power)
        # Shares add up to 1 only up to rounding.
        return self._names.mark(np.minimum(total, np.float32(1)), event_terms)
