"""The one product that all vector measures live on: sparse rows times sparse columns, as a dense matrix."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.semantics._measure import Matrix

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
