"""The tables of compiled patterns: their shapes, the postings of their predicates, and their waiting instances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.composite.compiled.shape import Shape, ShapeRole, anchor_of
from likewise.composite.compiled.store import (
    BROKEN,
    BUCKETS_USED,
    ENTRIES_USED,
    FREE_ENTRY,
    HIT,
    MAX_KEYS,
    NEED_ENTRIES,
    NEED_FOUND,
    NEVER,
    REPLACED,
    ROWS_FOUND,
    TIMER_COUNT,
    Tables,
    append_entry,
    free_entries,
    hold,
    new_buckets,
    new_predicates,
    new_tables,
    push,
    rehash,
    widened,
)
from likewise.composite.encoding import TupleEncoder
from likewise.composite.general.pools import is_simple
from likewise.composite.hits import ProfileNumbers
from likewise.events import Event, Instant, Value
from likewise.language import Options, Profile
from likewise.matching import Aggregation, Matcher

_NO_KEYS: Final = (-1,) * MAX_KEYS


EventsByPlace: TypeAlias = Sequence[Event] | Mapping[int, Event]
"""The events of a batch by position; only those that are needed."""


class PatternCounts(NamedTuple):
    """The counts of one pattern, and when it started."""

    held: int
    detected: int
    dropped: int
    started: Instant | None


class PatternTables:
    """Compiled patterns by name, as rows of the kernel's tables."""

    def __init__(self, matcher: Matcher | ProfileNumbers, encoder: TupleEncoder) -> None:
        self._matcher = matcher
        self._encoder = encoder
        self._index: dict[str, int] = {}
        self._shapes: dict[str, Shape] = {}
        self._names: list[str] = []
        self._roles: list[tuple[str, ...]] = []
        self._free: list[int] = []
        self._free_places: dict[int, list[int]] = {}
        self._placed = 0
        self._profiles: dict[tuple[Profile, Options], tuple[int, int]] = {}
        self._handles: dict[int, int] = {}
        self._users: dict[int, int] = {}
        self._unanchored = 0
        self._deep = 0
        self._numbers = np.zeros(16, np.int64)
        self._posted = 0
        self._free_postings: list[int] = []
        self._tables: Tables = new_tables()

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, name: str) -> bool:
        return name in self._index

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the patterns."""
        return tuple(self._index)

    def shape(self, name: str) -> Shape:
        """The shape of a pattern."""
        return self._shapes[name]

    @property
    def asks_matcher(self) -> bool:
        """Whether some profile is more than a single equality."""
        return bool(self._handles)

    def number(self, name: str) -> int:
        """The number of a pattern, by which patterns are ordered."""
        return int(self._numbers[self._index[name]])

    def counts(self, name: str) -> PatternCounts:
        """The counts of a pattern."""
        p = self._tables.patterns[self._index[name]]
        started = None if p["started"] == NEVER else int(p["started"])
        return PatternCounts(int(p["held"]), int(p["detected"]), int(p["dropped"]), started)

    def predicates(self, name: str) -> tuple[int, ...]:
        """The predicate numbers of a pattern's members, by which hits refer to them; -1 for an equality."""
        roles = self._shapes[name].roles
        return tuple([-1 if self._looked_up(role) else self._profiles[_profile_key(role)][0] for role in roles])

    def _with(self, **tables: Any) -> None:
        self._tables = self._tables._replace(**tables)

    # adding patterns

    def add(self, name: str, shape: Shape, *, number: int, started: Instant | None) -> None:
        """Add a pattern; without `started` it waits for the first event."""
        index = self._free.pop() if self._free else self._new_index()
        self._names[index], self._roles[index] = name, tuple([role.name for role in shape.roles])
        self._index[name], self._shapes[name] = index, shape
        self._numbers[index] = number
        self._deep += _is_deep(shape)
        self._widen(len(shape.roles))
        roles = shape.all_roles
        first = self._places(len(roles))
        self._fill(index, shape, first, NEVER if started is None else started)
        for place, role in enumerate(roles, first):
            keys = [self._encoder.join(attribute) for attribute in role.attributes]
            self._tables.places[place] = (index, role.keep, *keys, *_NO_KEYS[len(keys) :])
            self._post(self._predicate(role), place)

    def _new_index(self) -> int:
        index = len(self._names)
        self._names.append("")
        self._roles.append(())
        if index >= len(self._numbers):
            self._numbers = _doubled(self._numbers)
            self._with(patterns=_doubled(self._tables.patterns), furthest=_doubled(self._tables.furthest))
        return index

    def _widen(self, width: int) -> None:
        t = self._tables
        if width > t.ranks.shape[1]:
            ranks, furthest = widened(t.ranks, width, -1), widened(t.furthest, width, -1)
            self._with(ranks=ranks, furthest=furthest, found_ranks=widened(t.found_ranks, width, NEVER))

    def _places(self, count: int) -> int:
        """The first of `count` consecutive places."""
        free = self._free_places.get(count)
        if free:
            first = free.pop()
            self._tables.stops[first : first + count] = 0
            return first
        first = self._placed
        self._placed += count
        while self._placed > len(self._tables.places):
            self._with(places=_doubled(self._tables.places), stops=_doubled(self._tables.stops))
        return first

    def _fill(self, index: int, shape: Shape, first: int, started: Instant) -> None:
        members = (first, len(shape.roles), shape.joint, shape.unique)
        counts = (0, 0, 0, 0)
        # In the order of the columns: assigning them by name costs more than all the rest.
        guard = -1 if shape.guard is None else first + len(shape.roles)
        guard_fields = (guard, shape.after, shape.spread)
        row = (shape.within, started, shape.threshold, *counts, *members, -1, -1, 0, 0, 0, 0, *guard_fields)
        self._tables.patterns[index] = row

    def _predicate(self, role: ShapeRole) -> int:
        """The predicate number of a profile."""
        if self._looked_up(role):
            return self._ensure_predicate(self._simple(role))
        key = _profile_key(role)
        if key not in self._profiles:
            number = self._encoder.number()
            handle = self._matcher.add(role.profile, options=role.options, key=("flat", number))
            self._profiles[key] = (number, handle)
            self._handles[handle] = number
            value = self._anchor(role)
            if value is None:
                self._unanchored += 1
            else:
                self._encoder.anchor(value)
        number, _ = self._profiles[key]
        self._users[number] = self._users.get(number, 0) + 1
        return self._ensure_predicate(number)

    def _looked_up(self, role: ShapeRole) -> bool:
        """Whether the profile is looked up as an equality; given hits cover all profiles."""
        return isinstance(self._matcher, Matcher) and is_simple(role.profile, role.options)

    def _anchor(self, role: ShapeRole) -> Value | None:
        """A value that matching events must have; None with a mean aggregation, where it may be missing."""
        if isinstance(self._matcher, ProfileNumbers):
            return None
        optional = self._matcher.settings(role.profile, role.options).aggregation is Aggregation.MEAN
        return None if optional else anchor_of(role)

    def _simple(self, role: ShapeRole) -> int:
        [predicate] = role.profile.predicates
        value: Any = predicate.value
        return self._encoder.predicate(predicate.attribute, value)

    def _ensure_predicate(self, number: int) -> int:
        size = len(self._tables.predicates)
        while number >= size:
            self._with(predicates=np.concatenate((self._tables.predicates, new_predicates(size))))
            size = len(self._tables.predicates)
        return number

    def _post(self, predicate: int, place: int) -> None:
        if self._free_postings:
            at = self._free_postings.pop()
        else:
            at = self._posted
            self._posted += 1
        if at == len(self._tables.postings):
            postings = _doubled(self._tables.postings)
            self._with(postings=postings, hits=np.zeros(len(postings), HIT))
        heads = self._tables.predicates["head"]
        self._tables.postings[at] = (place, heads[predicate])
        heads[predicate] = at

    # removing patterns

    def unregister(self, name: str) -> int:
        """Remove a pattern from the tables; returns the index that it had."""
        index, shape = self._index.pop(name), self._shapes.pop(name)
        first = int(self._tables.patterns["first"][index])
        for place, role in enumerate(shape.all_roles, first):
            self._unpost(role, place)
        self._deep -= _is_deep(shape)
        self._tables.patterns["started"][index] = NEVER
        self._free.append(index)
        self._free_places.setdefault(len(shape.all_roles), []).append(first)
        return index

    def _unpost(self, role: ShapeRole, place: int) -> None:
        simple = self._looked_up(role)
        number = self._simple(role) if simple else self._profiles[_profile_key(role)][0]
        heads, postings = self._tables.predicates["head"], self._tables.postings
        before, at = -1, int(heads[number])
        while at != -1:
            after = int(postings["next"][at])
            if postings["place"][at] != place:
                before = at
            else:
                self._free_postings.append(at)
                if before == -1:
                    heads[number] = after
                else:
                    postings["next"][before] = after
            at = after
        if not simple:
            self._release(role, number)

    def _release(self, role: ShapeRole, number: int) -> None:
        self._users[number] -= 1
        if not self._users[number]:
            _, handle = self._profiles.pop(_profile_key(role))
            del self._handles[handle], self._users[number]
            self._matcher.remove(handle)
            value = self._anchor(role)
            if value is None:
                self._unanchored -= 1
            else:
                self._encoder.unanchor(value)


def _is_deep(shape: Shape) -> bool:
    """Whether the kernel may find instances of one event in another order than that of their events."""
    return shape.joint or len(shape.roles) > 2 or (shape.deferred and len(shape.roles) > 1)


def _profile_key(role: ShapeRole) -> tuple[Profile, Options]:
    return role.profile, role.options


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((column, np.zeros_like(column)))


# Waiting instances: room in the tables, and snapshots.


class WaitingInstance(NamedTuple):
    """A waiting instance of one pattern, for snapshots and for moving to the general path.

    `chances` are the probabilities with which its events fill their roles, `member` is the last filled one, `blocker`
    is the rank of the event that keeps others from following, and `p_absent` is the probability that the guard did not
    happen. An instance of the guard has a `member` beyond all members.
    """

    events: tuple[Event, ...]
    ranks: tuple[int, ...]
    chances: tuple[float, ...]
    member: int
    probability: float
    flag: int
    until: Instant | None
    blocker: int
    p_absent: float = 1.0


class EarlierEvents:
    """Events of earlier batches that are still needed, by rank."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.uncertain: dict[tuple[int, int], float] = {}
        """The probabilities below 1 with which events match predicates, by rank and predicate."""

    def chances(self, ranks: Iterable[int], predicates: Iterable[int]) -> tuple[float, ...]:
        """The probabilities with which the events of these ranks match these predicates."""
        uncertain = self.uncertain
        return tuple([uncertain.get(pair, 1.0) for pair in zip(ranks, predicates, strict=False)])

    def column_of_chances(self, ranks: Iterable[int], predicates: Iterable[int]) -> Iterator[float]:
        """The same for a member of many detections, one after the other."""
        return map(self.uncertain.get, zip(ranks, predicates, strict=True), repeat(1.0))

    def all_of(self, events: EventsByPlace, base: int, ranks: NDArray[np.int64]) -> list[Event]:
        """The events of these ranks: from this batch, which begins at `base`, or from earlier ones."""
        places = (ranks - base).tolist()
        if not len(ranks) or ranks.min() >= base:
            return list(map(events.__getitem__, places))
        past = self.events
        return [events[place] if place >= 0 else past[base + place] for place in places]

    def keep(self, events: EventsByPlace, base: int, kept: NDArray[np.bool_]) -> None:
        """Keep the events of a batch that waiting instances need."""
        past = self.events
        for at in np.flatnonzero(kept).tolist():
            past[base + at] = events[at]

    def retain(self, ranks: NDArray[np.int64]) -> None:
        """Forget all events but these."""
        past = self.events
        self.events = {rank: past[rank] for rank in np.unique(ranks).tolist() if rank in past}
        self.uncertain = {pair: chance for pair, chance in self.uncertain.items() if pair[0] in self.events}


class InstanceTables(PatternTables):
    """The tables with the waiting instances."""

    def __init__(self, matcher: Matcher | ProfileNumbers, encoder: TupleEncoder) -> None:
        super().__init__(matcher, encoder)
        self._past = EarlierEvents()

    def _make_room(self) -> None:
        """Grow the tables until they have the room that the kernel needs."""
        t, scalars = self._tables, self._tables.scalars
        entries, rows_needed = int(scalars[NEED_ENTRIES]), int(scalars[NEED_FOUND])
        if scalars[ENTRIES_USED] + entries >= len(t.entries):
            more = max(len(t.entries), entries)
            added = free_entries(more, len(t.entries), int(scalars[FREE_ENTRY]))
            scalars[FREE_ENTRY] = len(t.entries)
            ranks = np.full((more, t.ranks.shape[1]), -1, np.int64)
            self._with(entries=np.concatenate((t.entries, added)), ranks=np.concatenate((t.ranks, ranks)))
        if scalars[ROWS_FOUND] + rows_needed >= len(t.found):
            more = max(len(t.found), rows_needed)
            ranks = np.full((more, t.ranks.shape[1]), NEVER, np.int64)
            rows = np.concatenate((t.found, np.zeros(more, t.found.dtype)))
            self._with(found=rows, found_ranks=np.concatenate((t.found_ranks, ranks)))
        if scalars[TIMER_COUNT] + 2 * entries >= len(t.timers):
            self._drop_dead_timers(2 * entries)
        if 2 * (scalars[BUCKETS_USED] + entries) >= len(t.buckets):
            live, size = int((t.buckets["head"] >= 0).sum()), len(t.buckets)
            while 4 * (live + entries) > size:
                size *= 2
            fresh = new_buckets(size)
            scalars[BUCKETS_USED] = rehash(t.buckets, fresh, self._tables.entries)
            self._with(buckets=fresh)

    def _drop_dead_timers(self, more: int) -> None:
        """Drop timers of removed entries, and make room for more."""
        t = self._tables
        timers = t.timers[: t.scalars[TIMER_COUNT]]
        timers = timers[t.entries["serial"][timers["entry"]] == timers["serial"]]
        timers = timers[np.lexsort((timers["ticket"], timers["until"]))]
        t.scalars[TIMER_COUNT] = len(timers)
        self._with(timers=np.concatenate((timers, np.zeros(len(timers) + more + 64, timers.dtype))))

    def waiting(self, name: str) -> list[WaitingInstance]:
        """The waiting instances of one pattern, oldest first, then those of its guard."""
        index = self._index[name]
        t, p = self._tables, self._tables.patterns[index]
        at, newer, order = int(p["oldest"]), t.entries["newer"], list[int]()
        while at != -1:
            order.append(at)
            at = int(newer[at])
        order += self._guard_entries(index)
        names = ("place", "probability", "flag", "until", "blocker", "p_absent")
        columns = (t.entries[column][order].tolist() for column in names)
        past, first, joint = self._past.events, int(p["first"]), bool(p["joint"])
        predicates = self.predicates(name)
        out = []
        for row, place, probability, flag, until, blocker, p_absent in zip(
            t.ranks[order].tolist(), *columns, strict=True
        ):
            member = place - first
            ranks = tuple(row[: 1 if joint or place == p["guard"] else member + 1])
            chances = self._past.chances(ranks, predicates[member:] if joint else predicates)
            if place == p["guard"]:
                chances = (probability,)
            over = None if until == NEVER else until
            members = tuple([past[rank] for rank in ranks])
            out.append(WaitingInstance(members, ranks, chances, member, probability, flag, over, blocker, p_absent))
        return out

    def _guard_entries(self, index: int) -> list[int]:
        """The entries of the guard, by time."""
        entries, guard = self._tables.entries, self._tables.patterns["guard"][index]
        if guard < 0:
            return []
        own = np.flatnonzero((entries["place"] == guard) & (entries["serial"] >= 0))
        return [int(entry) for entry in own[np.argsort(entries["serial"][own])]]

    def load(self, name: str, waiting: Sequence[WaitingInstance], counts: PatternCounts) -> None:
        """Restore waiting instances, oldest first."""
        index, shape = self._index[name], self._shapes[name]
        pattern = self._tables.patterns[index]
        pattern["detected"], pattern["dropped"] = counts.detected, counts.dropped
        for row in waiting:
            self._tables.scalars[NEED_ENTRIES], self._tables.scalars[NEED_FOUND] = 2, 0
            self._make_room()
            self._load(shape.within, index, row, shape.all_roles[row.member].attributes)

    def _load(self, within: int, index: int, row: WaitingInstance, attributes: tuple[str, ...]) -> None:
        t, encoder = self._tables, self._encoder
        values = [encoder.keys(row.events[-1].tuples, encoder.join(attribute)) for attribute in attributes]
        keys = [key[0] if key else -1 for key in values]
        hit = np.zeros(1, HIT)
        hit["place"] = t.patterns["first"][index] + row.member
        for name, key in zip(("k0", "k1", "k2"), keys, strict=False):
            hit[name] = key
        deadline = NEVER if within < 0 else row.events[0].span[1] + within
        end, rank = row.events[-1].span[1], row.ranks[-1]
        self._past.events.update(zip(row.ranks, row.events, strict=True))
        predicates = self.predicates(self._names[index])
        known = zip(row.ranks, predicates[row.member - len(row.ranks) + 1 :], row.chances, strict=False)
        self._past.uncertain |= {(rank, predicate): chance for rank, predicate, chance in known if chance < 1}
        if hit["place"][0] == t.patterns["guard"][index]:
            t.ranks[append_entry(t, hit[0], end, row.probability, deadline), 0] = rank
            return
        entry = hold(t, hit[0], -1, end, rank, row.probability, deadline, 1 << 62)
        t.ranks[entry, : len(row.ranks)] = row.ranks
        t.entries["flag"][entry], t.entries["blocker"][entry] = row.flag, row.blocker
        t.entries["p_absent"][entry] = row.p_absent
        if row.flag & (REPLACED | BROKEN) and row.until is not None:
            t.entries["until"][entry] = row.until
            push(t, entry, row.until)
