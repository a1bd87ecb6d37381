"""The two pools of the single-step method [003 sec 4, 5.2]: processes by the profile, or by the moment, they wait for.

The primitive pool has a profile active only while some process waits for it. Of the three variants in 003 section 5.2
it is the one that keeps all profiles in the matcher and only records which processes wait: inserting and removing
profiles, or switching them on and off, was no faster.

The temporal pool has timers and terminators by event time. Most windows of a node have the same length, so its timers
are set in the order in which they are due: they form a lane, of which only the first is in the heap.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from likewise.composite.encoding import TupleEncoder
from likewise.composite.instance import WeightedValue
from likewise.events import Event, Instant, normalise
from likewise.language import Operator, Options, Profile, Range

if TYPE_CHECKING:
    from likewise.composite.general.process import LeafProcess, Process
    from likewise.composite.general.run import Run


Answer: TypeAlias = "tuple[PoolEntry, float, dict[str, tuple[WeightedValue, ...]] | None]"
"""A matched profile, the probability, and the mapped values."""


class PoolHit(Protocol):
    """The attributes of a match that the pool reads."""

    @property
    def subscription(self) -> Hashable: ...
    @property
    def probability(self) -> float: ...
    @property
    def mappings(self) -> Any: ...


class ProfileMatcher(Protocol):
    """The matcher interface that the pool uses; `likewise.matching.Matcher` implements it."""

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int: ...
    def remove(self, handle: int) -> None: ...
    def match(self, event: Event) -> Iterable[Any]: ...


class PoolEntry:
    """A profile in the pool, and the processes that wait for it.

    A single equality has a predicate `number` and is looked up; other profiles have a `handle` of the matcher.
    """

    __slots__ = ("by_meaning", "handle", "key", "listeners", "number", "options", "profile", "users")

    def __init__(self, profile: Profile, options: Options, number: int, key: Hashable) -> None:
        self.profile = profile
        self.options = options
        self.number = number
        self.key = key
        self.handle: int | None = None
        self.listeners: dict[Run, dict[LeafProcess, None]] = {}
        self.users = 0
        self.by_meaning = any(predicate.attribute_approximate for predicate in profile.predicates)


class Pool:
    """The distinct profiles of all patterns, active while they can contribute."""

    def __init__(self, matcher: ProfileMatcher, encoder: TupleEncoder | None = None) -> None:
        """With `encoder`, single exact equalities are looked up there and do not use the matcher."""
        self.matcher = matcher
        self.encoder = encoder
        self.by_handle: dict[int, PoolEntry] = {}
        self.by_number: dict[int, PoolEntry] = {}
        self._entries: dict[Hashable, PoolEntry] = {}
        # By identity: hashing a profile costs more than the rest of an insertion.
        self._of_leaf: dict[int, PoolEntry] = {}

    def __len__(self) -> int:
        """The number of active profiles."""
        return sum(bool(entry.listeners) for entry in self._entries.values())

    def register(self, run: Run) -> None:
        """Add the profiles of a pattern."""
        for leaf in run.plan.leaves:
            number = self._number(leaf.profile, leaf.options)
            # Options do not change whether an equality holds.
            key = (leaf.profile, leaf.options) if number < 0 else number
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = PoolEntry(leaf.profile, leaf.options, number, key)
                self._add(entry)
            entry.users += 1
            self._of_leaf[id(leaf)] = entry

    def _number(self, profile: Profile, options: Options) -> int:
        if self.encoder is None or not is_simple(profile, options):
            return -1
        [predicate] = profile.predicates
        value: Any = predicate.value
        return self.encoder.predicate(predicate.attribute, value)

    def unregister(self, run: Run) -> None:
        """Remove the profiles of a pattern."""
        for leaf in run.plan.leaves:
            entry = self._of_leaf.pop(id(leaf))
            entry.users -= 1
            if not entry.users:
                self._drop(entry)
                del self._entries[entry.key]

    def _add(self, entry: PoolEntry) -> None:
        if entry.number >= 0:
            self.by_number[entry.number] = entry
        else:
            entry.handle = self.matcher.add(entry.profile, options=entry.options, key=(entry,))
            self.by_handle[entry.handle] = entry

    def _drop(self, entry: PoolEntry) -> None:
        if entry.handle is not None:
            self.matcher.remove(entry.handle)
            del self.by_handle[entry.handle]
            entry.handle = None
        else:
            self.by_number.pop(entry.number, None)

    def insert(self, run: Run, leaf: LeafProcess) -> None:
        """Add a process that waits for a profile."""
        entry = self._of_leaf[id(leaf.node)]
        entry.listeners.setdefault(run, {})[leaf] = None

    def remove(self, run: Run, leaf: LeafProcess) -> None:
        """Remove a process that no longer waits."""
        entry = self._of_leaf[id(leaf.node)]
        leaves = entry.listeners[run]
        del leaves[leaf]
        if leaves:
            return
        del entry.listeners[run]

    def match(self, event: Event) -> list[Answer]:
        """The matched profiles among those that some process waits for."""
        out = self._lookup(event) if self.by_number else []
        if not self.by_handle and self.encoder is not None:
            return out
        for hit in self.matcher.match(event):
            entry = hit.subscription[0] if isinstance(hit.subscription, tuple) else None
            if isinstance(entry, PoolEntry) and entry.listeners:
                out.append((entry, hit.probability, mapped_values(entry.profile, event, hit)))
        return out

    def _lookup(self, event: Event) -> list[Answer]:
        """The equality predicates that the event's tuples satisfy."""
        encoder, out = self.encoder, list[Answer]()
        assert encoder is not None
        for pair in event.tuples:
            number = encoder.numbers[pair]
            if number and (entry := self.by_number.get(encoder.answered[number])) is not None and entry.listeners:
                answer = (entry, 1.0, None)
                if answer not in out:
                    out.append(answer)
        return out


def is_simple(profile: Profile, options: Options) -> bool:
    """Whether a profile is a single exact equality, which needs only a lookup."""
    if len(profile.predicates) != 1 or options.approach not in (None, "exact"):
        return False
    [p] = profile.predicates
    plain = not (p.attribute_approximate or p.value_approximate) or options.approach == "exact"
    return plain and p.operator is Operator.EQ and not isinstance(p.value, Range)


def mapped_values(profile: Profile, event: Event, hit: PoolHit) -> dict[str, tuple[WeightedValue, ...]] | None:
    """Weighted values by the profile's attribute names, for attributes that the event names differently.

    Each of the top-k mappings gives an alternative, weighted relative to the best one.
    """
    own = {normalise(name) for name, _ in event.tuples}
    wanted = {normalise(p.attribute) for p in profile.predicates if p.attribute_approximate} - own
    if not wanted:
        return None
    out: dict[str, dict[Any, float]] = {}
    best = hit.mappings[0].probability if hit.mappings else 1.0
    for mapping in hit.mappings:
        for pair in mapping.correspondences:
            name = normalise(pair.predicate.attribute)
            if name in wanted:
                out.setdefault(name, {}).setdefault(pair.tuple[1], mapping.probability / best)
    return {name: tuple(values.items()) for name, values in out.items()}


# The temporal pool.


_CROWD: Final = 1 << 14

Entry: TypeAlias = "tuple[Instant, int, int, int, Run, Process, Any, Lane | None]"
"""Time, phase (timer or terminator), pattern number, serial, run, process, item, and lane."""

Lane: TypeAlias = "deque[Entry]"


def new_lanes(nodes: int) -> list[Lane]:
    """One lane of timers and one of terminators for each node of a plan."""
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
        """Set a timer: at equal times, timers (phase 1) fire before terminators (phase 2), then by pattern."""
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
            self._drop_dead_timers()

    def _pop(self) -> Entry:
        """Remove and return the first entry; the next of its lane takes its place."""
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
        """All entries, in no order."""
        out: list[Entry] = []
        for entry in self._heap:
            if entry[7] is None:
                out.append(entry)
            else:
                out += entry[7]
        return out

    def _keep(self, entries: list[Entry]) -> None:
        """Replace all entries by these."""
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

    def _drop_dead_timers(self) -> None:
        """Drop timers of ended items, so that long windows do not keep them."""
        self._keep([entry for entry in self._entries() if _lives(entry)])
        self._crowd = 2 * self._count + _CROWD

    def idle(self, limit: Instant) -> bool:
        """Whether nothing is due up to `limit`; if so, the clock advances to it."""
        if self._heap and self._heap[0][0] <= limit:
            return False
        self.clock = max(self.clock, limit)
        return True

    def next(self, limit: Instant) -> tuple[Instant, int, Run, list[tuple[Process, Any]]] | None:
        """What one pattern has due at the earliest moment, if that is not after `limit`."""
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
        """The earliest moment at which a live entry is due."""
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
