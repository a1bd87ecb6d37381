"""The background: what is known of a stream from a sample of its events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from likewise.events import Event

if TYPE_CHECKING:
    from likewise.matching.matcher import Matcher

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
    cut into batches. Events that are `known` beforehand, such as those of a file, are all there will be.

    >>> sample = StreamSample()
    >>> [len(part) for part in sample.parts([Event.of({"n": n}) for n in range(300)])]
    [64, 192, 44]
    """

    def __init__(self, events: Iterable[Event] = (), *, known: bool = False) -> None:
        self.events: list[Event] = list(islice(events, MOST_EVENTS))
        self.known = known

    @property
    def complete(self) -> bool:
        """Whether all was collected."""
        return self.known or len(self.events) >= LEARNED_AT[-1]

    @property
    def size(self) -> int:
        """Of how many events the background is by now; 0 if there were too few."""
        reached = [mark for mark in LEARNED_AT if mark <= len(self.events)]
        if not reached:
            return 0
        return len(self.events) if self.known else reached[-1]

    def background(self) -> Background:
        """The background by now."""
        return Background.of(self.events[: self.size])

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """The events in parts: all of a part are scored with what is learned before it, and then is time to learn."""
        start = 0
        while not self.complete and start < len(events):
            mark = next(mark for mark in LEARNED_AT if mark > len(self.events))
            part = events[start : start + mark - len(self.events)]
            self.events += part
            yield part
            start += len(part)
        if start < len(events):
            yield events[start:] if start else events


class StreamLearner:
    """Keeps the background of a matcher at what its stream has said so far.

    It is only for matchers that score all profiles for every event: the index knows no background, and profiles that
    are so many go without from then on.
    """

    def __init__(self, matcher: Matcher, sample: StreamSample) -> None:
        self.sample = sample
        self._matcher = matcher
        self._learned = 0

    def learn(self) -> None:
        """Give the matcher the background of now; it forgets it by itself when its profiles are too many."""
        size = self.sample.size
        if size != self._learned and not self._matcher.is_indexed:
            self._matcher.learn(self.sample.background(), yielding=True)
            self._learned = size

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """The events in parts, each to be scored before the next is asked for."""
        self.learn()
        for part in self.sample.parts(events):
            yield part
            self.learn()


__all__ = ["LEARNED_AT", "MOST_EVENTS", "Background", "StreamLearner", "StreamSample"]
