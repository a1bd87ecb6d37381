"""Pairs of terms, each by itself: what a column of pairs asks for, where a whole matrix would be mostly waste."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.semantics.measures.base import Scores, numbered
from likewise.semantics.text.phrase import key

Rows = Callable[[list[str]], "csr_matrix[np.float32]"]


def cosines(left: list[str], right: list[str], mine: Rows, theirs: Rows) -> Scores:
    """The products of the rows of each pair, from what gives the rows of either side."""
    terms, at = numbered(left)
    others, place = numbered(right)
    one, two = mine(terms), theirs(others)
    out = np.zeros(len(left), np.float32)
    scratch = np.zeros(one.shape[1], np.float32)
    _gather()((one.indptr, one.indices, one.data), (two.indptr, two.indices, two.data), (at, place), scratch, out)
    return same_marked(np.clip(out, 0.0, 1.0), left, right)


def same_marked(scores: Scores, left: list[str], right: list[str]) -> Scores:
    """Equal terms are 1: every measure's identity."""
    scores[[key(a) == key(b) for a, b in zip(left, right, strict=True)]] = 1.0
    return scores


@lru_cache(maxsize=1)
def _gather() -> Callable[..., None]:
    from numba import njit

    compiled: Callable[..., None] = njit(cache=True, nogil=True)(_products)
    return compiled


_Parts = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.float32]]


def _products(
    one: _Parts, two: _Parts, pairs: tuple[NDArray[np.int64], NDArray[np.int64]], scratch: Scores, out: Scores
) -> None:
    """The product of two sparse rows for each pair; a row of the left is spread out once for all its pairs in a run."""
    bounds, concepts, weights = one
    starts, others, values = two
    left, right = pairs
    spread = -1
    for pair in range(len(left)):
        row = left[pair]
        if row != spread:
            if spread >= 0:
                for at in range(bounds[spread], bounds[spread + 1]):
                    scratch[concepts[at]] = 0
            for at in range(bounds[row], bounds[row + 1]):
                scratch[concepts[at]] = weights[at]
            spread = row
        total = np.float32(0)
        for at in range(starts[right[pair]], starts[right[pair] + 1]):
            total += scratch[others[at]] * values[at]
        out[pair] = total
