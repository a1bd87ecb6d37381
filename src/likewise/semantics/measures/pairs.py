"""Pairs of terms, each by itself: what a column of pairs asks for, where a whole matrix would be mostly waste."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.semantics.adjust.codes import Coded
from likewise.semantics.adjust.opposites import Opposed
from likewise.semantics.measures.base import Measure
from likewise.semantics.measures.combined import Combined
from likewise.semantics.measures.embedding import Embedding
from likewise.semantics.measures.esa import Esa, EsaEuclidean
from likewise.semantics.measures.hybrid import Hybrid
from likewise.semantics.measures.thematic import Thematic
from likewise.semantics.text.phrase import key

Scores = NDArray[np.float32]
Themes = tuple[Sequence[str], Sequence[str]]

BLOCK = 2048
"""Pairs whose vectors are in memory together."""

_FEW = 16
"""Terms of the left side that share a matrix where a measure knows nothing but matrices."""


def pairwise(
    measure: Measure,
    subscription_terms: Sequence[str],
    event_terms: Sequence[str],
    *,
    subscription_theme: Sequence[str] = (),
    event_theme: Sequence[str] = (),
) -> Scores:
    """Relatedness of the first terms of both sides, of the second ones, and so on: the diagonal of `matrix`.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("laptop", "computer"): 0.5})
    >>> pairwise(table, ["laptop", "laptop", "car"], ["computer", "laptop", "bus"]).tolist()
    [0.5, 1.0, 0.0]
    """
    out = np.zeros(len(subscription_terms), np.float32)
    # Pairs of one term stand together, so that its vector is laid out once.
    order = sorted(range(len(out)), key=subscription_terms.__getitem__)
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        left, right = ([terms[at] for at in block] for terms in (subscription_terms, event_terms))
        out[block] = _pairs(measure, left, right, (subscription_theme, event_theme))
    return out


@singledispatch
def _pairs(measure: Measure, left: list[str], right: list[str], themes: Themes) -> Scores:
    """Any measure: small matrices over a few terms and all their partners."""
    out = np.zeros(len(left), np.float32)
    terms, at = _numbered(left)
    others, place = _numbered(right)
    for start in range(0, len(terms), _FEW):
        rows = np.flatnonzero((at >= start) & (at < start + _FEW))
        needed, column = np.unique(place[rows], return_inverse=True)
        block = measure.matrix(
            terms[start : start + _FEW],
            [others[number] for number in needed],
            subscription_theme=themes[0],
            event_theme=themes[1],
        )
        out[rows] = block[at[rows] - start, column]
    return out


@_pairs.register
def _(measure: Esa, left: list[str], right: list[str], themes: Themes) -> Scores:  # noqa: ARG001
    return _cosines(left, right, measure._vectors.units, measure._vectors.units)


@_pairs.register
def _(measure: EsaEuclidean, left: list[str], right: list[str], themes: Themes) -> Scores:
    # A distance needs lengths too; whoever asks for it pays for matrices.
    whole: Scores = _pairs.dispatch(object)(measure, left, right, themes)
    return whole


@_pairs.register
def _(measure: Thematic, left: list[str], right: list[str], themes: Themes) -> Scores:
    mine, theirs = themes
    return _cosines(left, right, lambda terms: measure.project(terms, mine), lambda ts: measure.project(ts, theirs))


@_pairs.register
def _(measure: Hybrid, left: list[str], right: list[str], themes: Themes) -> Scores:
    return _pairs(measure._esa, left, right, themes)


@_pairs.register
def _(measure: Embedding, left: list[str], right: list[str], themes: Themes) -> Scores:  # noqa: ARG001
    products = np.einsum("ij,ij->i", measure.vectors(left), measure.vectors(right))
    return _marked(np.clip(products, 0.0, 1.0), left, right)


@_pairs.register
def _(measure: Combined, left: list[str], right: list[str], themes: Themes) -> Scores:
    total = np.zeros(len(left), np.float32)
    for part, share in zip(measure._measures, measure._shares, strict=True):
        total += share * np.power(_pairs(part, left, right, themes), np.float32(measure._power))
    return _marked(np.minimum(total, np.float32(1)), left, right)


@_pairs.register(Coded)
@_pairs.register(Opposed)
def _(measure: Coded | Opposed, left: list[str], right: list[str], themes: Themes) -> Scores:
    scores = _pairs(measure._measure, left, right, themes)
    for at in np.flatnonzero(scores):
        if measure.apart(left[at], right[at]):
            scores[at] = 0
    return scores


Rows = Callable[[list[str]], "csr_matrix[np.float32]"]


def _cosines(left: list[str], right: list[str], mine: Rows, theirs: Rows) -> Scores:
    terms, at = _numbered(left)
    others, place = _numbered(right)
    one, two = mine(terms), theirs(others)
    out = np.zeros(len(left), np.float32)
    scratch = np.zeros(one.shape[1], np.float32)
    _gather()((one.indptr, one.indices, one.data), (two.indptr, two.indices, two.data), (at, place), scratch, out)
    return _marked(np.clip(out, 0.0, 1.0), left, right)


def _marked(scores: Scores, left: list[str], right: list[str]) -> Scores:
    """Equal terms are 1: every measure's identity."""
    scores[[key(a) == key(b) for a, b in zip(left, right, strict=True)]] = 1.0
    return scores


def _numbered(terms: list[str]) -> tuple[list[str], NDArray[np.int64]]:
    numbers: dict[str, int] = {}
    at = np.fromiter((numbers.setdefault(term, len(numbers)) for term in terms), np.int64, len(terms))
    return list(numbers), at


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
