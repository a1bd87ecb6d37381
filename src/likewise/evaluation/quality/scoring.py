"""A matcher's scores of all events for all subscriptions."""

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
    """The matcher's scores for all pairs, with the threshold 0."""
    return scores_of(matcher, batches_of(matcher, events), subscriptions, count=len(events))


def score_each(matcher: Matcher, events: Sequence[Event], subscriptions: Sequence[Subscription]) -> RankedScores:
    """The matcher's scores for all pairs, with each subscription alone in the matcher."""
    batches = list(batches_of(matcher, events))
    rows = [scores_of(matcher, batches, [subscription], count=len(events)) for subscription in subscriptions]
    return np.concatenate(rows)


def batches_of(matcher: Matcher, events: Sequence[Event]) -> Iterator[Encoded]:
    """The events encoded, in batches."""
    return (matcher.encode(events[begin : begin + _BATCH]) for begin in range(0, len(events), _BATCH))


def scores_of(
    matcher: Matcher, batches: Iterable[Encoded], subscriptions: Sequence[Subscription], *, count: int
) -> RankedScores:
    """The scores of `count` encoded events; the subscriptions are added to the matcher and removed again."""
    handles = [_add(matcher, subscription) for subscription in subscriptions]
    scores = np.zeros((len(handles), count), np.float32)
    begin = 0
    for batch in batches:
        hits = matcher.score_batch(batch)
        scores[hits.handle - handles[0], hits.event + begin] = hits.score
        begin += len(batch)
    for handle in handles:
        matcher.remove(handle)
    return scores


def _add(matcher: Matcher, subscription: Subscription) -> int:
    assert isinstance(subscription.body, Profile)
    return matcher.add(subscription.body, options=replace(subscription.options, threshold=0.0, approach=None))


class TermsOfData(NamedTuple):
    """The distinct attributes and values of profiles and of events."""

    attributes: tuple[list[str], list[str]]
    values: tuple[list[str], list[str]]

    @classmethod
    def of(cls, events: Iterable[Event], profiles: Iterable[Profile]) -> TermsOfData:
        """The normalised terms of a data set."""
        subscribed = {(part.attribute, str(part.value)) for profile in profiles for part in profile.predicates}
        published = {(name, str(value)) for event in events for name, value in event.tuples}
        return cls(*((_distinct(subscribed, side), _distinct(published, side)) for side in (0, 1)))


def _distinct(pairs: Iterable[tuple[str, str]], side: int) -> list[str]:
    return sorted({normalise(pair[side]) for pair in pairs})


class Tabled(Measure):
    """A measure whose scores over the terms of a data set are computed once.

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
            (_places(subscribed), _places(published), side.matrix(subscribed, published, **themes))
            for side, (subscribed, published) in zip((measure.for_attributes(), measure), terms, strict=True)
        ]

    def surrounded_by(self, terms: Sequence[str]) -> Surroundings | None:
        """Words of the stream prepared by the inner measure."""
        return self.inner.surrounded_by(terms)

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002 - the themes are those of the table
        event_theme: Sequence[str] = (),  # noqa: ARG002 - the same
    ) -> Matrix:
        """Scores from the table: attributes with attributes, and values with values."""
        out = np.zeros((len(subscription_terms), len(event_terms)), np.float32)
        for rows, columns, scores in self._sides:
            left = [at for at, term in enumerate(subscription_terms) if term in rows]
            right = [at for at, term in enumerate(event_terms) if term in columns]
            row, column = ([rows[subscription_terms[at]] for at in left], [columns[event_terms[at]] for at in right])
            out[np.ix_(left, right)] = scores[np.ix_(row, column)]
        return out


def _places(terms: Sequence[str]) -> dict[str, int]:
    return {term: at for at, term in enumerate(terms)}
