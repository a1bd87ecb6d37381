"""Plain patterns on the compiled path: the way of a batch or of one event through them, from tuples to detections."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite.catalogue import Catalogue
from likewise.composite.compiled.kernel import detect, repeated
from likewise.composite.compiled.registry import EventsByPlace, FlatStock, Past
from likewise.composite.compiled.shape import Shape
from likewise.composite.compiled.store import FOUND, NEVER, WHY, next_timer, remove
from likewise.composite.compiled.verdict import expire
from likewise.composite.detection import Detection
from likewise.composite.encoding import Columns, EncodedTuples
from likewise.composite.hits import HitBook
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.nodes import Plan
from likewise.events import Event, EventColumns, Instant
from likewise.language import Subscription
from likewise.matching import Matcher


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
        """`sure` gives the probability that an event fills a role."""
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


_start_of = attrgetter("start")
_FORGET: Final = 1 << 14
_FEW: Final = 8
_MOST_TUPLES: Final = 64


class Furthest(NamedTuple):
    """The instance that came furthest and no further, and why."""

    names: tuple[str, ...]
    events: tuple[Event | None, ...]
    level: int
    why: str
    time: Instant


class CompiledHits(NamedTuple):
    """Matches of profiles that a dictionary cannot answer, sorted by event."""

    event: NDArray[np.int64]
    predicate: NDArray[np.int32]
    score: NDArray[np.float64]


_NO_HITS: Final = CompiledHits(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))


def _one() -> tuple[NDArray[Any], ...]:
    """A batch for one event, to be filled again and again."""
    starts, hit_starts = np.zeros(2, np.int64), np.zeros(2, np.int64)
    ids, time, kept = np.zeros(_MOST_TUPLES, np.int32), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    return starts, ids, time, hit_starts, _NO_HITS.predicate, _NO_HITS.score, kept


def _first(pair: tuple[Any, Detection]) -> Any:
    return pair[0]


class FlatPatterns(FlatStock):
    """All plain patterns of a detector, with the instances that wait in them."""

    def __init__(self, matcher: Matcher | HitBook, columns: Columns, *, limit: int, drop: bool) -> None:
        super().__init__(matcher, columns)
        self._limit = limit if drop else -limit
        self._origins: dict[int, Origin] = {}
        self._forget_at = _FORGET
        self._one = _one()

    def remove(self, name: str) -> None:
        """Forget a pattern and what it holds."""
        index = self.strike(name)
        oldest = self._tables.patterns["oldest"]
        while oldest[index] != -1:
            remove(self._tables, int(oldest[index]), -1, 0)
        for entry in self._watched(index):
            remove(self._tables, entry, -1, 0)
        self._origins.pop(index, None)

    def start(self, moment: Instant) -> None:
        """Patterns that wait for their first event start now."""
        live = np.fromiter(self._index.values(), np.int64, count=len(self._index))
        started = self._tables.patterns["started"]
        started[live[started[live] == NEVER]] = moment

    # events as numbers

    def hits(self, event: NDArray[Any], handle: NDArray[Any], probability: NDArray[Any]) -> CompiledHits:
        """Those hits that belong to plain patterns, sorted by event."""
        numbers = np.full(max(int(handle.max(initial=-1)), max(self._handles, default=-1)) + 1, -1, np.int32)
        numbers[list(self._handles)] = list(self._handles.values())
        predicate = numbers[handle]
        mine = np.flatnonzero(predicate >= 0)
        mine = mine[np.argsort(event[mine], kind="stable")]
        return CompiledHits(event[mine].astype(np.int64), predicate[mine], probability[mine].astype(np.float64))

    def tidy(self) -> None:
        """Let go of tuples, keys and events that nobody needs."""
        self._columns.trim()
        if self._columns.crowded:
            live = self._tables.buckets[self._tables.buckets["head"] >= 0]
            self._columns.retain({int(key) for column in ("k0", "k1", "k2") for key in live[column].tolist()})
        if len(self._past.events) > self._forget_at:
            t = self._tables
            waiting = t.ranks[t.entries["serial"] >= 0]
            self._past.retain(np.concatenate((waiting.ravel(), t.furthest.ravel())))
            self._forget_at = 2 * len(self._past.events) + _FORGET

    def promising(self, encoded: EncodedTuples) -> NDArray[np.int64]:
        """The events that profiles of the matcher may match: those with a value that one of them needs."""
        if self._unanchored:
            return np.arange(len(encoded.starts) - 1)
        anchored = np.flatnonzero(self._columns.anchor_of[encoded.ids])
        return np.unique(np.searchsorted(encoded.starts, anchored, side="right") - 1)

    def unfit(self, encoded: EncodedTuples) -> list[str]:
        """Patterns that join by an attribute of which some event has several values."""
        if not self._columns.joins:
            return []
        several = repeated(encoded.starts, encoded.ids, self._columns.attribute_of, self._columns.joins)
        if not several.any():
            return []
        return [
            name
            for name, shape in self._shapes.items()
            if any(several[self._columns.join(attribute)] for role in shape.all_roles for attribute in role.attributes)
        ]

    # the way through

    def one(self, event: Event, now: Instant, *, rank: int, catalogue: Catalogue) -> list[Detection] | None:
        """One event, without the detour of a batch; None if it needs that."""
        if self._handles or len(event.tuples) > _MOST_TUPLES or not self._encode_one(event, now):
            return None
        *_, kept = batch = self._one
        found = self._run(batch, rank)
        if kept[0]:
            kept[0] = False
            self._past.events[rank] = event
        if found > _FEW:
            return self._found((event,), rank, catalogue)[0]
        return self._found_now(event, rank, catalogue) if found else []

    def _encode_one(self, event: Event, now: Instant) -> bool:
        """Fill the batch of one event; False if it has several values of an attribute that patterns join by."""
        self.tidy()
        starts, ids, time, *_ = self._one
        numbers, joining = self._columns.numbers, self._columns.joining
        joins: list[int] = []
        at = 0
        for pair in event.tuples:
            number = ids[at] = numbers[pair]
            at += 1
            if number in joining:
                if joining[number] in joins:
                    return False
                joins.append(joining[number])
        starts[1], time[0] = at, now
        return True

    def _found_now(self, event: Event, rank: int, catalogue: Catalogue) -> list[Detection]:
        """The few detections of one event."""
        t = self._tables
        out = []
        for row, (sure, now, _, index, rung) in enumerate(t.found[: t.scalars[FOUND]].tolist()):
            name, roles, source = self._origins.get(index) or self._origin(index, catalogue)
            ranks = t.found_ranks[row, : len(roles)].tolist()
            members = tuple([event if one == rank else self._past.events[one] for one in ranks])
            start: Any = min([_start_of(member) for member in members])
            key = (now, -rung, self._numbers[index], sorted(ranks), ranks) if t.scalars[FOUND] > 1 else None
            end = members[-1].span[1] if rung else now
            out.append((key, Detection(name, now, start, end, sure, roles, members, source)))
        if len(out) > 1:
            out.sort(key=_first)
        return [found for _, found in out]

    def process(
        self,
        encoded: EncodedTuples,
        events: Sequence[Event],
        times: NDArray[np.int64],
        hits: CompiledHits | None,
        *,
        base: int,
        catalogue: Catalogue,
    ) -> tuple[list[Detection], NDArray[Any], NDArray[Any]]:
        """Detections in order, with the event and the number of the pattern that each belongs to.

        What a timer completed stands half a place before the event that came after it.
        """
        hit_starts = np.zeros(len(encoded.starts), np.int64)
        if hits is not None:
            np.cumsum(np.bincount(hits.event, minlength=len(times)), out=hit_starts[1:])
        mine = _NO_HITS if hits is None else hits
        kept = np.zeros(len(events), np.bool_)
        self._run((encoded.starts, encoded.ids, times, hit_starts, mine.predicate, mine.score, kept), base)
        some: EventsByPlace = events
        if isinstance(events, EventColumns):
            ranks = self._tables.found_ranks[: int(self._tables.scalars[FOUND])].ravel()
            now = (ranks >= base) & (ranks != NEVER)
            some = events.some(np.concatenate((np.flatnonzero(kept), ranks[now] - base)))
        out = self._found(some, base, catalogue)
        self._past.keep(some, base, kept)
        return out

    def _run(self, batch: tuple[Any, ...], base: int) -> int:
        """Let the kernel go through a batch; gives the number of rows found."""
        run: Any = detect
        while (found := run(*batch, *self._columns.arrays, *self._tables, base, self._limit)) < 0:
            self._make_room()
        return int(found)

    def _found(
        self, events: EventsByPlace, base: int, catalogue: Catalogue
    ) -> tuple[list[Detection], NDArray[Any], NDArray[Any]]:
        t = self._tables
        count = int(t.scalars[FOUND])
        found = t.found[:count]
        event, pattern, sure, time, rung = (found[name] for name in ("event", "pattern", "probability", "time", "rung"))
        rows = Rows(event, pattern, sure, time, rung, t.found_ranks[:count])
        numbers = self._numbers[rows.pattern]
        if not count:
            return [], rows.event, numbers
        if count > 1 and (self._deep or len(self._index) > 1):
            members = t.patterns["members"][rows.pattern] if self._deep else None
            rows = rows.ordered(numbers, members)
            numbers = self._numbers[rows.pattern]
        origins = {index: self._origin(index, catalogue) for index in set(rows.pattern.tolist())}
        made = detections(rows, events, base=base, past=self._past, origins=origins)
        return made, rows.event - 0.5 * rows.rung, numbers

    def _origin(self, index: int, catalogue: Catalogue) -> Origin:
        origin = self._origins.get(index)
        if origin is None:
            name = self._names[index]
            source = RowSource(catalogue.running(name), catalogue.scope(name), partial(self.sure, name))
            origin = self._origins[index] = Origin(name, self._roles[index], (source, None))
        return origin

    # what it holds

    @property
    def due(self) -> Instant | None:
        """The first moment at which something that waits is over."""
        first = next_timer(self._tables)
        return None if first == NEVER else int(first)

    def sweep(self, now: Instant, catalogue: Catalogue) -> list[Detection]:
        """Let go of all whose window is over at `now`; gives what is known since, in order."""
        self._tables.scalars[FOUND] = 0
        while not expire(self._tables, now, 0):
            self._make_room()
        return self._found((), 1 << 62, catalogue)[0]

    def stops(self, name: str) -> dict[tuple[int, str], int]:
        """How many instances ended with each number of members, and why."""
        shape, first = self._shapes[name], int(self._tables.patterns["first"][self._index[name]])
        counts = self._tables.stops[first : first + len(shape.roles)]
        return {
            (slot + 1, self._why(shape, why)): int(counts[slot, why])
            for slot, why in zip(*np.nonzero(counts), strict=True)
        }

    def _why(self, shape: Shape, why: int) -> str:
        return WHY[why].format(guard=shape.guard.name if shape.guard is not None else "")

    def furthest(self, name: str) -> Furthest | None:
        """The instance that came furthest, of those that ended."""
        index = self._index[name]
        p = self._tables.patterns[index]
        if not p["roles"]:
            return None
        ranks = self._tables.furthest[index, : p["roles"]].tolist()
        events = tuple(map(self._past.events.get, ranks))
        roles, joint = self._roles[index], p["joint"] and p["roles"] == 1
        names = (roles[p["member"]],) if joint else roles[: p["roles"]]
        why = self._why(self._shapes[name], p["why"])
        return Furthest(names, events, int(p["level"]), why, int(p["time"]))
