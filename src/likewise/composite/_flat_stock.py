"""What the plain patterns hold: room for it in the tables, and the way into a snapshot and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from likewise.composite._columns import Columns
from likewise.composite._flat_book import Facts, FlatBook
from likewise.composite._flat_rows import Past
from likewise.composite._flat_store import hold, join, push, rehash
from likewise.composite._flat_tables import (
    BROKEN,
    BUCKETS,
    FOUND,
    FREE,
    HEAP,
    HIT,
    NEED_ENTRIES,
    NEED_FOUND,
    NEVER,
    REPLACED,
    USED,
    free_entries,
    new_buckets,
)
from likewise.composite.hits import HitBook
from likewise.events import Event, Instant
from likewise.matching import Matcher


class Kept(NamedTuple):
    """A waiting instance of one pattern, for snapshots and for going over to the general path.

    `member` is the last one that is filled; `blocker` is the rank of the event that keeps others from following, and
    `quiet` the probability that what must not happen did not. What may break others has a `member` beyond all.
    """

    events: tuple[Event, ...]
    ranks: tuple[int, ...]
    member: int
    probability: float
    flag: int
    until: Instant | None
    blocker: int
    quiet: float = 1.0


class FlatStock(FlatBook):
    """The tables with all that waits in them."""

    def __init__(self, matcher: Matcher | HitBook, columns: Columns) -> None:
        super().__init__(matcher, columns)
        self._past = Past()

    def _make_room(self) -> None:
        """Tables in which what the kernel asks for has a place."""
        t, scalars = self._tables, self._tables.scalars
        entries, found = int(scalars[NEED_ENTRIES]), int(scalars[NEED_FOUND])
        if scalars[USED] + entries >= len(t.entries):
            more = max(len(t.entries), entries)
            added = free_entries(more, len(t.entries), int(scalars[FREE]))
            scalars[FREE] = len(t.entries)
            ranks = np.full((more, t.ranks.shape[1]), -1, np.int64)
            self._with(entries=np.concatenate((t.entries, added)), ranks=np.concatenate((t.ranks, ranks)))
        if scalars[FOUND] + found >= len(t.found):
            more = max(len(t.found), found)
            ranks = np.full((more, t.ranks.shape[1]), NEVER, np.int64)
            rows = np.concatenate((t.found, np.zeros(more, t.found.dtype)))
            self._with(found=rows, found_ranks=np.concatenate((t.found_ranks, ranks)))
        if scalars[HEAP] + 2 * entries >= len(t.timers):
            self._sift(2 * entries)
        if 2 * (scalars[BUCKETS] + entries) >= len(t.buckets):
            live, size = int((t.buckets["head"] >= 0).sum()), len(t.buckets)
            while 4 * (live + entries) > size:
                size *= 2
            fresh = new_buckets(size)
            scalars[BUCKETS] = rehash(t.buckets, fresh, self._tables.entries)
            self._with(buckets=fresh)

    def _sift(self, more: int) -> None:
        """Drop timers of what is gone, and make room for more."""
        t = self._tables
        timers = t.timers[: t.scalars[HEAP]]
        timers = timers[t.entries["serial"][timers["entry"]] == timers["serial"]]
        timers = timers[np.lexsort((timers["ticket"], timers["until"]))]
        t.scalars[HEAP] = len(timers)
        self._with(timers=np.concatenate((timers, np.zeros(len(timers) + more + 64, timers.dtype))))

    def kept(self, name: str) -> list[Kept]:
        """The waiting instances of one pattern, oldest first, and then what may break them."""
        index = self._index[name]
        t, p = self._tables, self._tables.patterns[index]
        at, newer, order = int(p["oldest"]), t.entries["newer"], list[int]()
        while at != -1:
            order.append(at)
            at = int(newer[at])
        order += self._watched(index)
        names = ("place", "probability", "flag", "until", "blocker", "quiet")
        columns = (t.entries[column][order].tolist() for column in names)
        past, first, joint = self._past.events, int(p["first"]), bool(p["joint"])
        out = []
        for row, place, sure, flag, until, blocker, quiet in zip(t.ranks[order].tolist(), *columns, strict=True):
            member = place - first
            ranks = tuple(row[: 1 if joint or place == p["guard"] else member + 1])
            over = None if until == NEVER else until
            out.append(Kept(tuple([past[rank] for rank in ranks]), ranks, member, sure, flag, over, blocker, quiet))
        return out

    def _watched(self, index: int) -> list[int]:
        """The entries of what must not happen, by time."""
        entries, guard = self._tables.entries, self._tables.patterns["guard"][index]
        if guard < 0:
            return []
        mine = np.flatnonzero((entries["place"] == guard) & (entries["serial"] >= 0))
        return [int(entry) for entry in mine[np.argsort(entries["serial"][mine])]]

    def load(self, name: str, kept: Sequence[Kept], facts: Facts) -> None:
        """Take waiting instances back, oldest first."""
        index, shape = self._index[name], self._shapes[name]
        pattern = self._tables.patterns[index]
        pattern["detected"], pattern["dropped"] = facts.detected, facts.dropped
        for row in kept:
            self._tables.scalars[NEED_ENTRIES], self._tables.scalars[NEED_FOUND] = 2, 0
            self._make_room()
            self._load(shape.within, index, row, shape.all_roles[row.member].attributes)

    def _load(self, within: int, index: int, row: Kept, attributes: tuple[str, ...]) -> None:
        t, columns = self._tables, self._columns
        found = [columns.keys(row.events[-1].tuples, columns.join(attribute)) for attribute in attributes]
        keys = [key[0] if key else -1 for key in found]
        hit = np.zeros(1, HIT)
        hit["place"] = t.patterns["first"][index] + row.member
        for name, key in zip(("k0", "k1", "k2"), keys, strict=False):
            hit[name] = key
        deadline = NEVER if within < 0 else row.events[0].span[1] + within
        end, rank = row.events[-1].span[1], row.ranks[-1]
        self._past.events.update(zip(row.ranks, row.events, strict=True))
        if hit["place"][0] == t.patterns["guard"][index]:
            t.ranks[join(t, hit[0], end, row.probability, deadline), 0] = rank
            return
        entry = hold(t, hit[0], -1, end, rank, row.probability, deadline, 1 << 62)
        t.ranks[entry, : len(row.ranks)] = row.ranks
        t.entries["flag"][entry], t.entries["blocker"][entry] = row.flag, row.blocker
        t.entries["quiet"][entry] = row.quiet
        if row.flag & (REPLACED | BROKEN) and row.until is not None:
            t.entries["until"][entry] = row.until
            push(t, entry, row.until)
