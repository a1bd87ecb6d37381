"""What waits on the compiled path: instances in buckets by place and join key, and a heap of their terminators.

A *place* is one member of one pattern. In a sequence, instances waiting at a place have its member and all before it;
in a conjunction they have that member only. The members of a compiled pattern are joined by a key that each event has
by itself, so only instances in the buckets of one key can be combined. All tables are arrays of records, which
compiled functions traverse [003 sec 4].
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

FOLLOWED: Final = 1
REPLACED: Final = 2
BROKEN: Final = 4
"""Flags of an entry: another entry followed it, or it is removed at the end of this moment because a later duplicate
came or the guard happened."""

NONE: Final[Any] = np.int64(-1)
ZERO: Final[Any] = np.int64(0)
ONE: Final[Any] = np.int64(1)
WINDOW_OVER: Final[Any] = np.int64(0)
LATER_DUPLICATE: Final[Any] = np.int64(1)
CONSUMED: Final[Any] = np.int64(2)
LIMIT: Final[Any] = np.int64(3)
BELOW_THRESHOLD: Final[Any] = np.int64(4)
BLOCKED: Final[Any] = np.int64(5)
"""Not plain integers: Numba compiles a function anew for each plain constant passed to it."""
REASONS: Final = (
    "the window was over",
    "replaced by a later duplicate",
    "consumed by a detection",
    "the limit was reached",
    "below the threshold",
    "{guard} happened",
)

as_int64: Final[Any] = np.int64
"""Converts a record's field to the integer type that compiled functions take."""

NEVER: Final = np.iinfo(np.int64).max
MAX_KEYS: Final = 3
MAX_MEMBERS: Final = 8
BEYOND_MEMBERS: Final[Any] = np.int64(1 << 16)
"""A level beyond all members."""

FREE_ENTRY: Final = 0
ENTRIES_USED: Final = 1
NEXT_SERIAL: Final = 2
TIMER_COUNT: Final = 3
BUCKETS_USED: Final = 4
ROWS_FOUND: Final = 5
RESUME_EVENT: Final = 6
RESUME_HIT: Final = 7
NEED_ENTRIES: Final = 8
NEED_FOUND: Final = 9
PAUSED: Final = 10
SCRATCH: Final = 11
SCALARS: Final = SCRATCH + 3 * MAX_MEMBERS
"""Indexes into `scalars`: first free entry, entries in use, next serial, timers, buckets in use, rows found, where to
resume after a pause, how much room was missing, whether the kernel is paused, and scratch space for one event."""

ENTRY: Final = np.dtype(
    [
        ("time", "i8"),
        ("until", "i8"),
        ("deadline", "i8"),
        ("serial", "i8"),
        ("blocker", "i8"),
        ("probability", "f8"),
        ("p_absent", "f8"),
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
"""A waiting instance: the time of its last event, when it expires, the event that keeps others from following it (with
`first`), its probability, the probability `p_absent` that the guard did not happen between its events, and its
neighbours in its bucket (`next`, `prev`) and in its pattern by age (`newer`, `older`)."""

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
"""A pattern: its shape, its counts, and its furthest incomplete instance, with `roles` members, the last of them
`member`, waiting at `level` until `time`. `guard` is the place of what must not happen after member `after`, or -1. If
`spread`, an event may wait under different keys at different places."""

PREDICATE: Final = np.dtype([("seen", "i8"), ("head", "i4")], align=True)
POSTING: Final = np.dtype([("place", "i4"), ("next", "i4")], align=True)
HIT: Final = np.dtype([("probability", "f8"), ("place", "i4"), ("k0", "i4"), ("k1", "i4"), ("k2", "i4")], align=True)
ROW: Final = np.dtype(
    [("probability", "f8"), ("time", "i8"), ("event", "i4"), ("pattern", "i4"), ("by_timer", "i4")], align=True
)
"""A complete instance: its probability and time, and the event at which (or before, `by_timer`) it completed."""


class Batch(NamedTuple):
    """A batch of events as numbers: their tuples, and the hits of profiles that are not single equalities."""

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
    """All tables of the kernel; `ranks` has the events of each entry, by member."""

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
        np.zeros((16, len(REASONS)), np.int64),
        np.full((16, width), -1, np.int64),
        new_predicates(16),
        np.zeros(16, POSTING),
        np.zeros(16, HIT),
        np.zeros(size, ROW),
        np.full((size, width), NEVER, np.int64),
        scalars,
    )


def free_entries(size: int, start: int, last: int) -> NDArray[Any]:
    """Entries from `start` on, linked as a free list that ends in `last`."""
    out = np.zeros(size, ENTRY)
    out["serial"] = -1
    out["next"] = np.arange(start + 1, start + size + 1)
    out["next"][-1] = last
    return out


def new_buckets(size: int) -> NDArray[Any]:
    """An empty hash table; the size is a power of two."""
    out = np.zeros(size, BUCKET)
    out["place"] = out["head"] = out["tail"] = -1
    return out


def new_predicates(size: int) -> NDArray[Any]:
    """Predicates without postings."""
    out = np.zeros(size, PREDICATE)
    out["seen"] = out["head"] = -1
    return out


def widened(rows: NDArray[Any], width: int, fill: int) -> NDArray[Any]:
    """Rows widened to more members."""
    out = np.full((len(rows), width), fill, np.int64)
    out[:, : rows.shape[1]] = rows
    return out


Function = TypeVar("Function", bound=Callable[..., Any])

# Without the runtime (NRT) that counts references to arrays: counting took half of the time. The caller holds all
# arrays, and these functions make none; Numba refuses to compile one that does.
_OUTER: Final[dict[str, Any]] = {"error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
_INNER: Final[dict[str, Any]] = {**_OUTER, "no_cpython_wrapper": True}


def njit_inner(function: Function) -> Function:
    """Compile a function called only by compiled functions: no Python entry point, and no cache of its own.

    The first call waits for compilation, so each function is compiled only once: all numbers passed between these
    functions are 64 bits wide (except keys and patterns), constants are not plain integers, and copies are loops, since
    slices and sorts of NumPy compile to much code. The name contains `njit`, by which the kernel cache finds all
    compiled files.
    """
    compiled: Function = njit(**_INNER)(function)
    return compiled


def njit_outer(function: Function) -> Function:
    """Compile a function that Python calls, too."""
    compiled: Function = njit(cache=True, **_OUTER)(function)
    return compiled


@njit_inner
def find_bucket(buckets: Any, place: int, k0: int, k1: int, k2: int) -> int:
    """The index of the bucket of a place and key, or of the free slot where it belongs."""
    mask = len(buckets) - 1
    mixed = (np.uint64(place) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(k0)
    mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(k1)
    mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(k2)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    at = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while True:
        bucket = buckets[at]
        if bucket.place == -1 or (bucket.place == place and bucket.k0 == k0 and bucket.k1 == k1 and bucket.k2 == k2):
            return int(at)
        at = (at + 1) & mask


@njit_outer
def rehash(buckets: Any, fresh: Any, entries: Any) -> int:
    """Move the non-empty buckets to a new table; returns their number."""
    used = 0
    for old in buckets:
        if old.head != -1:
            at = find_bucket(fresh, as_int64(old.place), old.k0, old.k1, old.k2)
            fresh[at] = old
            used += 1
            entry = old.head
            while entry != -1:
                entries[entry].bucket = at
                entry = entries[entry].next
    return used


# timers


@njit_inner
def _sooner(timers: Any, first: int, second: int) -> bool:
    a, b = timers[first], timers[second]
    return bool(a.until < b.until or (a.until == b.until and a.ticket < b.ticket))


@njit_inner
def _swap(timers: Any, first: int, second: int) -> None:
    a, b = timers[first], timers[second]
    a.until, b.until = b.until, a.until
    a.serial, b.serial = b.serial, a.serial
    a.ticket, b.ticket = b.ticket, a.ticket
    a.entry, b.entry = b.entry, a.entry


@njit_outer
def push(t: Any, entry: int, until: int) -> None:
    """Set a terminator for an entry."""
    if until == NEVER:
        return
    at = t.scalars[TIMER_COUNT]
    t.scalars[TIMER_COUNT] += 1
    timer = t.timers[at]
    timer.until, timer.entry, timer.serial = until, entry, t.entries[entry].serial
    timer.ticket = t.scalars[NEXT_SERIAL]
    t.scalars[NEXT_SERIAL] += 1
    while at > 0 and _sooner(t.timers, at, (at - 1) >> 1):
        _swap(t.timers, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@njit_inner
def pop(t: Any) -> None:
    t.scalars[TIMER_COUNT] -= 1
    size = t.scalars[TIMER_COUNT]
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
    """The earliest time at which a waiting entry expires."""
    while t.scalars[TIMER_COUNT] > 0 and t.entries[t.timers[0].entry].serial != t.timers[0].serial:
        pop(t)
    return int(t.timers[0].until) if t.scalars[TIMER_COUNT] > 0 else NEVER


# entries


@njit_inner
def filled(t: Any, entry: int) -> int:
    """The number of members that an entry has filled."""
    place = as_int64(t.entries[entry].place)
    pattern = t.patterns[t.places[place].pattern]
    return 1 if pattern.joint else place - pattern.first + 1


@njit_inner
def note(t: Any, place: int, roles: int, level: int, why: int, now: int) -> bool:
    """Count a stop; True if none came further."""
    t.stops[place, why] += 1
    p = t.patterns[t.places[place].pattern]
    if roles < p.roles or (roles == p.roles and level < p.level):
        return False
    p.roles, p.level, p.why, p.time, p.member = roles, level, why, now, place - p.first
    return True


@njit_outer
def remove(t: Any, entry: int, why: int, now: int) -> None:
    """Remove an entry; one that nothing followed is counted under the reason `why` (none if negative)."""
    e = t.entries[entry]
    p = t.patterns[t.places[e.place].pattern]
    if e.place == p.guard:
        _unlink(t, entry)
        return
    roles = filled(t, entry)
    if why >= 0 and not e.flag & FOLLOWED and note(t, as_int64(e.place), roles, roles, why, now):
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
    _unlink(t, entry)


@njit_inner
def _unlink(t: Any, entry: int) -> None:
    """Unlink an entry from its bucket, and free it."""
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
    e.next = t.scalars[FREE_ENTRY]
    t.scalars[FREE_ENTRY] = entry
    t.scalars[ENTRIES_USED] -= 1


@njit_outer
def append_entry(t: Any, hit: Any, now: int, probability: float, deadline: int) -> int:
    """Append a new entry to the bucket of a hit, with its terminator."""
    entry = t.scalars[FREE_ENTRY]
    e = t.entries[entry]
    t.scalars[FREE_ENTRY] = e.next
    t.scalars[ENTRIES_USED] += 1
    e.time, e.until, e.deadline, e.probability, e.p_absent = now, deadline, deadline, probability, 1.0
    e.place, e.flag, e.blocker, e.serial = hit.place, 0, -1, t.scalars[NEXT_SERIAL]
    t.scalars[NEXT_SERIAL] += 1
    at = find_bucket(t.buckets, as_int64(hit.place), hit.k0, hit.k1, hit.k2)
    b = t.buckets[at]
    if b.place == -1:
        b.place, b.k0, b.k1, b.k2 = hit.place, hit.k0, hit.k1, hit.k2
        t.scalars[BUCKETS_USED] += 1
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
    """Let another entry follow the one that this entry followed."""
    b = t.buckets[t.entries[entry].bucket]
    at = find_bucket(t.buckets, b.place - 1, b.k0, b.k1, b.k2)
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
    """Add a waiting instance: that of `parent` (-1: none) with one more event; -1 if there is no room.

    At the limit the oldest one is dropped; with a negative limit the new one is refused.
    """
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    if p.held >= abs(limit):
        p.dropped += 1
        if limit < 0 or p.oldest == -1:
            return -1
        remove(t, as_int64(p.oldest), LIMIT, now)
    # The new entry may reuse the slot of its dropped parent, whose events are still there.
    entry = append_entry(t, hit, now, probability, deadline)
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
    """Let a first event wait, by the rule for duplicates."""
    p = t.patterns[t.places[hit.place].pattern]
    before = as_int64(t.buckets[find_bucket(t.buckets, as_int64(hit.place), hit.k0, hit.k1, hit.k2)].tail)
    serial = t.entries[before].serial if before != -1 else -1
    deadline = NEVER if p.within < 0 else now + p.within
    if hold(t, hit, NONE, now, rank, hit.probability, deadline, limit) == -1:
        return False
    if t.places[hit.place].keep == LAST and before != -1:
        e = t.entries[before]
        # The replaced entry stays for other events of this very time.
        if e.serial == serial and not e.flag & (REPLACED | BROKEN):
            e.flag |= REPLACED
            e.until = now
            push(t, before, now)
    return True
