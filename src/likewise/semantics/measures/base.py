"""What every measure offers: whole matrices of relatedness, pairs, and the reason for one pair."""

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
"""Relatedness in [0, 1] of one pair after the other."""

BLOCK = 2048
"""Pairs whose vectors are in memory together."""

_FEW = 16
"""Terms of the left side that share a matrix where a measure knows nothing but matrices."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One concept that both terms share, and the part of the score that it carries."""

    concept: str
    weight: float
    kind: str = ""
    """Which evidence it is, where terms are weighed by evidence."""


class Themes(NamedTuple):
    """The themes of both sides of a pair."""

    subscription: Sequence[str]
    event: Sequence[str]


class Prepared(Protocol):
    """The subscription side of a measure, made ready for many event terms that come later."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The subscription terms, in the order of the columns."""
        ...

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """A row per event term, a column per subscription term: the transposed `matrix`."""
        ...


class Measure(ABC):
    """Relatedness of terms, given the themes of both sides [000 sec 4.3].

    The same normalised term on both sides is 1; terms without any known word are 0 to all others. A measure defines
    `prepare`, or `matrix` where nothing can be made ready beforehand; the other follows from it. `_reasons`,
    `_pair_scores` and `apart` are for measures that know more than scores.
    """

    name: str
    """The name by which users choose it."""

    symmetric: bool
    """Whether swapping the sides, with their themes, gives the transposed matrix."""

    def __init_subclass__(cls) -> None:
        if cls.prepare is Measure.prepare and cls.matrix is Measure.matrix:
            raise TypeError(f"the measure {cls.__name__} defines neither prepare nor matrix")

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """The subscription side, made ready for many event terms."""
        return _Unprepared(self, tuple(subscription_terms), tuple(subscription_theme))

    def surrounded_by(self, terms: Sequence[str]) -> Surroundings | None:
        """Words of the stream, made ready to tell what they say of pairs; None for a measure that does not ask them."""
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
        """Relatedness of the first terms of both sides, of the second ones, and so on: the diagonal of `matrix`.

        >>> from likewise.testing import TableMeasure
        >>> table = TableMeasure({("laptop", "computer"): 0.5})
        >>> table.pairwise(["laptop", "laptop", "car"], ["computer", "laptop", "bus"]).tolist()
        [0.5, 1.0, 0.0]
        """
        themes = Themes(subscription_theme, event_theme)
        out = np.zeros(len(subscription_terms), np.float32)
        # Pairs of one term stand together, so that its vector is laid out once.
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
        """The strongest concepts that carry the score of one pair, strongest first."""
        return self._reasons(subscription_term, event_term, Themes(subscription_theme, event_theme), limit)

    def apart(self, subscription_term: str, event_term: str) -> str:
        """Why two terms are held apart, however related they are, in words; empty if they are not."""
        return ""

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        """The strongest concepts behind one score; none where a measure cannot name any."""
        return []

    def _score(self, mine: str, theirs: str, themes: Themes) -> float:
        """The score of one pair."""
        one = self.matrix([mine], [theirs], subscription_theme=themes.subscription, event_theme=themes.event)
        return float(one[0, 0])

    def _pair_scores(self, left: list[str], right: list[str], themes: Themes) -> Scores:
        """One block of pairs: here by small matrices over a few terms and all their partners."""
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
    """A measure that knows nothing but matrices, asked for one again and again."""

    measure: Measure
    terms: tuple[str, ...]
    theme: tuple[str, ...]

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        scores = self.measure.matrix(self.terms, event_terms, subscription_theme=self.theme, event_theme=event_theme)
        return np.ascontiguousarray(scores.T)


def numbered(terms: list[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct terms, and where among them each is.

    >>> numbered(["car", "bus", "car"])[1].tolist()
    [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    at = np.fromiter((numbers.setdefault(term, len(numbers)) for term in terms), np.int64, len(terms))
    return list(numbers), at


# Pairs, each by itself: what a column of pairs asks for, where a whole matrix would be mostly waste.


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
