"""The interface of measures: matrices of relatedness, single pairs, and reasons."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.semantics.text import key

if TYPE_CHECKING:
    from likewise.semantics.evidence.background import Surroundings

Matrix: TypeAlias = NDArray[np.float32]
"""Relatedness in [0, 1]: a row per subscription term, a column per event term."""

Scores: TypeAlias = NDArray[np.float32]
"""Relatedness in [0, 1], one score for each pair."""

BLOCK = 2048
"""Pairs whose vectors are in memory together."""

_FEW = 16
"""Terms of the left side that share a matrix, for measures that define only matrices."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A concept that both terms share, and its part of the score."""

    concept: str
    weight: float
    kind: str = ""
    """The kind of evidence, for the measure evidence."""


class Themes(NamedTuple):
    """The themes of both sides of a pair."""

    subscription: Sequence[str]
    event: Sequence[str]


class Prepared(Protocol):
    """Subscription terms prepared for comparison with many event terms."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The subscription terms, in the order of the columns."""
        ...

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """A row per event term, a column per subscription term: the transposed `matrix`."""
        ...


class Measure(ABC):
    """Relatedness of terms, given the themes of both sides [000 sec 4.3].

    Equal terms have relatedness 1; terms without any known word have 0 with all others. A measure defines `prepare`,
    or `matrix` if nothing can be prepared; the other follows from it. `_reasons`, `_pair_scores` and `apart` are
    optional.
    """

    name: str
    """The name by which users choose it."""

    symmetric: bool
    """Whether swapping both sides and their themes gives the transposed matrix."""

    def __init_subclass__(cls) -> None:
        if cls.prepare is Measure.prepare and cls.matrix is Measure.matrix:
            raise TypeError(f"the measure {cls.__name__} defines neither prepare nor matrix")

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """Prepare subscription terms for comparison with many event terms."""
        return _Unprepared(self, tuple(subscription_terms), tuple(subscription_theme))

    def for_attributes(self) -> Measure:
        """The measure for names of attributes, if it compares them otherwise than values."""
        return self

    def surrounded_by(self, terms: Sequence[str]) -> Surroundings | None:
        """Prepare words of the stream as evidence about pairs; None for measures that do not use them."""
        return None

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
    ) -> Matrix:
        """Relatedness of every subscription term (row) with every event term (column)."""
        prepared = self.prepare(subscription_terms, subscription_theme=subscription_theme)
        return np.ascontiguousarray(prepared.rows(event_terms, event_theme=event_theme).T)

    def pairwise(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
    ) -> Scores:
        """Relatedness of the first terms of both sides, of the second terms, and so on: the diagonal of `matrix`.

        >>> from likewise.testing import TableMeasure
        >>> table = TableMeasure({("laptop", "computer"): 0.5})
        >>> table.pairwise(["laptop", "laptop", "car"], ["computer", "laptop", "bus"]).tolist()
        [0.5, 1.0, 0.0]
        """
        themes = Themes(subscription_theme, event_theme)
        out = np.zeros(len(subscription_terms), np.float32)
        # Pairs of one term are consecutive, so that its vector is built once.
        order = sorted(range(len(out)), key=subscription_terms.__getitem__)
        for start in range(0, len(order), BLOCK):
            block = order[start : start + BLOCK]
            left, right = ([terms[at] for at in block] for terms in (subscription_terms, event_terms))
            out[block] = self._pair_scores(left, right, themes)
        return out

    def reason(
        self,
        subscription_term: str,
        event_term: str,
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
        limit: int = 5,
    ) -> list[Shared]:
        """The concepts with the largest parts of the score of one pair, largest first."""
        return self._reasons(subscription_term, event_term, Themes(subscription_theme, event_theme), limit)

    def apart(self, subscription_term: str, event_term: str) -> str:
        """Why two terms count as unrelated (different codes, opposites); empty if they do not."""
        return ""

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The concepts with the largest parts of one score; none if a measure has no concepts."""
        return []

    def _score(self, subscribed: str, published: str, themes: Themes) -> float:
        """The score of one pair."""
        scores = self.matrix(
            [subscribed], [published], subscription_theme=themes.subscription, event_theme=themes.event
        )
        return float(scores[0, 0])

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        """The scores of a block of pairs; by default from small matrices over a few terms and all their partners."""
        out = np.zeros(len(left), np.float32)
        terms, at = numbered(left)
        others, place = numbered(right)
        for start in range(0, len(terms), _FEW):
            rows = np.flatnonzero((at >= start) & (at < start + _FEW))
            needed, column = np.unique(place[rows], return_inverse=True)
            block = self.matrix(
                terms[start : start + _FEW],
                [others[number] for number in needed],
                subscription_theme=themes.subscription,
                event_theme=themes.event,
            )
            out[rows] = block[at[rows] - start, column]
        return out


@dataclass(frozen=True, slots=True)
class _Unprepared:
    """Terms of a measure that defines only `matrix`: every call computes a matrix."""

    measure: Measure
    terms: tuple[str, ...]
    theme: tuple[str, ...]

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        scores = self.measure.matrix(self.terms, event_terms, subscription_theme=self.theme, event_theme=event_theme)
        return np.ascontiguousarray(scores.T)


def numbered(terms: list[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct terms, and the number of each term among them.

    >>> numbered(["car", "bus", "car"])[1].tolist()
    [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    at = np.fromiter((numbers.setdefault(term, len(numbers)) for term in terms), np.int64, len(terms))
    return list(numbers), at


# Scores of single pairs, where a whole matrix would be mostly waste.


Rows = Callable[[list[str]], "csr_matrix[np.float32]"]


def cosines(left: list[str], right: list[str], left_rows: Rows, right_rows: Rows) -> Scores:
    """The dot products of each pair's vectors; `left_rows` and `right_rows` give the vectors of terms."""
    terms, at = numbered(left)
    others, place = numbered(right)
    one, two = left_rows(terms), right_rows(others)
    out = np.zeros(len(left), np.float32)
    scratch = np.zeros(one.shape[1], np.float32)
    _gather()((one.indptr, one.indices, one.data), (two.indptr, two.indices, two.data), (at, place), scratch, out)
    return same_marked(np.clip(out, 0.0, 1.0), left, right)


def same_marked(scores: Scores, left: list[str], right: list[str]) -> Scores:
    """Set the scores of equal terms to 1, in place."""
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
    """The dot product of two sparse rows for each pair; a left row is made dense once for consecutive pairs."""
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
