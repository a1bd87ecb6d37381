"""Scores of all events for all subscriptions, as a matcher gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from likewise.evaluation.quality.ranking import RankedScores
from likewise.events import Event, normalise
from likewise.language import Profile, Subscription
from likewise.matching import Encoded, Matcher
from likewise.semantics import Matrix, Measure
from likewise.semantics.evidence import Surroundings

_BATCH = 1000


def score_all(matcher: Matcher, events: Sequence[Event], subscriptions: Sequence[Subscription]) -> RankedScores:
    """The matcher's scores for all pairs: its threshold is put to 0 for that."""
    return scores_of(matcher, batches_of(matcher, events), subscriptions, count=len(events))


def score_each(matcher: Matcher, events: Sequence[Event], subscriptions: Sequence[Subscription]) -> RankedScores:
    """The same with each subscription alone in the matcher."""
    batches = list(batches_of(matcher, events))
    return np.concatenate([scores_of(matcher, batches, [one], count=len(events)) for one in subscriptions])


def batches_of(matcher: Matcher, events: Sequence[Event]) -> Iterator[Encoded]:
    """The events as numbers, some at a time."""
    return (matcher.encode(events[begin : begin + _BATCH]) for begin in range(0, len(events), _BATCH))


def scores_of(
    matcher: Matcher, batches: Iterable[Encoded], subscriptions: Sequence[Subscription], *, count: int
) -> RankedScores:
    """The scores of so many encoded events; the subscriptions are in the matcher only for that."""
    handles = [_add(matcher, one) for one in subscriptions]
    scores = np.zeros((len(handles), count), np.float32)
    begin = 0
    for batch in batches:
        found = matcher.score_batch(batch)
        scores[found.handle - handles[0], found.event + begin] = found.score
        begin += len(batch)
    for handle in handles:
        matcher.remove(handle)
    return scores


def _add(matcher: Matcher, subscription: Subscription) -> int:
    assert isinstance(subscription.body, Profile)
    return matcher.add(subscription.body, options=replace(subscription.options, threshold=0.0, approach=None))


class TermsOfData(NamedTuple):
    """The distinct attributes and values that profiles ask for and that events say."""

    attributes: tuple[list[str], list[str]]
    values: tuple[list[str], list[str]]

    @classmethod
    def of(cls, events: Iterable[Event], profiles: Iterable[Profile]) -> TermsOfData:
        """Those of a data set, as measures see them."""
        wanted = {(each.attribute, str(each.value)) for profile in profiles for each in profile.predicates}
        said = {(name, str(value)) for event in events for name, value in event.tuples}
        sides = ((_distinct(pairs, side) for pairs in (wanted, said)) for side in (0, 1))
        return cls(*((mine, theirs) for mine, theirs in sides))


def _distinct(pairs: Iterable[tuple[str, str]], side: int) -> list[str]:
    return sorted({normalise(pair[side]) for pair in pairs})


class Tabled(Measure):
    """A measure whose scores over the terms of a data set are worked out once, however often matchers ask.

    >>> from likewise.testing import TableMeasure
    >>> terms = TermsOfData((["device"], ["device"]), (["laptop"], ["computer", "lamp"]))
    >>> Tabled(TableMeasure({("laptop", "computer"): 0.5}), terms).matrix(["laptop"], ["lamp", "computer"]).tolist()
    [[0.0, 0.5]]
    """

    def __init__(
        self,
        measure: Measure,
        terms: TermsOfData,
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
    ) -> None:
        self.name, self.symmetric = measure.name, measure.symmetric
        self.inner = measure
        themes = {"subscription_theme": subscription_theme, "event_theme": event_theme}
        self._sides = [
            (_places(mine), _places(theirs), measure.matrix(mine, theirs, **themes)) for mine, theirs in terms
        ]

    def surrounded_by(self, terms: Sequence[str]) -> Surroundings | None:
        """What the measure itself makes of the words of a stream."""
        return self.inner.surrounded_by(terms)

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002 - the themes are those of the table
        event_theme: Sequence[str] = (),  # noqa: ARG002 - the same
    ) -> Matrix:
        """What the table has: attributes with attributes, and values with values."""
        made = np.zeros((len(subscription_terms), len(event_terms)), np.float32)
        for rows, columns, scores in self._sides:
            mine = [at for at, term in enumerate(subscription_terms) if term in rows]
            theirs = [at for at, term in enumerate(event_terms) if term in columns]
            row, column = ([rows[subscription_terms[at]] for at in mine], [columns[event_terms[at]] for at in theirs])
            made[np.ix_(mine, theirs)] = scores[np.ix_(row, column)]
        return made


def _places(terms: Sequence[str]) -> dict[str, int]:
    return {term: at for at, term in enumerate(terms)}
