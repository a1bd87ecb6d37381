"""A match: a subscription, an event, a score, and the k best mappings that explain it, each with a probability."""

from __future__ import annotations

import heapq
import html
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import Event, Value
from likewise.language import Predicate, Profile
from likewise.matching.definition import combined_matrix
from likewise.matching.settings import Aggregation, Approach

if TYPE_CHECKING:
    from likewise.matching.explain import Explanation


_MOST_STATES = 1 << 16


@dataclass(frozen=True, slots=True)
class Correspondence:
    """One predicate answered by one tuple; its probability is relative to the event's other tuples."""

    predicate: Predicate
    tuple: tuple[str, Value]
    similarity: float
    probability: float


@dataclass(frozen=True, slots=True)
class Mapping:
    """A correspondence for every predicate; its probability is relative to all valid mappings."""

    correspondences: tuple[Correspondence, ...]
    probability: float


def row_probabilities(matrix: NDArray[np.floating]) -> NDArray[np.float64]:
    """Divide the similarities of each predicate (row) by their sum; a row of zeros stays zero.

    >>> row_probabilities(np.array([[0.5, 0.125], [0.0, 0.0]])).tolist()
    [[0.8, 0.2], [0.0, 0.0]]
    """
    rows = np.asarray(matrix, dtype=np.float64)
    sums = rows.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
    return shares


def best_assignments(
    matrix: NDArray[np.floating], k: int, *, distinct: bool = False
) -> list[tuple[tuple[int, ...], float]]:
    """The k choices of one column per row with the largest products, best first [004 Alg 4].

    Best-first search over prefixes of rows. The largest entries of the remaining rows bound what a prefix can
    reach, so the first k complete choices are the k best. Zero products are not valid; with `distinct` a column
    answers one row only.

    >>> best_assignments(np.array([[0.9, 0.5], [0.8, 0.4]]), 2)
    [((0, 0), 0.72...), ((1, 0), 0.4)]
    >>> best_assignments(np.array([[0.9, 0.5], [0.8, 0.4]]), 2, distinct=True)
    [((1, 0), 0.4), ((0, 1), 0.36...)]
    """
    rows = np.asarray(matrix, dtype=np.float64)
    if not rows.size:
        return []
    # The most that the rows from i on can contribute.
    rest = np.append(np.cumprod(rows.max(axis=1)[::-1])[::-1], 1.0)
    ticket = count()
    # Among equal bounds the longest prefix comes first, so a tie costs one descent only.
    heap: list[tuple[float, int, int, tuple[int, ...], float]] = [(-rest[0], 0, next(ticket), (), 1.0)]
    best: list[tuple[tuple[int, ...], float]] = []
    while heap and len(best) < k:
        _, _, _, chosen, product = heapq.heappop(heap)
        if len(chosen) == len(rows):
            best.append((chosen, product))
            continue
        for column in np.flatnonzero(rows[len(chosen)]):
            if not (distinct and column in chosen):
                reached = product * float(rows[len(chosen), column])
                bound = reached * float(rest[len(chosen) + 1])
                if bound > 0:
                    longer = (*chosen, int(column))
                    heapq.heappush(heap, (-bound, -len(longer), next(ticket), longer, reached))
    return best


def total_weight(matrix: NDArray[np.floating], *, distinct: bool = False) -> float:
    """The sum of the products of all valid mappings; divided by it, a product is a probability.

    Without `distinct` it is the product of the row sums. With `distinct` it is a sum over sets of used columns,
    or for events with very many tuples over their best mappings only.

    >>> total_weight(np.array([[0.9, 0.5], [0.8, 0.4]]), distinct=True)
    0.76
    """
    rows = np.asarray(matrix, dtype=np.float64)
    if not distinct:
        return float(np.prod(rows.sum(axis=1)))
    sums: dict[int, float] = {0: 1.0}
    for row in rows:
        step: dict[int, float] = {}
        for used, weight in sums.items():
            for column in np.flatnonzero(row).tolist():
                if not used >> column & 1:
                    key = used | 1 << column
                    step[key] = step.get(key, 0.0) + weight * float(row[column])
        sums = step
        if len(sums) > _MOST_STATES:
            return sum(weight for _, weight in best_assignments(rows, 1000, distinct=True))
    return sum(sums.values())


def mappings_of(
    predicates: tuple[Predicate, ...],
    tuples: tuple[tuple[str, Value], ...],
    matrix: NDArray[np.floating],
    *,
    k: int = 1,
    distinct: bool = False,
) -> tuple[Mapping, ...]:
    """The k most probable mappings, with the probability spaces of [000 sec 3.5].

    A predicate that no tuple answers (possible with a mean) has no correspondence.
    """
    answered = np.flatnonzero(np.asarray(matrix).any(axis=1)).tolist() if len(tuples) else []
    rows = np.asarray(matrix)[answered]
    shares = row_probabilities(rows)
    total = total_weight(rows, distinct=distinct)
    out = []
    for columns, weight in best_assignments(rows, k, distinct=distinct):
        correspondences = tuple(
            Correspondence(predicates[answered[i]], tuples[j], float(rows[i, j]), float(shares[i, j]))
            for i, j in enumerate(columns)
        )
        out.append(Mapping(correspondences, weight / total))
    return tuple(out)


class Match:
    """One subscription matched by one event; mappings are computed on first use."""

    def __init__(
        self,
        subscription: Hashable,
        event: Event,
        score: float,
        *,
        profile: Profile,
        threshold: float = 0.0,
        approach: Approach | None = None,
        aggregation: Aggregation | None = None,
        power: float = 1.0,
        matrix: NDArray[np.floating] | None = None,
        top_k: int = 1,
        distinct: bool = False,
        explain: Callable[[Match], Explanation] | None = None,
    ) -> None:
        self.subscription = subscription
        self.event = event
        self.score = score
        self.probability = min(1.0, score**power)
        self.profile = profile
        self.threshold = threshold
        self.approach = approach
        self.aggregation = aggregation
        self.top_k = top_k
        self.distinct = distinct
        self._matrix = matrix
        self._explain = explain

    def __repr__(self) -> str:
        return f"Match({self.subscription!r}, event={self.event.id!r}, score={self.score:.3f})"

    def _repr_html_(self) -> str:
        why = "" if self._explain is None else f"<pre>{html.escape(self.explain().text())}</pre>"
        return f"<b>{html.escape(repr(self))}</b>{why}"

    @cached_property
    def matrix(self) -> NDArray[np.floating]:
        """Combined similarity matrix: a row per predicate, a column per tuple."""
        return combined_matrix(self.profile, self.event) if self._matrix is None else self._matrix

    @cached_property
    def mappings(self) -> tuple[Mapping, ...]:
        """The most probable mappings, best first."""
        return mappings_of(
            self.profile.predicates, self.event.tuples, self.matrix, k=self.top_k, distinct=self.distinct
        )

    @property
    def mapping(self) -> Mapping | None:
        """The best mapping; None if no tuple answers any predicate."""
        return self.mappings[0] if self.mappings else None

    def explain(self) -> Explanation:
        """Why it matches: for every predicate the tuple that answers it, the score and the reason."""
        if self._explain is None:
            raise BuildError("this match was built without a matcher", hint="use Matcher.explain")
        return self._explain(self)
