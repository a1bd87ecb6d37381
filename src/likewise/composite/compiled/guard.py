"""What must not happen, on the compiled path: it waits beside the others, who look when they are whole [003 table 1].

A pattern has at most one such profile. A sure event breaks what waits under its key at once. Doubtful ones wait at a
place of their own, by the key of all, for as long as any instance that they may break. After the last member a timer
says that the window is over and nothing came.
"""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from typing import Any

from likewise.composite.compiled.store import find, inner, join, note, outer, pop, push, remove
from likewise.composite.compiled.tables import (
    BEYOND,
    BLOCKED,
    BROKEN,
    FOUND,
    HEAP,
    LATER,
    NEED_ENTRIES,
    NEED_FOUND,
    ONE,
    OVER,
    REPLACED,
    SPENT,
    UNSURE,
    wide,
)


@inner
def watch(t: Any, hit: Any, now: int, rank: int) -> bool:
    """An event that must not happen: all that it surely breaks goes when this moment is over; a doubtful one is kept.

    No limit takes that out again: forgetting one would let a false detection through.
    """
    p = t.patterns[t.places[hit.place].pattern]
    entry = wide(t.buckets[find(t.buckets, p.first + p.after, hit.k0, hit.k1, hit.k2)].head)
    if entry == -1 or t.entries[entry].time >= now:
        return False
    if hit.sure < 1.0:
        t.ranks[join(t, hit, now, hit.sure, now + p.within), 0] = rank
        return True
    while entry != -1 and t.entries[entry].time < now:
        e = t.entries[entry]
        if not e.flag & (REPLACED | BROKEN):
            e.flag |= BROKEN
            e.until = now
            push(t, entry, now)
        entry = wide(e.next)
    return False


@inner
def silence(t: Any, guard: int, k0: int, k1: int, k2: int, low: int, high: int) -> float:
    """The probability that it did not happen after `low` and before `high`."""
    product = 1.0
    entry = t.buckets[find(t.buckets, wide(guard), k0, k1, k2)].tail
    while entry != -1 and t.entries[entry].time > low:
        if t.entries[entry].time < high:
            product *= 1.0 - t.entries[entry].probability
        entry = t.entries[entry].prev
    return product


@inner
def tell(t: Any, event: int, pattern: int, sure: float, now: int, rung: int) -> None:
    """The next row is a whole instance."""
    found = t.found[t.scalars[FOUND]]
    found.event, found.pattern, found.probability, found.time, found.rung = event, pattern, sure, now, rung
    t.scalars[FOUND] += 1


@inner
def _finish(t: Any, entry: int, until: int, event: int) -> None:
    """The window is over, and all members are there: a detection, unless what must not happen did."""
    e = t.entries[entry]
    pattern = t.places[e.place].pattern
    p = t.patterns[pattern]
    b = t.buckets[e.bucket]
    quiet = silence(t, p.guard, b.k0, b.k1, b.k2, e.time, until + 1)
    e.flag |= SPENT
    sure = e.probability * quiet
    if sure < p.threshold:
        members = wide(p.members)
        if note(t, wide(e.place), members, BEYOND, UNSURE, until):
            for k in range(members):
                t.furthest[pattern, k] = t.ranks[entry, k]
        return
    for k in range(p.members):
        t.found_ranks[t.scalars[FOUND], k] = t.ranks[entry, k]
    tell(t, event, pattern, sure, until, ONE)
    p.detected += 1


@outer
def expire(t: Any, now: int, event: int) -> bool:
    """Take out all that waited until before now; False if what that completes has no room."""
    while t.scalars[HEAP] > 0 and t.timers[0].until < now:
        until, entry, serial = t.timers[0].until, wide(t.timers[0].entry), t.timers[0].serial
        e = t.entries[entry]
        if e.serial == serial:
            p = t.patterns[t.places[e.place].pattern]
            if p.guard >= 0 and p.after == p.members - 1 and e.place == p.first + p.after and not e.flag & BROKEN:
                if t.scalars[FOUND] + 1 >= len(t.found):
                    t.scalars[NEED_ENTRIES], t.scalars[NEED_FOUND] = 0, 64
                    return False
                _finish(t, entry, until, event)
        pop(t)
        if e.serial == serial:
            why = OVER
            if e.flag & (REPLACED | BROKEN):
                why = LATER if e.flag & REPLACED else BLOCKED
            remove(t, entry, why, until)
    return True
