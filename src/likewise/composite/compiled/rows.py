"""From the rows that the kernel found to detections."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.composite.compiled.tables import NEVER
from likewise.composite.detection import Detection
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.nodes import Plan
from likewise.events import Event
from likewise.language import Subscription

EventsByPlace: TypeAlias = Sequence[Event] | Mapping[int, Event]
"""The events of a batch, or those of them that are needed, by their places."""

_start_of = attrgetter("start")


@contextmanager
def uncollected() -> Iterator[None]:
    """Many objects and no garbage: looking for some in between would only cost time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class RowSource:
    """Where a detection of the compiled path comes from; what it does not hold is worked out only when asked for."""

    def __init__(
        self,
        subscription: Subscription,
        known: Mapping[str, Subscription],
        sure: Callable[[str, Event], float | None],
    ) -> None:
        """`sure` tells how surely an event fills a role."""
        self._subscription = subscription
        self._known = known
        self.sure = sure

    @cached_property
    def plan(self) -> Plan:
        """The plan of the pattern."""
        return build_plan(self._subscription, self._known)


class Origin(NamedTuple):
    """What all detections of one pattern share."""

    name: str
    roles: tuple[str, ...]
    source: tuple[RowSource, None]


class Rows(NamedTuple):
    """Detections in columns: event, pattern, probability, time, whether a timer made them, and the members' ranks."""

    event: NDArray[Any]
    pattern: NDArray[Any]
    probability: NDArray[Any]
    time: NDArray[np.int64]
    rung: NDArray[Any]
    ranks: NDArray[np.int64]

    def ordered(self, numbers: NDArray[np.int64], members: NDArray[Any] | None) -> Rows:
        """By event, what timers made first, and pattern; with the counts of members also by their events."""
        keys: tuple[NDArray[Any], ...] = (numbers, self.time, -self.rung, self.event)
        if members is not None:
            columns = np.arange(self.ranks.shape[1])
            ranks = np.where(columns < members[:, None], self.ranks, NEVER)
            keys = (*ranks.T[::-1], *np.sort(ranks, axis=1).T[::-1], *keys)
        order = np.lexsort(keys)
        return Rows(*(column[order] for column in self))


class Past:
    """Events of earlier batches that someone still waits with, by rank."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}

    def all_of(self, events: EventsByPlace, base: int, ranks: NDArray[np.int64]) -> list[Event]:
        """The events of these ranks: of this batch, which begins at `base`, or from before."""
        places = (ranks - base).tolist()
        if not len(ranks) or ranks.min() >= base:
            return list(map(events.__getitem__, places))
        past = self.events
        return [events[place] if place >= 0 else past[base + place] for place in places]

    def keep(self, events: EventsByPlace, base: int, kept: NDArray[np.bool_]) -> None:
        """Remember those of a batch that someone waits with."""
        past = self.events
        for at in np.flatnonzero(kept).tolist():
            past[base + at] = events[at]

    def retain(self, ranks: NDArray[np.int64]) -> None:
        """Forget all but these."""
        past = self.events
        self.events = {rank: past[rank] for rank in np.unique(ranks).tolist() if rank in past}


def detections(
    rows: Rows, events: EventsByPlace, *, base: int, past: Past, origins: Mapping[int, Origin]
) -> list[Detection]:
    """Detections in the order of the rows."""
    sizes = np.array([len(origins[index].roles) if index in origins else 0 for index in range(max(origins) + 1)])
    mine = sizes[rows.pattern]
    with uncollected():
        if mine.min() == mine.max():
            return _of_one_size(rows, int(mine[0]), events, base=base, past=past, origins=origins)
        out: list[Any] = [None] * len(mine)
        for size in np.unique(mine).tolist():
            where = np.flatnonzero(mine == size)
            some = Rows(*(column[where] for column in rows))
            made = _of_one_size(some, size, events, base=base, past=past, origins=origins)
            for at, found in zip(where.tolist(), made, strict=True):
                out[at] = found
        return out


def _of_one_size(
    rows: Rows, size: int, events: EventsByPlace, *, base: int, past: Past, origins: Mapping[int, Origin]
) -> list[Detection]:
    columns = [past.all_of(events, base, rows.ranks[:, k]) for k in range(size)]
    starts = [map(_start_of, column) for column in columns]
    times = rows.time.tolist()
    ends = times
    if rows.rung.any():
        # A timer completes a sequence later than its last event ends.
        ends = [
            last.span[1] if rung else time
            for last, rung, time in zip(columns[-1], rows.rung.tolist(), times, strict=True)
        ]
    which = list(map(origins.__getitem__, rows.pattern.tolist()))
    return list(
        map(
            Detection,
            (origin.name for origin in which),
            times,
            map(min, *starts) if size > 1 else starts[0],
            ends,
            rows.probability.tolist(),
            (origin.roles for origin in which),
            zip(*columns, strict=True),
            (origin.source for origin in which),
        )
    )
