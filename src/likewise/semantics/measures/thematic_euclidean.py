"""Thematic projection as printed: a hard basis, and Euclidean distance [000 sec 4.2, 4.3, Algorithm 1]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from likewise.semantics.measures.base import Matrix, Measure, Shared, Themes
from likewise.semantics.measures.esa import relatedness, shared_concepts
from likewise.semantics.space.space import Space
from likewise.semantics.space.vectors import Row, Vectors, dense_product, norms, unit
from likewise.semantics.space.weighting import Weighting
from likewise.semantics.text.phrase import TermPlaces

Basis = NDArray[np.bool_]
"""Which concepts a theme keeps."""


class ThematicEuclidean(Measure):
    """1 / (1 + distance) of both terms, each projected by its own side's theme [000 eq 5, 6].

    The basis of a theme is the concepts that hold any word of its tags. A word keeps its tf on the basis
    and gets a new idf, log(|B| / |B and docs(t)|). An empty theme filters nothing. A term that has no
    weight left after projection is 0 to all others, and so is every term under a theme of unknown words: the
    outliers of 000 sec 5.3.2. `thematic` is the better measure; this one is here to compare with the paper.
    `normalise` gives projected rows length 1 before the distance.
    """

    name = "thematic-euclidean"
    symmetric = True

    def __init__(
        self,
        space: Space,
        *,
        weighting: Weighting | None = None,
        pruning: int | None = None,
        normalise: bool = False,
    ) -> None:
        self.space = space
        self._vectors = Vectors(space, weighting=weighting, pruning=pruning, idf=False)
        self._normalise = normalise
        self._basis = lru_cache(maxsize=64)(self._find_basis)

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedDistance:
        """The subscription side, projected once; new event terms meet it cheaply."""
        return PreparedDistance(self, subscription_terms, subscription_theme)

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts of both themes with the largest products of both weights, each with its share of the score."""
        both = csr_matrix(vstack([self.project([mine], themes.subscription), self.project([theirs], themes.event)]))
        return shared_concepts(both, self.space, score=self._score(mine, theirs, themes), limit=limit)

    def project(self, terms: Sequence[str], theme: Sequence[str]) -> csr_matrix[np.float32]:
        """The rows of terms within a theme [000 Algorithm 1]."""
        basis = self._basis(tuple(sorted(set(theme))))
        incidence, ids = self.space.incidence(terms)
        size = int(basis.sum())
        words = [_project(row, basis, size) for row in self._vectors.words(ids)]
        rows = csr_matrix(incidence @ self._vectors.stack(words))
        return unit(rows) if self._normalise else rows

    def basis(self, theme: Sequence[str]) -> Basis:
        """The concepts where the vector of the theme is above 0; all of them for an empty theme."""
        return self._basis(tuple(sorted(set(theme)))).copy()

    def _find_basis(self, theme: tuple[str, ...]) -> Basis:
        if not theme:
            return np.ones(self.space.concepts, np.bool_)
        basis = np.zeros(self.space.concepts, np.bool_)
        _, ids = self.space.incidence(theme)
        _, concepts, _ = self.space.rows(ids[self.space.idf[ids] > 0])
        basis[concepts] = True
        return basis


class PreparedDistance:
    """Projected subscription terms as columns by concept; `rows` gives a row per event term."""

    def __init__(self, measure: ThematicEuclidean, terms: Sequence[str], theme: Sequence[str]) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._measure = measure
        rows = measure.project(terms, theme)
        self._norms = norms(rows)
        self._columns = csr_matrix(rows.T)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Thematic relatedness of every event term (row) with every prepared term (column)."""
        rows = self._measure.project(event_terms, event_theme)
        scores = relatedness(dense_product(rows, self._columns), norms(rows), self._norms)
        return self._names.mark(scores, event_terms)


def _project(row: Row, basis: Basis, size: int) -> Row:
    """One word on a basis of so many concepts: its tf there, times its idf among them."""
    concepts, weights = row
    inside = basis[concepts]
    kept = concepts[inside]
    if not 0 < len(kept) < size:
        return kept[:0], weights[:0]
    return kept, (weights[inside] * np.log(size / len(kept))).astype(np.float32)
