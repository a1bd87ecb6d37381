"""Emphasis: how much each concept of a space counts within a theme."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.semantics._space import Space
from likewise.semantics._themes import worth
from likewise.semantics._vectors import unit

Weights = NDArray[np.float32]
"""A weight from above 0 to 1 for every concept."""

WORDS = 500
"""Frequent words that a theme is spelt out in; a thousand of them did no better."""

TOO_COMMON = 0.25
"""A word of more than this share of all concepts says nothing about a field."""

FLOOR = 0.02
"""What a concept far from the theme still counts: terms that the theme does not know keep their whole meaning."""

SHARPNESS = 2.0
"""The power of a concept's nearness to the theme."""

KEPT = 64
"""Themes whose weights stay in memory, four bytes for each concept."""


class Emphasis:
    """Soft bases of themes: concepts by how near they are to the theme's field [after 000 Algorithm 1].

    The paper keeps the concepts that hold any word of the tags and drops the others. On a large corpus that is half
    of it for ten tags, mere mentions among it, while articles of the same field that happen to lack the word are
    lost. So the theme is first spelt out in frequent words, those that stand in its concepts more often than
    elsewhere, and then every concept counts by how much of these words it holds. No concept counts 0.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._of = lru_cache(maxsize=KEPT)(self._find)

    def of(self, theme: Sequence[str]) -> Weights | None:
        """The weights within a theme; None if all concepts count alike: without tags, or with unknown ones only."""
        return self._of(tuple(sorted(set(theme))))

    def _find(self, theme: tuple[str, ...]) -> Weights | None:
        vector = np.asarray(self._space.matrix(theme).sum(axis=0), np.float32).ravel()
        if not vector.any():
            return None
        near = self._field(vector)
        near = near if near.any() else vector
        found: Weights = (FLOOR + (1 - FLOOR) * (near / near.max()) ** SHARPNESS).astype(np.float32)
        found.flags.writeable = False
        return found

    def _field(self, vector: Weights) -> Weights:
        """How much of the words that tell the theme's concepts apart each concept holds."""
        rows = self._words
        held = np.append(vector[rows.indices], np.float32(0))
        shares = np.add.reduceat(held, rows.indptr[:-1]) / vector.sum() if rows.shape[0] else np.empty(0)
        apart = np.sqrt(np.maximum(worth(shares, np.diff(rows.indptr) / self._space.concepts), 0))
        return np.asarray(rows.T @ apart.astype(np.float32), np.float32)

    @cached_property
    def _words(self) -> csr_matrix[np.float32]:
        """The frequent words as rows of length 1."""
        space = self._space
        usable = np.flatnonzero((space.df > 0) & (space.df <= TOO_COMMON * space.concepts))
        frequent = usable[np.argsort(-space.df[usable], kind="stable")]
        chosen = [word for word in frequent[: 2 * WORDS] if space.term(int(word)).isalpha()][:WORDS]
        return unit(space.term_matrix(chosen))
