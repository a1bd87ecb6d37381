"""Several measures or spaces as one: a mean of their scores, or the hybrid of Jiang-Conrath and ESA [002 sec 5.3.2]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Prepared, Scores, Shared, Themes, same_marked
from likewise.semantics.text import TermPlaces, mark_identical


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


TOP = 5


class Hybrid(Measure):
    """Values by ESA, `matrix`; properties by ESA lifted by their Jiang-Conrath rank, `property_matrix`.

    A rank has a meaning only within one event, so `property_matrix` takes the properties of one event and ranks
    among them; `matrix` knows no rank and is ESA alone [002 eq 22]. `property_matrix` is not symmetric.
    """

    name = "hybrid"
    symmetric = True

    def __init__(self, esa: Measure, similarity: Measure, *, top: int = TOP) -> None:
        if top < 1:
            raise BuildError(f"no properties are left in a top {top}", hint="choose 1 or more; the paper has 5")
        self._esa = esa
        self._similarity = similarity
        self._top = top

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """The subscription's values, made ready by the ESA measure."""
        return self._esa.prepare(subscription_terms, subscription_theme=subscription_theme)

    def property_matrix(self, subscription_terms: Sequence[str], event_terms: Sequence[str]) -> Matrix:
        """fP = min(1, (m - rank + 1) * ESA) for the m best properties of the event, 0 for the others [eq 14, 15].

        The event terms are the properties of one event; equal ones share their rank.
        """
        similar = self._similarity.matrix(subscription_terms, event_terms)
        lift = np.maximum(self._top - ranks(similar) + 1, 0)
        scores = lift * self._esa.matrix(subscription_terms, event_terms)
        return mark_identical(np.minimum(scores, 1).astype(np.float32), subscription_terms, event_terms)

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The shared concepts of the ESA measure."""
        return self._esa._reasons(mine, theirs, themes, limit)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        return self._esa._pair_scores(left, right, themes)


def ranks(scores: Matrix) -> NDArray[np.int64]:
    """The rank of each entry in its row, from 1 for the largest; equal scores share the better rank.

    >>> ranks(np.array([[0.2, 0.9, 0.2]], np.float32)).tolist()
    [[2, 1, 2]]
    """
    falling = -np.sort(-scores, axis=1)
    rows = [np.searchsorted(-large, -row, side="left") + 1 for large, row in zip(falling, scores, strict=True)]
    return np.array(rows, np.int64).reshape(scores.shape)
