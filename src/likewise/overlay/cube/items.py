"""What travels through the overlay: events with the topics they match, combinations of events, and reports."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

from likewise.events import Event, Instant, decode_line, encode_line
from likewise.overlay.ring.ids import Key

Id: TypeAlias = bytes
"""Sixteen bytes, derived from content, so that every node computes the same id."""


def id_of(*parts: bytes | str) -> Id:
    """The id of a sequence of parts.

    >>> id_of("a", "b") == id_of("a", b"b") != id_of("ab", "")
    True
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.digest()


class TopicHit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A topic that an event matches, with its probability.

    `values` maps approximate attributes: the name in the profile, the position among the event's tuples, the weight.
    """

    topic: Key
    probability: float = 1.0
    values: tuple[tuple[str, int, float], ...] = ()


class MatchedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event as a JSON line (`raw`), with all topics that it matches; `id` is that of its publication."""

    id: Id
    raw: bytes
    name: str
    start: Instant
    end: Instant
    hits: tuple[TopicHit, ...]

    @classmethod
    def of(cls, id: Id, event: Event, hits: tuple[TopicHit, ...]) -> MatchedEvent:
        """Encode an event with its hits."""
        start, end = event.span
        return cls(id, encode_line(event), event.id, start, end, hits)

    def event(self) -> Event:
        """Decode the event; returns a new object each time."""
        return decode_line(self.raw)

    @property
    def order(self) -> tuple[Instant, Instant, str, Id]:
        """The sort key in which every node processes events."""
        return self.end, self.start, self.name, self.id


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event, or a combination of several; `first` is the end time of the earliest, `end` that of the last."""

    id: Id
    parts: tuple[MatchedEvent, ...]
    first: Instant
    start: Instant
    end: Instant

    @classmethod
    def of(cls, matched: MatchedEvent) -> Item:
        """The item of a single event."""
        return cls(matched.id, (matched,), matched.end, matched.start, matched.end)

    def with_other(self, other: Item) -> Item:
        """The combination of two items, the same in either order."""
        parts = tuple(sorted((*self.parts, *other.parts), key=_order))
        return Item(
            id_of(*sorted((self.id, other.id))),
            parts,
            min(self.first, other.first),
            min(self.start, other.start),
            max(self.end, other.end),
        )

    @property
    def ids(self) -> frozenset[Id]:
        """The ids of the events."""
        return frozenset(part.id for part in self.parts)


def _order(matched: MatchedEvent) -> Any:
    return matched.order


def _moment(raw: bytes) -> Event:
    """Decode a time event, written as `@time`."""
    time = int(raw[1:])
    return Event("", (), (), time, time)


class Report(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A detection, or a single event, for a subscriber; equal reports have equal ids."""

    id: Id
    time: Instant
    start: Instant
    end: Instant
    probability: float
    names: tuple[str, ...]
    raw: tuple[bytes, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The events, in the order of `names`."""
        return tuple(_moment(raw) if raw.startswith(b"@") else decode_line(raw) for raw in self.raw)

    @property
    def signature(self) -> tuple[Any, ...]:
        """Equal for equal reports of a subscription; the same value as `Detection.signature`."""
        members = tuple(
            (name, event.id, event.start, event.end) for name, event in zip(self.names, self.events, strict=True)
        )
        return (self.time, self.start, self.end, members, round(self.probability, 9))
