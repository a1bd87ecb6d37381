"""Pairs of terms that are near enough: the part of a join by meaning that looks at meanings.

One side is made ready, a chunk of it at a time; the other meets it in blocks that stay in the processor's cache.
Memory is that of a chunk and a block, however many terms there are. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Prepared

Theme: TypeAlias = tuple[str, ...]

CHUNK: Final = 20_000
"""Terms of the right side that are made ready together: about 200 MB on the Wikipedia space."""

THRESHOLD: Final = 0.5

CELLS: Final = 4_000_000
"""Scores that are in memory together."""

TAG: Final = "\x1f"
"""Between a term and its tags, where terms have themes of their own."""


class Pairs(NamedTuple):
    """Places on the left, places on the right, relatedness."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    relatedness: NDArray[np.float32]

    def at(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Pairs:
        """Some of them, in this order."""
        return Pairs(self.left[places], self.right[places], self.relatedness[places])

    def best(self, same: NDArray[np.bool_], count: int | None) -> Pairs:
        """Those of each left term together, best first, and no more of each than `count`.

        Equal scores go to what is the very `same` text, then to the first on the right.
        """
        ordered = self.at(np.lexsort((self.right, ~same, -self.relatedness, self.left)))
        return ordered if count is None else first_of_each(ordered, count)


@dataclass(frozen=True, slots=True)
class Bar:
    """What is near enough: at least so related, and among the so many best of a left term."""

    threshold: float
    best: int | None = None
    themed: bool = False

    @classmethod
    def of(cls, threshold: float | None, best: int | None, *, themed: bool = False) -> Bar:
        """What users ask for, checked; without a threshold it is 0.5, or none at all where the best are chosen."""
        if best is not None and best < 1:
            raise BuildError(f"best={best!r} leaves nothing to join", hint="1 keeps the nearest term alone")
        chosen = threshold if threshold is not None else (THRESHOLD if best is None else 0.0)
        # Not a number is in no order with others.
        if not 0 <= chosen <= 1 or (chosen == 0 and best is None):
            hint = "above 0 and at most 1, or best=1 and no threshold"
            raise BuildError(f"a threshold of {chosen} is no bar for a join", hint=hint)
        return cls(float(chosen), best, themed)


class NearestTerms:
    """A right side made ready: which of its terms are near enough to terms of the left.

    A key is a term, or a term with the tags of its theme. Equal scores go to the very same key, then to the first.
    """

    def __init__(self, measure: Measure, right: Sequence[str], bar: Bar) -> None:
        self.right = tuple(right)
        self._measure = measure
        self._bar = bar
        self._groups = [
            _Group(measure, places, [split(self.right[at], bar.themed)[0] for at in places], theme)
            for theme, places in _by_theme(self.right, bar.themed).items()
        ]
        self._places = {key: at for at, key in enumerate(self.right)}
        self.kept: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        """Places and scores of the neighbours of terms that will come again, for who wants to keep them."""

    def pairs(self, left: Sequence[str]) -> Pairs:
        """All pairs of a left side that are near enough, in the order of the left."""
        found = [
            part
            for theme, places in _by_theme(left, self._bar.themed).items()
            for part in self._pairs_in(left, places, theme)
        ]
        return self._best(left, _join(found))

    def _pairs_in(self, left: Sequence[str], places: list[int], theme: Theme) -> Iterator[Pairs]:
        height = max(1, CELLS // max(1, len(self.right)))
        for start in range(0, len(places), height):
            block = np.array(places[start : start + height])
            terms = [split(left[at], self._bar.themed)[0] for at in block]
            for group in self._groups:
                row, column, score = self._over_bar(group.scores(terms, theme))
                yield Pairs(block[row], group.places[column], score)

    def _over_bar(self, scores: Matrix) -> Pairs:
        least: NDArray[np.float32] | np.float32 = np.float32(self._bar.threshold)
        best = self._bar.best
        if best is not None and best < scores.shape[1]:
            # Only what could be among the best is looked at further; ties are decided there.
            cut = scores.shape[1] - best
            edge = scores.max(axis=1) if best == 1 else np.partition(scores, cut, axis=1)[:, cut]
            least = np.maximum(edge, least)[:, None]
        row, column = np.nonzero((scores >= least) & (scores > 0))
        return Pairs(row, column, scores[row, column])

    def _best(self, left: Sequence[str], pairs: Pairs) -> Pairs:
        same = np.fromiter((self._places.get(left[at], -1) for at in pairs.left), np.int64, len(pairs.left))
        return pairs.best(same == pairs.right, self._bar.best)


class _Group:
    """The terms of the right side that share a theme."""

    def __init__(self, measure: Measure, places: list[int], terms: list[str], theme: Theme) -> None:
        self.places = np.array(places)
        self._measure = measure
        self._terms = terms
        self._theme = theme
        self._ready: Prepared | None = None

    def scores(self, terms: list[str], theme: Theme) -> Matrix:
        """A row for each term of the left, a column for each of this group, which is the subscription's side."""
        if self._ready is None:
            self._ready = self._measure.prepare(self._terms, subscription_theme=self._theme)
        return self._ready.rows(terms, event_theme=theme)


def near_pairs(measure: Measure, left: Sequence[str], right: Sequence[str], bar: Bar) -> Pairs:
    """All pairs of two sides of any size that are near enough, in one process.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("laptop", "computer"): 0.5, ("laptop", "desk"): 0.25})
    >>> found = near_pairs(table, ["laptop", "car"], ["computer", "desk", "laptop"], Bar(0.5))
    >>> list(zip(*(part.tolist() for part in found)))
    [(0, 2, 1.0), (0, 0, 0.5)]
    """
    found = []
    for start in range(0, len(right), CHUNK):
        part = NearestTerms(measure, right[start : start + CHUNK], bar).pairs(left)
        found.append(part._replace(right=part.right + start))
    if len(found) == 1:
        return found[0]
    whole = _join(found)
    same = [left[a] == right[b] for a, b in zip(whole.left.tolist(), whole.right.tolist(), strict=True)]
    return whole.best(np.array(same, np.bool_), bar.best)


def first_of_each(pairs: Pairs, count: int) -> Pairs:
    """The first pairs of every left term; those of one term stand together.

    >>> some = Pairs(np.array([0, 0, 0, 1]), np.array([5, 6, 7, 5]), np.zeros(4, np.float32))
    >>> first_of_each(some, 2).right.tolist()
    [5, 6, 5]
    """
    begins = np.flatnonzero(np.diff(pairs.left, prepend=-1))
    sizes = np.diff(np.append(begins, len(pairs.left)))
    kept = np.arange(len(pairs.left)) - np.repeat(begins, sizes) < count
    return pairs.at(kept)


def split(key: str, themed: bool) -> tuple[str, Theme]:
    """A key's term and theme."""
    if not themed:
        return key, ()
    term, *theme = key.split(TAG)
    return term, tuple(theme)


def _by_theme(keys: Sequence[str], themed: bool) -> dict[Theme, list[int]]:
    if not themed:
        return {(): list(range(len(keys)))} if keys else {}
    groups: dict[Theme, list[int]] = {}
    for at, key in enumerate(keys):
        groups.setdefault(split(key, themed)[1], []).append(at)
    return groups


def _join(parts: list[Pairs]) -> Pairs:
    if not parts:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    left, right, relatedness = zip(*parts, strict=True)
    return Pairs(np.concatenate(left), np.concatenate(right), np.concatenate(relatedness))
