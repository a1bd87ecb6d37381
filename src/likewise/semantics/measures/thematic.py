"""Thematic relatedness: the meaning of a term within a theme, improved and as printed [000 sec 4.2 and 4.3]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache, partial
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags_array, vstack

from likewise.calibration import STRONGEST_POSTINGS, THEME_FLOOR, THEME_SHARPNESS, THEME_TOO_COMMON, THEME_WORDS
from likewise.semantics.measures.base import Matrix, Measure, Scores, Shared, Themes, cosines
from likewise.semantics.measures.esa import relatedness, shared_concepts
from likewise.semantics.space.space import Space, Weighting
from likewise.semantics.space.vectors import Row, Vectors, dense_product, norms, unit
from likewise.semantics.text import TermPlaces
from likewise.semantics.themes import worth

Weights = NDArray[np.float32]
"""A weight from above 0 to 1 for every concept."""

KEPT = 64
"""Themes whose weights are cached, four bytes for each concept."""


class Emphasis:
    """Soft bases of themes: concepts weighted by how near they are to the theme [after 000 Algorithm 1].

    The paper keeps the concepts that contain any word of the tags and drops the others. On a large corpus ten tags keep
    half of all concepts, many with only a mention, and drop articles of the same field that lack the words. So the
    theme is first described by frequent words, those more common in its concepts than elsewhere; then every concept
    is weighted by how much of these words it contains. No weight is 0.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._of = lru_cache(maxsize=KEPT)(self._find)

    def of(self, theme: Sequence[str]) -> Weights | None:
        """The weights within a theme; None (equal weights) without tags or with unknown tags only."""
        return self._of(tuple(sorted(set(theme))))

    def _find(self, theme: tuple[str, ...]) -> Weights | None:
        vector = np.asarray(self._space.matrix(theme).sum(axis=0), np.float32).ravel()
        if not vector.any():
            return None
        near = self._field(vector)
        near = near if near.any() else vector
        weights: Weights = (THEME_FLOOR + (1 - THEME_FLOOR) * (near / near.max()) ** THEME_SHARPNESS).astype(np.float32)
        weights.flags.writeable = False
        return weights

    def _field(self, vector: Weights) -> Weights:
        """How much of the theme's characteristic words each concept contains."""
        rows = self._words
        inside = np.append(vector[rows.indices], np.float32(0))
        shares = np.add.reduceat(inside, rows.indptr[:-1]) / vector.sum() if rows.shape[0] else np.empty(0)
        characteristic = np.sqrt(np.maximum(worth(shares, np.diff(rows.indptr) / self._space.concepts), 0))
        return np.asarray(rows.T @ characteristic.astype(np.float32), np.float32)

    @cached_property
    def _words(self) -> csr_matrix[np.float32]:
        """The frequent words as rows of length 1."""
        space = self._space
        usable = np.flatnonzero((space.df > 0) & (space.df <= THEME_TOO_COMMON * space.concepts))
        frequent = usable[np.argsort(-space.df[usable], kind="stable")]
        chosen = [word for word in frequent[: 2 * THEME_WORDS] if space.term(int(word)).isalpha()][:THEME_WORDS]
        return unit(space.term_matrix(chosen))


class Thematic(Measure):
    """Cosine of both terms, each within the theme of its own side.

    It follows 000 Algorithm 1 with three changes, each measured in docs/quality.md: concepts are weighted by how near
    they are to the theme instead of kept or dropped (`Emphasis`); a word keeps only its strongest concepts within the
    theme; and the cosine replaces the distance, which depends on the lengths of vectors. The idf of a word is computed
    within the theme, log(sum of all weights / sum of the weights of its concepts), which equals the paper's for weights
    of 0 and 1; it is the weight of the word in a phrase. Without tags, or with unknown tags only, all concepts have
    equal weight. The formula as printed is `ThematicEuclidean`.
    """

    name = "thematic"
    symmetric = True

    def __init__(
        self, space: Space, *, weighting: Weighting | None = None, pruning: int | None = STRONGEST_POSTINGS
    ) -> None:
        self.space = space
        self._vectors = Vectors(space, weighting=weighting, idf=False)
        self._pruning = pruning
        self._emphasis = Emphasis(space)

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedThematic:
        """Subscription terms projected by their theme, as a transposed matrix."""
        return PreparedThematic(self, subscription_terms, subscription_theme)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts with the largest products of both weights, each with its share of the score."""
        rows = vstack([self.project([subscribed], themes.subscription), self.project([published], themes.event)])
        return shared_concepts(
            csr_matrix(rows), self.space, score=self._score(subscribed, published, themes), limit=limit
        )

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        within = [partial(self.project, theme=theme) for theme in themes]
        return cosines(left, right, *within)

    def project(self, terms: Sequence[str], theme: Sequence[str] = ()) -> csr_matrix[np.float32]:
        """The vectors of terms within a theme, of length 1; an empty row for a term without a known word."""
        emphasis = self._emphasis.of(theme)
        incidence, ids = self.space.incidence(terms)
        total = self.space.concepts if emphasis is None else float(emphasis.sum(dtype=np.float64))
        words = [self._within(row, emphasis, total) for row in self._vectors.words(ids)]
        lengths = np.array([idf for _, idf in words], np.float32)
        rows = unit(self._vectors.stack([row for row, _ in words]))
        return unit(csr_matrix(incidence @ diags_array(lengths) @ rows))

    def emphasis(self, theme: Sequence[str]) -> Weights:
        """The weight of each concept within a theme, above 0 and at most 1."""
        weights = self._emphasis.of(theme)
        return np.ones(self.space.concepts, np.float32) if weights is None else weights

    def _within(self, row: Row, emphasis: Weights | None, total: float) -> tuple[Row, float]:
        """The strongest concepts of a word within a theme, and its idf there [000 Algorithm 1, lines 9 and 10]."""
        concepts, weights = row
        if not len(concepts):
            return row, 0.0
        if emphasis is None:
            return strongest(row, self._pruning), log(total / len(concepts))
        emphases = emphasis[concepts]
        idf = log(total / float(emphases.sum(dtype=np.float64)))
        # By rounding, the idf of a word in all concepts may be below 0.
        return strongest((concepts, weights * emphases), self._pruning), max(idf, 0.0)


class PreparedThematic:
    """Subscription terms within their theme as columns by concept; `rows` gives a row per event term."""

    def __init__(self, measure: Thematic, terms: Sequence[str], theme: Sequence[str]) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._measure = measure
        self._columns = csr_matrix(measure.project(terms, theme).T)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Thematic relatedness of every event term (row) with every prepared term (column)."""
        scores = dense_product(self._measure.project(event_terms, event_theme), self._columns)
        np.clip(scores, 0.0, 1.0, out=scores)
        return self._names.mark(scores, event_terms)


def strongest(row: Row, limit: int | None) -> Row:
    """The entries with the largest weights; among equal weights the first concepts, so that the cut is deterministic.

    >>> concepts, weights = strongest((np.array([2, 5, 7]), np.array([0.5, 0.25, 0.5], np.float32)), 2)
    >>> concepts.tolist(), weights.tolist()
    ([2, 7], [0.5, 0.5])
    """
    concepts, weights = row
    if limit is None or len(weights) <= limit:
        return row
    cut = len(weights) - limit
    least = np.partition(weights, cut)[cut]
    kept = weights > least
    kept[np.flatnonzero(weights == least)[: limit - int(kept.sum())]] = True
    return concepts[kept], weights[kept]


# As printed: a hard basis, and Euclidean distance [000 sec 4.2, 4.3, Algorithm 1].


Basis = NDArray[np.bool_]
"""Which concepts a theme keeps."""


class ThematicEuclidean(Measure):
    """1 / (1 + distance) of both terms, each projected by the theme of its own side [000 eq 5, 6].

    The basis B of a theme is the concepts that contain any word of its tags. A word keeps its tf on the basis and gets
    a new idf, log(|B| / |B and docs(t)|). An empty theme filters nothing. A term without any weight after projection
    has relatedness 0 with all others, and so has every term under a theme of unknown words: the outliers of
    000 sec 5.3.2. `thematic` is the better measure; this one is for comparison with the paper. `normalise` gives
    projected rows length 1 before the distance.
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
        """Subscription terms projected by their theme, as a transposed matrix."""
        return PreparedDistance(self, subscription_terms, subscription_theme)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts of both themes with the largest products of both weights, each with its share of the score."""
        rows = vstack([self.project([subscribed], themes.subscription), self.project([published], themes.event)])
        return shared_concepts(
            csr_matrix(rows), self.space, score=self._score(subscribed, published, themes), limit=limit
        )

    def project(self, terms: Sequence[str], theme: Sequence[str]) -> csr_matrix[np.float32]:
        """The rows of terms within a theme [000 Algorithm 1]."""
        basis = self._basis(tuple(sorted(set(theme))))
        incidence, ids = self.space.incidence(terms)
        size = int(basis.sum())
        words = [_project(row, basis, size) for row in self._vectors.words(ids)]
        rows = csr_matrix(incidence @ self._vectors.stack(words))
        return unit(rows) if self._normalise else rows

    def basis(self, theme: Sequence[str]) -> Basis:
        """The concepts where the vector of the theme is above 0; all concepts for an empty theme."""
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
    """One word projected on a basis of `size` concepts: its tf there, times its idf among them."""
    concepts, weights = row
    inside = basis[concepts]
    kept = concepts[inside]
    if not 0 < len(kept) < size:
        return kept[:0], weights[:0]
    return kept, (weights[inside] * np.log(size / len(kept))).astype(np.float32)
