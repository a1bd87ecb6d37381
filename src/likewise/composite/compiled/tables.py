"""Tables of the compiled path: instances that wait, in buckets by place and join key, all in arrays of records.

A *place* is one member of one pattern. In a sequence the instances that wait at a place have its member and all before
it; in a conjunction they have that member only. The members of a compiled pattern are joined by a key that each event
tells on its own, so all that can ever meet is in the buckets of one key.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
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
"""What a pattern asks for, what became of it, and how far its furthest came: with so many `roles`, the last of them
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


def new_tables(*, width: int = 2, size: int = 64) -> Tables:
    """Empty tables."""
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
