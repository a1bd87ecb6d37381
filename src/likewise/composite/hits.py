"""Hits: what composing knows of matching. A hit is an event that answers a profile, and how surely.

The matcher (in this process, in the first stage of a Spark job, or on another node) says which event answers which of
the composer's profiles; the composer knows nothing of words.
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

from likewise.composite.encoding import Columns, EncodedTuples
from likewise.composite.general.pools import Answer, Pool, mapped_values
from likewise.composite.instance import Weighted
from likewise.errors import BuildError
from likewise.events import Event, EventColumns, Value
from likewise.language import Options, Profile
from likewise.matching import EventScores, Matcher

if TYPE_CHECKING:
    from likewise.composite.compiled.patterns import FlatPatterns


MappedValues: TypeAlias = dict[str, tuple[Weighted, ...]]
"""Values by a profile's own attribute names, each with its weight, where the event uses other names."""


class Hit(NamedTuple):
    """An event that answers the composer's profile of a number.

    `mapped` has values by the profile's own attribute names, each with its weight, where the event uses other names.
    """

    event: Event
    profile: int
    probability: float = 1.0
    mapped: MappedValues | None = None


class Wanted(NamedTuple):
    """A profile that a composer wants to hear of, and how it is to be matched."""

    profile: Profile
    options: Options


class HitBook:
    """Stands where a matcher would: it only numbers the profiles, each once, in the order in which they are added."""

    def __init__(self) -> None:
        self.wanted: dict[int, Wanted] = {}
        self._numbers: dict[Wanted, int] = {}
        self._users: dict[int, int] = {}
        self._next = 0

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:  # noqa: ARG002 - not needed by this kind
        """The number of a profile."""
        wanted = Wanted(profile, options or Options())
        number = self._numbers.get(wanted)
        if number is None:
            number = self._numbers[wanted] = self._next
            self.wanted[number], self._users[number] = wanted, 0
            self._next += 1
        self._users[number] += 1
        return number

    def remove(self, handle: int) -> None:
        """Forget one use of a profile."""
        self._users[handle] -= 1
        if not self._users[handle]:
            del self._users[handle]
            del self._numbers[self.wanted.pop(handle)]

    def resume(self, wanted: Iterable[tuple[int, Wanted]]) -> None:
        """Give profiles that are about to be added again the numbers that they had."""
        for number, profile in wanted:
            self._numbers[profile] = number
            self.wanted[number], self._users[number] = profile, 0
            self._next = max(self._next, number + 1)

    def match(self, event: Event) -> Iterable[Any]:
        """Not supported: a composer is given hits."""
        raise BuildError(f"a composer does not match events ({event.id!r})", hint="give it hits, or use a Detector")


class HitColumns(NamedTuple):
    """Hits in columns: the number of the event in its batch, the profile, and how sure it is.

    `mapped` has what other names stand for, one for each hit, where any hit has that.
    """

    event: NDArray[Any]
    profile: NDArray[Any]
    probability: NDArray[np.float64]
    mapped: Sequence[MappedValues | None] | None = None

    @classmethod
    def of(cls, hits: Sequence[Sequence[Hit]]) -> HitColumns:
        """The hits of each event of a batch."""
        event = np.repeat(np.arange(len(hits)), [len(found) for found in hits])
        rows = [hit for found in hits for hit in found]
        return cls(
            event.astype(np.int64),
            np.fromiter((hit.profile for hit in rows), np.int64, count=len(rows)),
            np.fromiter((hit.probability for hit in rows), np.float64, count=len(rows)),
            [hit.mapped for hit in rows] if any(hit.mapped is not None for hit in rows) else None,
        )

    def moved(self, places: NDArray[Any]) -> HitColumns:
        """The same hits when event i stands at `places[i]`; those of events at -1 are left out."""
        event = places[self.event]
        kept = np.flatnonzero(event >= 0)
        mapped = None if self.mapped is None else [self.mapped[at] for at in kept.tolist()]
        return HitColumns(event[kept], self.profile[kept], self.probability[kept], mapped)

    def rows(self) -> Iterator[tuple[int, int, float, MappedValues | None]]:
        """Event, profile, probability and what was mapped, by event."""
        order = np.argsort(self.event, kind="stable")
        mapped = repeat(None) if self.mapped is None else (self.mapped[at] for at in order.tolist())
        columns = (self.event[order].tolist(), self.profile[order].tolist(), self.probability[order].tolist())
        return zip(*columns, mapped, strict=False)

    def of_events(self, events: Sequence[Event]) -> Iterator[tuple[Event, tuple[Hit, ...]]]:
        """Each event of the batch with its hits."""
        rows = groupby(self.rows(), key=itemgetter(0))
        at, found = next(rows, (len(events), ()))
        for place, event in enumerate(events):
            if place != at:
                yield event, ()
                continue
            yield event, tuple([Hit(event, *row[1:]) for row in found])
            at, found = next(rows, (len(events), ()))


def by_event(hits: Iterable[Hit]) -> Iterator[tuple[Event, tuple[Hit, ...]]]:
    """Hits that follow one another and are of the same event, together."""
    for _, found in groupby(hits, key=_identity):
        group = tuple(found)
        yield group[0].event, group


def _identity(hit: Hit) -> tuple[Any, ...]:
    return hit.event.id, hit.event.start, hit.event.end, hit.event.tuples


def dump_event(event: Event) -> list[Any]:
    """An event as plain values; datetimes keep their zone."""
    return [event.id, [[name, _plain(v)] for name, v in event.tuples], list(event.theme), event.start, event.end]


def load_event(state: Any) -> Event:
    """The event back."""
    name, tuples, theme, start, end = state
    return Event(name, tuple((attribute, _value(v)) for attribute, v in tuples), tuple(theme), start, end)


def _plain(value: Value) -> Any:
    return {"t": value.isoformat()} if isinstance(value, datetime) else value


def _value(value: Any) -> Value:
    return datetime.fromisoformat(value["t"]) if isinstance(value, dict) else value


def dump_mapped(mapped: dict[str, tuple[Weighted, ...]] | None) -> Any:
    """Values by the names that a profile gives them, as plain values."""
    if mapped is None:
        return None
    return [[name, [[_plain(v), w] for v, w in values]] for name, values in mapped.items()]


def load_mapped(state: Any) -> dict[str, tuple[tuple[Value, float], ...]] | None:
    """The same back."""
    if state is None:
        return None
    return {name: tuple((_value(v), w) for v, w in values) for name, values in state}


def plain_hits(hits: Iterable[Hit]) -> list[Any]:
    """The hits of one event as plain values, without it."""
    return [[hit.profile, hit.probability, dump_mapped(hit.mapped)] for hit in hits]


def known_hits(event: Event, plain: Iterable[Any]) -> tuple[Hit, ...]:
    """The hits of one event back."""
    return tuple([Hit(event, profile, probability, load_mapped(mapped)) for profile, probability, mapped in plain])


def hit_text(profile: int, probability: float, mapped: MappedValues | None = None) -> str:
    """A hit without its event as a short text; equal hits have equal texts, so that many need to be read once.

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


# Where the hits of a batch come from: given with the events, or from a matcher in this process.


class HitSource(ABC):
    """What a batch asks for its hits."""

    def __init__(self, pool: Pool, columns: Columns) -> None:
        self._pool = pool
        self._columns = columns

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """Tuples as numbers: they tell the keys by which patterns join, and which simple profiles they answer."""
        self._columns.trim()
        return self._columns.encode(events)

    @abstractmethod
    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns | None:
        """The hits that a dictionary of tuples does not tell; None if there can be none."""

    @abstractmethod
    def answers(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterable[tuple[int, list[Answer]]]:
        """The events that match a profile of the general path, in order, with what they match."""


class GivenHits(HitSource):
    """Hits that came with the events."""

    def __init__(self, pool: Pool, columns: Columns, hits: HitColumns) -> None:
        super().__init__(pool, columns)
        self._hits = hits

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns:  # noqa: ARG002 - not needed by this kind
        """All of them."""
        return self._hits

    def answers(
        self,
        events: Sequence[Event],  # noqa: ARG002 - not needed by this kind
        encoded: EncodedTuples,  # noqa: ARG002 - not needed by this kind
        scored: HitColumns | None,  # noqa: ARG002 - not needed by this kind
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Those of the general path."""
        by_handle = self._pool.by_handle
        for at, rows in groupby(self._hits.rows(), key=itemgetter(0)):
            found: list[Answer] = []
            for _, profile, probability, mapped in rows:
                entry = by_handle.get(profile)
                if entry is not None and not any(entry is other[0] for other in found):
                    found.append((entry, probability, mapped))
            if found:
                yield at, found


class MatchedHits(HitSource):
    """Hits that a matcher finds; `known` are its scores of these very events, where it was asked before."""

    def __init__(
        self, pool: Pool, columns: Columns, matcher: Matcher, flat: FlatPatterns | None, known: HitColumns | None = None
    ) -> None:
        super().__init__(pool, columns)
        self._matcher = matcher
        self._flat = flat
        self._known = known

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns | None:
        """What the matcher says, asked once and only about events that may match."""
        if self._known is not None:
            return self._known
        if self._pool.by_handle:
            return self._score(events, None)
        if self._flat is not None and self._flat.asks_matcher:
            return self._score(events, self._flat.promising(encoded))
        return None

    def _score(self, events: Sequence[Event], some: NDArray[np.int64] | None) -> HitColumns:
        chosen = events
        if some is not None:
            chosen = events.take(some) if isinstance(events, EventColumns) else [events[at] for at in some.tolist()]
        event, handle, score = self._matcher.score_batch(self._matcher.encode(chosen))
        at = event if some is None else some[event]
        return HitColumns(at, handle, self._matcher.probabilities(handle, score))

    def answers(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterator[tuple[int, list[Answer]]]:
        """By dictionary and by matcher; where names of attributes are matched by meaning, with what they stand for."""
        pool = self._pool
        at, hits, meaning = -1, list[Answer](), False
        for event, code, sure in self._rows(events, encoded, scored):
            if event != at:
                if hits:
                    yield at, self._mapped(events[at], hits) if meaning else hits
                at, hits, meaning = event, [], False
            entry = pool.by_number.get(code) if code >= 0 else pool.by_handle.get(~code)
            # An event may say the same twice.
            if entry is not None and not (hits and any(entry is hit[0] for hit in hits)):
                hits.append((entry, sure, None))
                meaning = meaning or entry.by_meaning
        if hits:
            yield at, self._mapped(events[at], hits) if meaning else hits

    def _mapped(self, event: Event, hits: list[Answer]) -> list[Answer]:
        """The same hits with what other names of the event stand for; they are scored already."""
        asked = [(entry.handle, sure) for entry, sure, _ in hits if entry.by_meaning]
        handle, sure = np.array([one[0] for one in asked], np.int32), np.array([one[1] for one in asked], np.float32)
        scores = EventScores(np.zeros(len(asked), np.int32), handle, sure)
        [matches] = self._matcher.matches_of(self._matcher.encode([event]), scores)
        found = {id(match.subscription[0]): match for match in matches if isinstance(match.subscription, tuple)}
        told = ((entry, sure, found.get(id(entry))) for entry, sure, _ in hits)
        return [
            (entry, sure, None if match is None else mapped_values(entry.profile, event, match))
            for entry, sure, match in told
            if match is not None or not entry.by_meaning
        ]

    def _rows(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterator[tuple[int, int, float]]:
        """Event, number of a simple profile or complement of the matcher's handle, and how sure; by event."""
        predicate = self._columns.predicate_of[encoded.ids]
        where = np.flatnonzero(predicate >= 0)
        event, code = np.searchsorted(encoded.starts, where, side="right") - 1, predicate[where]
        if not self._pool.by_handle:
            return zip(event.tolist(), code.tolist(), repeat(1.0))
        if scored is None:
            scored = self._known or self._score(events, None)
        sure = np.concatenate((np.ones(len(where)), scored.probability))
        event, code = np.concatenate((event, scored.event)), np.concatenate((code, ~scored.profile))
        order = np.argsort(event, kind="stable")
        return zip(event[order].tolist(), code[order].tolist(), sure[order].tolist(), strict=True)
