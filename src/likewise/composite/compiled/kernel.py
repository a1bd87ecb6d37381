"""The kernel of the compiled path: sequences and conjunctions of profiles over a batch of events [003 sec 4].

Each event visits the places of the profiles it matches. A sequence continues the instances that wait at the place
before; a conjunction combines the event with instances at the other places; a heap of timers removes expired ones.
"""

# ruff: noqa: PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.composite.compiled.decision import (
    absence_probability,
    add_row,
    copy_ranks,
    decide,
    expire,
    record_blocker,
)
from likewise.composite.compiled.store import (
    BUCKETS_USED,
    ENTRIES_USED,
    FIRST,
    FOLLOWED,
    MAX_MEMBERS,
    NEED_ENTRIES,
    NEED_FOUND,
    NEXT_SERIAL,
    PAUSED,
    RESUME_EVENT,
    RESUME_HIT,
    ROWS_FOUND,
    SCRATCH,
    TIMER_COUNT,
    ZERO,
    Batch,
    Tables,
    as_int64,
    enter,
    find_bucket,
    hold,
    njit_inner,
    njit_outer,
)


@njit_inner
def _unfollowed(t: Any, bucket: int) -> int:
    """The oldest entry of a bucket that was not followed yet; all entries before it were."""
    entry, oldest = as_int64(t.buckets[bucket].tail), as_int64(-1)
    while entry != -1 and t.entries[entry].blocker == -1:
        oldest = entry
        entry = as_int64(t.entries[entry].prev)
    return int(oldest)


@njit_inner
def _follow(t: Any, hit: Any, event: int, now: int, rank: int, limit: int) -> bool:
    """Extend the instances that wait at the step before; True if any extended instance waits for more."""
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    slot = hit.place - p.first
    final = slot == p.members - 1 and not (p.guard >= 0 and p.after == slot)
    first = t.places[hit.place].keep == FIRST
    at = find_bucket(t.buckets, hit.place - 1, hit.k0, hit.k1, hit.k2)
    any_waiting = False
    entry = as_int64(t.buckets[at].head)
    if final and first:
        # A complete sequence needs no second final event: all entries before the last one were followed.
        entry = _unfollowed(t, at)
    while entry != -1 and t.entries[entry].time < now:
        e = t.entries[entry]
        following, serial = as_int64(e.next), as_int64(-1)
        if following != -1:
            serial = t.entries[following].serial
        if not (first and e.blocker != -1):
            e.flag |= FOLLOWED
            if first:
                e.blocker = rank
            probability, p_absent = e.probability * hit.probability, e.p_absent
            if p.guard >= 0 and p.after == slot - 1:
                p_absent *= absence_probability(t, p.guard, hit.k0, hit.k1, hit.k2, e.time, now)
            if final:
                copy_ranks(t, entry, slot, rank)
                add_row(t, event, pattern, probability * p_absent, now, ZERO)
            else:
                held = hold(t, hit, entry, now, rank, probability, e.deadline, limit)
                if held != -1:
                    t.entries[held].p_absent = p_absent
                    any_waiting = True
                elif first:
                    e.blocker = -1
        # Making room may have dropped the next entry, and all older ones.
        if following != -1 and t.entries[following].serial != serial:
            following = as_int64(t.buckets[at].head)
        entry = following
    return any_waiting


@njit_inner
def _combine(t: Any, hit: Any, event: int, now: int, rank: int, most: int) -> None:
    """Add a row for every combination of an event with the other members of a conjunction, up to `most` rows."""
    pattern = t.places[hit.place].pattern
    p = t.patterns[pattern]
    heads, slots, chosen = SCRATCH, SCRATCH + MAX_MEMBERS, SCRATCH + 2 * MAX_MEMBERS
    s, others = t.scalars, 0
    for slot in range(p.members):
        if p.first + slot != hit.place:
            s[heads + others] = t.buckets[find_bucket(t.buckets, as_int64(p.first + slot), hit.k0, hit.k1, hit.k2)].head
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
            probability = hit.probability
            row = t.scalars[ROWS_FOUND]
            if row >= most:
                p.dropped += 1
                return
            t.found_ranks[row, hit.place - p.first] = rank
            for k in range(others):
                t.found_ranks[row, s[slots + k]] = t.ranks[s[chosen + k], 0]
                probability *= t.entries[s[chosen + k]].probability
            add_row(t, event, pattern, probability, now, ZERO)
        s[chosen + at] = t.entries[entry].next


# one event


@njit_inner
def _key(b: Any, event: int, attribute: int) -> int:
    """The key of the event's value of an attribute; -1 if it has none, 0 if there is no attribute."""
    if attribute < 0:
        return 0
    for at in range(b.starts[event], b.starts[event + 1]):
        if b.attribute_of[b.ids[at]] == attribute:
            return int(b.key_of[b.ids[at]])
    return -1


@njit_inner
def _hit(t: Any, b: Any, event: int, predicate: int, probability: float, count: int, mark: int) -> int:
    """Add a hit for every place of a predicate; returns the number of hits."""
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
        # A single member joins nothing, so it needs no key.
        single = t.patterns[place.pattern].members == 1 and at == t.patterns[place.pattern].first
        if single or min(k0, k1, k2) >= 0:
            hit = t.hits[count]
            hit.place, hit.probability, hit.k0, hit.k1, hit.k2 = at, probability, k0, k1, k2
            count += 1
    return count


@njit_inner
def _gather(t: Any, b: Any, event: int, mark: int) -> int:
    """Collect the places that an event can fill, the last of each pattern first; returns their number."""
    count = ZERO
    for at in range(b.starts[event], b.starts[event + 1]):
        count = _hit(t, b, event, as_int64(b.predicate_of[b.ids[at]]), 1.0, count, mark)
    for at in range(b.hit_starts[event], b.hit_starts[event + 1]):
        count = _hit(t, b, event, as_int64(b.hit[at]), b.score[at], count, mark)
    for at in range(1, count):
        if t.hits[at].place > t.hits[at - 1].place:
            _sort(t.hits, count)
            break
    return int(count)


@njit_inner
def _sort(hits: Any, count: int) -> None:
    """Shell sort by place, descending; it compiles to little code."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for begin in range(gap, count):
            at = begin
            while at >= gap and hits[at - gap].place < hits[at].place:
                a, b = hits[at - gap], hits[at]
                a.place, b.place = b.place, a.place
                a.probability, b.probability = b.probability, a.probability
                a.k0, b.k0 = b.k0, a.k0
                a.k1, b.k1 = b.k1, a.k1
                a.k2, b.k2 = b.k2, a.k2
                at -= gap
        gap //= 3


@njit_inner
def _room(t: Any, low: int, high: int, limit: int) -> bool:
    """Whether the tables have room for what the hits of one pattern may add; stores the room needed."""
    entries, rows = 0, 0
    for at in range(low, high):
        hit = t.hits[at]
        p = t.patterns[t.places[hit.place].pattern]
        if p.joint:
            entries += 1
            product = 1
            for place in range(p.first, p.first + p.members):
                if place != hit.place:
                    product *= t.buckets[find_bucket(t.buckets, as_int64(place), hit.k0, hit.k1, hit.k2)].size
                    product = min(product, abs(limit))
            rows = min(rows + product, abs(limit))
        elif hit.place == p.first:
            entries += 1
        elif hit.place == p.guard:
            entries += t.buckets[find_bucket(t.buckets, p.first + p.after, hit.k0, hit.k1, hit.k2)].size + 1
        elif hit.place == p.first + p.members - 1 and not (p.guard >= 0 and p.after == p.members - 1):
            rows += t.buckets[find_bucket(t.buckets, hit.place - 1, hit.k0, hit.k1, hit.k2)].size
        else:
            entries += t.buckets[find_bucket(t.buckets, hit.place - 1, hit.k0, hit.k1, hit.k2)].size
    t.scalars[NEED_ENTRIES], t.scalars[NEED_FOUND] = entries + high - low, rows + 1
    return bool(
        t.scalars[ENTRIES_USED] + t.scalars[NEED_ENTRIES] < len(t.entries)
        and t.scalars[TIMER_COUNT] + 2 * t.scalars[NEED_ENTRIES] < len(t.timers)
        and t.scalars[ROWS_FOUND] + t.scalars[NEED_FOUND] < len(t.found)
        and 2 * (t.scalars[BUCKETS_USED] + high - low) < len(t.buckets)
    )


@njit_inner
def _step(t: Any, low: int, high: int, event: int, now: int, rank: int, limit: int) -> bool:
    """Process one event in one pattern; True if any entry keeps the event."""
    begin = t.scalars[ROWS_FOUND]
    kept = False
    for at in range(low, high):
        hit = t.hits[at]
        p = t.patterns[t.places[hit.place].pattern]
        if hit.place == p.guard:
            kept |= record_blocker(t, hit, now, rank)
        elif p.members == 1 and p.guard < 0:
            t.found_ranks[begin, 0] = rank
            add_row(t, event, t.places[hit.place].pattern, hit.probability, now, ZERO)
        elif hit.place > p.first and not p.joint:
            kept |= _follow(t, hit, event, now, rank, limit)
        else:
            held = t.buckets[find_bucket(t.buckets, as_int64(hit.place), hit.k0, hit.k1, hit.k2)].head != -1
            if held and t.places[hit.place].keep == FIRST:
                continue
            if p.joint:
                _combine(t, hit, event, now, rank, begin + abs(limit))
            kept |= enter(t, hit, now, rank, limit)
    if t.scalars[ROWS_FOUND] > begin:
        # The guard comes first and may have another key than the members.
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
    """Process a batch, or resume one paused for lack of room; returns the number of rows found, or -1 if paused.

    Detections are the rows of `found`; `kept` marks the events that entries still need.
    """
    if not scalars[PAUSED]:
        scalars[ROWS_FOUND] = 0
    scalars[PAUSED] = 0
    b = Batch(starts, ids, time, hit_starts, hit, score, predicate_of, attribute_of, key_of)
    t = Tables(
        entries, ranks, buckets, timers, places, patterns, stops, furthest, predicates, postings, hits, found,
        found_ranks, scalars,
    )  # fmt: skip
    for event in range(scalars[RESUME_EVENT], len(time)):
        now = time[event]
        if not expire(t, now, event):
            scalars[RESUME_EVENT], scalars[PAUSED] = event, 1
            return -1
        scalars[NEXT_SERIAL] += 1
        count = _gather(t, b, event, scalars[NEXT_SERIAL])
        low = scalars[RESUME_HIT]
        while low < count:
            pattern, high = places[hits[low].place].pattern, low + 1
            while high < count and places[hits[high].place].pattern == pattern:
                high += 1
            if not _room(t, low, high, limit):
                scalars[RESUME_EVENT], scalars[RESUME_HIT], scalars[PAUSED] = event, low, 1
                return -1
            if _step(t, low, high, event, now, base + event, limit):
                kept[event] = True
            low = high
        scalars[RESUME_HIT] = 0
    scalars[RESUME_EVENT] = 0
    return int(scalars[ROWS_FOUND])


@njit_outer
def mark_repeated(starts: Any, ids: Any, attribute_of: Any, last: Any, out: Any) -> None:
    """Mark in `out` the join attributes with several values in one event; their patterns need the general path.

    `last` has the last event with a value of each attribute, at first -1.
    """
    for event in range(len(starts) - 1):
        for at in range(starts[event], starts[event + 1]):
            attribute = attribute_of[ids[at]]
            if attribute >= 0:
                if last[attribute] == event:
                    out[attribute] = True
                last[attribute] = event


def kernel_is_cached() -> bool:
    """Whether compiled code is cached on disk, so that the first use does not compile."""
    folder = Path(detect.stats.cache_path)  # type: ignore[attr-defined]  # Numba's, on a compiled function
    return any(folder.glob("kernel.detect-*.nbi"))
