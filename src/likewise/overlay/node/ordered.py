"""A pattern evaluated in one piece: its events are processed in event-time order, whatever their order of arrival.

Events wait for `slack`, so that earlier ones can overtake them. For an event that arrives later still, the pattern is
restored from its last checkpoint and all later events are replayed. Reports that this repeats have the same ids as
before, so nothing is reported twice.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Final, TypeAlias

from likewise.composite import Detection
from likewise.events import Event, Instant
from likewise.overlay.cube.composing import PatternRun, report_of
from likewise.overlay.cube.items import Id, Item, MatchedEvent, Report
from likewise.overlay.node.wire import Checkpoint
from likewise.semantics import Measure

EventOrder: TypeAlias = tuple[Instant, Instant, str, Id]
"""The sort key of events: end, start, name and id of the publication."""

MAX_REPLAY: Final = 400
"""Events after the last checkpoint at which a new one is taken, which covers half of them."""


class OrderedPattern:
    """One subscriber's pattern."""

    def __init__(
        self, source: str, *, since: Instant, slack: int, reach: int = 0, measure: Measure | None = None
    ) -> None:
        """`reach` is how much older than its last event the first event of an arriving composite may be."""
        self.source = source
        self.slack = slack
        self.reach = reach
        self.late = 0
        self._since = since
        self._measure = measure
        self._checkpoint: tuple[bytes, Instant] | None = None
        self._run = self._restart()
        self._clock: Instant = since
        self._processed: list[tuple[EventOrder, MatchedEvent]] = []
        self._waiting: list[tuple[int, EventOrder, MatchedEvent]] = []
        self._seen: dict[Id, None] = {}
        self._by_event: dict[tuple[str, Instant, Instant], MatchedEvent] = {}

    def _restart(self) -> PatternRun:
        """A run in the state of the last checkpoint."""
        if self._checkpoint is not None:
            return PatternRun(self.source, measure=self._measure, state=self._checkpoint[0])
        run = PatternRun(self.source, measure=self._measure)
        run.advance(self._since)
        return run

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        self._checkpoint = (checkpoint.state, checkpoint.clock)
        self._run = self._restart()
        self._clock = checkpoint.clock

    def add(self, now: int, item: Item) -> None:
        """Queue the events of an item until the slack of the last one is over."""
        ready = item.end + self.slack
        if ready < now:
            # Old events, such as those of a replayed file, wait from their arrival.
            ready = now + self.slack
        for matched in item.parts:
            if matched.id not in self._seen and matched.end > self._since:
                self._seen[matched.id] = None
                insort(self._waiting, (ready, matched.order, matched), key=lambda entry: entry[:2])

    @property
    def due(self) -> int | None:
        """When `step` has something to do."""
        timer = self._run.due
        moments = [self._waiting[0][0]] if self._waiting else []
        if timer is not None and all(entry[1][0] > timer for entry in self._waiting):
            moments.append(timer + self.slack)
        return min(moments, default=None)

    def step(self, now: int) -> list[Report]:
        """Process the events that are due, and advance event time."""
        ready = []
        while self._waiting and self._waiting[0][0] <= now:
            ready.append(self._waiting.pop(0)[1:])
        ready.sort(key=lambda entry: entry[0])
        late = [entry for entry in ready if not self._is_next(entry[0])]
        reports = self._replay_with(late) if late else []
        for order, matched in ready[len(late) :]:
            reports += self._process(order, matched)
        # A waiting event may break an absence that would end at its time.
        moment = min((entry[1][0] - 1 for entry in self._waiting), default=now - self.slack)
        moment = min(moment, now - self.slack)
        if moment > self._clock and (timer := self._run.due) is not None and timer <= moment:
            reports += self._reports(self._run.advance(moment))
            self._clock = max(self._clock, moment)
        return reports

    def _is_next(self, order: EventOrder) -> bool:
        """Whether an event comes after all processed events and after the clock."""
        return order[0] > self._clock and (not self._processed or order > self._processed[-1][0])

    def _insert(self, order: EventOrder, matched: MatchedEvent) -> None:
        insort(self._processed, (order, matched), key=lambda entry: entry[0])
        self._by_event[matched.name, matched.start, matched.end] = matched

    def _process(self, order: EventOrder, matched: MatchedEvent) -> list[Report]:
        self._insert(order, matched)
        return self._reports(self._run.publish(matched))

    def _replay_with(self, late: list[tuple[EventOrder, MatchedEvent]]) -> list[Report]:
        """Insert late events in order, and replay all events since the last checkpoint."""
        usable = [entry for entry in late if self._checkpoint is None or entry[1].end > self._checkpoint[1]]
        self.late += len(late) - len(usable)
        if not usable:
            return []
        for order, matched in usable:
            self._insert(order, matched)
        self._run = self._restart()
        reports = [report for _, event in self._processed for report in self._reports(self._run.publish(event))]
        return reports + self._reports(self._run.advance(self._clock)) if self._clock > self._since else reports

    def checkpoint(self, relationship: str) -> Checkpoint | None:
        """Take a checkpoint once there are many events to replay, and drop the events that it covers."""
        if len(self._processed) < MAX_REPLAY:
            return None
        # Events that may still arrive as part of a composite must be later than the checkpoint.
        middle = min(
            self._processed[len(self._processed) // 2][0][0], self._processed[-1][0][0] - self.reach - self.slack
        )
        half = bisect_left(self._processed, middle, key=lambda entry: entry[0][0])
        if half == 0:
            return None
        run = self._restart()
        for _, matched in self._processed[:half]:
            run.publish(matched)
        covered, self._processed = self._processed[:half], self._processed[half:]
        clock = covered[-1][0][0]
        self._checkpoint = (run.snapshot(), clock)
        return Checkpoint(relationship, self._checkpoint[0], clock, tuple(matched.id for _, matched in covered))

    def _reports(self, detections: Iterable[Detection]) -> list[Report]:
        return [
            report_of(detection, [self._by_event.get(_content(event)) for event in detection.members])
            for detection in detections
        ]


def _content(event: Event) -> tuple[str, Instant, Instant]:
    start, end = event.span
    return event.id, start, end
