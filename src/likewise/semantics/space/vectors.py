"""Vectors: rows of terms in a space, weighted, pruned and kept for the next time."""

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
"""How many postings of words stay in memory (8 bytes each) before the least recently used go."""

KEPT_UNITS, KEPT_LONGEST = 16, 64
"""How many sets of terms stay ready as rows of length 1, and the most terms of such a set."""


class Vectors:
    """Reads terms as rows of a space; a phrase is the sum of its words [000 sec 4.1].

    `pruning` keeps the strongest postings of each word; `unit_words` gives every word of a phrase the
    same length, so that a common word counts as much as a rare one.
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
        """One row per term, all concepts as columns; a term without a known word is an empty row."""
        incidence, ids = self.space.incidence(terms)
        return csr_matrix(incidence @ self.stack(self.words(ids)))

    def units(self, terms: Sequence[str]) -> csr_matrix[np.float32]:
        """The same rows at length 1; a few are kept, since several slices ask for one event's terms at once."""
        key = tuple(terms)
        found = self._units.get(key)
        if found is None:
            found = unit(self.rows(terms))
            if len(key) <= KEPT_LONGEST:
                if len(self._units) >= KEPT_UNITS:
                    self._units.clear()
                self._units[key] = found
        return found

    def words(self, ids: NDArray[np.int64]) -> list[Row]:
        """The rows of single words, by their ids in the space."""
        wanted = ids.tolist()
        with self._lock:
            if missing := [word for word in wanted if word not in self._kept]:
                self._read(missing)
            found = [self._kept[word] for word in wanted]
            for word in wanted:
                self._kept.move_to_end(word)
            self._forget(len(ids))
        return found

    def stack(self, rows: Sequence[Row]) -> csr_matrix[np.float32]:
        """Rows laid one under the other into a sparse matrix."""
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(concepts) for concepts, _ in rows], out=indptr[1:])
        concepts = np.concatenate([np.empty(0, np.int32), *(concepts for concepts, _ in rows)])
        weights = np.concatenate([np.empty(0, np.float32), *(weights for _, weights in rows)])
        return csr_matrix((weights, concepts, indptr), shape=(len(rows), self.space.concepts))

    def _read(self, ids: list[int]) -> None:
        whole = self.space.term_matrix(ids, weighting=self.weighting, idf=self._idf)
        for number, word in enumerate(ids):
            start, stop = whole.indptr[number], whole.indptr[number + 1]
            row = self._trim(whole.indices[start:stop], whole.data[start:stop])
            self._kept[word] = row
            self._postings += len(row[0])

    def _trim(self, concepts: NDArray[np.int32], weights: NDArray[np.float32]) -> Row:
        if self._pruning is not None and len(weights) > self._pruning:
            # The cut is by weight, then by concept, so that equal weights are cut alike everywhere.
            cut = len(weights) - self._pruning
            least = np.partition(weights, cut)[cut]
            strong = weights > least
            ties = np.flatnonzero(weights == least)[: self._pruning - int(strong.sum())]
            strong[ties] = True
            concepts, weights = concepts[strong], weights[strong]
        if self._unit_words:
            weights = weights / np.maximum(np.linalg.norm(weights), np.finfo(np.float32).tiny)
        # Copies, so that a kept row does not hold the whole batch that it was read with.
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


# The one product that all vector measures live on: sparse rows times sparse columns, as a dense matrix.


MANY = 20_000_000
"""Multiplications from which compiled code for a dense result is worth its loading."""


def dense_product(rows: csr_matrix[np.float32], columns: csr_matrix[np.float32]) -> Matrix:
    """rows @ columns as a dense matrix; only concepts that both sides hold cost time.

    Both ways add the same numbers in the same order, so a large matrix has the same bits as its parts.
    """
    # Where a matcher runs, the compiled way is there already, and quicker for a single row too.
    if "numba" not in sys.modules and _multiplications(rows, columns) < MANY:
        return np.asarray((rows @ columns).toarray(), np.float32)
    out = np.zeros((rows.shape[0], columns.shape[1]), np.float32)
    _scatter()(_parts(rows), _parts(columns), out)
    return out


def _multiplications(rows: csr_matrix[np.float32], columns: csr_matrix[np.float32]) -> int:
    return int(np.diff(columns.indptr)[rows.indices].sum()) if rows.nnz else 0


@lru_cache(maxsize=1)
def _scatter() -> Callable[..., None]:
    """Compiled at first use: numba takes longer to load than a small product takes."""
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
