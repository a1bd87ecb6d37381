"""The hybrid of Jiang-Conrath and ESA [002 sec 5.3.2, equations 14 and 15]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Prepared, Scores, Shared, Themes
from likewise.semantics.text.phrase import mark_identical

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
