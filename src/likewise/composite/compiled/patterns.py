"""Simple patterns on the compiled path: from the tuples of a batch or of one event to detections."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite.catalogue import Catalogue
from likewise.composite.compiled.decision import expire
from likewise.composite.compiled.kernel import detect, mark_repeated
from likewise.composite.compiled.registry import EarlierEvents, EventsByPlace, InstanceTables
from likewise.composite.compiled.shape import Shape
from likewise.composite.compiled.store import NEVER, REASONS, ROWS_FOUND, next_timer, remove
from likewise.composite.detection import Detection
from likewise.composite.encoding import EncodedTuples, TupleEncoder
from likewise.composite.hits import ProfileNumbers
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.nodes import Plan
from likewise.events import Event, EventColumns, Instant
from likewise.language import Subscription
from likewise.matching import Matcher


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while many objects are created and none are garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CompiledSource:
    """The source of a compiled detection; builds its plan on demand."""

    def __init__(self, subscription: Subscription, known: Mapping[str, Subscription]) -> None:
        self._subscription = subscription
        self._known = known

    @cached_property
    def plan(self) -> Plan:
        """The plan of the pattern."""
        return build_plan(self._subscription, self._known)


class PatternOrigin(NamedTuple):
    """The data that all detections of one pattern share; certain ones share their source, too."""

    name: str
    roles: tuple[str, ...]
    predicates: tuple[int, ...]
    certain: tuple[CompiledSource, None]


class DetectionRows(NamedTuple):
    """Detections in columns; `by_timer` marks those completed by a timer, `ranks` has the events by member."""

    event: NDArray[Any]
    pattern: NDArray[Any]
    probability: NDArray[Any]
    time: NDArray[np.int64]
    by_timer: NDArray[Any]
    ranks: NDArray[np.int64]

    def ordered(self, numbers: NDArray[np.int64], members: NDArray[Any] | None) -> DetectionRows:
        """Sort by event (those completed by timers first) and pattern; with `members` counts, also by their events."""
        keys: tuple[NDArray[Any], ...] = (numbers, self.time, -self.by_timer, self.event)
        if members is not None:
            columns = np.arange(self.ranks.shape[1])
            ranks = np.where(columns < members[:, None], self.ranks, NEVER)
            keys = (*ranks.T[::-1], *np.sort(ranks, axis=1).T[::-1], *keys)
        order = np.lexsort(keys)
        return DetectionRows(*(column[order] for column in self))


def detections(
    rows: DetectionRows, events: EventsByPlace, *, base: int, past: EarlierEvents, origins: Mapping[int, PatternOrigin]
) -> list[Detection]:
    """Build the detections, in the order of the rows."""
    sizes = np.array([len(origins[index].roles) if index in origins else 0 for index in range(max(origins) + 1)])
    row_sizes = sizes[rows.pattern]
    with gc_paused():
        if row_sizes.min() == row_sizes.max():
            return _of_one_size(rows, int(row_sizes[0]), events, base=base, past=past, origins=origins)
        out: list[Any] = [None] * len(row_sizes)
        for size in np.unique(row_sizes).tolist():
            where = np.flatnonzero(row_sizes == size)
            chosen = DetectionRows(*(column[where] for column in rows))
            built = _of_one_size(chosen, size, events, base=base, past=past, origins=origins)
            for at, detection in zip(where.tolist(), built, strict=True):
                out[at] = detection
        return out


def _of_one_size(
    rows: DetectionRows,
    size: int,
    events: EventsByPlace,
    *,
    base: int,
    past: EarlierEvents,
    origins: Mapping[int, PatternOrigin],
) -> list[Detection]:
    columns = [past.all_of(events, base, rows.ranks[:, k]) for k in range(size)]
    starts = [map(_start_of, column) for column in columns]
    times = rows.time.tolist()
    ends = times
    if rows.by_timer.any():
        # A timer completes a sequence later than its last event ends.
        ends = [
            last.span[1] if by_timer else time
            for last, by_timer, time in zip(columns[-1], rows.by_timer.tolist(), times, strict=True)
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
            _sources(rows, size, which, past),
        )
    )


def _sources(
    rows: DetectionRows, size: int, which: Sequence[PatternOrigin], past: EarlierEvents
) -> Iterable[tuple[CompiledSource, tuple[float, ...] | None]]:
    """The sources of the detections, with the probability of each member unless all are certain."""
    if rows.probability.min() == 1.0:
        return (origin.certain for origin in which)
    # Column by column, since there may be very many detections.
    columns = [
        past.column_of_chances(rows.ranks[:, k].tolist(), [origin.predicates[k] for origin in which])
        for k in range(size)
    ]
    each_row = zip(which, rows.probability.tolist(), zip(*columns, strict=True), strict=True)
    return (
        origin.certain if probability == 1.0 else (origin.certain[0], chances)
        for origin, probability, chances in each_row
    )


_start_of = attrgetter("start")
_FORGET: Final = 1 << 14
_FEW: Final = 8
_MAX_TUPLES: Final = 64


class Furthest(NamedTuple):
    """The incomplete instance that came furthest, and why it ended."""

    names: tuple[str, ...]
    events: tuple[Event | None, ...]
    chances: tuple[float, ...]
    level: int
    why: str
    time: Instant


class CompiledHits(NamedTuple):
    """Hits of profiles that are not single equalities, sorted by event."""

    event: NDArray[np.int64]
    predicate: NDArray[np.int32]
    score: NDArray[np.float64]


_NO_HITS: Final = CompiledHits(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))


def _single() -> tuple[NDArray[Any], ...]:
    """A reusable batch for a single event."""
    starts, hit_starts = np.zeros(2, np.int64), np.zeros(2, np.int64)
    ids, time, kept = np.zeros(_MAX_TUPLES, np.int32), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    return starts, ids, time, hit_starts, _NO_HITS.predicate, _NO_HITS.score, kept


def _first(pair: tuple[Any, Detection]) -> Any:
    return pair[0]


class CompiledPatterns(InstanceTables):
    """All compiled patterns of a detector, with their waiting instances."""

    def __init__(self, matcher: Matcher | ProfileNumbers, encoder: TupleEncoder, *, limit: int, drop: bool) -> None:
        super().__init__(matcher, encoder)
        self._limit = limit if drop else -limit
        self._origins: dict[int, PatternOrigin] = {}
        self._forget_at = _FORGET
        self._single = _single()

    def remove(self, name: str) -> None:
        """Remove a pattern and its instances."""
        index = self.unregister(name)
        oldest = self._tables.patterns["oldest"]
        while oldest[index] != -1:
            remove(self._tables, int(oldest[index]), -1, 0)
        for entry in self._guard_entries(index):
            remove(self._tables, entry, -1, 0)
        self._origins.pop(index, None)

    def start(self, moment: Instant) -> None:
        """Start the patterns that wait for their first event."""
        live = np.fromiter(self._index.values(), np.int64, count=len(self._index))
        started = self._tables.patterns["started"]
        started[live[started[live] == NEVER]] = moment

    # events as numbers

    def hits(self, event: NDArray[Any], handle: NDArray[Any], probability: NDArray[Any]) -> CompiledHits:
        """The hits that belong to compiled patterns, sorted by event."""
        numbers = np.full(max(int(handle.max(initial=-1)), max(self._handles, default=-1)) + 1, -1, np.int32)
        numbers[list(self._handles)] = list(self._handles.values())
        predicate = numbers[handle]
        own = np.flatnonzero(predicate >= 0)
        own = own[np.argsort(event[own], kind="stable")]
        return CompiledHits(event[own].astype(np.int64), predicate[own], probability[own].astype(np.float64))

    def tidy(self) -> None:
        """Free tuples, keys and events that are no longer needed."""
        self._encoder.trim()
        if self._encoder.crowded:
            live = self._tables.buckets[self._tables.buckets["head"] >= 0]
            self._encoder.retain({int(key) for column in ("k0", "k1", "k2") for key in live[column].tolist()})
        if max(len(self._past.events), len(self._past.uncertain)) > self._forget_at:
            t = self._tables
            waiting = t.ranks[t.entries["serial"] >= 0]
            self._past.retain(np.concatenate((waiting.ravel(), t.furthest.ravel())))
            self._forget_at = 2 * max(len(self._past.events), len(self._past.uncertain)) + _FORGET

    def may_match(self, encoded: EncodedTuples) -> NDArray[np.int64]:
        """The events that may match profiles of the matcher: those with a value that one of them requires."""
        if self._unanchored:
            return np.arange(len(encoded.starts) - 1)
        anchored = np.flatnonzero(self._encoder.anchor_of[encoded.ids])
        return np.unique(np.searchsorted(encoded.starts, anchored, side="right") - 1)

    def unsupported(self, encoded: EncodedTuples) -> list[str]:
        """The patterns that join by an attribute of which some event has several values."""
        joins = self._encoder.joins
        if not joins:
            return []
        several = np.zeros(joins, np.bool_)
        mark_repeated(encoded.starts, encoded.ids, self._encoder.attribute_of, np.full(joins, -1, np.int64), several)
        if not several.any():
            return []
        return [
            name
            for name, shape in self._shapes.items()
            if any(several[self._encoder.join(attribute)] for role in shape.all_roles for attribute in role.attributes)
        ]

    # processing

    def process_one(self, event: Event, now: Instant, *, rank: int, catalogue: Catalogue) -> list[Detection] | None:
        """Process one event without building a batch; None if it needs one."""
        if self._handles or len(event.tuples) > _MAX_TUPLES or not self._encode_one(event, now):
            return None
        *_, kept = batch = self._single
        count = self._run(batch, rank)
        if kept[0]:
            kept[0] = False
            self._past.events[rank] = event
        if count > _FEW:
            return self._found((event,), rank, catalogue)[0]
        return self._few_detections(event, rank, catalogue) if count else []

    def _encode_one(self, event: Event, now: Instant) -> bool:
        """Fill the single-event batch; False if the event has several values of a join attribute."""
        self.tidy()
        starts, ids, time, *_ = self._single
        numbers, joining = self._encoder.numbers, self._encoder.joining
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

    def _few_detections(self, event: Event, rank: int, catalogue: Catalogue) -> list[Detection]:
        """Build the few detections of one event."""
        t = self._tables
        out = []
        for row, (probability, now, _, index, by_timer) in enumerate(t.found[: t.scalars[ROWS_FOUND]].tolist()):
            name, roles, _, source = self._origins.get(index) or self._origin(index, catalogue)
            ranks = t.found_ranks[row, : len(roles)].tolist()
            members = tuple([event if number == rank else self._past.events[number] for number in ranks])
            start: Any = min([_start_of(member) for member in members])
            key = (now, -by_timer, self._numbers[index], sorted(ranks), ranks) if t.scalars[ROWS_FOUND] > 1 else None
            end = members[-1].span[1] if by_timer else now
            out.append((key, Detection(name, now, start, end, probability, roles, members, source)))
        if len(out) > 1:
            out.sort(key=_first)
        return [detection for _, detection in out]

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
        """Process a batch: returns the detections in order, with each one's event and pattern number.

        One completed by a timer is placed half a position before the next event.
        """
        hit_starts = np.zeros(len(encoded.starts), np.int64)
        if hits is not None:
            np.cumsum(np.bincount(hits.event, minlength=len(times)), out=hit_starts[1:])
        found_hits = _NO_HITS if hits is None else hits
        kept = np.zeros(len(events), np.bool_)
        self._run((encoded.starts, encoded.ids, times, hit_starts, found_hits.predicate, found_hits.score, kept), base)
        needed: EventsByPlace = events
        uncertain = np.flatnonzero(found_hits.score < 1.0)
        if isinstance(events, EventColumns) or len(uncertain):
            ranks = self._tables.found_ranks[: int(self._tables.scalars[ROWS_FOUND])].ravel()
            now = (ranks >= base) & (ranks != NEVER)
            places = np.concatenate((np.flatnonzero(kept), ranks[now] - base))
            self._note_chances(found_hits, uncertain[np.isin(found_hits.event[uncertain], places)], base)
            if isinstance(events, EventColumns):
                needed = events.some(places)
        out = self._found(needed, base, catalogue)
        self._past.keep(needed, base, kept)
        return out

    def _note_chances(self, hits: CompiledHits, which: NDArray[np.intp], base: int) -> None:
        """Remember the probabilities of uncertain hits whose events are kept or detected."""
        pairs = zip((hits.event[which] + base).tolist(), hits.predicate[which].tolist(), strict=True)
        self._past.uncertain.update(zip(pairs, hits.score[which].tolist(), strict=True))

    def _run(self, batch: tuple[Any, ...], base: int) -> int:
        """Run the kernel on a batch; returns the number of rows found."""
        run: Any = detect
        while (count := run(*batch, *self._encoder.arrays, *self._tables, base, self._limit)) < 0:
            self._make_room()
        return int(count)

    def _found(
        self, events: EventsByPlace, base: int, catalogue: Catalogue
    ) -> tuple[list[Detection], NDArray[Any], NDArray[Any]]:
        t = self._tables
        count = int(t.scalars[ROWS_FOUND])
        records = t.found[:count]
        event, pattern, probability, time, by_timer = (
            records[name] for name in ("event", "pattern", "probability", "time", "by_timer")
        )
        rows = DetectionRows(event, pattern, probability, time, by_timer, t.found_ranks[:count])
        numbers = self._numbers[rows.pattern]
        if not count:
            return [], rows.event, numbers
        if count > 1 and (self._deep or len(self._index) > 1):
            members = t.patterns["members"][rows.pattern] if self._deep else None
            rows = rows.ordered(numbers, members)
            numbers = self._numbers[rows.pattern]
        origins = {index: self._origin(index, catalogue) for index in set(rows.pattern.tolist())}
        built = detections(rows, events, base=base, past=self._past, origins=origins)
        return built, rows.event - 0.5 * rows.by_timer, numbers

    def _origin(self, index: int, catalogue: Catalogue) -> PatternOrigin:
        origin = self._origins.get(index)
        if origin is None:
            name = self._names[index]
            source = CompiledSource(catalogue.running(name), catalogue.scope(name))
            origin = PatternOrigin(name, self._roles[index], self.predicates(name), (source, None))
            self._origins[index] = origin
        return origin

    # state

    @property
    def due(self) -> Instant | None:
        """The earliest moment at which a waiting instance expires."""
        first = next_timer(self._tables)
        return None if first == NEVER else int(first)

    def sweep(self, now: Instant, catalogue: Catalogue) -> list[Detection]:
        """Remove all instances whose window is over at `now`; returns the detections this completes, in order."""
        self._tables.scalars[ROWS_FOUND] = 0
        while not expire(self._tables, now, 0):
            self._make_room()
        return self._found((), 1 << 62, catalogue)[0]

    def stops(self, name: str) -> dict[tuple[int, str], int]:
        """The number of ended instances, by their number of members and the reason."""
        shape, first = self._shapes[name], int(self._tables.patterns["first"][self._index[name]])
        counts = self._tables.stops[first : first + len(shape.roles)]
        return {
            (slot + 1, self._why(shape, why)): int(counts[slot, why])
            for slot, why in zip(*np.nonzero(counts), strict=True)
        }

    def _why(self, shape: Shape, why: int) -> str:
        return REASONS[why].format(guard=shape.guard.name if shape.guard is not None else "")

    def furthest(self, name: str) -> Furthest | None:
        """The incomplete instance that came furthest."""
        index = self._index[name]
        p = self._tables.patterns[index]
        if not p["roles"]:
            return None
        ranks = self._tables.furthest[index, : p["roles"]].tolist()
        events = tuple(map(self._past.events.get, ranks))
        roles, joint = self._roles[index], p["joint"] and p["roles"] == 1
        names = (roles[p["member"]],) if joint else roles[: p["roles"]]
        predicates = self.predicates(name)
        chances = self._past.chances(ranks, predicates[p["member"] :] if joint else predicates)
        why = self._why(self._shapes[name], p["why"])
        return Furthest(names, events, chances, int(p["level"]), why, int(p["time"]))
