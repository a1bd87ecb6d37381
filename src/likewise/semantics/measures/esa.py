"""Explicit semantic analysis: terms as vectors of concepts, compared by angle or by distance [000, 002, 004]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.calibration import STRONGEST_POSTINGS
from likewise.semantics.measures.base import Matrix, Measure, Scores, Shared, Themes, cosines
from likewise.semantics.space.space import Space, Weighting
from likewise.semantics.space.vectors import Vectors, dense_product, norms, unit
from likewise.semantics.text import TermPlaces


class Esa(Measure):
    """Cosine of tf-idf rows. Themes are not used.

    Rows are pruned to their strongest postings, and all words of a phrase have equal weight: both improve quality, on
    human judgements and in matching. The papers' version is `weighting="augmented", pruning=None, unit_words=False`.
    """

    name = "esa"
    symmetric = True

    def __init__(
        self,
        space: Space,
        *,
        weighting: Weighting | None = None,
        pruning: int | None = STRONGEST_POSTINGS,
        unit_words: bool = True,
    ) -> None:
        self.space = space
        self._vectors = Vectors(space, weighting=weighting, pruning=pruning, unit_words=unit_words)

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedEsa:
        """Subscription terms as a transposed matrix, for fast products with event terms."""
        return PreparedEsa(subscription_terms, self._vectors)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts with the largest products of both weights, each with its share of the score."""
        rows = self._vectors.rows([subscribed, published])
        return shared_concepts(rows, self.space, score=self._score(subscribed, published, themes), limit=limit)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        return cosines(left, right, self._vectors.units, self._vectors.units)


class PreparedEsa:
    """Subscription terms as columns by concept; `rows` gives a row per event term."""

    def __init__(self, terms: Sequence[str], vectors: Vectors) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._vectors = vectors
        self._columns = csr_matrix(unit(vectors.rows(terms)).T)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Cosine of every event term (row) with every prepared term (column)."""
        scores = dense_product(self._vectors.units(event_terms), self._columns)
        np.clip(scores, 0.0, 1.0, out=scores)
        return self._names.mark(scores, event_terms)


class EsaEuclidean(Esa):
    """1 / (1 + Euclidean distance) of tf-idf rows [000 eq 5, 6]: the non-thematic baseline of 000.

    A term without a known word has relatedness 0 with all others, though its distance to short vectors is small.
    `normalise` gives all rows length 1 first, so that short vectors have no advantage.
    """

    name = "esa-euclidean"

    def __init__(
        self,
        space: Space,
        *,
        weighting: Weighting | None = None,
        pruning: int | None = STRONGEST_POSTINGS,
        unit_words: bool = False,
        normalise: bool = False,
    ) -> None:
        super().__init__(space, weighting=weighting, pruning=pruning, unit_words=unit_words)
        self._normalise = normalise

    def prepare(
        self,
        subscription_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
    ) -> PreparedEuclidean:
        """Subscription terms as a transposed matrix, for fast products with event terms."""
        return PreparedEuclidean(subscription_terms, self._vectors, normalise=self._normalise)

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        # A distance also needs the lengths, so pairs are scored by matrices.
        return Measure._pair_scores(self, left, right, themes)


class PreparedEuclidean(PreparedEsa):
    """Subscription terms as columns by concept, with their lengths."""

    def __init__(self, terms: Sequence[str], vectors: Vectors, *, normalise: bool) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._vectors = vectors
        self._normalise = normalise
        rows = self._rows(terms)
        self._norms = norms(rows)
        self._columns = csr_matrix(rows.T)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Relatedness of every event term (row) with every prepared term (column)."""
        rows = self._rows(event_terms)
        scores = relatedness(dense_product(rows, self._columns), norms(rows), self._norms)
        return self._names.mark(scores, event_terms)

    def _rows(self, terms: Sequence[str]) -> csr_matrix[np.float32]:
        rows = self._vectors.rows(terms)
        return unit(rows) if self._normalise else rows


def relatedness(products: Matrix, left: NDArray[np.float32], right: NDArray[np.float32]) -> Matrix:
    """1 / (1 + distance) from dot products and lengths [000 eq 5, 6]; 0 if a side has no vector.

    >>> relatedness(np.array([[0.5]], np.float32), np.array([1.0]), np.array([1.0])).tolist()  # 1 / (1 + 1)
    [[0.5]]
    """
    squares = left[:, None] ** 2 + right[None, :] ** 2 - 2 * products
    scores = 1.0 / (1.0 + np.sqrt(np.maximum(squares, 0.0)))
    return np.where((left > 0)[:, None] & (right > 0)[None, :], scores, 0.0).astype(np.float32)


def shared_concepts(rows: csr_matrix[np.float32], space: Space, *, score: float, limit: int) -> list[Shared]:
    """The concepts of two rows with the largest products of weights, scaled to add up to the score."""
    products = csr_matrix(rows[[0]].multiply(rows[[1]]))
    total = float(products.data.sum())
    if total <= 0:
        return []
    order = np.lexsort((products.indices, -products.data))[:limit]
    return [Shared(space.title(int(products.indices[at])), score * float(products.data[at]) / total) for at in order]
