"""Decisions on the compiled path: which instances a guard breaks, which are detections, and what those consume.

A pattern has at most one guard: a profile that must not happen [003 table 1]. A certain event of the guard breaks the
instances that wait under its key at once. Uncertain ones wait at a place of their own, for as long as any instance they
may break; instances check them when they complete. After the last member a timer completes the instance when the window
ends. Among the instances completed by one event, duplicates and consumption decide [003 table 2].
"""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from typing import Any

from likewise.composite.compiled.store import (
    BELOW_THRESHOLD,
    BEYOND_MEMBERS,
    BLOCKED,
    BROKEN,
    CONSUMED,
    FIRST,
    FOLLOWED,
    LATER_DUPLICATE,
    MAX_MEMBERS,
    NEED_ENTRIES,
    NEED_FOUND,
    ONE,
    REPLACED,
    ROWS_FOUND,
    SCRATCH,
    TIMER_COUNT,
    WINDOW_OVER,
    append_entry,
    as_int64,
    filled,
    find_bucket,
    njit_inner,
    njit_outer,
    note,
    pop,
    push,
    remove,
)


@njit_inner
def record_blocker(t: Any, hit: Any, now: int, rank: int) -> bool:
    """Take an event of the guard: a certain one breaks waiting instances at the end of this moment, others are kept.

    No limit evicts kept ones: forgetting one would cause a false detection.
    """
    p = t.patterns[t.places[hit.place].pattern]
    entry = as_int64(t.buckets[find_bucket(t.buckets, p.first + p.after, hit.k0, hit.k1, hit.k2)].head)
    if entry == -1 or t.entries[entry].time >= now:
        return False
    if hit.probability < 1.0:
        t.ranks[append_entry(t, hit, now, hit.probability, now + p.within), 0] = rank
        return True
    while entry != -1 and t.entries[entry].time < now:
        e = t.entries[entry]
        if not e.flag & (REPLACED | BROKEN):
            e.flag |= BROKEN
            e.until = now
            push(t, entry, now)
        entry = as_int64(e.next)
    return False


@njit_inner
def absence_probability(t: Any, guard: int, k0: int, k1: int, k2: int, low: int, high: int) -> float:
    """The probability that the guard did not happen after `low` and before `high`."""
    product = 1.0
    entry = t.buckets[find_bucket(t.buckets, as_int64(guard), k0, k1, k2)].tail
    while entry != -1 and t.entries[entry].time > low:
        if t.entries[entry].time < high:
            product *= 1.0 - t.entries[entry].probability
        entry = t.entries[entry].prev
    return product


@njit_inner
def add_row(t: Any, event: int, pattern: int, probability: float, now: int, by_timer: int) -> None:
    """Add a row for a complete instance."""
    row = t.found[t.scalars[ROWS_FOUND]]
    row.event, row.pattern, row.probability, row.time, row.by_timer = (
        event,
        pattern,
        probability,
        now,
        by_timer,
    )
    t.scalars[ROWS_FOUND] += 1


@njit_inner
def _finish(t: Any, entry: int, until: int, event: int) -> None:
    """Complete an instance whose window is over: a detection, unless the guard happened."""
    e = t.entries[entry]
    pattern = t.places[e.place].pattern
    p = t.patterns[pattern]
    b = t.buckets[e.bucket]
    p_absent = absence_probability(t, p.guard, b.k0, b.k1, b.k2, e.time, until + 1)
    e.flag |= FOLLOWED
    probability = e.probability * p_absent
    if probability < p.threshold:
        members = as_int64(p.members)
        if note(t, as_int64(e.place), members, BEYOND_MEMBERS, BELOW_THRESHOLD, until):
            for k in range(members):
                t.furthest[pattern, k] = t.ranks[entry, k]
        return
    for k in range(p.members):
        t.found_ranks[t.scalars[ROWS_FOUND], k] = t.ranks[entry, k]
    add_row(t, event, pattern, probability, until, ONE)
    p.detected += 1


@njit_outer
def expire(t: Any, now: int, event: int) -> bool:
    """Remove all entries that expired before now; False if completed ones have no room."""
    while t.scalars[TIMER_COUNT] > 0 and t.timers[0].until < now:
        until, entry, serial = t.timers[0].until, as_int64(t.timers[0].entry), t.timers[0].serial
        e = t.entries[entry]
        if e.serial == serial:
            p = t.patterns[t.places[e.place].pattern]
            if p.guard >= 0 and p.after == p.members - 1 and e.place == p.first + p.after and not e.flag & BROKEN:
                if t.scalars[ROWS_FOUND] + 1 >= len(t.found):
                    t.scalars[NEED_ENTRIES], t.scalars[NEED_FOUND] = 0, 64
                    return False
                _finish(t, entry, until, event)
        pop(t)
        if e.serial == serial:
            why = WINDOW_OVER
            if e.flag & (REPLACED | BROKEN):
                why = LATER_DUPLICATE if e.flag & REPLACED else BLOCKED
            remove(t, entry, why, until)
    return True


@njit_inner
def note_furthest(t: Any, pattern: int, row: int) -> None:
    """Remember the events of an instance below the threshold."""
    for k in range(t.patterns[pattern].members):
        t.furthest[pattern, k] = t.found_ranks[row, k]


@njit_inner
def copy_ranks(t: Any, entry: int, slot: int, rank: int) -> None:
    """Copy the events of an entry, and one more, to the next row."""
    row = t.scalars[ROWS_FOUND]
    for k in range(slot):
        t.found_ranks[row, k] = t.ranks[entry, k]
    t.found_ranks[row, slot] = rank


@njit_inner
def decide(t: Any, hit: Any, begin: int, now: int, rank: int) -> bool:
    """Keep the detections among the instances completed by an event; True if one below the threshold came furthest."""
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    best: Any = as_int64(-1)
    furthest: Any = as_int64(-1)
    kept, members = begin, as_int64(p.members)
    for row in range(begin, t.scalars[ROWS_FOUND]):
        if t.found[row].probability < p.threshold:
            if note(t, p.first + members - 1, members, BEYOND_MEMBERS, BELOW_THRESHOLD, now) and (
                furthest == -1 or _earlier(t, furthest, row, members)
            ):
                furthest = row
                note_furthest(t, pattern, row)
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
    t.scalars[ROWS_FOUND] = kept
    return bool(furthest != -1)


@njit_inner
def _move(t: Any, row: int, to: int) -> None:
    t.found[to] = t.found[row]
    for k in range(t.found_ranks.shape[1]):
        t.found_ranks[to, k] = t.found_ranks[row, k]


@njit_inner
def _earlier(t: Any, row: int, other: int, members: int) -> bool:
    """Whether the sorted events of one row are earlier; if equal, its events by member."""
    s, a, b = t.scalars, SCRATCH, SCRATCH + MAX_MEMBERS
    for k in range(members):
        s[a + k], s[b + k] = t.found_ranks[row, k], t.found_ranks[other, k]
        for low in (a, b):
            at = low + k
            while at > low and s[at - 1] > s[at]:
                s[at - 1], s[at] = s[at], s[at - 1]
                at -= 1
    for k in range(members):
        if s[a + k] != s[b + k]:
            return bool(s[a + k] < s[b + k])
    for k in range(members):
        if t.found_ranks[row, k] != t.found_ranks[other, k]:
            return bool(t.found_ranks[row, k] < t.found_ranks[other, k])
    return False


@njit_inner
def _contains(t: Any, row: int, members: int, rank: int) -> bool:
    """Whether an event is one of a row's events."""
    contained = False
    for k in range(members):
        contained = contained or t.found_ranks[row, k] == rank
    return bool(contained)


@njit_inner
def _consume_anywhere(t: Any, hit: Any, row: int, now: int) -> None:
    """Like `_consume`, if an event may wait under several keys: check all entries since the earliest event."""
    p = t.patterns[t.places[hit.place].pattern]
    members, earliest, blocks = as_int64(p.members), as_int64(t.found_ranks[row, 0]), False
    for k in range(members):
        earliest = min(earliest, t.found_ranks[row, k])
        blocks = blocks or (k > 0 and not p.joint and t.places[p.first + k].keep == FIRST)
    start = as_int64(p.newest)
    while start != -1 and t.entries[start].older != -1:
        older = as_int64(t.entries[start].older)
        if not blocks and t.ranks[older, filled(t, older) - 1] < earliest:
            break
        start = older
    for place in range(p.first, p.first + members):
        entry = start
        while entry != -1:
            following = as_int64(t.entries[entry].newer)
            if t.entries[entry].place == place:
                holds = False
                for k in range(filled(t, entry)):
                    holds = holds or _contains(t, row, members, t.ranks[entry, k])
                if holds:
                    if entry == start:
                        start = following
                    remove(t, entry, CONSUMED, now)
                elif _contains(t, row, members, t.entries[entry].blocker):
                    t.entries[entry].blocker = -1
            entry = following


@njit_inner
def _consume(t: Any, hit: Any, row: int, now: int, rank: int) -> None:
    """Consume the events of a detection: remove all entries that contain them."""
    p = t.patterns[t.places[hit.place].pattern]
    if p.spread:
        _consume_anywhere(t, hit, row, now)
        return
    members, latest = as_int64(p.members), as_int64(-1)
    for k in range(members):
        if t.found_ranks[row, k] != rank:
            latest = max(latest, t.found_ranks[row, k])
    for place in range(p.first, p.first + p.members - (0 if p.joint else 1)):
        b = t.buckets[find_bucket(t.buckets, as_int64(place), hit.k0, hit.k1, hit.k2)]
        blocks = not p.joint and t.places[place + 1].keep == FIRST
        sorted_by_rank = (p.joint or place == p.first) and not blocks
        entry = as_int64(b.head)
        while entry != -1:
            following = as_int64(t.entries[entry].next)
            # Entries of one event are in its order: beyond the consumed ones only the last may hold this event.
            if sorted_by_rank and t.ranks[entry, 0] > latest and following != -1:
                entry = as_int64(b.tail)
                following = as_int64(-1)
            holds = False
            for k in range(filled(t, entry)):
                holds = holds or _contains(t, row, members, t.ranks[entry, k])
            if holds:
                remove(t, entry, CONSUMED, now)
            elif blocks and _contains(t, row, members, t.entries[entry].blocker):
                t.entries[entry].blocker = -1
            entry = following
