"""How pairs of terms are settled: each term with one partner at most, and how sure a partner is against the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from likewise.errors import BuildError
from likewise.semantics.nearest import NearestTerms, Pairs

CELLS: Final = 50_000_000
"""Scores of terms that compete with each other, which are in memory together."""

Places = NDArray[np.int64]


def one_to_one(pairs: Pairs) -> Pairs:
    """The pairs with the greatest sum of scores in which no term comes twice, in the order of the left.

    Terms that are not connected by pairs do not compete, so each group is settled by itself.

    >>> scores = np.array([0.9, 0.8, 0.7], np.float32)
    >>> found = one_to_one(Pairs(np.array([0, 0, 1]), np.array([0, 1, 0]), scores))
    >>> found.left.tolist(), found.right.tolist()
    ([0, 1], [1, 0])
    """
    kept = [places for group in _groups(pairs) for places in (_settled(pairs, group),)]
    chosen = np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)
    return pairs.at(chosen[np.argsort(pairs.left[chosen], kind="stable")])


def _groups(pairs: Pairs) -> Iterator[Places]:
    """The places of pairs whose terms are connected."""
    if not len(pairs.left):
        return
    left, right = int(pairs.left.max()) + 1, int(pairs.right.max()) + 1
    edges = (np.ones(len(pairs.left), np.int8), (pairs.left, left + pairs.right))
    _, labels = connected_components(coo_array(edges, shape=(left + right, left + right)), directed=False)
    owner = labels[pairs.left]
    order = np.argsort(owner, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)


def _settled(pairs: Pairs, group: Places) -> Places:
    if len(group) == 1:
        return group
    rows, row = np.unique(pairs.left[group], return_inverse=True)
    columns, column = np.unique(pairs.right[group], return_inverse=True)
    if len(rows) * len(columns) > CELLS:
        raise BuildError(
            f"{len(rows):,} and {len(columns):,} terms compete for each other, too many to settle",
            hint="give a higher threshold",
        )
    scores, where = np.zeros((len(rows), len(columns))), np.full((len(rows), len(columns)), -1)
    scores[row, column], where[row, column] = pairs.relatedness[group], group
    found = where[linear_sum_assignment(scores, maximize=True)]
    return found[found >= 0]


def margins(pairs: Pairs, two_best: Pairs) -> NDArray[np.float64]:
    """By how much the score of each pair is above that of the best other partner of its left term, if there is one.

    It is negative for a pair that is not the best. `two_best` are the two best partners of every left term.

    >>> best = Pairs(np.array([0, 0]), np.array([4, 7]), np.array([0.75, 0.5], np.float32))
    >>> margins(best, best).tolist()
    [0.25, -0.25]
    """
    count = int(max(pairs.left.max(initial=-1), two_best.left.max(initial=-1))) + 1
    first, second = np.zeros(count), np.zeros(count)
    partner = np.full(count, -1)
    begins = np.flatnonzero(np.diff(two_best.left, prepend=-1))
    owners = two_best.left[begins]
    first[owners], partner[owners] = two_best.relatedness[begins], two_best.right[begins]
    later = np.setdiff1d(np.arange(len(two_best.left)), begins)
    second[two_best.left[later]] = two_best.relatedness[later]
    rival = np.where(partner[pairs.left] == pairs.right, second[pairs.left], first[pairs.left])
    return np.asarray(pairs.relatedness.astype(np.float64) - rival, np.float64)


def margins_of(near: NearestTerms, pairs: Pairs, left: list[str]) -> NDArray[np.float64]:
    """The margins of pairs that a right side gave for some left terms; `near` gives the two best of each."""
    return margins(pairs, near.pairs(left))
