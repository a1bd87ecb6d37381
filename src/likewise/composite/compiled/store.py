"""What waits on the compiled path: instances in buckets by place and join key, and the heap of their terminators.

A *place* is one member of one pattern. In a sequence the instances that wait at a place have its member and all before
it; in a conjunction they have that member only. The members of a compiled pattern are joined by a key that each event
tells on its own, so all that can ever meet is in the buckets of one key. All tables are arrays of records, and compiled
functions walk them [003 sec 4].
"""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

ALL: Final = 0
FIRST: Final = 1
LAST: Final = 2

SPENT: Final = 1
REPLACED: Final = 2
BROKEN: Final = 4
"""What an entry may be: followed by another, or to go when the moment is over, as a later duplicate came or as what
must not happen did."""

NONE: Final[Any] = np.int64(-1)
ZERO: Final[Any] = np.int64(0)
ONE: Final[Any] = np.int64(1)
OVER: Final[Any] = np.int64(0)
LATER: Final[Any] = np.int64(1)
CONSUMED: Final[Any] = np.int64(2)
LIMIT: Final[Any] = np.int64(3)
UNSURE: Final[Any] = np.int64(4)
BLOCKED: Final[Any] = np.int64(5)
"""No plain integers: a compiled function is compiled anew for each plain constant that another one gives it."""
WHY: Final = (
    "the window was over",
    "replaced by a later duplicate",
    "consumed by a detection",
    "the limit was reached",
    "below the threshold",
    "{guard} happened",
)

wide: Final[Any] = np.int64
"""Makes a field of a record a number of the width that compiled functions take."""

NEVER: Final = np.iinfo(np.int64).max
MOST_KEYS: Final = 3
MOST_MEMBERS: Final = 8
BEYOND: Final[Any] = np.int64(1 << 16)
"""Further than any member."""

FREE: Final = 0
USED: Final = 1
SERIAL: Final = 2
HEAP: Final = 3
BUCKETS: Final = 4
FOUND: Final = 5
EVENT: Final = 6
GROUP: Final = 7
NEED_ENTRIES: Final = 8
NEED_FOUND: Final = 9
PAUSED: Final = 10
NOTES: Final = 11
SCALARS: Final = NOTES + 3 * MOST_MEMBERS
"""Places in the array of scalars: first free entry, entries in use, number of the next, timers, buckets in use, rows
found, where to go on after a pause, how much room was missing, whether there is a pause, and notes while one event is
looked at."""

ENTRY: Final = np.dtype(
    [
        ("time", "i8"),
        ("until", "i8"),
        ("deadline", "i8"),
        ("serial", "i8"),
        ("blocker", "i8"),
        ("probability", "f8"),
        ("quiet", "f8"),
        ("place", "i4"),
        ("bucket", "i4"),
        ("next", "i4"),
        ("prev", "i4"),
        ("newer", "i4"),
        ("older", "i4"),
        ("flag", "i4"),
    ],
    align=True,
)
"""An instance: when its last part came, until when it waits, which event keeps others from following it (`first`),
how sure it is, and that what must not happen between its parts did not, and its neighbours in its bucket and in its
pattern by age."""

BUCKET: Final = np.dtype(
    [("place", "i4"), ("k0", "i4"), ("k1", "i4"), ("k2", "i4"), ("head", "i4"), ("tail", "i4"), ("size", "i4")],
    align=True,
)
TIMER: Final = np.dtype([("until", "i8"), ("serial", "i8"), ("ticket", "i8"), ("entry", "i4")], align=True)
PLACE: Final = np.dtype(
    [("pattern", "i4"), ("keep", "i4"), ("a0", "i4"), ("a1", "i4"), ("a2", "i4")],
    align=True,
)
PATTERN: Final = np.dtype(
    [
        ("within", "i8"),
        ("started", "i8"),
        ("threshold", "f8"),
        ("held", "i8"),
        ("detected", "i8"),
        ("dropped", "i8"),
        ("time", "i8"),
        ("first", "i4"),
        ("members", "i4"),
        ("joint", "i4"),
        ("unique", "i4"),
        ("oldest", "i4"),
        ("newest", "i4"),
        ("roles", "i4"),
        ("level", "i4"),
        ("why", "i4"),
        ("member", "i4"),
        ("guard", "i4"),
        ("after", "i4"),
        ("spread", "i4"),
    ],
    align=True,
)
"""What a pattern asks for, what became of it, and how far its furthest came: with `roles` members, the last of them
`member`, waiting at `level` till `time`. `guard` is the place of what must not happen after member `after`, or -1;
`spread` says that an event may wait under different keys in different places."""

PREDICATE: Final = np.dtype([("seen", "i8"), ("head", "i4")], align=True)
POSTING: Final = np.dtype([("place", "i4"), ("next", "i4")], align=True)
HIT: Final = np.dtype([("sure", "f8"), ("place", "i4"), ("k0", "i4"), ("k1", "i4"), ("k2", "i4")], align=True)
ROW: Final = np.dtype(
    [("probability", "f8"), ("time", "i8"), ("event", "i4"), ("pattern", "i4"), ("rung", "i4")], align=True
)
"""A whole instance: how sure, known when, at or (`rung` by a timer) before which event of the batch."""


class Batch(NamedTuple):
    """Events as numbers: tuples, what they answer, and the hits of profiles that a dictionary cannot answer."""

    starts: Any
    ids: Any
    time: Any
    hit_starts: Any
    hit: Any
    score: Any
    predicate_of: Any
    attribute_of: Any
    key_of: Any


class Tables(NamedTuple):
    """All that the kernel reads and writes; `ranks` are the events of each entry, by member."""

    entries: Any
    ranks: Any
    buckets: Any
    timers: Any
    places: Any
    patterns: Any
    stops: Any
    furthest: Any
    predicates: Any
    postings: Any
    hits: Any
    found: Any
    found_ranks: Any
    scalars: Any


def new_tables() -> Tables:
    """Empty tables."""
    width, size = 2, 64
    scalars = np.zeros(SCALARS, np.int64)
    return Tables(
        free_entries(size, 0, -1),
        np.full((size, width), -1, np.int64),
        new_buckets(2 * size),
        np.zeros(size, TIMER),
        np.zeros(16, PLACE),
        np.zeros(16, PATTERN),
        np.zeros((16, len(WHY)), np.int64),
        np.full((16, width), -1, np.int64),
        new_predicates(16),
        np.zeros(16, POSTING),
        np.zeros(16, HIT),
        np.zeros(size, ROW),
        np.full((size, width), NEVER, np.int64),
        scalars,
    )


def free_entries(size: int, start: int, last: int) -> NDArray[Any]:
    """Entries `start` and on, all of them in the free list, which ends in `last`."""
    out = np.zeros(size, ENTRY)
    out["serial"] = -1
    out["next"] = np.arange(start + 1, start + size + 1)
    out["next"][-1] = last
    return out


def new_buckets(size: int) -> NDArray[Any]:
    """An empty table; the size is a power of two."""
    out = np.zeros(size, BUCKET)
    out["place"] = out["head"] = out["tail"] = -1
    return out


def new_predicates(size: int) -> NDArray[Any]:
    """Predicates that lead nowhere yet."""
    out = np.zeros(size, PREDICATE)
    out["seen"] = out["head"] = -1
    return out


def widened(rows: NDArray[Any], width: int, fill: int) -> NDArray[Any]:
    """The same rows with room for more members."""
    out = np.full((len(rows), width), fill, np.int64)
    out[:, : rows.shape[1]] = rows
    return out


Function = TypeVar("Function", bound=Callable[..., Any])

_OUTER: Final[dict[str, Any]] = {"error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: Final[dict[str, Any]] = {**_OUTER, "no_cpython_wrapper": True}


def njit_inner(function: Function) -> Function:
    """For what only other compiled functions call: no way in from Python, and no cache of its own.

    The first call waits for compilation, so each function is compiled once: all numbers between these functions
    are 64 bits wide (but for keys and patterns), constants are no plain integers, and copies are loops, as slices and
    sorts of NumPy bring much code with them. Its name has `njit` in it, by which the cache of kernels knows all files
    that are compiled.
    """
    compiled: Function = njit(**_INNER)(function)
    return compiled


def njit_outer(function: Function) -> Function:
    """For what Python calls too."""
    compiled: Function = njit(cache=True, **_OUTER)(function)
    return compiled


@njit_inner
def find(buckets: Any, place: int, k0: int, k1: int, k2: int) -> int:
    """The bucket of a place and a key, or the hole where it would go."""
    mask = len(buckets) - 1
    mixed = (np.uint64(place) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(k0)
    mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(k1)
    mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(k2)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    at = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while True:
        one = buckets[at]
        if one.place == -1 or (one.place == place and one.k0 == k0 and one.k1 == k1 and one.k2 == k2):
            return int(at)
        at = (at + 1) & mask


@njit_outer
def rehash(buckets: Any, fresh: Any, entries: Any) -> int:
    """Put the buckets that are not empty into a new table, and say how many."""
    used = 0
    for old in buckets:
        if old.head != -1:
            at = find(fresh, wide(old.place), old.k0, old.k1, old.k2)
            fresh[at] = old
            used += 1
            entry = old.head
            while entry != -1:
                entries[entry].bucket = at
                entry = entries[entry].next
    return used


# timers


@njit_inner
def _sooner(timers: Any, one: int, other: int) -> bool:
    a, b = timers[one], timers[other]
    return bool(a.until < b.until or (a.until == b.until and a.ticket < b.ticket))


@njit_inner
def _swap(timers: Any, one: int, other: int) -> None:
    a, b = timers[one], timers[other]
    a.until, b.until = b.until, a.until
    a.serial, b.serial = b.serial, a.serial
    a.ticket, b.ticket = b.ticket, a.ticket
    a.entry, b.entry = b.entry, a.entry


@njit_outer
def push(t: Any, entry: int, until: int) -> None:
    """A terminator for an entry."""
    if until == NEVER:
        return
    at = t.scalars[HEAP]
    t.scalars[HEAP] += 1
    one = t.timers[at]
    one.until, one.entry, one.serial = until, entry, t.entries[entry].serial
    one.ticket = t.scalars[SERIAL]
    t.scalars[SERIAL] += 1
    while at > 0 and _sooner(t.timers, at, (at - 1) >> 1):
        _swap(t.timers, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@njit_inner
def pop(t: Any) -> None:
    t.scalars[HEAP] -= 1
    size = t.scalars[HEAP]
    at = ZERO
    _swap(t.timers, at, size)
    while 2 * at + 1 < size:
        least = 2 * at + 1
        if least + 1 < size and _sooner(t.timers, least + 1, least):
            least += 1
        if not _sooner(t.timers, least, at):
            break
        _swap(t.timers, at, least)
        at = least


@njit_outer
def next_timer(t: Any) -> int:
    """When the first of all that still wait is over."""
    while t.scalars[HEAP] > 0 and t.entries[t.timers[0].entry].serial != t.timers[0].serial:
        pop(t)
    return int(t.timers[0].until) if t.scalars[HEAP] > 0 else NEVER


# entries


@njit_inner
def filled(t: Any, entry: int) -> int:
    """How many members an entry has."""
    place = wide(t.entries[entry].place)
    pattern = t.patterns[t.places[place].pattern]
    return 1 if pattern.joint else place - pattern.first + 1


@njit_inner
def note(t: Any, place: int, roles: int, level: int, why: int, now: int) -> bool:
    """Count a stop; True if nobody came further."""
    t.stops[place, why] += 1
    p = t.patterns[t.places[place].pattern]
    if roles < p.roles or (roles == p.roles and level < p.level):
        return False
    p.roles, p.level, p.why, p.time, p.member = roles, level, why, now, place - p.first
    return True


@njit_outer
def remove(t: Any, entry: int, why: int, now: int) -> None:
    """An entry waits no longer; one that nothing followed is counted, with the reason (none if negative)."""
    e = t.entries[entry]
    p = t.patterns[t.places[e.place].pattern]
    if e.place == p.guard:
        _leave(t, entry)
        return
    roles = filled(t, entry)
    if why >= 0 and not e.flag & SPENT and note(t, wide(e.place), roles, roles, why, now):
        for k in range(roles):
            t.furthest[t.places[e.place].pattern, k] = t.ranks[entry, k]
    if e.older == -1:
        p.oldest = e.newer
    else:
        t.entries[e.older].newer = e.newer
    if e.newer == -1:
        p.newest = e.older
    else:
        t.entries[e.newer].older = e.older
    p.held -= 1
    if why in (LIMIT, BLOCKED) and roles > 1 and t.places[e.place].keep == FIRST:
        _unblock(t, entry, roles)
    _leave(t, entry)


@njit_inner
def _leave(t: Any, entry: int) -> None:
    """Out of its bucket, and free."""
    e = t.entries[entry]
    bucket = t.buckets[e.bucket]
    bucket.size -= 1
    if e.prev == -1:
        bucket.head = e.next
    else:
        t.entries[e.prev].next = e.next
    if e.next == -1:
        bucket.tail = e.prev
    else:
        t.entries[e.next].prev = e.prev
    e.serial = -1
    e.next = t.scalars[FREE]
    t.scalars[FREE] = entry
    t.scalars[USED] -= 1


@njit_outer
def join(t: Any, hit: Any, now: int, probability: float, deadline: int) -> int:
    """A new entry at the end of the bucket of a hit, with its terminator."""
    entry = t.scalars[FREE]
    e = t.entries[entry]
    t.scalars[FREE] = e.next
    t.scalars[USED] += 1
    e.time, e.until, e.deadline, e.probability, e.quiet = now, deadline, deadline, probability, 1.0
    e.place, e.flag, e.blocker, e.serial = hit.place, 0, -1, t.scalars[SERIAL]
    t.scalars[SERIAL] += 1
    at = find(t.buckets, wide(hit.place), hit.k0, hit.k1, hit.k2)
    b = t.buckets[at]
    if b.place == -1:
        b.place, b.k0, b.k1, b.k2 = hit.place, hit.k0, hit.k1, hit.k2
        t.scalars[BUCKETS] += 1
    b.size += 1
    e.bucket, e.prev, e.next = at, b.tail, -1
    if b.tail == -1:
        b.head = entry
    else:
        t.entries[b.tail].next = entry
    b.tail = entry
    push(t, entry, deadline)
    return int(entry)


@njit_inner
def _unblock(t: Any, entry: int, roles: int) -> None:
    """The one that this entry followed may be followed by another."""
    b = t.buckets[t.entries[entry].bucket]
    at = find(t.buckets, b.place - 1, b.k0, b.k1, b.k2)
    owner = t.buckets[at].head
    while owner != -1:
        if t.entries[owner].blocker == t.ranks[entry, roles - 1]:
            same = True
            for k in range(roles - 1):
                same = same and t.ranks[owner, k] == t.ranks[entry, k]
            if same:
                t.entries[owner].blocker = -1
        owner = t.entries[owner].next


@njit_outer
def hold(t: Any, hit: Any, parent: int, now: int, rank: int, probability: float, deadline: int, limit: int) -> int:
    """Let an instance wait: that of `parent` (-1: none) with one more event; -1 if there is no room for it.

    At the limit the one that waits longest goes; with a negative limit the new one is refused.
    """
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    if p.held >= abs(limit):
        p.dropped += 1
        if limit < 0 or p.oldest == -1:
            return -1
        remove(t, wide(p.oldest), LIMIT, now)
    # The new one may get the place of its parent, if that was the oldest: its events are still there.
    entry = join(t, hit, now, probability, deadline)
    e = t.entries[entry]
    size = 0 if p.joint else hit.place - p.first
    if parent >= 0:
        for k in range(size):
            t.ranks[entry, k] = t.ranks[parent, k]
    t.ranks[entry, size] = rank
    e.older, e.newer = p.newest, -1
    if p.newest == -1:
        p.oldest = entry
    else:
        t.entries[p.newest].newer = entry
    p.newest = entry
    p.held += 1
    return int(entry)


@njit_inner
def enter(t: Any, hit: Any, now: int, rank: int, limit: int) -> bool:
    """An event that needs nobody before it begins to wait, by the rule for duplicates."""
    p = t.patterns[t.places[hit.place].pattern]
    before = wide(t.buckets[find(t.buckets, wide(hit.place), hit.k0, hit.k1, hit.k2)].tail)
    serial = t.entries[before].serial if before != -1 else -1
    deadline = NEVER if p.within < 0 else now + p.within
    if hold(t, hit, NONE, now, rank, hit.sure, deadline, limit) == -1:
        return False
    if t.places[hit.place].keep == LAST and before != -1:
        e = t.entries[before]
        # The one before stays for others of this very time.
        if e.serial == serial and not e.flag & (REPLACED | BROKEN):
            e.flag |= REPLACED
            e.until = now
            push(t, before, now)
    return True
