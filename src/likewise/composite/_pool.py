"""The primitive pool and the temporal pool [003 sec 4, 5.2].

The primitive pool holds a profile only while some process waits for it. How it leaves the matcher is one of
the three variants of 003 section 5.2: `insert` adds and removes it, `mark` switches it on and off, and
`reference` keeps it in and only forgets who waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from likewise.composite._instance import Weighted
from likewise.events import Event, Instant, normalise
from likewise.language import Options, Profile

if TYPE_CHECKING:
    from likewise.composite._process import LeafProcess, Process
    from likewise.composite._run import Run

Variant: TypeAlias = Literal["insert", "mark", "reference"]
_CROWD: Final = 1 << 14


class Hit(Protocol):
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
    def activate(self, handle: int) -> None: ...
    def deactivate(self, handle: int) -> None: ...
    def match(self, event: Event) -> Iterable[Any]: ...


class Entry:
    """A profile in the pool, and who waits for it."""

    __slots__ = ("by_meaning", "handle", "listeners", "options", "profile", "users")

    def __init__(self, profile: Profile, options: Options) -> None:
        self.profile = profile
        self.options = options
        self.handle: int | None = None
        self.listeners: dict[Run, dict[LeafProcess, None]] = {}
        self.users = 0
        self.by_meaning = any(predicate.attribute_approximate for predicate in profile.predicates)


class Pool:
    """All profiles of all patterns, each once, active while it can contribute."""

    def __init__(self, matcher: ProfileMatcher, *, variant: Variant = "reference") -> None:
        self.matcher = matcher
        self.variant = variant
        self._entries: dict[tuple[Profile, Options], Entry] = {}
        self.by_handle: dict[int, Entry] = {}

    def __len__(self) -> int:
        """How many profiles are active."""
        return sum(bool(entry.listeners) for entry in self._entries.values())

    def register(self, run: Run) -> None:
        """Announce the profiles of a pattern."""
        for leaf in run.plan.leaves:
            key = (leaf.profile, leaf.options)
            entry = self._entries.get(key)
            if entry is None:
                entry = Entry(leaf.profile, leaf.options)
                self._entries[key] = entry
                if self.variant != "insert":
                    self._add(entry)
                    if self.variant == "mark":
                        self.matcher.deactivate(entry.handle or 0)
            entry.users += 1

    def unregister(self, run: Run) -> None:
        """Forget the profiles of a pattern."""
        for leaf in run.plan.leaves:
            key = (leaf.profile, leaf.options)
            entry = self._entries[key]
            entry.users -= 1
            if not entry.users:
                if entry.handle is not None:
                    self._drop(entry)
                del self._entries[key]

    def _add(self, entry: Entry) -> None:
        entry.handle = self.matcher.add(entry.profile, options=entry.options, key=(entry,))
        self.by_handle[entry.handle] = entry

    def _drop(self, entry: Entry) -> None:
        assert entry.handle is not None
        self.matcher.remove(entry.handle)
        del self.by_handle[entry.handle]
        entry.handle = None

    def insert(self, run: Run, leaf: LeafProcess) -> None:
        """Someone waits for a profile."""
        entry = self._entries[leaf.node.profile, leaf.node.options]
        if not entry.listeners:
            if self.variant == "insert":
                self._add(entry)
            elif self.variant == "mark":
                self.matcher.activate(entry.handle or 0)
        entry.listeners.setdefault(run, {})[leaf] = None

    def remove(self, run: Run, leaf: LeafProcess) -> None:
        """Someone waits no longer."""
        entry = self._entries[leaf.node.profile, leaf.node.options]
        mine = entry.listeners[run]
        del mine[leaf]
        if not mine:
            del entry.listeners[run]
        if not entry.listeners and entry.handle is not None:
            if self.variant == "insert":
                self._drop(entry)
            elif self.variant == "mark":
                self.matcher.deactivate(entry.handle)

    def match(self, event: Event) -> list[tuple[Entry, float, dict[str, tuple[Weighted, ...]] | None]]:
        """The profiles that the event matches, of those that someone waits for."""
        out = []
        for hit in self.matcher.match(event):
            entry = hit.subscription[0] if isinstance(hit.subscription, tuple) else None
            if isinstance(entry, Entry) and entry.listeners:
                out.append((entry, hit.probability, mapped_values(entry.profile, event, hit)))
        return out


def mapped_values(profile: Profile, event: Event, hit: Hit) -> dict[str, tuple[Weighted, ...]] | None:
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

    def forget(self, run: Run) -> None:
        """Drop all timers of a pattern."""
        self._heap = [entry for entry in self._heap if entry[4] is not run]
        heapq.heapify(self._heap)
