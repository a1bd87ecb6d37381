"""Tables of the compiled path: entries that wait, in buckets by pattern and join key, all in arrays.

Only plain tuples of arrays are here; what is compiled stands in one file, as its cache looks at one file only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
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


class Batch(NamedTuple):
    """Events as numbers: tuples with their predicate, attribute and key, and hits of other profiles."""

    starts: NDArray[np.int64]
    predicate: NDArray[np.int32]
    attribute: NDArray[np.int32]
    key: NDArray[np.int32]
    time: NDArray[np.int64]
    hit_starts: NDArray[np.int64]
    hit: NDArray[np.int32]
    score: NDArray[np.float64]


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
