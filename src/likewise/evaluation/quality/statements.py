"""Statements of events against statements of subscriptions, as 002 section 5.3 matches them.

All events at once, in plain NumPy: a property's rank depends only on which properties its event has, and few editors
make few such sets, so that fP is worked out once a set.
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
    """Which measure ranks properties, which relates them, which relates values [002 eq 14, 15 and 19 to 24]."""

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
        """ESA, with properties ranked and lifted by another measure [eq 14, 15]."""
        return cls(similarity, esa, esa, lifted=True)


class StatementTable:
    """Events as numbers of distinct properties and values."""

    def __init__(self, events: Sequence[Event]) -> None:
        properties: dict[str, int] = {}
        values: dict[str, int] = {}
        sets: dict[tuple[int, ...], int] = {}
        owner, prop, value, kinds = [], [], [], []
        for number, event in enumerate(events):
            mine = []
            for name, said in event.tuples:
                mine.append(properties.setdefault(normalise(name), len(properties)))
                value.append(values.setdefault(normalise(str(said)), len(values)))
            owner += [number] * len(mine)
            prop += mine
            kinds.append(sets.setdefault(tuple(sorted(set(mine))), len(sets)))
        self.properties, self.values, self.sets = list(properties), list(values), list(sets)
        self.property_of: NDArray[np.int64] = np.array(prop, np.int64)
        self.value_of: NDArray[np.int64] = np.array(value, np.int64)
        self.set_of: NDArray[np.int64] = np.array(kinds, np.int64)[np.array(owner, np.int64)]
        self.starts: NDArray[np.int64] = np.searchsorted(np.array(owner), np.arange(len(events)))

    @property
    def per_event(self) -> float:
        """Statements of an event, on average."""
        return len(self.property_of) / max(1, len(self.starts))


class StatementScorer:
    """Subscriptions against a table of events; relatedness of a measure is worked out once.

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
        wanted = [each for subscription in subscriptions for each in subscription]
        self._properties = list(dict.fromkeys(normalise(name) for name, _ in wanted))
        self._values = list(dict.fromkeys(normalise(value) for _, value in wanted))
        self._known: dict[tuple[int, str], Matrix] = {}

    def score(self, matcher: StatementMatcher, *, top: int = TOP) -> RankedScores:
        """A row per subscription, a column per event: the mean over statements of the best one's [eq 6, 8, 11]."""
        lifted = self._property_scores(matcher, top)
        values = self.related(matcher.values, "values")
        table, best = self.table, {}
        for name, value in {each for subscription in self.subscriptions for each in subscription}:
            row = lifted[self._properties.index(normalise(name))]
            scores = row[table.set_of, table.property_of] * values[self._values.index(normalise(value))][table.value_of]
            best[name, value] = np.maximum.reduceat(scores, table.starts)
        return np.stack([np.mean([best[each] for each in wanted], axis=0) for wanted in self.subscriptions])

    def related(self, measure: Measure, side: Literal["properties", "values"]) -> Matrix:
        """Relatedness of what subscriptions say and what events say."""
        if (id(measure), side) not in self._known:
            wanted, said = (
                (self._properties, self.table.properties) if side == "properties" else (self._values, self.table.values)
            )
            self._known[id(measure), side] = measure.matrix(wanted, said)
        return self._known[id(measure), side]

    def _property_scores(self, matcher: StatementMatcher, top: int) -> NDArray[np.float32]:
        """fP by subscription property, set of properties and event property; 0 outside the Top-m of the set."""
        ranking, plain = (self.related(each, "properties") for each in (matcher.ranking, matcher.properties))
        made = np.zeros((len(self._properties), len(self.table.sets), len(self.table.properties)), np.float32)
        same = np.array([[a == b for b in self.table.properties] for a in self._properties])
        for number, members in enumerate(self.table.sets):
            mine = list(members)
            rank = 1 + (ranking[:, None, mine] > ranking[:, mine, None]).sum(axis=2)
            lift = np.maximum(0, top - rank + 1) if matcher.lifted else (rank <= top).astype(int)
            made[:, number, mine] = np.minimum(1, lift * plain[:, mine])
            made[:, number, mine] = np.where(same[:, mine], 1, made[:, number, mine])
        return made


def exact_patterns(pairs: Mapping[str, set[tuple[str, str]]], wanted: Sequence[str]) -> int:
    """How many exact patterns say what one approximate subscription says [002 tables 2, 4 and 7].

    For each statement the pairs of property and value that events use for it; a pattern takes one of each.

    >>> exact_patterns({"in London": {("city", "London"), ("place", "London")}, "a match": {("type", "match")}},
    ...                ["a match", "in London"])
    2
    """
    return int(np.prod([len(pairs.get(each, ())) for each in wanted], dtype=object))
