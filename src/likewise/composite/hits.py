"""Hits: events that match a profile, each with a probability. They are all the composer knows of matching.

The matcher (in this process, in the first stage of a Spark job, or on another node) decides which event matches which
of the composer's profiles; the composer compares no words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from likewise.composite.encoding import EncodedTuples, TupleEncoder
from likewise.composite.general.pools import Answer, Pool, mapped_values
from likewise.composite.instance import WeightedValue
from likewise.errors import BuildError
from likewise.events import Event, EventColumns, Value
from likewise.language import Options, Profile
from likewise.matching import EventScores, Matcher

if TYPE_CHECKING:
    from likewise.composite.compiled.patterns import CompiledPatterns


MappedValues: TypeAlias = dict[str, tuple[WeightedValue, ...]]
"""Weighted values by the profile's attribute names, for attributes that the event names differently."""


class Hit(NamedTuple):
    """An event that matches the composer's profile of that number.

    `mapped` has weighted values by the profile's attribute names, for attributes that the event names differently.
    """

    event: Event
    profile: int
    probability: float = 1.0
    mapped: MappedValues | None = None


class MemberProfile(NamedTuple):
    """A profile whose hits a composer needs, with its matching options."""

    profile: Profile
    options: Options


class ProfileNumbers:
    """Takes the place of a matcher: numbers distinct profiles in the order in which they are added."""

    def __init__(self) -> None:
        self.members: dict[int, MemberProfile] = {}
        self._numbers: dict[MemberProfile, int] = {}
        self._users: dict[int, int] = {}
        self._next = 0

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:  # noqa: ARG002 - not needed by this kind
        """The number of a profile; counts one more use."""
        member = MemberProfile(profile, options or Options())
        number = self._numbers.get(member)
        if number is None:
            number = self._numbers[member] = self._next
            self.members[number], self._users[number] = member, 0
            self._next += 1
        self._users[number] += 1
        return number

    def remove(self, handle: int) -> None:
        """Count one use less; without uses the profile is forgotten."""
        self._users[handle] -= 1
        if not self._users[handle]:
            del self._users[handle]
            del self._numbers[self.members.pop(handle)]

    def resume(self, members: Iterable[tuple[int, MemberProfile]]) -> None:
        """Restore the numbers of profiles that will be added again."""
        for number, profile in members:
            self._numbers[profile] = number
            self.members[number], self._users[number] = profile, 0
            self._next = max(self._next, number + 1)

    def match(self, event: Event) -> Iterable[Any]:
        """Unsupported: a composer takes hits."""
        raise BuildError(f"a composer cannot match events (event {event.id!r})", hint="pass it hits, or use a Detector")


class HitColumns(NamedTuple):
    """Hits in columns: index of the event in its batch, profile number and probability.

    `mapped` has an entry per hit if any hit has mapped values.
    """

    event: NDArray[Any]
    profile: NDArray[Any]
    probability: NDArray[np.float64]
    mapped: Sequence[MappedValues | None] | None = None

    @classmethod
    def of(cls, hits: Sequence[Sequence[Hit]]) -> HitColumns:
        """Columns from the hits of each event of a batch."""
        event = np.repeat(np.arange(len(hits)), [len(event_hits) for event_hits in hits])
        rows = [hit for event_hits in hits for hit in event_hits]
        return cls(
            event.astype(np.int64),
            np.fromiter((hit.profile for hit in rows), np.int64, count=len(rows)),
            np.fromiter((hit.probability for hit in rows), np.float64, count=len(rows)),
            [hit.mapped for hit in rows] if any(hit.mapped is not None for hit in rows) else None,
        )

    def moved(self, places: NDArray[Any]) -> HitColumns:
        """Renumber events: event i becomes `places[i]`; hits of events at -1 are dropped."""
        event = places[self.event]
        kept = np.flatnonzero(event >= 0)
        mapped = None if self.mapped is None else [self.mapped[at] for at in kept.tolist()]
        return HitColumns(event[kept], self.profile[kept], self.probability[kept], mapped)

    def rows(self) -> Iterator[tuple[int, int, float, MappedValues | None]]:
        """Rows of event, profile, probability and mapped values, sorted by event."""
        order = np.argsort(self.event, kind="stable")
        mapped = repeat(None) if self.mapped is None else (self.mapped[at] for at in order.tolist())
        columns = (self.event[order].tolist(), self.profile[order].tolist(), self.probability[order].tolist())
        return zip(*columns, mapped, strict=False)

    def of_events(self, events: Sequence[Event]) -> Iterator[tuple[Event, tuple[Hit, ...]]]:
        """Pair each event of the batch with its hits."""
        rows = groupby(self.rows(), key=itemgetter(0))
        at, own_rows = next(rows, (len(events), ()))
        for place, event in enumerate(events):
            if place != at:
                yield event, ()
                continue
            yield event, tuple([Hit(event, *row[1:]) for row in own_rows])
            at, own_rows = next(rows, (len(events), ()))


def by_event(hits: Iterable[Hit]) -> Iterator[tuple[Event, tuple[Hit, ...]]]:
    """Group consecutive hits of the same event."""
    for _, hits_of_event in groupby(hits, key=_identity):
        group = tuple(hits_of_event)
        yield group[0].event, group


def _identity(hit: Hit) -> tuple[Any, ...]:
    return hit.event.id, hit.event.start, hit.event.end, hit.event.tuples


def dump_event(event: Event) -> list[Any]:
    """An event as plain values; datetimes keep their time zone."""
    return [event.id, [[name, _plain(v)] for name, v in event.tuples], list(event.theme), event.start, event.end]


def load_event(state: Any) -> Event:
    """The inverse of `dump_event`."""
    name, tuples, theme, start, end = state
    return Event(name, tuple((attribute, _value(v)) for attribute, v in tuples), tuple(theme), start, end)


def _plain(value: Value) -> Any:
    return {"t": value.isoformat()} if isinstance(value, datetime) else value


def _value(value: Any) -> Value:
    return datetime.fromisoformat(value["t"]) if isinstance(value, dict) else value


def dump_mapped(mapped: dict[str, tuple[WeightedValue, ...]] | None) -> Any:
    """Mapped values as plain values."""
    if mapped is None:
        return None
    return [[name, [[_plain(v), w] for v, w in values]] for name, values in mapped.items()]


def load_mapped(state: Any) -> dict[str, tuple[tuple[Value, float], ...]] | None:
    """The inverse of `dump_mapped`."""
    if state is None:
        return None
    return {name: tuple((_value(v), w) for v, w in values) for name, values in state}


def dump_hits(hits: Iterable[Hit]) -> list[Any]:
    """The hits of one event as plain values, without the event."""
    return [[hit.profile, hit.probability, dump_mapped(hit.mapped)] for hit in hits]


def load_hits(event: Event, plain: Iterable[Any]) -> tuple[Hit, ...]:
    """The inverse of `dump_hits`."""
    return tuple([Hit(event, profile, probability, load_mapped(mapped)) for profile, probability, mapped in plain])


def hit_text(profile: int, probability: float, mapped: MappedValues | None = None) -> str:
    """A hit without its event as a short text; equal hits have equal texts, so each distinct text is parsed once.

    >>> [hit_text(3, 1.0), hit_text(3, 0.25)], hit_of_text(hit_text(3, 0.25))
    (['3', '3 0.25'], (3, 0.25, None))
    """
    parts = [str(profile)]
    if probability != 1.0 or mapped is not None:
        parts.append(repr(float(probability)))
    if mapped is not None:
        parts.append(msgspec.json.encode(dump_mapped(mapped)).decode())
    return " ".join(parts)


def hit_of_text(text: str) -> tuple[int, float, MappedValues | None]:
    """The inverse of `hit_text`."""
    profile, *rest = text.split(" ", 2)
    probability = float(rest[0]) if rest else 1.0
    return int(profile), probability, load_mapped(msgspec.json.decode(rest[1])) if len(rest) > 1 else None


# Sources of hits: given with the events, or found by a matcher in this process.


class HitSource(ABC):
    """Provides the hits of a batch."""

    def __init__(self, pool: Pool, encoder: TupleEncoder) -> None:
        self._pool = pool
        self._encoder = encoder

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """Encode tuples as numbers, which give join keys and the equality predicates they satisfy."""
        self._encoder.trim()
        return self._encoder.encode(events)

    @abstractmethod
    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns | None:
        """The hits of profiles that are not single equalities; None if there can be none."""

    @abstractmethod
    def answers(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterable[tuple[int, list[Answer]]]:
        """Events that match profiles of the general path, in order, with what they match."""


class GivenHits(HitSource):
    """Hits that were given with the events."""

    def __init__(self, pool: Pool, encoder: TupleEncoder, hits: HitColumns) -> None:
        super().__init__(pool, encoder)
        self._hits = hits

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns:  # noqa: ARG002 - not needed by this kind
        """All hits."""
        return self._hits

    def answers(
        self,
        events: Sequence[Event],  # noqa: ARG002 - not needed by this kind
        encoded: EncodedTuples,  # noqa: ARG002 - not needed by this kind
        scored: HitColumns | None,  # noqa: ARG002 - not needed by this kind
    ) -> Iterator[tuple[int, list[Answer]]]:
        """The hits of the general path."""
        by_handle = self._pool.by_handle
        for at, rows in groupby(self._hits.rows(), key=itemgetter(0)):
            answers: list[Answer] = []
            for _, profile, probability, mapped in rows:
                entry = by_handle.get(profile)
                if entry is not None and not any(entry is other[0] for other in answers):
                    answers.append((entry, probability, mapped))
            if answers:
                yield at, answers


class MatchedHits(HitSource):
    """Hits found by a matcher; `known` are its scores of these events, if they were scored before."""

    def __init__(
        self,
        pool: Pool,
        encoder: TupleEncoder,
        matcher: Matcher,
        compiled: CompiledPatterns | None,
        known: HitColumns | None = None,
    ) -> None:
        super().__init__(pool, encoder)
        self._matcher = matcher
        self._compiled = compiled
        self._known = known

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns | None:
        """The matcher's scores, computed once and only for events that may match."""
        if self._known is not None:
            return self._known
        if self._pool.by_handle:
            return self._score(events, None)
        if self._compiled is not None and self._compiled.asks_matcher:
            return self._score(events, self._compiled.may_match(encoded))
        return None

    def _score(self, events: Sequence[Event], rows: NDArray[np.int64] | None) -> HitColumns:
        chosen = events
        if rows is not None:
            chosen = events.take(rows) if isinstance(events, EventColumns) else [events[at] for at in rows.tolist()]
        event, handle, score = self._matcher.score_batch(self._matcher.encode(chosen))
        at = event if rows is None else rows[event]
        return HitColumns(at, handle, self._matcher.probabilities(handle, score))

    def answers(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Hits by equality lookup and by matcher, with mapped values where attribute names match by meaning."""
        pool = self._pool
        at, hits, meaning = -1, list[Answer](), False
        for event, code, probability in self._rows(events, encoded, scored):
            if event != at:
                if hits:
                    yield at, self._mapped(events[at], hits) if meaning else hits
                at, hits, meaning = event, [], False
            entry = pool.by_number.get(code) if code >= 0 else pool.by_handle.get(~code)
            # An event may contain the same tuple twice.
            if entry is not None and not (hits and any(entry is hit[0] for hit in hits)):
                hits.append((entry, probability, None))
                meaning = meaning or entry.by_meaning
        if hits:
            yield at, self._mapped(events[at], hits) if meaning else hits

    def _mapped(self, event: Event, hits: list[Answer]) -> list[Answer]:
        """Add the mapped values to scored hits; drops hits whose match is gone."""
        approximate = [(entry.handle, probability) for entry, probability, _ in hits if entry.by_meaning]
        handle = np.array([handle for handle, _ in approximate], np.int32)
        probability = np.array([probability for _, probability in approximate], np.float32)
        scores = EventScores(np.zeros(len(approximate), np.int32), handle, probability)
        matches = self._matcher.matches_of(self._matcher.encode([event]), scores)
        by_entry = {id(match.subscription[0]): match for _, match in matches if isinstance(match.subscription, tuple)}
        matched = ((entry, probability, by_entry.get(id(entry))) for entry, probability, _ in hits)
        return [
            (entry, probability, None if match is None else mapped_values(entry.profile, event, match))
            for entry, probability, match in matched
            if match is not None or not entry.by_meaning
        ]

    def _rows(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterator[tuple[int, int, float]]:
        """Rows of event, equality predicate (or ~handle of the matcher) and probability, sorted by event."""
        predicate = self._encoder.predicate_of[encoded.ids]
        where = np.flatnonzero(predicate >= 0)
        event, code = np.searchsorted(encoded.starts, where, side="right") - 1, predicate[where]
        if not self._pool.by_handle:
            return zip(event.tolist(), code.tolist(), repeat(1.0))
        if scored is None:
            scored = self._known or self._score(events, None)
        probability = np.concatenate((np.ones(len(where)), scored.probability))
        event, code = np.concatenate((event, scored.event)), np.concatenate((code, ~scored.profile))
        order = np.argsort(event, kind="stable")
        return zip(event[order].tolist(), code[order].tolist(), probability[order].tolist(), strict=True)
