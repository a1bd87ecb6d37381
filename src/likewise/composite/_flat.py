"""Plain patterns on the compiled path: their tables, their state, and the way of a batch through them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite._catalogue import Catalogue
from likewise.composite._detection import Detection
from likewise.composite._flat_book import NEVER, Facts, FlatBook
from likewise.composite._flat_kernel import (
    detect_sequences,
    entries_of,
    purge,
    repeated_attributes,
    restore_entry,
    sweep,
)
from likewise.composite._flat_tables import Batch, new_buckets, new_waiting
from likewise.composite._plan import Plan
from likewise.composite._planner import build_plan
from likewise.events import Event, Instant
from likewise.language import Subscription
from likewise.matching import Matcher

_tuples_of = attrgetter("tuples")
_start_of, _end_of = attrgetter("start"), attrgetter("end")


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


class Source:
    """Where a detection of the compiled path comes from; its plan is built only when asked for."""

    def __init__(self, subscription: Subscription, known: Mapping[str, Subscription]) -> None:
        self._subscription = subscription
        self._known = known

    @cached_property
    def plan(self) -> Plan:
        """The plan of the pattern."""
        return build_plan(self._subscription, self._known)


class Kept(NamedTuple):
    """A waiting event of one pattern, for snapshots and for going over to the general path."""

    event: Event
    rank: int
    probability: float
    flag: int


class Hits(NamedTuple):
    """Matches of profiles that a dictionary cannot answer, sorted by event."""

    event: NDArray[np.int64]
    predicate: NDArray[np.int32]
    score: NDArray[np.float64]


class Encoded(NamedTuple):
    """Tuple numbers of a batch: those of event i stand at `ids[starts[i]:starts[i + 1]]`."""

    starts: NDArray[np.int64]
    ids: NDArray[np.int32]


class FlatPatterns(FlatBook):
    """All plain patterns of a detector, with the events that wait in them."""

    def __init__(self, matcher: Matcher, *, limit: int, drop: bool) -> None:
        super().__init__(matcher)
        self._limit, self._drop = limit, drop
        self._sources: dict[int, Source] = {}
        self._waiting = new_waiting(1024)
        self._buckets = new_buckets(1024)
        self._scalars = np.array([0, 0, 0, -(1 << 62)], np.int64)
        self._events: list[Event | None] = []

    def remove(self, name: str) -> None:
        """Forget a pattern and what it holds."""
        index = self.strike(name)
        purge(self._waiting, self._buckets, self._scalars, index)
        self._sources.pop(index, None)

    def start(self, moment: Instant) -> None:
        """Patterns that wait for their first event start now."""
        live = np.fromiter(self._index.values(), np.int64, count=len(self._index))
        waiting = live[self._patterns.started[live] == NEVER]
        self._patterns.started[waiting] = moment

    def hits(self, event: NDArray[Any], handle: NDArray[Any], score: NDArray[Any]) -> Hits:
        """Those of the matcher's scores that belong to plain patterns, sorted by event."""
        numbers = np.full(max(int(handle.max(initial=-1)), max(self._handles, default=-1)) + 1, -1, np.int32)
        numbers[list(self._handles)] = list(self._handles.values())
        predicate = numbers[handle]
        mine = np.flatnonzero(predicate >= 0)
        mine = mine[np.argsort(event[mine], kind="stable")]
        sure = self._matcher.probabilities(handle[mine], score[mine])
        return Hits(event[mine].astype(np.int64), predicate[mine], sure)

    def encode(self, events: Sequence[Event]) -> Encoded:
        """The tuples of a batch as numbers."""
        if self._columns.crowded:
            live = self._buckets.key[self._buckets.head >= 0] & 0xFFFFFFFF
            self._columns.retain(set(live.tolist()))
        tuples = list(map(_tuples_of, events))
        starts = np.zeros(len(tuples) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, tuples), np.int64, count=len(tuples)), out=starts[1:])
        return Encoded(starts, self._columns.ids(chain.from_iterable(tuples), int(starts[-1])))

    def promising(self, encoded: Encoded) -> NDArray[np.int64]:
        """The events that profiles of the matcher may match: those with a value that one of them needs."""
        if self._unanchored:
            return np.arange(len(encoded.starts) - 1)
        anchored = np.flatnonzero(self._columns.anchor_of[encoded.ids])
        return np.unique(np.searchsorted(encoded.starts, anchored, side="right") - 1)

    def batch(self, encoded: Encoded, times: NDArray[np.int64], hits: Hits | None) -> Batch:
        """A batch for the kernel."""
        starts, ids = encoded
        hit_starts = np.zeros(len(starts), np.int64)
        if hits is not None:
            np.cumsum(np.bincount(hits.event, minlength=len(times)), out=hit_starts[1:])
        return Batch(
            starts,
            self._columns.predicate_of[ids],
            self._columns.attribute_of[ids],
            self._columns.key_of[ids],
            times,
            hit_starts,
            _NO_HITS.predicate if hits is None else hits.predicate,
            _NO_HITS.score if hits is None else hits.score,
        )

    def unfit(self, batch: Batch) -> list[str]:
        """Patterns that join by an attribute of which some event has several values."""
        if not self._columns.joins:
            return []
        several = repeated_attributes(batch, self._columns.joins)
        if not several.any():
            return []
        attribute = self._patterns.attribute
        return [name for name, at in self._index.items() if attribute[at] >= 0 and several[attribute[at]]]

    def process(
        self, batch: Batch, events: Sequence[Event], base: int, catalogue: Catalogue
    ) -> tuple[list[Detection], NDArray[Any], NDArray[Any]]:
        """Detections in order, with the event and the number of the pattern that each belongs to."""
        found, entered, self._waiting, self._buckets = detect_sequences(
            batch,
            base,
            self._waiting,
            self._buckets,
            self._scalars,
            self._patterns,
            self._postings,
            self._limit,
            self._drop,
        )
        numbers = self._numbers[found[1]]
        if len(numbers) and len(self._index) > 1:
            order = np.lexsort((numbers, found[0]))
            found, numbers = tuple(column[order] for column in found), numbers[order]
        detections = self._detections(events, base, found, catalogue)
        self._remember(events, base, entered)
        return detections, found[0], numbers

    def _detections(self, events: Sequence[Event], base: int, found: Any, catalogue: Catalogue) -> list[Detection]:
        at, pattern, entry, rank, probability = found
        if not len(at):
            return []
        which = pattern.tolist()
        for index in set(which) - self._sources.keys():
            name = self._names[index]
            self._sources[index] = Source(catalogue.running(name), catalogue.scope(name))
        sources = {index: (self._sources[index], None) for index in set(which)}
        with uncollected():
            seconds = list(map(events.__getitem__, at.tolist()))
            firsts = self._firsts(events, base, entry, rank)
            ends = list(map(_end_of, seconds))
            return list(
                map(
                    Detection,
                    map(self._names.__getitem__, which),
                    ends,
                    map(min, map(_start_of, firsts), map(_start_of, seconds)),
                    ends,
                    probability.tolist(),
                    map(self._roles.__getitem__, which),
                    zip(firsts, seconds, strict=True),
                    map(sources.__getitem__, which),
                )
            )

    def _firsts(
        self, events: Sequence[Event], base: int, entry: NDArray[np.int32], rank: NDArray[np.int64]
    ) -> list[Any]:
        """The first events of detections: of this batch, or held since before it."""
        places = (rank - base).tolist()
        if not len(rank) or rank.min() >= base:
            return list(map(events.__getitem__, places))
        held = self._events
        return [events[place] if place >= 0 else held[slot] for place, slot in zip(places, entry.tolist(), strict=True)]

    def _remember(self, events: Sequence[Event], base: int, entered: NDArray[np.int32]) -> None:
        """Keep the events of entries that wait since this batch."""
        held = self._events
        if len(held) < len(self._waiting.time):
            held += [None] * (len(self._waiting.time) - len(held))
        ranks = self._waiting.rank[entered] - base
        for at, rank in zip(entered.tolist(), ranks.tolist(), strict=True):
            held[at] = events[rank]

    # what it holds

    def sweep(self, now: Instant) -> None:
        """Let go of all whose window is over at `now`."""
        self._buckets = sweep(self._waiting, self._buckets, self._patterns, self._scalars, now)

    def kept(self, name: str | None = None) -> dict[str, list[Kept]]:
        """The waiting events of one pattern or of all, oldest first."""
        waiting = self._waiting
        wanted = -1 if name is None else self._index[name]
        which, entries = entries_of(waiting, self._buckets, self._scalars, wanted)
        order = np.lexsort((waiting.rank[entries], which))
        out: dict[str, list[Kept]] = {one: [] for one in (self._index if name is None else (name,))}
        for owner, at in zip(which[order].tolist(), entries[order].tolist(), strict=True):
            event = self._events[at]
            assert event is not None
            row = Kept(event, int(waiting.rank[at]), float(waiting.probability[at]), int(waiting.flag[at]))
            out[self._names[owner]].append(row)
        return out

    def load(self, name: str, kept: Sequence[Kept], facts: Facts) -> None:
        """Take waiting events back, oldest first."""
        index, p = self._index[name], self._patterns
        p.detected[index], p.expired[index], p.dropped[index] = facts.detected, facts.expired, facts.dropped
        for row in kept:
            attribute = int(p.attribute[index])
            key = self._columns.keys(row.event.tuples, attribute)[0] if attribute >= 0 else 0
            end = row.event.span[1]
            wanted = (index << 32) | key
            entry, self._waiting, self._buckets = restore_entry(
                self._waiting,
                self._buckets,
                self._scalars,
                p,
                wanted,
                end,
                row.rank,
                row.probability,
                row.flag,
            )
            self._remember([row.event], row.rank, np.array([entry], np.int32))


_NO_HITS: Final = Hits(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))
