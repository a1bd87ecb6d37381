"""The two pools of the single step [003 sec 4, 5.2]: which processes wait for which profile, and for which moment.

The primitive pool has a profile active only while some process waits for it. Of the three variants of 003 section
5.2 it is the one that keeps all profiles in the matcher and only remembers which processes wait: inserting and removing
profiles, or switching them on and off, was no faster. The temporal pool has timers and terminators by event time. Most
windows of a node are equally long, so what one of its processes asks for is due after all that was asked for before:
such entries stand in a lane, of which only the first is in the heap.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from likewise.composite.encoding import Columns
from likewise.composite.instance import Weighted
from likewise.events import Event, Instant, normalise
from likewise.language import Operator, Options, Profile, Range

if TYPE_CHECKING:
    from likewise.composite.general.process import LeafProcess, Process
    from likewise.composite.general.run import Run


Answer: TypeAlias = "tuple[PoolEntry, float, dict[str, tuple[Weighted, ...]] | None]"
"""A profile that an event matches, how surely, and what its own words for attributes stand for."""


class PoolHit(Protocol):
    """What the pool reads of a match."""

    @property
    def subscription(self) -> Hashable: ...
    @property
    def probability(self) -> float: ...
    @property
    def mappings(self) -> Any: ...


class ProfileMatcher(Protocol):
    """What the pool asks of a matcher; `likewise.matching.Matcher` is one."""

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int: ...
    def remove(self, handle: int) -> None: ...
    def match(self, event: Event) -> Iterable[Any]: ...


class PoolEntry:
    """A profile in the pool, and the processes that wait for it.

    A simple one has the `number` of its predicate, which a dictionary finds; the others have a `handle` of the matcher.
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
    """All profiles of all patterns, each once, active while it can contribute."""

    def __init__(self, matcher: ProfileMatcher, columns: Columns | None = None) -> None:
        """With `columns`, profiles of one exact equality are looked up there and do not trouble the matcher."""
        self.matcher = matcher
        self.columns = columns
        self.by_handle: dict[int, PoolEntry] = {}
        self.by_number: dict[int, PoolEntry] = {}
        self._entries: dict[Hashable, PoolEntry] = {}
        # By identity: a profile's hash costs more than all the rest of an insertion.
        self._of_leaf: dict[int, PoolEntry] = {}

    def __len__(self) -> int:
        """How many profiles are active."""
        return sum(bool(entry.listeners) for entry in self._entries.values())

    def register(self, run: Run) -> None:
        """Announce the profiles of a pattern."""
        for leaf in run.plan.leaves:
            number = self._number(leaf.profile, leaf.options)
            # An equality holds or not, whatever the options.
            key = (leaf.profile, leaf.options) if number < 0 else number
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = PoolEntry(leaf.profile, leaf.options, number, key)
                self._add(entry)
            entry.users += 1
            self._of_leaf[id(leaf)] = entry

    def _number(self, profile: Profile, options: Options) -> int:
        if self.columns is None or not is_simple(profile, options):
            return -1
        [predicate] = profile.predicates
        value: Any = predicate.value
        return self.columns.predicate(predicate.attribute, value)

    def unregister(self, run: Run) -> None:
        """Forget the profiles of a pattern."""
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
        """Someone waits for a profile."""
        entry = self._of_leaf[id(leaf.node)]
        entry.listeners.setdefault(run, {})[leaf] = None

    def remove(self, run: Run, leaf: LeafProcess) -> None:
        """Someone waits no longer."""
        entry = self._of_leaf[id(leaf.node)]
        mine = entry.listeners[run]
        del mine[leaf]
        if mine:
            return
        del entry.listeners[run]

    def match(self, event: Event) -> list[Answer]:
        """The profiles that the event matches, of those that someone waits for."""
        out = self._look(event) if self.by_number else []
        if not self.by_handle and self.columns is not None:
            return out
        for hit in self.matcher.match(event):
            entry = hit.subscription[0] if isinstance(hit.subscription, tuple) else None
            if isinstance(entry, PoolEntry) and entry.listeners:
                out.append((entry, hit.probability, mapped_values(entry.profile, event, hit)))
        return out

    def _look(self, event: Event) -> list[Answer]:
        """What a dictionary tells of the event's tuples."""
        columns, out = self.columns, list[Answer]()
        assert columns is not None
        for pair in event.tuples:
            number = columns.numbers[pair]
            if number and (entry := self.by_number.get(columns.answered[number])) is not None and entry.listeners:
                answer = (entry, 1.0, None)
                if answer not in out:
                    out.append(answer)
        return out


def is_simple(profile: Profile, options: Options) -> bool:
    """Whether a profile is one exact equality, which a dictionary answers."""
    if len(profile.predicates) != 1 or options.approach not in (None, "exact"):
        return False
    [p] = profile.predicates
    plain = not (p.attribute_approximate or p.value_approximate) or options.approach == "exact"
    return plain and p.operator is Operator.EQ and not isinstance(p.value, Range)


def mapped_values(profile: Profile, event: Event, hit: PoolHit) -> dict[str, tuple[Weighted, ...]] | None:
    """Values by the profile's own attribute names, where the event uses other names for them.

    Each of the top-k mappings gives an alternative, weighted against the best one.
    """
    own = {normalise(name) for name, _ in event.tuples}
    wanted = {normalise(p.attribute) for p in profile.predicates if p.attribute_approximate} - own
    if not wanted:
        return None
    out: dict[str, dict[Any, float]] = {}
    best = hit.mappings[0].probability if hit.mappings else 1.0
    for mapping in hit.mappings:
        for one in mapping.correspondences:
            name = normalise(one.predicate.attribute)
            if name in wanted:
                out.setdefault(name, {}).setdefault(one.tuple[1], mapping.probability / best)
    return {name: tuple(values.items()) for name, values in out.items()}


# The temporal pool.


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
