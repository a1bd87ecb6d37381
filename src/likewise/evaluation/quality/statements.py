"""Matching of event statements with subscription statements, as in 002 section 5.3.

All events at once, in plain NumPy: a property's rank depends only on the set of its event's properties, and there are
few such sets, so fP is computed once for each set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from likewise.evaluation.quality.ranking import RankedScores
from likewise.events import Event, normalise
from likewise.semantics import Matrix, Measure

TOP = 5
"""The paper's m."""

Wanted = tuple[str, str]
"""Property and value of one statement of a subscription."""


@dataclass(frozen=True, slots=True)
class StatementMatcher:
    """The measures that rank properties, compare properties and compare values [002 eq 14, 15 and 19 to 24]."""

    ranking: Measure
    properties: Measure
    values: Measure
    lifted: bool = False
    """Whether a property's relatedness is multiplied by its inverse rank [eq 14]."""

    @classmethod
    def of(cls, measure: Measure) -> StatementMatcher:
        """The same measure for all [eq 19 to 24]."""
        return cls(measure, measure, measure)

    @classmethod
    def hybrid(cls, esa: Measure, similarity: Measure) -> StatementMatcher:
        """ESA, with properties ranked and weighted by another measure [eq 14, 15]."""
        return cls(similarity, esa, esa, lifted=True)


class StatementTable:
    """Events as numbers of distinct properties and values."""

    def __init__(self, events: Sequence[Event]) -> None:
        properties: dict[str, int] = {}
        values: dict[str, int] = {}
        sets: dict[tuple[int, ...], int] = {}
        owner, prop, value, kinds = [], [], [], []
        for number, event in enumerate(events):
            numbers = []
            for name, content in event.tuples:
                numbers.append(properties.setdefault(normalise(name), len(properties)))
                value.append(values.setdefault(normalise(str(content)), len(values)))
            owner += [number] * len(numbers)
            prop += numbers
            kinds.append(sets.setdefault(tuple(sorted(set(numbers))), len(sets)))
        self.properties, self.values, self.sets = list(properties), list(values), list(sets)
        self.property_of: NDArray[np.int64] = np.array(prop, np.int64)
        self.value_of: NDArray[np.int64] = np.array(value, np.int64)
        self.set_of: NDArray[np.int64] = np.array(kinds, np.int64)[np.array(owner, np.int64)]
        self.starts: NDArray[np.int64] = np.searchsorted(np.array(owner), np.arange(len(events)))

    @property
    def per_event(self) -> float:
        """The mean number of statements of an event."""
        return len(self.property_of) / max(1, len(self.starts))


class StatementScorer:
    """Scores of subscriptions with a table of events; relatedness is computed once for each measure.

    >>> from likewise.testing import TableMeasure
    >>> events = [Event.of({"team": "FC Barcelona"}), Event.of({"place": "Barcelona"})]
    >>> scorer = StatementScorer(StatementTable(events), [[("club", "Barcelona")]])
    >>> known = TableMeasure({("club", "team"): 0.8, ("Barcelona", "FC Barcelona"): 0.5})
    >>> scorer.score(StatementMatcher.of(known)).round(2).tolist()
    [[0.4000000059604645, 0.0]]
    """

    def __init__(self, table: StatementTable, subscriptions: Sequence[Sequence[Wanted]]) -> None:
        self.table = table
        self.subscriptions = subscriptions
        wanted = [statement for subscription in subscriptions for statement in subscription]
        self._properties = list(dict.fromkeys(normalise(name) for name, _ in wanted))
        self._values = list(dict.fromkeys(normalise(value) for _, value in wanted))
        self._known: dict[tuple[int, str], Matrix] = {}

    def score(self, matcher: StatementMatcher, *, top: int = TOP) -> RankedScores:
        """A row per subscription, a column per event: the mean over statements of the best score [eq 6, 8, 11]."""
        lifted = self._property_scores(matcher, top)
        values = self.related(matcher.values, "values")
        table, best = self.table, {}
        for name, value in {statement for subscription in self.subscriptions for statement in subscription}:
            row = lifted[self._properties.index(normalise(name))]
            scores = row[table.set_of, table.property_of] * values[self._values.index(normalise(value))][table.value_of]
            best[name, value] = np.maximum.reduceat(scores, table.starts)
        return np.stack([np.mean([best[statement] for statement in wanted], axis=0) for wanted in self.subscriptions])

    def related(self, measure: Measure, side: Literal["properties", "values"]) -> Matrix:
        """Relatedness of the subscriptions' terms and the events' terms."""
        if (id(measure), side) not in self._known:
            subscribed, published = (
                (self._properties, self.table.properties) if side == "properties" else (self._values, self.table.values)
            )
            self._known[id(measure), side] = measure.matrix(subscribed, published)
        return self._known[id(measure), side]

    def _property_scores(self, matcher: StatementMatcher, top: int) -> NDArray[np.float32]:
        """fP by subscription property, set of properties and event property; 0 outside the Top-m of the set."""
        ranking = self.related(matcher.ranking, "properties")
        plain = self.related(matcher.properties, "properties")
        scores = np.zeros((len(self._properties), len(self.table.sets), len(self.table.properties)), np.float32)
        same = np.array([[a == b for b in self.table.properties] for a in self._properties])
        for number, members in enumerate(self.table.sets):
            inside = list(members)
            rank = 1 + (ranking[:, None, inside] > ranking[:, inside, None]).sum(axis=2)
            factor = np.maximum(0, top - rank + 1) if matcher.lifted else (rank <= top).astype(int)
            scores[:, number, inside] = np.minimum(1, factor * plain[:, inside])
            scores[:, number, inside] = np.where(same[:, inside], 1, scores[:, number, inside])
        return scores


def exact_patterns(pairs: Mapping[str, set[tuple[str, str]]], wanted: Sequence[str]) -> int:
    """How many exact patterns one approximate subscription replaces [002 tables 2, 4 and 7].

    `pairs` has, for each statement, the pairs of property and value that events use for it; a pattern has one of each.

    >>> exact_patterns({"in London": {("city", "London"), ("place", "London")}, "a match": {("type", "match")}},
    ...                ["a match", "in London"])
    2
    """
    return int(np.prod([len(pairs.get(statement, ())) for statement in wanted], dtype=object))
