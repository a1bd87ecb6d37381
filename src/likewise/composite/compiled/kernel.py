"""The compiled path: sequences and conjunctions of profiles over a batch of events, in one pass [003 sec 4].

Each event meets the places that its profiles lead to. A sequence goes on from what waits at the place before, a
conjunction combines with what waits at the other places, and the heap of timers takes out what is over.
"""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likewise.composite.compiled.store import (
    BUCKETS,
    EVENT,
    FIRST,
    FOUND,
    GROUP,
    HEAP,
    MOST_MEMBERS,
    NEED_ENTRIES,
    NEED_FOUND,
    NOTES,
    PAUSED,
    SERIAL,
    SPENT,
    USED,
    ZERO,
    Batch,
    Tables,
    enter,
    find,
    hold,
    njit_inner,
    njit_outer,
    wide,
)
from likewise.composite.compiled.verdict import decide, expire, silence, tell, watch, write


@njit_inner
def _unfollowed(t: Any, bucket: int) -> int:
    """The oldest entry of a bucket that nothing followed yet; those before it were all followed."""
    entry, oldest = wide(t.buckets[bucket].tail), wide(-1)
    while entry != -1 and t.entries[entry].blocker == -1:
        oldest = entry
        entry = wide(t.entries[entry].prev)
    return int(oldest)


@njit_inner
def _follow(t: Any, hit: Any, event: int, now: int, rank: int, limit: int) -> bool:
    """A later step of a sequence: go on from what waits before it; True if someone waits since."""
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    slot = hit.place - p.first
    final = slot == p.members - 1 and not (p.guard >= 0 and p.after == slot)
    first = t.places[hit.place].keep == FIRST
    at = find(t.buckets, hit.place - 1, hit.k0, hit.k1, hit.k2)
    waits = False
    entry = wide(t.buckets[at].head)
    if final and first:
        # What is whole needs no second one: under a key, all that waited when the last one came were followed.
        entry = _unfollowed(t, at)
    while entry != -1 and t.entries[entry].time < now:
        e = t.entries[entry]
        following, serial = wide(e.next), wide(-1)
        if following != -1:
            serial = t.entries[following].serial
        if not (first and e.blocker != -1):
            e.flag |= SPENT
            if first:
                e.blocker = rank
            sure, quiet = e.probability * hit.sure, e.quiet
            if p.guard >= 0 and p.after == slot - 1:
                quiet *= silence(t, p.guard, hit.k0, hit.k1, hit.k2, e.time, now)
            if final:
                write(t, entry, slot, rank)
                tell(t, event, pattern, sure * quiet, now, ZERO)
            else:
                held = hold(t, hit, entry, now, rank, sure, e.deadline, limit)
                if held != -1:
                    t.entries[held].quiet = quiet
                    waits = True
                elif first:
                    e.blocker = -1
        # Making room may have taken the next one, and with it all older ones.
        if following != -1 and t.entries[following].serial != serial:
            following = wide(t.buckets[at].head)
        entry = following
    return waits


@njit_inner
def _combine(t: Any, hit: Any, event: int, now: int, rank: int, most: int) -> None:
    """Every combination of an event with one of each other member of a conjunction, up to `most` rows."""
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    heads, slots, chosen = NOTES, NOTES + MOST_MEMBERS, NOTES + 2 * MOST_MEMBERS
    s, others = t.scalars, 0
    for slot in range(p.members):
        if p.first + slot != hit.place:
            s[heads + others] = t.buckets[find(t.buckets, wide(p.first + slot), hit.k0, hit.k1, hit.k2)].head
            s[slots + others] = slot
            if s[heads + others] == -1:
                return
            others += 1
    at = 0
    s[chosen] = s[heads]
    while at >= 0:
        entry = s[chosen + at]
        if entry == -1:
            at -= 1
            if at >= 0:
                s[chosen + at] = t.entries[s[chosen + at]].next
            continue
        clash = t.ranks[entry, 0] == rank
        for k in range(at):
            clash = clash or t.ranks[s[chosen + k], 0] == t.ranks[entry, 0]
        if not clash and at + 1 < others:
            at += 1
            s[chosen + at] = s[heads + at]
            continue
        if not clash:
            sure = hit.sure
            row = t.scalars[FOUND]
            if row >= most:
                p.dropped += 1
                return
            t.found_ranks[row, hit.place - p.first] = rank
            for k in range(others):
                t.found_ranks[row, s[slots + k]] = t.ranks[s[chosen + k], 0]
                sure *= t.entries[s[chosen + k]].probability
            tell(t, event, pattern, sure, now, ZERO)
        s[chosen + at] = t.entries[entry].next


# the way of an event


@njit_inner
def _key(b: Any, event: int, attribute: int) -> int:
    """The key of the event's value of an attribute; -1 if it has none, 0 if there is nothing to ask for."""
    if attribute < 0:
        return 0
    for at in range(b.starts[event], b.starts[event + 1]):
        if b.attribute_of[b.ids[at]] == attribute:
            return int(b.key_of[b.ids[at]])
    return -1


@njit_inner
def _hit(t: Any, b: Any, event: int, predicate: int, sure: float, count: int, mark: int) -> int:
    """The places that a predicate leads to."""
    if predicate < 0 or t.predicates[predicate].seen == mark:
        return count
    t.predicates[predicate].seen = mark
    posting = t.predicates[predicate].head
    while posting != -1:
        at = t.postings[posting].place
        place = t.places[at]
        posting = t.postings[posting].next
        if t.patterns[place.pattern].started > b.time[event]:
            continue
        k0, k1, k2 = _key(b, event, place.a0), _key(b, event, place.a1), _key(b, event, place.a2)
        # What nothing has to join needs no key: without one, nothing can break it.
        alone = t.patterns[place.pattern].members == 1 and at == t.patterns[place.pattern].first
        if alone or min(k0, k1, k2) >= 0:
            hit = t.hits[count]
            hit.place, hit.sure, hit.k0, hit.k1, hit.k2 = at, sure, k0, k1, k2
            count += 1
    return count


@njit_inner
def _gather(t: Any, b: Any, event: int, mark: int) -> int:
    """All places that an event can fill, the last of each pattern first; gives their number."""
    count = ZERO
    for at in range(b.starts[event], b.starts[event + 1]):
        count = _hit(t, b, event, wide(b.predicate_of[b.ids[at]]), 1.0, count, mark)
    for at in range(b.hit_starts[event], b.hit_starts[event + 1]):
        count = _hit(t, b, event, wide(b.hit[at]), b.score[at], count, mark)
    for at in range(1, count):
        if t.hits[at].place > t.hits[at - 1].place:
            _sort(t.hits, count)
            break
    return int(count)


@njit_inner
def _sort(hits: Any, count: int) -> None:
    """By place, the last first; in Shell's way, which is short."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for begin in range(gap, count):
            at = begin
            while at >= gap and hits[at - gap].place < hits[at].place:
                a, b = hits[at - gap], hits[at]
                a.place, b.place = b.place, a.place
                a.sure, b.sure = b.sure, a.sure
                a.k0, b.k0 = b.k0, a.k0
                a.k1, b.k1 = b.k1, a.k1
                a.k2, b.k2 = b.k2, a.k2
                at -= gap
        gap //= 3


@njit_inner
def _room(t: Any, low: int, high: int, limit: int) -> bool:
    """Whether all that the hits of one pattern may bring has room; if not, how much it may be."""
    entries, found = 0, 0
    for at in range(low, high):
        hit = t.hits[at]
        p = t.patterns[t.places[hit.place].pattern]
        if p.joint:
            entries += 1
            product = 1
            for place in range(p.first, p.first + p.members):
                if place != hit.place:
                    product *= t.buckets[find(t.buckets, wide(place), hit.k0, hit.k1, hit.k2)].size
                    product = min(product, abs(limit))
            found = min(found + product, abs(limit))
        elif hit.place == p.first:
            entries += 1
        elif hit.place == p.guard:
            entries += t.buckets[find(t.buckets, p.first + p.after, hit.k0, hit.k1, hit.k2)].size + 1
        elif hit.place == p.first + p.members - 1 and not (p.guard >= 0 and p.after == p.members - 1):
            found += t.buckets[find(t.buckets, hit.place - 1, hit.k0, hit.k1, hit.k2)].size
        else:
            entries += t.buckets[find(t.buckets, hit.place - 1, hit.k0, hit.k1, hit.k2)].size
    t.scalars[NEED_ENTRIES], t.scalars[NEED_FOUND] = entries + high - low, found + 1
    return bool(
        t.scalars[USED] + t.scalars[NEED_ENTRIES] < len(t.entries)
        and t.scalars[HEAP] + 2 * t.scalars[NEED_ENTRIES] < len(t.timers)
        and t.scalars[FOUND] + t.scalars[NEED_FOUND] < len(t.found)
        and 2 * (t.scalars[BUCKETS] + high - low) < len(t.buckets)
    )


@njit_inner
def _step(t: Any, low: int, high: int, event: int, now: int, rank: int, limit: int) -> bool:
    """One event in one pattern; True if someone keeps the event."""
    begin = t.scalars[FOUND]
    kept = False
    for at in range(low, high):
        hit = t.hits[at]
        p = t.patterns[t.places[hit.place].pattern]
        if hit.place == p.guard:
            kept |= watch(t, hit, now, rank)
        elif p.members == 1 and p.guard < 0:
            t.found_ranks[begin, 0] = rank
            tell(t, event, t.places[hit.place].pattern, hit.sure, now, ZERO)
        elif hit.place > p.first and not p.joint:
            kept |= _follow(t, hit, event, now, rank, limit)
        else:
            held = t.buckets[find(t.buckets, wide(hit.place), hit.k0, hit.k1, hit.k2)].head != -1
            if held and t.places[hit.place].keep == FIRST:
                continue
            if p.joint:
                _combine(t, hit, event, now, rank, begin + abs(limit))
            kept |= enter(t, hit, now, rank, limit)
    if t.scalars[FOUND] > begin:
        # What must not happen comes first, and may have another key than the members.
        member = low + int(t.hits[low].place == t.patterns[t.places[t.hits[low].place].pattern].guard)
        kept |= decide(t, t.hits[member], begin, now, rank)
    return kept


@njit_outer
def detect(
    starts: Any,
    ids: Any,
    time: Any,
    hit_starts: Any,
    hit: Any,
    score: Any,
    kept: Any,
    predicate_of: Any,
    attribute_of: Any,
    key_of: Any,
    entries: Any,
    ranks: Any,
    buckets: Any,
    timers: Any,
    places: Any,
    patterns: Any,
    stops: Any,
    furthest: Any,
    predicates: Any,
    postings: Any,
    hits: Any,
    found: Any,
    found_ranks: Any,
    scalars: Any,
    base: int,
    limit: int,
) -> int:
    """Go through a batch, or on from where it stopped for want of room; gives the number of rows found, or -1.

    Detections are the rows of `found`; `kept` says which events someone waits with.
    """
    if not scalars[PAUSED]:
        scalars[FOUND] = 0
    scalars[PAUSED] = 0
    b = Batch(starts, ids, time, hit_starts, hit, score, predicate_of, attribute_of, key_of)
    t = Tables(
        entries, ranks, buckets, timers, places, patterns, stops, furthest, predicates, postings, hits, found,
        found_ranks, scalars,
    )  # fmt: skip
    for event in range(scalars[EVENT], len(time)):
        now = time[event]
        if not expire(t, now, event):
            scalars[EVENT], scalars[PAUSED] = event, 1
            return -1
        scalars[SERIAL] += 1
        count = _gather(t, b, event, scalars[SERIAL])
        low = scalars[GROUP]
        while low < count:
            pattern, high = places[hits[low].place].pattern, low + 1
            while high < count and places[hits[high].place].pattern == pattern:
                high += 1
            if not _room(t, low, high, limit):
                scalars[EVENT], scalars[GROUP], scalars[PAUSED] = event, low, 1
                return -1
            if _step(t, low, high, event, now, base + event, limit):
                kept[event] = True
            low = high
        scalars[GROUP] = 0
    scalars[EVENT] = 0
    return int(scalars[FOUND])


@njit_outer
def repeated(starts: Any, ids: Any, attribute_of: Any, attributes: int) -> Any:
    """Which join attributes have several values in one event: their patterns need the general path."""
    seen = np.full(attributes, -1, np.int64)
    out = np.zeros(attributes, np.bool_)
    for event in range(len(starts) - 1):
        for at in range(starts[event], starts[event + 1]):
            attribute = attribute_of[ids[at]]
            if attribute >= 0:
                if seen[attribute] == event:
                    out[attribute] = True
                seen[attribute] = event
    return out


def kernel_is_cached() -> bool:
    """Whether the machine code is on disk, so that its first use does not compile."""
    folder = Path(detect.stats.cache_path)  # type: ignore[attr-defined]  # Numba's, on a compiled function
    return any(folder.glob("kernel.detect-*.nbi"))
