"""What the log holds: events, changes of subscriptions and ticks of the clock, in one order."""

from __future__ import annotations

import threading
import time
from typing import Any, Final, Literal

import msgspec

from likewise.events import Event, Instant, decode_line, encode_line

EVENT: Final = 0
CHANGE: Final = 1
TICK: Final = 2

ORDINALS: Final = 20
"""Bits of a cursor that number the notifications of one block."""


def now() -> Instant:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def first_cursor(block: int) -> int:
    """The smallest cursor of a block's notifications.

    >>> first_cursor(3) >> ORDINALS
    3
    """
    return block << ORDINALS


class Stamps:
    """Times of arrival that never go back, whatever the clock does, and differ inside a batch."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), 0
        self.behind = 0
        """Microseconds by which the clock is behind the last time of arrival."""

    def continue_after(self, last: Instant) -> None:
        """Begin after what an earlier run has given."""
        with self._lock:
            self._last = max(self._last, last)

    def take(self, count: int) -> Instant:
        """The first of some times of arrival, a microsecond apart."""
        with self._lock:
            clock = now()
            self.behind = max(0, self._last - clock)
            first = max(clock, self._last + 1)
            self._last = first + count - 1
            return first


class LogRecord(msgspec.Struct):
    """One entry of the log; its position is set when it is stored."""

    namespace: str
    kind: int
    id: str
    time: Instant | None
    received: Instant
    publisher: str
    body: bytes
    event: Event | None = None
    position: int = 0

    @classmethod
    def of_event(cls, event: Event, *, namespace: str, publisher: str, received: Instant) -> LogRecord:
        """A record of an event, which gets the time of arrival if it has none."""
        stamped = event.stamped(received)
        body = encode_line(stamped)[:-1]
        return cls(namespace, EVENT, stamped.id, stamped.start, received, publisher, body, stamped)

    @classmethod
    def of_change(cls, change: BookChange, *, namespace: str, publisher: str, received: Instant) -> LogRecord:
        """A record of a change of subscriptions."""
        body = msgspec.json.encode(change)
        return cls(namespace, CHANGE, change.action, None, received, publisher, body)

    @classmethod
    def of_tick(cls, instant: Instant, *, namespace: str, publisher: str, received: Instant) -> LogRecord:
        """A record that event time has come to an instant."""
        return cls(namespace, TICK, "tick", instant, received, publisher, b"")

    def to_event(self) -> Event:
        """The event of a record."""
        if self.event is None:
            self.event = decode_line(self.body, source="log", number=self.position)
        return self.event

    def to_change(self) -> BookChange:
        """The change of a record."""
        return msgspec.json.decode(self.body, type=BookChange)


class Block(msgspec.Struct):
    """The records of one group commit: what engines take in one step, now and in every replay."""

    number: int
    records: list[LogRecord]


class HookTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the notifications of a subscription are sent."""

    url: str
    salt: str
    """The signing secret is derived from the broker's key and this."""


class BookEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription as its namespace keeps it."""

    name: str
    text: str
    owner: str
    created: Instant
    updated: Instant
    tags: tuple[str, ...] = ()
    paused: bool = False
    webhook: HookTarget | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class BookChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: all of its entries or, on an error, none."""

    action: Literal["create", "replace", "delete"]
    entries: tuple[BookEntry, ...] = ()
    names: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True):
    """A notification as it is stored and sent: `body` is its JSON."""

    cursor: int
    namespace: str
    subscription: str
    kind: str
    score: float
    time: Instant | None
    body: bytes


class Letter(msgspec.Struct, frozen=True):
    """Something that could not be used, and why."""

    namespace: str
    source: str
    reason: str
    body: bytes
    time: Instant
