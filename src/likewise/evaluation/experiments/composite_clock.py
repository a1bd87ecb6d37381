"""Times of composite filtering: matching of primitive events, composing, and the time after the last event."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from likewise.composite import Detector
from likewise.events import Event
from likewise.language import Options, Profile
from likewise.matching import Matcher


class Spent(NamedTuple):
    """Processor seconds: total, without matching, and without matching for each detection's last event."""

    total: float
    composing: float
    response: float
    detections: int


class TimedMatcher:
    """A matcher that measures its own time."""

    def __init__(self) -> None:
        self._matcher = Matcher()
        self.seconds = 0.0

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:
        """Add a profile to the pool."""
        return self._matcher.add(profile, options=options, key=key)

    def remove(self, handle: int) -> None:
        """Remove a profile from the pool."""
        self._matcher.remove(handle)

    def match(self, event: Event) -> Iterable[Any]:
        """The profiles that the event matches."""
        begin = time.process_time()
        matches = self._matcher.match(event)
        self.seconds += time.process_time() - begin
        return matches


class Stopwatch:
    """Publishes events one by one and measures the times."""

    def __init__(self) -> None:
        self.matcher = TimedMatcher()

    def run(self, detector: Detector, events: Sequence[Event], *, remove: bool) -> Spent:
        """With `remove`, a pattern is removed when it was detected [003 sec 5.1: single unique pairs].

        Removing a pattern for good is not part of filtering, so its time does not count.
        """
        gc.collect()
        detections, response, removing = 0, 0.0, 0.0
        self.matcher.seconds = 0.0
        begin = time.process_time()
        for event in events:
            before, matched = time.process_time(), self.matcher.seconds
            completed = detector.publish(event)
            if completed:
                response += time.process_time() - before - (self.matcher.seconds - matched)
                detections += len(completed)
                after = time.process_time()
                for name in {detection.pattern for detection in completed} if remove else ():
                    detector.remove(name)
                removing += time.process_time() - after
        total = time.process_time() - begin - removing
        return Spent(total, total - self.matcher.seconds, response / max(1, detections), detections)


def best(work: Callable[[], Spent], times: int = 3) -> Spent:
    """The best of a few runs, since other work on the machine only adds time."""
    runs = [work() for _ in range(times)]
    return min(runs, key=lambda spent: spent.total)


def response(detector: Detector, events: Sequence[Event]) -> float:
    """The median processor seconds of an event that completes a composite."""
    spent = []
    for event in events:
        begin = time.process_time()
        if detector.publish(event):
            spent.append(time.process_time() - begin)
    return median(spent)
