"""Several measures or spaces combined: a mean of scores, or the hybrid of Jiang-Conrath and ESA [002 sec 5.3.2]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Prepared, Scores, Shared, Themes, same_marked
from likewise.semantics.text import TermPlaces, mark_identical


class Combined(Measure):
    """Weighted mean of powers of the parts' scores; by default of their square roots.

    Cosines of sparse rows are mostly near 0; the square root spreads them, so that no part dominates. `power=1` is the
    plain mean. The measure is symmetric if all parts are.
    """

    name = "combined"

    def __init__(
        self, measures: Sequence[Measure], *, weights: Sequence[float] | None = None, power: float = 0.5
    ) -> None:
        shares = [1.0] * len(measures) if weights is None else list(weights)
        if not measures or len(shares) != len(measures) or min(shares) < 0 or sum(shares) <= 0 or not power > 0:
            raise BuildError(
                "these measures and weights cannot be combined",
                hint="give at least one measure, a weight for each (not negative, not all 0), and a power above 0",
            )
        self._measures = tuple(measures)
        self._shares = np.array(shares, np.float32) / np.float32(sum(shares))
        self._power = power
        self.symmetric = all(measure.symmetric for measure in measures)

    @property
    def parts(self) -> tuple[Measure, ...]:
        """The combined measures."""
        return self._measures

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedCombined:
        """Prepare the subscription terms with every part."""
        parts = [part.prepare(subscription_terms, subscription_theme=subscription_theme) for part in self._measures]
        return PreparedCombined(tuple(subscription_terms), parts, self._shares, self._power)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The reasons of all parts, scaled by each part's contribution to the score."""
        reasons: list[Shared] = []
        for measure, share in zip(self._measures, self._shares, strict=True):
            score = measure._score(subscribed, published, themes)
            scale = float(share) * score**self._power / score if score > 0 else 0.0
            shared = measure._reasons(subscribed, published, themes, limit)
            reasons += [Shared(reason.concept, reason.weight * scale) for reason in shared]
        return sorted(reasons, key=lambda reason: (-reason.weight, reason.concept))[:limit]

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


TOP = 5


class Hybrid(Measure):
    """Values by ESA (`matrix`), properties by ESA times their Jiang-Conrath rank (`property_matrix`).

    Ranks are relative to one event, so `property_matrix` takes the properties of one event; `matrix` uses no ranks and
    is ESA alone [002 eq 22]. `property_matrix` is not symmetric.
    """

    name = "hybrid"
    symmetric = True

    def __init__(self, esa: Measure, similarity: Measure, *, top: int = TOP, lifted: bool = True) -> None:
        """`top` is the paper's m; without `lifted`, ranks only decide which properties count."""
        if top < 1:
            raise BuildError(f"top={top} leaves no properties", hint="give 1 or more; the paper has 5")
        self._esa = esa
        self._similarity = similarity
        self._top = top
        self._lifted = lifted

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """Prepare the subscription's values with the ESA measure."""
        return self._esa.prepare(subscription_terms, subscription_theme=subscription_theme)

    def property_matrix(self, subscription_terms: Sequence[str], event_terms: Sequence[str]) -> Matrix:
        """fP = min(1, (m - rank + 1) * ESA) for the m best properties of the event, else 0 [002 eq 14, 15].

        The event terms are the properties of one event; equal scores share a rank.
        """
        similar = self._similarity.matrix(subscription_terms, event_terms)
        left = np.maximum(self._top - ranks(similar) + 1, 0)
        factor = left if self._lifted else np.minimum(left, 1)
        scores = factor * self._esa.matrix(subscription_terms, event_terms)
        return mark_identical(np.minimum(scores, 1).astype(np.float32), subscription_terms, event_terms)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The shared concepts of the ESA measure."""
        return self._esa._reasons(subscribed, published, themes, limit)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        return self._esa._pair_scores(left, right, themes)


def ranks(scores: Matrix) -> NDArray[np.int64]:
    """The rank of each entry in its row, from 1 for the largest; equal scores share the better rank.

    >>> ranks(np.array([[0.2, 0.9, 0.2]], np.float32)).tolist()
    [[2, 1, 2]]
    """
    descending = -np.sort(-scores, axis=1)
    rows = [np.searchsorted(-order, -row, side="left") + 1 for order, row in zip(descending, scores, strict=True)]
    return np.array(rows, np.int64).reshape(scores.shape)
