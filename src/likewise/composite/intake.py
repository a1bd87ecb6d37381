"""The intake: which events are taken, which are refused and why, and which still wait for late ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import Event, Instant, times_of

if TYPE_CHECKING:
    from likewise.composite.hits import Hit

YEAR: Final = 366 * 86_400_000_000
_KEPT_REFUSALS: Final = 10_000


Arrived: TypeAlias = "tuple[Event, tuple[Hit, ...] | None]"
"""An event, and its hits unless they are still to be found."""


class Refused(msgspec.Struct, frozen=True):
    """An event that was not taken, and why."""

    event: Event
    reason: str


class Intake:
    """Events in the order of arrival become events in the order of time, as far as the lateness allows."""

    def __init__(self, *, lateness: int, max_jump: int | None, refuse: Callable[[Refused], None] | None) -> None:
        if lateness < 0:
            raise BuildError("lateness cannot be negative", hint="0 takes events as they come")
        self.lateness = lateness
        self.max_jump = max_jump
        self.late = 0
        self.seen: Instant | None = None
        self.refused: list[Refused] = []
        self._refuse = refuse or self._keep_refusal
        self._buffer: list[tuple[Instant, Instant, str, int, Arrived]] = []
        self._arrivals = 0

    # events that arrive

    def accept(self, event: Event, clock: Instant) -> Instant | None:
        """The time of an event that is taken; `clock` is the moment up to which all has rung."""
        start, end = event.start, event.end
        if end is None:
            end = start
        reason = self._reason(start, end, clock)
        if reason is not None:
            self._refuse(Refused(event, reason))
            return None
        assert end is not None  # else there was a reason
        if self.seen is None or end > self.seen:
            self.seen = end
        return end

    def _reason(self, start: Instant | None, end: Instant | None, clock: Instant) -> str | None:
        if start is None or end is None:
            return "it has no time"
        if end < start:
            return "it ends before it starts"
        seen = self.seen
        if seen is not None and self.max_jump is not None and end > seen + self.max_jump:
            return "its clock jumps too far ahead"
        if end <= clock or (seen is not None and end < seen - self.lateness):
            self.late += 1
            return "it is too late"
        return None

    def _keep_refusal(self, refused: Refused) -> None:
        if len(self.refused) < _KEPT_REFUSALS:
            self.refused.append(refused)

    def accept_all(self, events: Sequence[Event], clock: Instant) -> tuple[Sequence[Event], NDArray[np.int64] | None]:
        """Those that are taken, and their times where these are at hand."""
        ends = self.all_good(events, clock)
        if ends is not None:
            latest = int(ends.max())
            self.seen = latest if self.seen is None else max(self.seen, latest)
            return events, ends
        return [event for event in events if self.accept(event, clock) is not None], None

    def all_good(self, events: Sequence[Event], clock: Instant) -> NDArray[np.int64] | None:
        """The times of events that are all taken; None if one may be refused."""
        ends = self._good_times(events, clock)
        return ends if ends is not None and (self.max_jump is None or self._near(ends)) else None

    def _good_times(self, events: Sequence[Event], clock: Instant) -> NDArray[np.int64] | None:
        """The times of a batch in which no event is to be refused; None if there may be one."""
        times = times_of(events)
        if times is None or not len(events):
            return None
        starts, ends = times
        latest = np.maximum.accumulate(ends if self.seen is None else np.append(np.int64(self.seen), ends)[:-1])
        late = ends < latest - self.lateness
        return None if late.any() or (ends < starts).any() or ends.min() <= clock else ends

    def _near(self, ends: NDArray[np.int64]) -> bool:
        """Whether no clock jumps: each event is near to the latest before it."""
        before = int(ends[0]) if self.seen is None else self.seen
        latest = np.maximum.accumulate(np.append(np.int64(before), ends))
        return bool((ends - latest[:-1] <= (self.max_jump or 0)).all())

    # events that wait for late ones

    def hold(self, event: Event, hits: tuple[Hit, ...] | None = None) -> None:
        """Let an event wait until no earlier one can come, with its hits where they are known."""
        start, end = event.span
        self._arrivals += 1
        heapq.heappush(self._buffer, (end, start, event.id, self._arrivals, (event, hits)))

    def ready(self, limit: Instant) -> list[Arrived]:
        """All that wait up to a moment, in order."""
        out: list[Arrived] = []
        while self._buffer and self._buffer[0][0] <= limit:
            out.append(heapq.heappop(self._buffer)[-1])
        return out

    def forget_hits(self) -> None:
        """Let what waits be matched when its time comes."""
        self._buffer = [
            (end, start, name, arrival, (event, None)) for end, start, name, arrival, (event, _) in self._buffer
        ]

    @property
    def waiting(self) -> list[Arrived]:
        """All that wait, in order."""
        return [entry[-1] for entry in sorted(self._buffer, key=lambda entry: entry[:4])]

    @property
    def due(self) -> Instant | None:
        """The time of the earliest that waits."""
        return self._buffer[0][0] if self._buffer else None
