"""The compiled path: sequences of two profiles over a batch of events, in one pass [003 sec 4].

Longer than other modules because numba's cache notices changes in a function's own file only.
"""

# ruff: noqa: PLR0917, PLR0912, PLR0915  (compiled functions take columns, and are not called by keyword)
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from likewise.composite._flat_tables import ALL, FIRST, LAST, SPENT, TAKEN, Buckets, Waiting


@njit(cache=True)
def find(buckets: Any, wanted: int) -> int:
    """The place of a key, or of the hole where it would go."""
    mask = len(buckets.key) - 1
    mixed = np.uint64(wanted) * np.uint64(0x9E3779B97F4A7C15)
    # The pattern is in the upper half of the key, and must reach the lower bits too.
    at = np.int64(mixed ^ (mixed >> np.uint64(32))) & mask
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
def entries_of(waiting: Any, buckets: Any, scalars: Any, pattern: int) -> Any:
    """The entries of one pattern, or of all (-1), with the pattern of each."""
    which = np.empty(scalars[1], np.int32)
    entries = np.empty(scalars[1], np.int32)
    found = 0
    for at in range(len(buckets.key)):
        owner = buckets.key[at] >> 32
        if buckets.key[at] != -1 and (pattern < 0 or owner == pattern):
            entry = buckets.head[at]
            while entry != -1:
                which[found], entries[found] = owner, entry
                found += 1
                entry = waiting.next[entry]
    return which[:found], entries[:found]


@njit(cache=True)
def purge(waiting: Any, buckets: Any, scalars: Any, pattern: int) -> None:
    """Free all entries of one pattern; its empty buckets go with the next sweep."""
    for at in range(len(buckets.key)):
        if buckets.key[at] != -1 and buckets.key[at] >> 32 == pattern:
            while buckets.head[at] != -1:
                pop(waiting, buckets, scalars, at)


@njit(cache=True)
def _key(batch: Any, event: int, attribute: int) -> int:
    """The key of the event's value of an attribute; -1 if it has none, 0 if the pattern joins by nothing."""
    if attribute < 0:
        return 0
    for at in range(batch.starts[event], batch.starts[event + 1]):
        if batch.attribute[at] == attribute:
            return int(batch.key[at])
    return -1


@njit(cache=True)
def _admitted(waiting: Any, buckets: Any, patterns: Any, scalars: Any, wanted: int, now: int) -> bool:
    """Whether a first event may wait, by the rule for duplicates; the one before the last goes."""
    at = find(buckets, wanted)
    pattern = wanted >> 32
    if buckets.key[at] == -1:
        return True
    expire(waiting, buckets, patterns, scalars, at, pattern, now)
    head = buckets.head[at]
    if head == -1 or patterns.keep[pattern] == ALL:
        return True
    if patterns.keep[pattern] == FIRST:
        return False
    # Of the last, two wait: it, and the one before for another second event of this very time.
    if head != buckets.tail[at] and waiting.time[buckets.tail[at]] < now:
        pop(waiting, buckets, scalars, at)
        patterns.held[pattern] -= 1
    return True


@njit(cache=True)
def _begin(
    waiting: Any,
    buckets: Any,
    patterns: Any,
    scalars: Any,
    wanted: int,
    now: int,
    rank: int,
    sure: float,
    flag: int,
    limit: int,
    drop: bool,
) -> Any:
    """Let a first event wait; gives its entry, or -1."""
    pattern = wanted >> 32
    if not _admitted(waiting, buckets, patterns, scalars, wanted, now):
        return -1, waiting, buckets
    at = find(buckets, wanted)
    tail = buckets.tail[at]
    if patterns.keep[pattern] == LAST and tail != -1 and waiting.time[tail] == now:
        waiting.rank[tail], waiting.probability[tail], waiting.flag[tail] = rank, sure, flag
        return tail, waiting, buckets
    if patterns.held[pattern] >= limit:
        patterns.dropped[pattern] += 1
        if not drop or tail == -1:
            return -1, waiting, buckets
        pop(waiting, buckets, scalars, at)
        patterns.held[pattern] -= 1
    waiting, buckets = room(waiting, buckets, patterns, scalars)
    at = find(buckets, wanted)
    if buckets.key[at] == -1:
        buckets.key[at] = wanted
        scalars[2] += 1
    entry = append(waiting, buckets, scalars, at, now, rank, sure, flag)
    patterns.held[pattern] += 1
    return entry, waiting, buckets


@njit(cache=True)
def _complete(
    waiting: Any, buckets: Any, patterns: Any, scalars: Any, wanted: int, now: int, sure: float, pairs: Any
) -> int:
    """Join a second event with those that wait; fills `pairs` with entries and gives their number.

    `pairs` has room for all that wait in one bucket, else -1 asks for more.
    """
    at = find(buckets, wanted)
    pattern = wanted >> 32
    if buckets.key[at] == -1:
        return 0
    expire(waiting, buckets, patterns, scalars, at, pattern, now)
    if patterns.held[pattern] > len(pairs):
        return -1
    found = 0
    before = -1
    entry = buckets.head[at]
    keep, once, unique = patterns.keep[pattern], patterns.keep_next[pattern] == FIRST, patterns.unique[pattern]
    while entry != -1 and waiting.time[entry] < now:
        following = waiting.next[entry]
        replaced = keep == LAST and following != -1 and waiting.time[following] < now
        if replaced or waiting.flag[entry]:
            before, entry = entry, following
            continue
        probability = waiting.probability[entry] * sure
        good = probability > 0.0 and probability >= patterns.threshold[pattern]
        if good:
            pairs[found] = entry
            found += 1
        if good and unique:
            waiting.flag[entry] = TAKEN
        elif once:
            waiting.flag[entry] = SPENT
        # One that is spent stays only where it keeps its place from later duplicates.
        if (once and keep == ALL) or (good and unique and keep != LAST):
            if before == -1:
                buckets.head[at] = following
            else:
                waiting.next[before] = following
            if following == -1:
                buckets.tail[at] = before
            waiting.next[entry] = scalars[0]
            scalars[0] = entry
            scalars[1] -= 1
            patterns.held[pattern] -= 1
        else:
            before = entry
        entry = following
        if good and unique:
            break
    return found


@njit(cache=True)
def detect_sequences(
    batch: Any,
    base: int,
    waiting: Any,
    buckets: Any,
    scalars: Any,
    patterns: Any,
    postings: Any,
    limit: int,
    drop: bool,
) -> Any:
    """Go through a batch.

    Gives detections as columns (event, pattern, entry, rank of the first event, probability), the entries
    that began to wait, and the tables.
    """
    events = np.empty(1024, np.int32)
    which = np.empty(1024, np.int32)
    entries = np.empty(1024, np.int32)
    ranks = np.empty(1024, np.int64)
    sureness = np.empty(1024, np.float64)
    entered = np.empty(1024, np.int32)
    pairs = np.empty(1024, np.int32)
    out = 0
    begun = 0
    for event in range(len(batch.time)):
        now, rank = batch.time[event], base + event
        scalars[3] = max(scalars[3], now)
        low, high = batch.starts[event], batch.starts[event + 1]
        more, most = batch.hit_starts[event], batch.hit_starts[event + 1]
        # The second step goes first: an event that a detection consumes does not begin another.
        for role in (1, 0):
            mark = 2 * rank + 1 - role
            for j in range(high - low + most - more):
                predicate, sure = -1, 1.0
                if j < high - low:
                    predicate = batch.predicate[low + j]
                else:
                    predicate = batch.hit[more + j - (high - low)]
                    sure = batch.score[more + j - (high - low)]
                if predicate < 0 or postings.seen[predicate] == mark:
                    continue
                postings.seen[predicate] = mark
                posting = postings.head[predicate]
                while posting != -1:
                    pattern = postings.pattern[posting]
                    wrong = postings.role[posting] != role or patterns.started[pattern] > now
                    posting = postings.next[posting]
                    if wrong:
                        continue
                    key = _key(batch, event, patterns.attribute[pattern])
                    if key < 0:
                        continue
                    wanted: Any = (np.int64(pattern) << 32) | key
                    if role == 0:
                        taken = patterns.unique[pattern] and patterns.consumed[pattern] == rank
                        if taken and patterns.keep[pattern] != LAST:
                            continue
                        entry, waiting, buckets = _begin(
                            waiting,
                            buckets,
                            patterns,
                            scalars,
                            wanted,
                            now,
                            rank,
                            sure,
                            TAKEN if taken else 0,
                            limit,
                            drop,
                        )
                        if entry >= 0:
                            if begun == len(entered):
                                entered = np.concatenate((entered, np.empty_like(entered)))
                            entered[begun] = entry
                            begun += 1
                        continue
                    found = _complete(waiting, buckets, patterns, scalars, wanted, now, sure, pairs)
                    if found < 0:
                        pairs = np.empty(2 * patterns.held[pattern], np.int32)
                        found = _complete(waiting, buckets, patterns, scalars, wanted, now, sure, pairs)
                    while out + found > len(events):
                        events = np.concatenate((events, np.empty_like(events)))
                        which = np.concatenate((which, np.empty_like(which)))
                        entries = np.concatenate((entries, np.empty_like(entries)))
                        ranks = np.concatenate((ranks, np.empty_like(ranks)))
                        sureness = np.concatenate((sureness, np.empty_like(sureness)))
                    for k in range(found):
                        events[out], which[out], entries[out] = event, pattern, pairs[k]
                        ranks[out] = waiting.rank[pairs[k]]
                        sureness[out] = waiting.probability[pairs[k]] * sure
                        out += 1
                    patterns.detected[pattern] += found
                    if found and patterns.unique[pattern]:
                        patterns.consumed[pattern] = rank
    columns = (events[:out], which[:out], entries[:out], ranks[:out], sureness[:out])
    return columns, _present(waiting, entered[:begun], base), waiting, buckets


@njit(cache=True)
def _present(waiting: Any, entered: Any, base: int) -> Any:
    """The entries of this batch, each once; one that was freed and taken again counts as its last."""
    keep = np.zeros(len(entered), np.bool_)
    for at in range(len(entered)):
        keep[at] = waiting.rank[entered[at]] >= base
    return entered[keep]


@njit(cache=True)
def repeated_attributes(batch: Any, attributes: int) -> Any:
    """Which join attributes have several values in one event: their patterns need the general path."""
    seen = np.full(attributes, -1, np.int64)
    out = np.zeros(attributes, np.bool_)
    for event in range(len(batch.time)):
        for at in range(batch.starts[event], batch.starts[event + 1]):
            attribute = batch.attribute[at]
            if attribute >= 0:
                if seen[attribute] == event:
                    out[attribute] = True
                seen[attribute] = event
    return out
