"""The background: what is known of a stream from a sample of its events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from likewise.events import Event

MOST_EVENTS = 256
"""So many events are sample enough; each is compared with every subscription."""


@dataclass(frozen=True, slots=True)
class Background:
    """The first events of a stream, and a version that tells one sample from others.

    Scores depend on it, so everyone who must score alike has to hold the same version.

    >>> background = Background.of([Event.of({"room": "kitchen", "degrees": 21})])
    >>> background.events[0].tuples
    (('room', 'kitchen'), ('degrees', 21))
    """

    events: tuple[Event, ...]
    version: str = ""

    @classmethod
    def of(cls, events: Iterable[Event], *, limit: int = MOST_EVENTS) -> Background:
        """Of the first events of a stream; identity and time are left out, they say nothing of its words."""
        kept = tuple(Event("", tuple(event.tuples)) for event in islice(events, limit))
        digest = hashlib.sha256(msgspec.msgpack.encode([event.tuples for event in kept])).hexdigest()
        return cls(kept, digest[:16])

    def __repr__(self) -> str:
        return f"<Background: {len(self.events)} events, version {self.version}>"


LEARNED_AT = (64, MOST_EVENTS)
"""After so many events of a stream what it says so far becomes the background; after the last, it stays."""


class StreamSample:
    """Collects the first events of a stream, and says after which of them the background changes.

    That depends on nothing but the order of the events, so that the same stream gives the same scores however it is
    cut into batches.

    >>> sample = StreamSample()
    >>> [len(part) for part in sample.parts([Event.of({"n": n}) for n in range(300)])]
    [64, 192, 44]
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = list(events)

    @property
    def complete(self) -> bool:
        """Whether all was collected."""
        return len(self.events) >= LEARNED_AT[-1]

    @property
    def learned(self) -> Background | None:
        """The background by now, if there were events enough."""
        reached = [mark for mark in LEARNED_AT if mark <= len(self.events)]
        return Background.of(self.events[: reached[-1]]) if reached else None

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """The events in parts: all of a part are scored with what is learned before it, and then is time to learn."""
        start = 0
        while start < len(events):
            marks = [mark for mark in LEARNED_AT if mark > len(self.events)]
            end = min(len(events), start + marks[0] - len(self.events)) if marks else len(events)
            part = events[start:end]
            if marks:
                self.events += part
            yield part
            start = end


__all__ = ["MOST_EVENTS", "Background", "StreamSample"]
