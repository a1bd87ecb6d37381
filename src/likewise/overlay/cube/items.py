"""What travels through the overlay: events with the topics they match, and what was put together from them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

from likewise.events import Event, Instant, decode_line, encode_line
from likewise.overlay.ring.ids import Key

Id: TypeAlias = bytes
"""Sixteen bytes that every node computes alike."""


def id_of(*parts: bytes | str) -> Id:
    """The id of a combination.

    >>> id_of("a", "b") == id_of("a", b"b") != id_of("ab", "")
    True
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.digest()


class TopicHit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A topic that an event matches, how surely, and what its own words for attributes stand for.

    `values` has the attribute's name, and the place of the value among the event's tuples with its weight.
    """

    topic: Key
    probability: float = 1.0
    values: tuple[tuple[str, int, float], ...] = ()


class MatchedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event on its way, as a JSON line, with all topics that it matches; `id` is that of its publication."""

    id: Id
    raw: bytes
    name: str
    start: Instant
    end: Instant
    hits: tuple[TopicHit, ...]

    @classmethod
    def of(cls, id: Id, event: Event, hits: tuple[TopicHit, ...]) -> MatchedEvent:
        """An event that was matched."""
        start, end = event.span
        return cls(id, encode_line(event), event.id, start, end, hits)

    def event(self) -> Event:
        """The event itself, a new object every time."""
        return decode_line(self.raw)

    @property
    def order(self) -> tuple[Instant, Instant, str, Id]:
        """Events are taken in this order everywhere."""
        return self.end, self.start, self.name, self.id


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event, or several that were put together; `first` is the time of the earliest, `end` that of the last."""

    id: Id
    parts: tuple[MatchedEvent, ...]
    first: Instant
    start: Instant
    end: Instant

    @classmethod
    def of(cls, matched: MatchedEvent) -> Item:
        """A single event."""
        return cls(matched.id, (matched,), matched.end, matched.start, matched.end)

    def with_other(self, other: Item) -> Item:
        """Two items as one, whichever came first."""
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
        """The publications in it."""
        return frozenset(part.id for part in self.parts)


def _order(matched: MatchedEvent) -> Any:
    return matched.order


def _moment(raw: bytes) -> Event:
    """A time event, of which only the time is written."""
    time = int(raw[1:])
    return Event("", (), (), time, time)


class Report(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A detection, or a single event, for a subscriber; `id` tells it from all others."""

    id: Id
    time: Instant
    start: Instant
    end: Instant
    probability: float
    names: tuple[str, ...]
    raw: tuple[bytes, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The events by role."""
        return tuple(_moment(raw) if raw.startswith(b"@") else decode_line(raw) for raw in self.raw)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What makes two reports of a subscription the same, as `Detection.signature` has it."""
        members = tuple(
            (name, event.id, event.start, event.end) for name, event in zip(self.names, self.events, strict=True)
        )
        return (self.time, self.start, self.end, members, round(self.probability, 9))
