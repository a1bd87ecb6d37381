"""The records of the log: events, subscription changes and clock ticks, in one order."""

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
"""Number of low bits of a cursor that count the notifications of one block."""


def now() -> Instant:
    """The current time in microseconds since 1970."""
    return time.time_ns() // 1000


def first_cursor(block: int) -> int:
    """The cursor of the first notification of a block.

    >>> first_cursor(3) >> ORDINALS
    3
    """
    return block << ORDINALS


class ArrivalClock:
    """Gives strictly increasing arrival times, even if the system clock is set back."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), 0
        self.behind = 0
        """Microseconds by which the system clock is behind the last arrival time."""

    def continue_after(self, last: Instant) -> None:
        """Continue after the last arrival time of an earlier run."""
        with self._lock:
            self._last = max(self._last, last)

    def reserve(self, count: int) -> Instant:
        """Reserve `count` arrival times, a microsecond apart; returns the first."""
        with self._lock:
            clock = now()
            self.behind = max(0, self._last - clock)
            first = max(clock, self._last + 1)
            self._last = first + count - 1
            return first


class LogRecord(msgspec.Struct):
    """One record of the log; its position is set when it is stored."""

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
        """A record of an event; an event without a time gets the arrival time."""
        stamped = event.stamped(received)
        body = encode_line(stamped)[:-1]
        return cls(namespace, EVENT, stamped.id, stamped.start, received, publisher, body, stamped)

    @classmethod
    def of_change(cls, change: SubscriptionChange, *, namespace: str, publisher: str, received: Instant) -> LogRecord:
        """A record of a subscription change."""
        body = msgspec.json.encode(change)
        return cls(namespace, CHANGE, change.action, None, received, publisher, body)

    @classmethod
    def of_tick(cls, instant: Instant, *, namespace: str, publisher: str, received: Instant) -> LogRecord:
        """A record that advances event time to an instant."""
        return cls(namespace, TICK, "tick", instant, received, publisher, b"")

    def to_event(self) -> Event:
        """Decode the event of a record."""
        if self.event is None:
            self.event = decode_line(self.body, source="log", number=self.position)
        return self.event

    def to_change(self) -> SubscriptionChange:
        """Decode the subscription change of a record."""
        return msgspec.json.decode(self.body, type=SubscriptionChange)


class Block(msgspec.Struct):
    """The records of one group commit; engines process them in one step, also in every replay."""

    number: int
    records: list[LogRecord]


class WebhookTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """The webhook of a subscription."""

    url: str
    salt: str
    """Together with the broker's key, this gives the signing secret."""


class SubscriptionEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription as it is stored."""

    name: str
    text: str
    owner: str
    created: Instant
    updated: Instant
    tags: tuple[str, ...] = ()
    paused: bool = False
    webhook: WebhookTarget | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class SubscriptionChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of subscriptions; on an error, none of its entries is applied."""

    action: Literal["create", "replace", "delete"]
    entries: tuple[SubscriptionEntry, ...] = ()
    names: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True):
    """A notification as it is stored and sent; `body` is its JSON."""

    cursor: int
    namespace: str
    subscription: str
    kind: str
    score: float
    time: Instant | None
    body: bytes


class DeadLetter(msgspec.Struct, frozen=True):
    """An event or notification that could not be used or delivered, and the reason."""

    namespace: str
    source: str
    reason: str
    body: bytes
    time: Instant
