"""The intake: accepts or refuses events, and buffers them until late ones have arrived."""

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
"""An event and its hits, or None if it is not matched yet."""


class Refused(msgspec.Struct, frozen=True):
    """An event that was not accepted, and the reason."""

    event: Event
    reason: str


class Intake:
    """Reorders arriving events by event time, within the allowed lateness."""

    def __init__(self, *, lateness: int, max_jump: int | None, refuse: Callable[[Refused], None] | None) -> None:
        if lateness < 0:
            raise BuildError("lateness cannot be negative", hint="use 0 to process events as they arrive")
        self.lateness = lateness
        self.max_jump = max_jump
        self.late = 0
        self.seen: Instant | None = None
        self.refused: list[Refused] = []
        self._refuse = refuse or self._keep_refusal
        self._buffer: list[tuple[Instant, Instant, str, int, Arrived]] = []
        self._arrivals = 0

    # arriving events

    def accept(self, event: Event, clock: Instant) -> Instant | None:
        """Accept an event and return its time, or refuse it and return None; timers up to `clock` have fired."""
        start, end = event.start, event.end
        if end is None:
            end = start
        reason = self._reason(start, end, clock)
        if reason is not None:
            self._refuse(Refused(event, reason))
            return None
        assert end is not None  # otherwise there was a reason to refuse it
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
        """The accepted events, and their times if they are at hand."""
        ends = self.all_good(events, clock)
        if ends is not None:
            latest = int(ends.max())
            self.seen = latest if self.seen is None else max(self.seen, latest)
            return events, ends
        return [event for event in events if self.accept(event, clock) is not None], None

    def all_good(self, events: Sequence[Event], clock: Instant) -> NDArray[np.int64] | None:
        """The times of a batch if every event is accepted; None if any may be refused."""
        ends = self._good_times(events, clock)
        return ends if ends is not None and (self.max_jump is None or self._near(ends)) else None

    def _good_times(self, events: Sequence[Event], clock: Instant) -> NDArray[np.int64] | None:
        """The times of a batch if every event has a valid time that is not late; else None."""
        times = times_of(events)
        if times is None or not len(events):
            return None
        starts, ends = times
        latest = np.maximum.accumulate(ends if self.seen is None else np.append(np.int64(self.seen), ends)[:-1])
        late = ends < latest - self.lateness
        return None if late.any() or (ends < starts).any() or ends.min() <= clock else ends

    def _near(self, ends: NDArray[np.int64]) -> bool:
        """Whether no event jumps too far ahead of the latest one before it."""
        before = int(ends[0]) if self.seen is None else self.seen
        latest = np.maximum.accumulate(np.append(np.int64(before), ends))
        return bool((ends - latest[:-1] <= (self.max_jump or 0)).all())

    # buffered events

    def hold(self, event: Event, hits: tuple[Hit, ...] | None = None) -> None:
        """Buffer an event until no earlier one can arrive, with its hits if known."""
        start, end = event.span
        self._arrivals += 1
        heapq.heappush(self._buffer, (end, start, event.id, self._arrivals, (event, hits)))

    def ready(self, limit: Instant) -> list[Arrived]:
        """Remove and return the buffered events up to a moment, in order."""
        ready: list[Arrived] = []
        while self._buffer and self._buffer[0][0] <= limit:
            ready.append(heapq.heappop(self._buffer)[-1])
        return ready

    def forget_hits(self) -> None:
        """Drop the hits of buffered events, so that they are matched when they are released."""
        self._buffer = [
            (end, start, name, arrival, (event, None)) for end, start, name, arrival, (event, _) in self._buffer
        ]

    @property
    def waiting(self) -> list[Arrived]:
        """All buffered events, in order."""
        return [entry[-1] for entry in sorted(self._buffer, key=lambda entry: entry[:4])]

    @property
    def due(self) -> Instant | None:
        """The time of the earliest buffered event."""
        return self._buffer[0][0] if self._buffer else None
