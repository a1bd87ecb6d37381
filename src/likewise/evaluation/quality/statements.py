"""Matching of event statements with subscription statements, as in 002 section 5.3, by the approach `hybrid`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from likewise.evaluation.quality.ranking import RankedScores
from likewise.evaluation.quality.scoring import Tabled, TermsOfData, score_all
from likewise.events import Event, normalise
from likewise.language import Operator, Predicate, Profile, Subscription
from likewise.matching import Matcher
from likewise.semantics import Hybrid, Measure

TOP = 5
"""The paper's m."""

Wanted = tuple[str, str]
"""Property and value of one statement of a subscription."""


@dataclass(frozen=True, slots=True)
class StatementMeasures:
    """The measure that ranks properties, and the one that compares properties and values [002 eq 14, 15, 19 to 24]."""

    ranking: Measure
    values: Measure
    lifted: bool = False
    """Whether a property's relatedness is multiplied by its inverse rank [eq 14]."""

    @classmethod
    def of(cls, measure: Measure) -> StatementMeasures:
        """The same measure for all [eq 19 to 24]."""
        return cls(measure, measure)

    @classmethod
    def hybrid(cls, esa: Measure, similarity: Measure) -> StatementMeasures:
        """ESA, with properties ranked and weighted by another measure [eq 14, 15]."""
        return cls(similarity, esa, lifted=True)


class StatementScorer:
    """Scores of subscriptions with events of texts; the relatedness of their terms is computed once for each measure.

    >>> from likewise.testing import TableMeasure
    >>> events = [Event.of({"team": "FC Barcelona"}), Event.of({"place": "Barcelona"})]
    >>> scorer = StatementScorer(events, [[("club", "Barcelona")]])
    >>> known = TableMeasure({("club", "team"): 0.8, ("Barcelona", "FC Barcelona"): 0.5})
    >>> scorer.score(StatementMeasures.of(known)).round(2).tolist()
    [[0.4000000059604645, 0.0]]
    """

    def __init__(self, events: Sequence[Event], subscriptions: Sequence[Sequence[Wanted]]) -> None:
        self.events = [Event(event.id, tuple((name, str(value)) for name, value in event.tuples)) for event in events]
        profiles = [
            Profile(tuple(Predicate(name, Operator.EQ, value, True, True) for name, value in statements))
            for statements in subscriptions
        ]
        self.terms = TermsOfData.of(self.events, profiles)
        self._subscriptions = [Subscription(f"s{number}", profile) for number, profile in enumerate(profiles, 1)]
        self._tables: dict[int, Tabled] = {}

    def score(self, measures: StatementMeasures, *, top: int = TOP) -> RankedScores:
        """A row per subscription, a column per event: the mean over statements of the best score [eq 6, 8, 11]."""
        values, ranking = self._table(measures.values), self._table(measures.ranking)
        hybrid = Hybrid(values, ranking, top=top, lifted=measures.lifted)
        return score_all(Matcher(hybrid, approach="hybrid"), self.events, self._subscriptions)

    def _table(self, measure: Measure) -> Tabled:
        if id(measure) not in self._tables:
            self._tables[id(measure)] = Tabled(measure, self.terms)
        return self._tables[id(measure)]

    def values_of(self, attribute: str) -> set[str]:
        """The distinct values of an attribute."""
        pairs = (pair for event in self.events for pair in event.tuples)
        return {normalise(str(value)) for name, value in pairs if normalise(name) == attribute}

    @property
    def per_event(self) -> float:
        """The mean number of statements of an event."""
        return float(np.mean([len(event.tuples) for event in self.events])) if self.events else 0.0


def exact_patterns(pairs: Mapping[str, set[tuple[str, str]]], wanted: Sequence[str]) -> int:
    """How many exact patterns one approximate subscription replaces [002 tables 2, 4 and 7].

    `pairs` has, for each statement, the pairs of property and value that events use for it; a pattern has one of each.

    >>> exact_patterns({"in London": {("city", "London"), ("place", "London")}, "a match": {("type", "match")}},
    ...                ["a match", "in London"])
    2
    """
    return int(np.prod([len(pairs.get(statement, ())) for statement in wanted], dtype=object))
