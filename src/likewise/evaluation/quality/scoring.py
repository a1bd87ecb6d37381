"""Scores of all events for all profiles in plain NumPy, from matrices over distinct terms.

It says what the matcher must give, independent of its kernels: the same words, the same product of
attribute and value, the best tuple for each predicate, the mean over predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.quality.ranking import RankedScores
from likewise.events import Event, normalise
from likewise.language import Predicate, Profile
from likewise.matching import Commonness, joint, tells
from likewise.semantics import Matrix

Adjust: TypeAlias = Callable[[Matrix], Matrix]
"""Scores of one side's terms, changed in view of each other: contrast."""

Mean: TypeAlias = Literal["geometric", "mean", "cautious", "product", "joint"]


class Side:
    """The distinct terms of one role, attributes or values, as profiles and as events say them."""

    def __init__(self, wanted: Sequence[str], said: Sequence[str]) -> None:
        self.wanted = list(dict.fromkeys(wanted))
        self.said = list(dict.fromkeys(said))
        self.row = {term: i for i, term in enumerate(self.wanted)}
        self.column = {term: i for i, term in enumerate(self.said)}
        self.exact: Matrix = np.zeros((len(self.wanted), len(self.said)), np.float32)
        for term, i in self.row.items():
            if term in self.column:
                self.exact[i, self.column[term]] = 1


class Scorer:
    """Events and profiles as numbers of distinct terms; `score` takes the two matrices of a measure.

    >>> from likewise.language import Operator
    >>> wanted = Profile((Predicate("device", Operator.EQ, "laptop", True, True),))
    >>> scorer = Scorer([Event.of({"device": "computer", "room": "112"})], [wanted])
    >>> scorer.values.wanted, scorer.values.said
    (['laptop'], ['computer', '112'])
    >>> scorer.score(scorer.attributes.exact, np.array([[0.5, 0.1]], np.float32)).tolist()
    [[0.5]]
    """

    def __init__(self, events: Sequence[Event], profiles: Sequence[Profile]) -> None:
        self.profiles = profiles
        said = [[(normalise(a), normalise(str(v))) for a, v in event.tuples] for event in events]
        predicates = [p for profile in profiles for p in profile.predicates]
        self.attributes = Side([attribute_of(p) for p in predicates], [a for event in said for a, _ in event])
        self.values = Side([value_of(p) for p in predicates], [v for event in said for _, v in event])
        numbers: dict[tuple[int, int], int] = {}
        width = max((len(event) for event in said), default=0)
        self.tuples_of: NDArray[np.int32] = np.full((len(said), width), -1, np.int32)
        for i, event in enumerate(said):
            for j, (a, v) in enumerate(event):
                pair = self.attributes.column[a], self.values.column[v]
                self.tuples_of[i, j] = numbers.setdefault(pair, len(numbers))
        # A row per place in the event: maxima over few long rows are far quicker than over many short ones.
        self._places = np.ascontiguousarray(self.tuples_of.T.astype(np.intp))
        self.tuples: NDArray[np.int32] = np.array(list(numbers), np.int32).reshape(len(numbers), 2)

    def score(
        self,
        attributes: Matrix,
        values: Matrix,
        *,
        attribute_weight: float = 1.0,
        bits: float = 0.0,
        mean: Mean = "geometric",
        sample: int = 0,
    ) -> RankedScores:
        """A row per profile, a column per event; a part of a predicate without `~` is compared exactly.

        Attributes count to a power, or have so many bits added to their odds. The first events, so many as `sample`
        says, tell how common answers are.
        """
        attributes = _weighed(attributes, attribute_weight, bits)
        best = {
            p: self._best(p, attributes, values) for p in dict.fromkeys(p for q in self.profiles for p in q.predicates)
        }
        return np.stack([_mean([best[p] for p in q.predicates], mean, q, sample=sample) for q in self.profiles])

    def score_alone(
        self,
        attributes: Matrix,
        values: Matrix,
        adjust: Adjust,
        *,
        attribute_weight: float = 1.0,
        bits: float = 0.0,
        mean: Mean = "geometric",
        sample: int = 0,
    ) -> RankedScores:
        """The same with each profile by itself: only its own terms know of each other."""
        rows = []
        for profile in self.profiles:
            a, v = attributes.copy(), values.copy()
            own_a = [self.attributes.row[attribute_of(p)] for p in profile.predicates]
            own_v = [self.values.row[value_of(p)] for p in profile.predicates]
            a[own_a], v[own_v] = _weighed(adjust(a[own_a]), attribute_weight, bits), adjust(v[own_v])
            rows.append(_mean([self._best(p, a, v) for p in profile.predicates], mean, profile, sample=sample))
        return np.stack(rows)

    def _best(self, predicate: Predicate, attributes: Matrix, values: Matrix) -> NDArray[np.float32]:
        """The best tuple's score for one predicate, in every event."""
        a = attributes if predicate.attribute_approximate else self.attributes.exact
        v = values if predicate.value_approximate else self.values.exact
        row_a, row_v = a[self.attributes.row[attribute_of(predicate)]], v[self.values.row[value_of(predicate)]]
        # The entry after the last tuple is what the padding of short events points to.
        scores = np.append(row_a[self.tuples[:, 0]] * row_v[self.tuples[:, 1]], np.float32(0))
        best: NDArray[np.float32] = np.zeros(self._places.shape[1], np.float32)
        for place in self._places:
            np.maximum(best, scores[place], out=best)
        return best


def attribute_of(predicate: Predicate) -> str:
    """The attribute as measures see it."""
    return normalise(predicate.attribute)


def value_of(predicate: Predicate) -> str:
    """The value as measures see it."""
    return normalise(str(predicate.value))


def _weighed(attributes: Matrix, power: float, bits: float) -> Matrix:
    raised = attributes**power
    return np.asarray(raised / (raised + (1 - raised) * 2.0**-bits), np.float32)


def _mean(scores: Sequence[NDArray[np.float32]], how: Mean, profile: Profile, *, sample: int) -> NDArray[np.float32]:
    stacked = np.stack(scores)
    if how == "joint":
        told = [tells(predicate) for predicate in profile.predicates]
        shares = stacked[:, :sample].mean(axis=1).tolist() if sample else []
        commonness = Commonness.seen(shares, told) if sample else Commonness.unknown(told)
        return joint(stacked.astype(np.float64), commonness).astype(np.float32)
    if how == "mean":
        return np.asarray(stacked.mean(axis=0), np.float32)
    if how == "product":
        return np.asarray(stacked.prod(axis=0), np.float32)
    geometric = stacked.prod(axis=0) ** (1 / len(scores))
    return np.asarray(np.sqrt(geometric * stacked.min(axis=0)) if how == "cautious" else geometric, np.float32)
