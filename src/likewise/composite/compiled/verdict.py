"""What becomes of instances on the compiled path: what breaks them, which are detections, and what those consume.

A pattern has at most one profile that must not happen [003 table 1]. It waits beside the others, who look when they are
whole. A sure event breaks what waits under its key at once. Doubtful ones wait at a place of their own, by the key of
all, for as long as any instance that they may break. After the last member a timer says that the window is over and
nothing came. Of the instances that an event made whole, duplicates and consumption decide [003 table 2].
"""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from typing import Any

from likewise.composite.compiled.store import (
    BEYOND,
    BLOCKED,
    BROKEN,
    CONSUMED,
    FIRST,
    FOUND,
    HEAP,
    LATER,
    MOST_MEMBERS,
    NEED_ENTRIES,
    NEED_FOUND,
    NOTES,
    ONE,
    OVER,
    REPLACED,
    SPENT,
    UNSURE,
    filled,
    find,
    join,
    njit_inner,
    njit_outer,
    note,
    pop,
    push,
    remove,
    wide,
)


@njit_inner
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


@njit_inner
def silence(t: Any, guard: int, k0: int, k1: int, k2: int, low: int, high: int) -> float:
    """The probability that it did not happen after `low` and before `high`."""
    product = 1.0
    entry = t.buckets[find(t.buckets, wide(guard), k0, k1, k2)].tail
    while entry != -1 and t.entries[entry].time > low:
        if t.entries[entry].time < high:
            product *= 1.0 - t.entries[entry].probability
        entry = t.entries[entry].prev
    return product


@njit_inner
def tell(t: Any, event: int, pattern: int, sure: float, now: int, rung: int) -> None:
    """The next row is a whole instance."""
    found = t.found[t.scalars[FOUND]]
    found.event, found.pattern, found.probability, found.time, found.rung = event, pattern, sure, now, rung
    t.scalars[FOUND] += 1


@njit_inner
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


@njit_outer
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


@njit_inner
def came_furthest(t: Any, pattern: int, row: int) -> None:
    """Remember the events of an instance that is no detection."""
    for k in range(t.patterns[pattern].members):
        t.furthest[pattern, k] = t.found_ranks[row, k]


@njit_inner
def write(t: Any, entry: int, slot: int, rank: int) -> None:
    """The events of an entry, and one more, into the next row of what was found."""
    row = t.scalars[FOUND]
    for k in range(slot):
        t.found_ranks[row, k] = t.ranks[entry, k]
    t.found_ranks[row, slot] = rank


@njit_inner
def decide(t: Any, hit: Any, begin: int, now: int, rank: int) -> bool:
    """Of the instances that an event made whole, keep the detections; True if an unsure one came furthest."""
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    best: Any = wide(-1)
    furthest: Any = wide(-1)
    kept, members = begin, wide(p.members)
    for row in range(begin, t.scalars[FOUND]):
        if t.found[row].probability < p.threshold:
            if note(t, p.first + members - 1, members, BEYOND, UNSURE, now) and (
                furthest == -1 or _earlier(t, furthest, row, members)
            ):
                furthest = row
                came_furthest(t, pattern, row)
            continue
        if p.unique:
            if best == -1 or _earlier(t, row, best, members):
                best = row
            continue
        _move(t, row, kept)
        kept += 1
    if best != -1:
        _move(t, best, kept)
        _consume(t, hit, kept, now, rank)
        kept += 1
    p.detected += kept - begin
    t.scalars[FOUND] = kept
    return bool(furthest != -1)


@njit_inner
def _move(t: Any, row: int, to: int) -> None:
    t.found[to] = t.found[row]
    for k in range(t.found_ranks.shape[1]):
        t.found_ranks[to, k] = t.found_ranks[row, k]


@njit_inner
def _earlier(t: Any, one: int, other: int, members: int) -> bool:
    """Whether the events of one are earlier; if they are the same, those of its first members."""
    s, a, b = t.scalars, NOTES, NOTES + MOST_MEMBERS
    for k in range(members):
        s[a + k], s[b + k] = t.found_ranks[one, k], t.found_ranks[other, k]
        for low in (a, b):
            at = low + k
            while at > low and s[at - 1] > s[at]:
                s[at - 1], s[at] = s[at], s[at - 1]
                at -= 1
    for k in range(members):
        if s[a + k] != s[b + k]:
            return bool(s[a + k] < s[b + k])
    for k in range(members):
        if t.found_ranks[one, k] != t.found_ranks[other, k]:
            return bool(t.found_ranks[one, k] < t.found_ranks[other, k])
    return False


@njit_inner
def _takes(t: Any, row: int, members: int, rank: int) -> bool:
    """Whether an event is one of those of an instance."""
    found = False
    for k in range(members):
        found = found or t.found_ranks[row, k] == rank
    return bool(found)


@njit_inner
def _consume_anywhere(t: Any, hit: Any, row: int, now: int) -> None:
    """The same where an event may wait under several keys: look at all that began to wait since the earliest."""
    p = t.patterns[t.places[hit.place].pattern]
    members, earliest, blocks = wide(p.members), wide(t.found_ranks[row, 0]), False
    for k in range(members):
        earliest = min(earliest, t.found_ranks[row, k])
        blocks = blocks or (k > 0 and not p.joint and t.places[p.first + k].keep == FIRST)
    start = wide(p.newest)
    while start != -1 and t.entries[start].older != -1:
        older = wide(t.entries[start].older)
        if not blocks and t.ranks[older, filled(t, older) - 1] < earliest:
            break
        start = older
    for place in range(p.first, p.first + members):
        entry = start
        while entry != -1:
            following = wide(t.entries[entry].newer)
            if t.entries[entry].place == place:
                holds = False
                for k in range(filled(t, entry)):
                    holds = holds or _takes(t, row, members, t.ranks[entry, k])
                if holds:
                    if entry == start:
                        start = following
                    remove(t, entry, CONSUMED, now)
                elif _takes(t, row, members, t.entries[entry].blocker):
                    t.entries[entry].blocker = -1
            entry = following


@njit_inner
def _consume(t: Any, hit: Any, row: int, now: int, rank: int) -> None:
    """A detection takes its events: nothing else may wait with them."""
    p = t.patterns[t.places[hit.place].pattern]
    if p.spread:
        _consume_anywhere(t, hit, row, now)
        return
    members, latest = wide(p.members), wide(-1)
    for k in range(members):
        if t.found_ranks[row, k] != rank:
            latest = max(latest, t.found_ranks[row, k])
    for place in range(p.first, p.first + p.members - (0 if p.joint else 1)):
        b = t.buckets[find(t.buckets, wide(place), hit.k0, hit.k1, hit.k2)]
        blocks = not p.joint and t.places[place + 1].keep == FIRST
        sorted_by_rank = (p.joint or place == p.first) and not blocks
        entry = wide(b.head)
        while entry != -1:
            following = wide(t.entries[entry].next)
            # Those that wait with one event stand in its order: beyond the taken ones only the last may be this event.
            if sorted_by_rank and t.ranks[entry, 0] > latest and following != -1:
                entry = wide(b.tail)
                following = wide(-1)
            holds = False
            for k in range(filled(t, entry)):
                holds = holds or _takes(t, row, members, t.ranks[entry, k])
            if holds:
                remove(t, entry, CONSUMED, now)
            elif blocks and _takes(t, row, members, t.entries[entry].blocker):
                t.entries[entry].blocker = -1
            entry = following
