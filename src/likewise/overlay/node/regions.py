"""A pattern that stays in one piece: its events in their order, however they come.

Events wait for a little while (`slack`) so that earlier ones can overtake them. One that comes later still is put
where it belongs: the run goes back to its last mark and takes all events again. What it finds has the same ids as
before, so nothing is reported twice.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Final, TypeAlias

from likewise.composite import Detection
from likewise.events import Event, Instant
from likewise.overlay.cube.composing import PatternRun, report_of
from likewise.overlay.cube.items import Carried, Id, Item, Report
from likewise.overlay.node.wire import Mark
from likewise.semantics import Measure

EventOrder: TypeAlias = tuple[Instant, Instant, str, Id]
"""By what events are ordered: their end, start, name and publication."""

LENGTH: Final = 400
"""Events after the last mark from which on half of them go into the next."""


class Region:
    """One subscriber's pattern."""

    def __init__(
        self, source: str, *, since: Instant, slack: int, reach: int = 0, measure: Measure | None = None
    ) -> None:
        """`reach` is by how much an event that comes as part of a composite may be older than its last."""
        self.source = source
        self.slack = slack
        self.reach = reach
        self.late = 0
        self._since = since
        self._measure = measure
        self._base: tuple[bytes, Instant] | None = None
        self._run = self._begin()
        self._clock: Instant = since
        self._done: list[tuple[EventOrder, Carried]] = []
        self._waiting: list[tuple[int, EventOrder, Carried]] = []
        self._known: dict[Id, None] = {}
        self._by_event: dict[tuple[str, Instant, Instant], Carried] = {}

    def _begin(self) -> PatternRun:
        if self._base is not None:
            return PatternRun(self.source, measure=self._measure, state=self._base[0])
        run = PatternRun(self.source, measure=self._measure)
        run.advance(self._since)
        return run

    def restore(self, mark: Mark) -> None:
        """Go on from a mark."""
        self._base = (mark.state, mark.clock)
        self._run = self._begin()
        self._clock = mark.clock

    def add(self, now: int, item: Item) -> None:
        """Events that came together, to be taken when the time of the last has come."""
        ready = item.end + self.slack
        if ready < now:
            # Events of long ago, as of a replayed file, wait from their arrival.
            ready = now + self.slack
        for carried in item.parts:
            if carried.id not in self._known and carried.end > self._since:
                self._known[carried.id] = None
                insort(self._waiting, (ready, carried.order, carried), key=lambda entry: entry[:2])

    @property
    def due(self) -> int | None:
        """When `step` has something to do."""
        timer = self._run.due
        moments = [self._waiting[0][0]] if self._waiting else []
        if timer is not None and all(entry[1][0] > timer for entry in self._waiting):
            moments.append(timer + self.slack)
        return min(moments, default=None)

    def step(self, now: int) -> list[Report]:
        """Take what is due, and let event time follow."""
        ready = []
        while self._waiting and self._waiting[0][0] <= now:
            ready.append(self._waiting.pop(0)[1:])
        ready.sort(key=lambda entry: entry[0])
        early = [entry for entry in ready if not self._is_next(entry[0])]
        found = self._rewind(early) if early else []
        for order, carried in ready[len(early) :]:
            found += self._take(order, carried)
        # An event that waits may break a silence that ends at its time.
        moment = min((entry[1][0] - 1 for entry in self._waiting), default=now - self.slack)
        moment = min(moment, now - self.slack)
        if moment > self._clock and (timer := self._run.due) is not None and timer <= moment:
            found += self._reports(self._run.advance(moment))
            self._clock = max(self._clock, moment)
        return found

    def _is_next(self, order: EventOrder) -> bool:
        """Whether an event comes after all that were taken, and after what time alone has decided."""
        return order[0] > self._clock and (not self._done or order > self._done[-1][0])

    def _insert(self, order: EventOrder, carried: Carried) -> None:
        insort(self._done, (order, carried), key=lambda entry: entry[0])
        self._by_event[carried.name, carried.start, carried.end] = carried

    def _take(self, order: EventOrder, carried: Carried) -> list[Report]:
        self._insert(order, carried)
        return self._reports(self._run.publish(carried))

    def _rewind(self, early: list[tuple[EventOrder, Carried]]) -> list[Report]:
        """Put events where they belong, and take all since the last mark again."""
        usable = [entry for entry in early if self._base is None or entry[1].end > self._base[1]]
        self.late += len(early) - len(usable)
        if not usable:
            return []
        for order, carried in usable:
            self._insert(order, carried)
        self._run = self._begin()
        found = [report for _, event in self._done for report in self._reports(self._run.publish(event))]
        return found + self._reports(self._run.advance(self._clock)) if self._clock > self._since else found

    def mark(self, relationship: str) -> Mark | None:
        """A mark that makes older events unnecessary, once there are many."""
        if len(self._done) < LENGTH:
            return None
        # What may still come as part of a composite is to find its place after the mark.
        middle = min(self._done[len(self._done) // 2][0][0], self._done[-1][0][0] - self.reach - self.slack)
        half = bisect_left(self._done, middle, key=lambda entry: entry[0][0])
        if half == 0:
            return None
        run = self._begin()
        for _, carried in self._done[:half]:
            run.publish(carried)
        gone, self._done = self._done[:half], self._done[half:]
        clock = gone[-1][0][0]
        self._base = (run.snapshot(), clock)
        return Mark(relationship, self._base[0], clock, tuple(carried.id for _, carried in gone))

    def _reports(self, found: Iterable[Detection]) -> list[Report]:
        return [report_of(each, [self._by_event.get(_content(event)) for event in each.members]) for each in found]


def _content(event: Event) -> tuple[str, Instant, Instant]:
    start, end = event.span
    return event.id, start, end
