"""What becomes of instances that an event made whole: which are detections, and what they consume [003 table 2]."""

from __future__ import annotations

from typing import Any

from likewise.composite.compiled.store import filled, find, inner, note, remove
from likewise.composite.compiled.tables import BEYOND, CONSUMED, FIRST, FOUND, MOST_MEMBERS, NOTES, UNSURE, wide


@inner
def came_furthest(t: Any, pattern: int, row: int) -> None:
    """Remember the events of an instance that is no detection."""
    for k in range(t.patterns[pattern].members):
        t.furthest[pattern, k] = t.found_ranks[row, k]


@inner
def write(t: Any, entry: int, slot: int, rank: int) -> None:
    """The events of an entry, and one more, into the next row of what was found."""
    row = t.scalars[FOUND]
    for k in range(slot):
        t.found_ranks[row, k] = t.ranks[entry, k]
    t.found_ranks[row, slot] = rank


@inner
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


@inner
def _move(t: Any, row: int, to: int) -> None:
    t.found[to] = t.found[row]
    for k in range(t.found_ranks.shape[1]):
        t.found_ranks[to, k] = t.found_ranks[row, k]


@inner
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


@inner
def _takes(t: Any, row: int, members: int, rank: int) -> bool:
    """Whether an event is one of those of an instance."""
    found = False
    for k in range(members):
        found = found or t.found_ranks[row, k] == rank
    return bool(found)


@inner
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


@inner
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
