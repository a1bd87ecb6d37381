"""Pairs of related terms, for joins by meaning.

One side is prepared in chunks; the other is compared with it in blocks that fit the processor's cache. So the memory
needed does not depend on the number of terms. This module does not need Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import DEFAULT_THRESHOLD
from likewise.errors import BuildError
from likewise.semantics.measures.base import Matrix, Measure, Prepared

Theme: TypeAlias = tuple[str, ...]

CHUNK: Final = 20_000
"""Terms of the right side that are prepared together: about 200 MB on the Wikipedia space."""

CELLS: Final = 4_000_000
"""Scores that are in memory together."""

TAG: Final = "\x1f"
"""The separator between a term and the tags of its theme."""


class Pairs(NamedTuple):
    """Pairs as columns: the place of the left term, the place of the right term, their relatedness."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    relatedness: NDArray[np.float32]

    def at(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Pairs:
        """The pairs at these places, in this order."""
        return Pairs(self.left[places], self.right[places], self.relatedness[places])

    def best(self, same: NDArray[np.bool_], count: int | None) -> Pairs:
        """The pairs by left term, best first, at most `count` of each.

        Among equal scores the `same` text comes first, then the first on the right.
        """
        ordered = self.at(np.lexsort((self.right, ~same, -self.relatedness, self.left)))
        return ordered if count is None else first_of_each(ordered, count)


@dataclass(frozen=True, slots=True)
class Bar:
    """Which pairs to keep: those with at least the threshold, and the best of each left term."""

    threshold: float
    best: int | None = None
    themed: bool = False

    @classmethod
    def of(cls, threshold: float | None, best: int | None, *, themed: bool = False) -> Bar:
        """Check the options of a user; the default threshold is 0.5, or none if `best` is given."""
        if best is not None and best < 1:
            raise BuildError(f"best={best!r} leaves nothing to join", hint="best=1 keeps the nearest term only")
        chosen = threshold if threshold is not None else (DEFAULT_THRESHOLD if best is None else 0.0)
        # Written so that NaN is refused too.
        if not 0 <= chosen <= 1 or (chosen == 0 and best is None):
            hint = "give a threshold above 0 and at most 1, or best=1 without a threshold"
            raise BuildError(f"{chosen} is not a threshold for a join", hint=hint)
        return cls(float(chosen), best, themed)


class NearestTerms:
    """Finds related terms of a prepared right side for terms of the left.

    A key is a term, or a term with the tags of its theme. Among equal scores the same key comes first, then the first
    on the right.
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
        """A cache for callers: places and scores of the neighbours of terms that repeat."""

    def pairs(self, left: Sequence[str]) -> Pairs:
        """All kept pairs of a left side, in the order of the left."""
        parts = [
            part
            for theme, places in _by_theme(left, self._bar.themed).items()
            for part in self._pairs_in(left, places, theme)
        ]
        return self._best(left, _join(parts))

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
            # Keeps all that may be among the best; ties are decided later.
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
        self._prepared: Prepared | None = None

    def scores(self, terms: list[str], theme: Theme) -> Matrix:
        """A row for each term of the left, a column for each of this group, as subscription terms."""
        if self._prepared is None:
            self._prepared = self._measure.prepare(self._terms, subscription_theme=self._theme)
        return self._prepared.rows(terms, event_theme=theme)


def near_pairs(measure: Measure, left: Sequence[str], right: Sequence[str], bar: Bar) -> Pairs:
    """All kept pairs of two sides of any size, in one process.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("laptop", "computer"): 0.5, ("laptop", "desk"): 0.25})
    >>> pairs = near_pairs(table, ["laptop", "car"], ["computer", "desk", "laptop"], Bar(0.5))
    >>> list(zip(*(column.tolist() for column in pairs)))
    [(0, 2, 1.0), (0, 0, 0.5)]
    """
    parts = []
    for start in range(0, len(right), CHUNK):
        part = NearestTerms(measure, right[start : start + CHUNK], bar).pairs(left)
        parts.append(part._replace(right=part.right + start))
    if len(parts) == 1:
        return parts[0]
    pairs = _join(parts)
    same = [left[a] == right[b] for a, b in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]
    return pairs.best(np.array(same, np.bool_), bar.best)


def first_of_each(pairs: Pairs, count: int) -> Pairs:
    """The first `count` pairs of every left term, whose pairs must be consecutive.

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
