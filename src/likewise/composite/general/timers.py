"""The temporal pool: timers and terminators by event time [003 sec 4].

Most windows of a node are equally long, so what one of its processes asks for is due after all that was asked for
before: such entries stand in a lane, of which only the first is in the heap.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.general.process import Process
    from likewise.composite.general.run import Run

_CROWD: Final = 1 << 14

Entry: TypeAlias = "tuple[Instant, int, int, int, Run, Process, Any, Lane | None]"
"""When, timer or terminator, the number of the pattern, a serial, who asked, for what, and the lane it stands in."""

Lane: TypeAlias = "deque[Entry]"


def new_lanes(nodes: int) -> list[Lane]:
    """For each node of a plan one lane of timers and one of terminators."""
    return [deque() for _ in range(2 * nodes)]


class Timers:
    """The temporal pool: timers and terminators by event time."""

    def __init__(self) -> None:
        self.clock: Instant = -(1 << 62)
        self._heap: list[Entry] = []
        self._serial = 0
        self._count = 0
        self._crowd = _CROWD

    def __len__(self) -> int:
        return self._count

    def insert(self, time: Instant, phase: int, run: Run, process: Process, item: Any) -> None:
        """Ring at `time`: timers (phase 1) before terminators (phase 2), patterns in their order."""
        self._serial = serial = self._serial + 1
        self._count += 1
        lane = run.lanes[2 * process.node.id + phase - 1]
        if not lane:
            entry = (time, phase, run.number, serial, run, process, item, lane)
            lane.append(entry)
            heapq.heappush(self._heap, entry)
        elif lane[-1][0] <= time:
            lane.append((time, phase, run.number, serial, run, process, item, lane))
        else:
            heapq.heappush(self._heap, (time, phase, run.number, serial, run, process, item, None))
        if self._count > self._crowd:
            self._sift()

    def _pop(self) -> Entry:
        """The first entry; the next of its lane takes its place."""
        entry = self._heap[0]
        lane = entry[7]
        self._count -= 1
        if lane is None:
            heapq.heappop(self._heap)
            return entry
        lane.popleft()
        while lane and not _lives(lane[0]):
            lane.popleft()
            self._count -= 1
        if lane:
            heapq.heapreplace(self._heap, lane[0])
        else:
            heapq.heappop(self._heap)
        return entry

    def _entries(self) -> list[Entry]:
        """All there are, in no order."""
        out: list[Entry] = []
        for entry in self._heap:
            if entry[7] is None:
                out.append(entry)
            else:
                out += entry[7]
        return out

    def _keep(self, entries: list[Entry]) -> None:
        """These and no others."""
        for entry in self._heap:
            if entry[7] is not None:
                entry[7].clear()
        self._heap, self._count = [], len(entries)
        for entry in sorted(entries, key=_rank):
            lane = entry[7]
            if not lane:
                self._heap.append(entry)
            if lane is not None:
                lane.append(entry)

    def _sift(self) -> None:
        """Drop timers of what is gone already, so that long windows do not keep them."""
        self._keep([entry for entry in self._entries() if _lives(entry)])
        self._crowd = 2 * self._count + _CROWD

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
        time, phase, number, _, run, process, item, _ = self._pop()
        due = [(process, item)]
        while self._heap:
            first = self._heap[0]
            if first[0] != time or first[1] != phase or first[2] != number:
                break
            self._pop()
            due.append((first[5], first[6]))
        return time, phase, run, due

    @property
    def due(self) -> Instant | None:
        """The first moment at which something that is still there is due."""
        while self._heap and not _lives(self._heap[0]):
            self._pop()
        return self._heap[0][0] if self._heap else None

    def forget(self, run: Run) -> None:
        """Drop all timers of a pattern."""
        self._keep([entry for entry in self._entries() if entry[4] is not run])


def _lives(entry: Entry) -> bool:
    return entry[5].alive and getattr(entry[6], "alive", True)


def _rank(entry: Entry) -> tuple[int, ...]:
    return entry[:4]
