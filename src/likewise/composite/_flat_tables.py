"""Tables of the compiled path: entries that wait, in buckets by pattern and join key, all in arrays.

The functions here are compiled and grow the arrays themselves, so that a batch never comes back to Python.
"""

# ruff: noqa: PLR0917  (compiled functions take columns, and are not called by keyword)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

ALL: Final = 0
FIRST: Final = 1
LAST: Final = 2
SPENT: Final = 1
TAKEN: Final = 2
_EMPTY: Final = -1

FREE_HEAD: Final = 0
USED: Final = 1
BUCKETS: Final = 2
NOW: Final = 3
"""Places in the array of scalars: first free entry, entries in use, buckets in use, latest time."""


class Waiting(NamedTuple):
    """Entries: when, which event, how sure, the next in the bucket, and whether it is spent."""

    time: NDArray[np.int64]
    rank: NDArray[np.int64]
    probability: NDArray[np.float64]
    next: NDArray[np.int32]
    flag: NDArray[np.uint8]


class Buckets(NamedTuple):
    """An open-addressing table from (pattern, key) to the oldest and newest entry."""

    key: NDArray[np.int64]
    head: NDArray[np.int32]
    tail: NDArray[np.int32]


class Patterns(NamedTuple):
    """What each pattern asks for, and what became of it."""

    within: NDArray[np.int64]
    started: NDArray[np.int64]
    threshold: NDArray[np.float64]
    keep: NDArray[np.uint8]
    keep_next: NDArray[np.uint8]
    unique: NDArray[np.uint8]
    attribute: NDArray[np.int32]
    consumed: NDArray[np.int64]
    held: NDArray[np.int64]
    detected: NDArray[np.int64]
    expired: NDArray[np.int64]
    dropped: NDArray[np.int64]


class Postings(NamedTuple):
    """For each predicate the (pattern, role) pairs that wait for it, as linked lists."""

    head: NDArray[np.int32]
    next: NDArray[np.int32]
    pattern: NDArray[np.int32]
    role: NDArray[np.uint8]
    seen: NDArray[np.int64]


def new_waiting(size: int) -> Waiting:
    """An empty pool of entries, all of them in the free list."""
    following = np.arange(1, size + 1, dtype=np.int32)
    following[-1] = _EMPTY
    return Waiting(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.float64),
        following,
        np.zeros(size, np.uint8),
    )


def new_buckets(size: int) -> Buckets:
    """An empty table; the size is a power of two."""
    return Buckets(np.full(size, _EMPTY, np.int64), np.full(size, _EMPTY, np.int32), np.full(size, _EMPTY, np.int32))


@njit(cache=True)
def find(buckets: Any, wanted: int) -> int:
    """The place of a key, or of the hole where it would go."""
    mask = len(buckets.key) - 1
    at = (wanted * 0x9E3779B97F4A7C1 >> 17) & mask
    while buckets.key[at] != -1 and buckets.key[at] != wanted:
        at = (at + 1) & mask
    return int(at)


@njit(cache=True)
def pop(waiting: Any, buckets: Any, scalars: Any, at: int) -> None:
    """Free the oldest entry of a bucket."""
    entry = buckets.head[at]
    buckets.head[at] = waiting.next[entry]
    if buckets.head[at] == -1:
        buckets.tail[at] = -1
    waiting.next[entry] = scalars[0]
    scalars[0] = entry
    scalars[1] -= 1


@njit(cache=True)
def expire(waiting: Any, buckets: Any, patterns: Any, scalars: Any, at: int, pattern: int, now: int) -> None:
    """Free the entries of a bucket whose window is over."""
    within = patterns.within[pattern]
    if within < 0:
        return
    while buckets.head[at] != -1 and now - waiting.time[buckets.head[at]] > within:
        if not waiting.flag[buckets.head[at]]:
            patterns.expired[pattern] += 1
        pop(waiting, buckets, scalars, at)
        patterns.held[pattern] -= 1


@njit(cache=True)
def swept(waiting: Any, buckets: Any, patterns: Any, scalars: Any, size: int) -> Any:
    """Free all that is over, and put the buckets that are left into a new table."""
    key = np.full(size, -1, np.int64)
    head = np.full(size, -1, np.int32)
    tail = np.full(size, -1, np.int32)
    fresh = Buckets(key, head, tail)
    scalars[2] = 0
    for at in range(len(buckets.key)):
        wanted = buckets.key[at]
        if wanted == -1:
            continue
        expire(waiting, buckets, patterns, scalars, at, wanted >> 32, scalars[3])
        if buckets.head[at] != -1:
            place = find(fresh, wanted)
            fresh.key[place] = wanted
            fresh.head[place] = buckets.head[at]
            fresh.tail[place] = buckets.tail[at]
            scalars[2] += 1
    return fresh


@njit(cache=True)
def larger(waiting: Any, scalars: Any) -> Any:
    """Twice the entries, the new ones in the free list."""
    size = len(waiting.time)
    time = np.zeros(2 * size, np.int64)
    rank = np.zeros(2 * size, np.int64)
    probability = np.zeros(2 * size, np.float64)
    following = np.zeros(2 * size, np.int32)
    flag = np.zeros(2 * size, np.uint8)
    time[:size], rank[:size], probability[:size] = waiting.time, waiting.rank, waiting.probability
    following[:size], flag[:size] = waiting.next, waiting.flag
    for at in range(size, 2 * size - 1):
        following[at] = at + 1
    following[2 * size - 1] = scalars[0]
    scalars[0] = size
    return Waiting(time, rank, probability, following, flag)


@njit(cache=True)
def append(
    waiting: Any, buckets: Any, scalars: Any, at: int, time: int, rank: int, probability: float, flag: int
) -> int:
    """Take a free entry and put it at the end of a bucket."""
    entry = scalars[0]
    scalars[0] = waiting.next[entry]
    scalars[1] += 1
    waiting.time[entry] = time
    waiting.rank[entry] = rank
    waiting.probability[entry] = probability
    waiting.flag[entry] = flag
    waiting.next[entry] = -1
    if buckets.tail[at] == -1:
        buckets.head[at] = entry
    else:
        waiting.next[buckets.tail[at]] = entry
    buckets.tail[at] = entry
    return int(entry)


@njit(cache=True)
def room(waiting: Any, buckets: Any, patterns: Any, scalars: Any) -> Any:
    """Tables in which one more bucket and one more entry have a place."""
    if scalars[0] != -1 and 2 * scalars[2] < len(buckets.key):
        return waiting, buckets
    buckets = swept(waiting, buckets, patterns, scalars, len(buckets.key))
    if 4 * scalars[2] >= len(buckets.key):
        buckets = swept(waiting, buckets, patterns, scalars, 4 * len(buckets.key))
    if 2 * scalars[1] >= len(waiting.time):
        waiting = larger(waiting, scalars)
    return waiting, buckets


@njit(cache=True)
def sweep(waiting: Any, buckets: Any, patterns: Any, scalars: Any, now: int) -> Any:
    """Free all whose window is over."""
    scalars[3] = max(scalars[3], now)
    return swept(waiting, buckets, patterns, scalars, len(buckets.key))


@njit(cache=True)
def restore_entry(
    waiting: Any,
    buckets: Any,
    scalars: Any,
    patterns: Any,
    wanted: int,
    time: int,
    rank: int,
    probability: float,
    flag: int,
) -> Any:
    """Put an entry back as it was."""
    waiting, buckets = room(waiting, buckets, patterns, scalars)
    at = find(buckets, wanted)
    if buckets.key[at] == -1:
        buckets.key[at] = wanted
        scalars[2] += 1
    entry = append(waiting, buckets, scalars, at, time, rank, probability, flag)
    patterns.held[wanted >> 32] += 1
    return entry, waiting, buckets


@njit(cache=True)
def entries_of(waiting: Any, buckets: Any, pattern: int) -> Any:
    """All entries of one pattern."""
    out = np.empty(len(waiting.time), np.int32)
    found = 0
    for at in range(len(buckets.key)):
        if buckets.key[at] != -1 and buckets.key[at] >> 32 == pattern:
            entry = buckets.head[at]
            while entry != -1:
                out[found] = entry
                found += 1
                entry = waiting.next[entry]
    return out[:found]


@njit(cache=True)
def purge(waiting: Any, buckets: Any, scalars: Any, pattern: int) -> None:
    """Free all entries of one pattern; its empty buckets go with the next sweep."""
    for at in range(len(buckets.key)):
        if buckets.key[at] != -1 and buckets.key[at] >> 32 == pattern:
            while buckets.head[at] != -1:
                pop(waiting, buckets, scalars, at)
