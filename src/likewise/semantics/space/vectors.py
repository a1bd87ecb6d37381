"""Vectors: rows of terms in a space, weighted, pruned and cached."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.semantics.measures.base import Matrix
from likewise.semantics.space.space import Space, Weighting

Row = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Concepts and weights of one word."""

KEPT_POSTINGS = 12_000_000
"""Cached postings of words (8 bytes each); beyond that the least recently used words are dropped."""

KEPT_UNITS, KEPT_LONGEST = 16, 64
"""The number of sets of terms whose unit rows are cached, and the largest set that is."""


class Vectors:
    """Terms as rows of a space; a phrase is the sum of its words [000 sec 4.1].

    `pruning` keeps the strongest postings of each word; `unit_words` gives all words of a phrase equal length, so that
    a common word counts as much as a rare one.
    """

    def __init__(
        self,
        space: Space,
        *,
        weighting: Weighting | None = None,
        pruning: int | None = None,
        idf: bool = True,
        unit_words: bool = False,
    ) -> None:
        self.space = space
        self.weighting: Weighting = weighting or space.weighting
        self._pruning = pruning
        self._idf = idf
        self._unit_words = unit_words
        self._kept: OrderedDict[int, Row] = OrderedDict()
        self._postings = 0
        self._units: dict[tuple[str, ...], csr_matrix[np.float32]] = {}
        self._lock = Lock()

    def rows(self, terms: Sequence[str]) -> csr_matrix[np.float32]:
        """One row per term, all concepts as columns; an empty row for a term without a known word."""
        incidence, ids = self.space.incidence(terms)
        return csr_matrix(incidence @ self.stack(self.words(ids)))

    def units(self, terms: Sequence[str]) -> csr_matrix[np.float32]:
        """Rows of length 1; a few sets are cached, since several slices need the same event's terms."""
        key = tuple(terms)
        rows = self._units.get(key)
        if rows is None:
            rows = unit(self.rows(terms))
            if len(key) <= KEPT_LONGEST:
                if len(self._units) >= KEPT_UNITS:
                    self._units.clear()
                self._units[key] = rows
        return rows

    def words(self, ids: NDArray[np.int64]) -> list[Row]:
        """The rows of single words, by their ids in the space."""
        wanted = ids.tolist()
        with self._lock:
            if missing := [word for word in wanted if word not in self._kept]:
                self._read(missing)
            rows = [self._kept[word] for word in wanted]
            for word in wanted:
                self._kept.move_to_end(word)
            self._forget(len(ids))
        return rows

    def stack(self, rows: Sequence[Row]) -> csr_matrix[np.float32]:
        """A sparse matrix of these rows."""
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(concepts) for concepts, _ in rows], out=indptr[1:])
        concepts = np.concatenate([np.empty(0, np.int32), *(concepts for concepts, _ in rows)])
        weights = np.concatenate([np.empty(0, np.float32), *(weights for _, weights in rows)])
        return csr_matrix((weights, concepts, indptr), shape=(len(rows), self.space.concepts))

    def _read(self, ids: list[int]) -> None:
        matrix = self.space.term_matrix(ids, weighting=self.weighting, idf=self._idf)
        for number, word in enumerate(ids):
            start, stop = matrix.indptr[number], matrix.indptr[number + 1]
            row = self._trim(matrix.indices[start:stop], matrix.data[start:stop])
            self._kept[word] = row
            self._postings += len(row[0])

    def _trim(self, concepts: NDArray[np.int32], weights: NDArray[np.float32]) -> Row:
        if self._pruning is not None and len(weights) > self._pruning:
            # By weight, then by concept, so that the cut among equal weights is deterministic.
            cut = len(weights) - self._pruning
            least = np.partition(weights, cut)[cut]
            strong = weights > least
            ties = np.flatnonzero(weights == least)[: self._pruning - int(strong.sum())]
            strong[ties] = True
            concepts, weights = concepts[strong], weights[strong]
        if self._unit_words:
            weights = weights / np.maximum(np.linalg.norm(weights), np.finfo(np.float32).tiny)
        # Copies, so that a cached row does not keep the batch in memory that it was read with.
        return concepts.astype(np.int32, copy=True), weights.astype(np.float32, copy=True)

    def _forget(self, in_use: int) -> None:
        while self._postings > KEPT_POSTINGS and len(self._kept) > in_use:
            _, (concepts, _) = self._kept.popitem(last=False)
            self._postings -= len(concepts)


def norms(rows: csr_matrix[np.float32]) -> NDArray[np.float32]:
    """The Euclidean length of every row."""
    squares = np.add.reduceat(np.append(rows.data**2, 0), rows.indptr[:-1]) if rows.shape[0] else np.empty(0)
    return np.sqrt(np.where(np.diff(rows.indptr) > 0, squares, 0)).astype(np.float32)


def unit(rows: csr_matrix[np.float32]) -> csr_matrix[np.float32]:
    """Rows of length 1; empty rows stay empty."""
    lengths = np.repeat(norms(rows), np.diff(rows.indptr))
    data = np.divide(rows.data, lengths, out=np.zeros_like(rows.data), where=lengths > 0)
    return csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)


MANY = 20_000_000
"""The number of multiplications from which loading the compiled product pays off."""


def dense_product(rows: csr_matrix[np.float32], columns: csr_matrix[np.float32]) -> Matrix:
    """rows @ columns as a dense matrix; the time depends only on concepts of both sides.

    The SciPy and the compiled product add the same numbers in the same order, so their results have the same bits.
    """
    # In a matcher the compiled product is already loaded, and faster for a single row too.
    if "numba" not in sys.modules and _multiplications(rows, columns) < MANY:
        return np.asarray((rows @ columns).toarray(), np.float32)
    out = np.zeros((rows.shape[0], columns.shape[1]), np.float32)
    _scatter()(_parts(rows), _parts(columns), out)
    return out


def _multiplications(rows: csr_matrix[np.float32], columns: csr_matrix[np.float32]) -> int:
    return int(np.diff(columns.indptr)[rows.indices].sum()) if rows.nnz else 0


@lru_cache(maxsize=1)
def _scatter() -> Callable[..., None]:
    """Compiled on first use, since loading numba takes longer than a small product."""
    from numba import njit

    compiled: Callable[..., None] = njit(cache=True, nogil=True)(_add_products)
    return compiled


_Parts = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.float32]]


def _parts(matrix: csr_matrix[np.float32]) -> _Parts:
    return matrix.indptr, matrix.indices, matrix.data


def _add_products(rows: _Parts, columns: _Parts, out: Matrix) -> None:
    bounds, concepts, weights = rows
    starts, terms, others = columns
    for row in range(len(bounds) - 1):
        for at in range(bounds[row], bounds[row + 1]):
            for entry in range(starts[concepts[at]], starts[concepts[at] + 1]):
                out[row, terms[entry]] += weights[at] * others[entry]
