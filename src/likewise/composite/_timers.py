"""The temporal pool: timers and terminators by event time [003 sec 4]."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final

from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._process import Process
    from likewise.composite._run import Run

_CROWD: Final = 1 << 14


class Timers:
    """The temporal pool: timers and terminators by event time."""

    def __init__(self) -> None:
        self.clock: Instant = -(1 << 62)
        self._heap: list[tuple[Instant, int, int, int, Run, Process, Any]] = []
        self._serial = 0
        self._crowd = _CROWD

    def __len__(self) -> int:
        return len(self._heap)

    def insert(self, time: Instant, phase: int, run: Run, process: Process, item: Any) -> None:
        """Ring at `time`: timers (phase 1) before terminators (phase 2), patterns in their order."""
        self._serial += 1
        heapq.heappush(self._heap, (time, phase, run.number, self._serial, run, process, item))
        if len(self._heap) > self._crowd:
            self._sift()

    def _sift(self) -> None:
        """Drop timers of what is gone already, so that long windows do not keep them."""
        self._heap = [entry for entry in self._heap if entry[5].alive and getattr(entry[6], "alive", True)]
        heapq.heapify(self._heap)
        self._crowd = 2 * len(self._heap) + _CROWD

    def idle(self, limit: Instant) -> bool:
        """Whether nothing is due up to `limit`; then all up to there has rung."""
        if self._heap and self._heap[0][0] <= limit:
            return False
        self.clock = max(self.clock, limit)
        return True

    def next(self, limit: Instant) -> tuple[Instant, int, Run, list[tuple[Process, Any]]] | None:
        """All that one pattern has due at the earliest moment, if that is not after `limit`."""
        if not self._heap or self._heap[0][0] > limit:
            return None
        time, phase, _, _, run, process, item = heapq.heappop(self._heap)
        due = [(process, item)]
        while self._heap and self._heap[0][:3] == (time, phase, run.number):
            *_, process, item = heapq.heappop(self._heap)
            due.append((process, item))
        return time, phase, run, due

    @property
    def due(self) -> Instant | None:
        """The first moment at which something that is still there is due."""
        while self._heap and not (self._heap[0][5].alive and getattr(self._heap[0][6], "alive", True)):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def forget(self, run: Run) -> None:
        """Drop all timers of a pattern."""
        self._heap = [entry for entry in self._heap if entry[4] is not run]
        heapq.heapify(self._heap)
