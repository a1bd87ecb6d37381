"""Columns: the subscription terms of one measure and theme, made ready for the terms of events in slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.matching.index.lists import Lists, grown
from likewise.semantics import Measure, Prepared, contrasted
from likewise.semantics.evidence import shifted

PAGE = 256
"""Columns are given out and taken back by so many; terms that come one by one are joined within them, so that making
some ready anew together is not noticed."""

BULK = 1 << 14
"""Terms that come all at once, when a matcher is filled, are made ready in slices of so many."""

STEP = 256
"""So many terms move at a time when room is made, so that nobody has to wait for it."""


EAGER = 128
"""So many new terms wait at most before they are made ready, once events are coming."""


class Slice(NamedTuple):
    """Columns from `begin` to `end`, made ready together; the stamp tells what was made ready before what."""

    begin: int
    end: int
    stamp: int
    ready: Prepared


class Move(NamedTuple):
    """Terms that have new columns, and a table from every column, -1 included, to what it is now."""

    old: NDArray[np.int64]
    new: NDArray[np.int64]
    table: NDArray[np.int32]


class TermColumns:
    """Terms as columns, each held as long as it is needed; columns of terms that nobody needs are used again.

    They are given back by pages: the few terms still needed in the emptiest page move to new columns.

    >>> from likewise.testing import TableMeasure
    >>> columns = TermColumns(TableMeasure({("laptop", "computer"): 0.5}))
    >>> columns.add("laptop"), columns.add("lamp"), columns.add("laptop")
    (0, 1, 0)
    """

    def __init__(self, measure: Measure, *, theme: Sequence[str] = ()) -> None:
        self.measure = measure
        self.theme = tuple(theme)
        self.terms: list[str] = []
        self.version = 0
        """Grows with every new column."""
        self._numbers: dict[str, int] = {}
        self._uses = np.zeros(64, dtype=np.int32)
        self._live = 0
        self._slices: list[Slice] = []
        self._pending: list[tuple[int, int]] = []
        self._free: list[int] = []
        self._room = (0, 0)
        self._stamp = 0

    def __len__(self) -> int:
        """Columns are below this."""
        return len(self.terms)

    def add(self, term: str) -> int:
        """The column of a term, held once more."""
        number = self._numbers.get(term)
        if number is None:
            number = self._place(term)
        self._live += not self._uses[number]
        self._uses[number] += 1
        return number

    def number(self, term: str) -> int:
        """The column of a term that is held."""
        return self._numbers[term]

    def release(self, number: int) -> None:
        """Hold a column once less; nobody needs it after the last time, but it stays for a while."""
        self._uses[number] -= 1
        self._live -= not self._uses[number]

    def slices(self) -> list[Slice]:
        """Every slice, made ready, the latest last; all terms are in them."""
        for begin, end in self._pending:
            self._make_ready(begin, end)
        self._pending.clear()
        return self._slices

    def keep_up(self) -> None:
        """Make new terms ready a few at a time once events are coming, so that no event has to wait for many."""
        if self._slices and sum(end - begin for begin, end in self._pending) >= EAGER:
            self.slices()

    def make_room(self) -> Iterator[Move]:
        """Where most terms are needed no longer, give pages back; tells which few terms move out of them."""
        while len(self._numbers) - self._live > max(4 * PAGE, self._live):
            found = [part for part in self._parts() if not part[0] <= self._room[0] < part[1]]
            if not found:
                return
            begin, end = max(found, key=self._unneeded)
            needed = np.flatnonzero(self._uses[begin:end]) + begin
            move = self._move(needed[:STEP])
            if len(needed) <= STEP:
                self._drop(begin, end)
            if len(needed):
                yield move
                return

    def _parts(self) -> list[tuple[int, int]]:
        """Pages, together where a slice lies on several."""
        parts: list[tuple[int, int]] = []
        for first, last in sorted([*(part[:2] for part in self._slices), *self._pending]):
            begin, end = first - first % PAGE, last + -last % PAGE
            if parts and begin < parts[-1][1]:
                parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
            else:
                parts.append((begin, end))
        return parts

    def _unneeded(self, part: tuple[int, int]) -> int:
        begin, end = part
        return end - begin - int(np.count_nonzero(self._uses[begin:end]))

    def _move(self, old: NDArray[np.int64]) -> Move:
        new = np.array([self._place(self.terms[number]) for number in old.tolist()], dtype=np.int64)
        self._uses[new], self._uses[old] = self._uses[old], 0
        table = np.arange(len(self.terms) + 1, dtype=np.int32)
        table[old], table[-1] = new, -1
        return Move(old, new, table)

    def _place(self, term: str) -> int:
        number, limit = self._room
        if number == limit:
            number, limit = self._next_room()
        self._room = (number + 1, limit)
        if number == len(self.terms):
            self.terms.append(term)
            self._uses = grown(self._uses, number + 1)
        else:
            self.terms[number] = term
        self._numbers[term] = number
        self.version += 1
        begin, end = self._pending[-1] if self._pending else (0, -1)
        # Only what fills whole pages goes on over their edge; else a chain of slices would hold all pages together.
        if end == number and end - begin < BULK and (number % PAGE or not begin % PAGE):
            self._pending[-1] = (begin, number + 1)
        else:
            self._pending.append((number, number + 1))
        return number

    def _next_room(self) -> tuple[int, int]:
        begin = self._free.pop() if self._free else len(self.terms)
        return begin, begin + PAGE

    def _make_ready(self, begin: int, end: int) -> None:
        # As in a binary counter, a slice is joined with those before it that are no larger: a term is
        # made ready anew only a few times, and there are never many slices.
        while self._slices and self._may_join(begin, end):
            begin = self._slices.pop().begin
        self._stamp += 1
        ready = self.measure.prepare(self.terms[begin:end], subscription_theme=self.theme)
        self._slices.append(Slice(begin, end, self._stamp, ready))

    def _may_join(self, begin: int, end: int) -> bool:
        last = self._slices[-1]
        return last.end == begin and last.end - last.begin <= end - begin and last.begin // PAGE == (end - 1) // PAGE

    def _drop(self, begin: int, end: int) -> None:
        for number in range(begin, end):
            if self._numbers.get(self.terms[number]) == number:
                del self._numbers[self.terms[number]]
        self._slices = [part for part in self._slices if not begin <= part.begin < end]
        # What moved out of here may have gone on from the last of these pages: that part stays.
        rest = [(end, last) if begin <= first < end else (first, last) for first, last in self._pending]
        self._pending = [(first, last) for first, last in rest if first < last]
        self._free += range(begin, end, PAGE)


# Relatedness of the terms of events with the terms of subscriptions, worked out once for each pair.


class Relations:
    """A row per event term (of one event theme), a column per subscription term."""

    def __init__(self, columns: TermColumns) -> None:
        self.columns = columns
        self.forget()

    def forget(self) -> None:
        """Drop all rows."""
        self._rows: dict[tuple[int, int], int] = {}
        self._stamp = np.zeros(64, dtype=np.int64)
        self.table = np.zeros((64, 16), dtype=np.float32)

    def rows(
        self, numbers: Sequence[int], terms: Sequence[str], *, context: int = 0, theme: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Where the rows of these event terms stand; what is not known yet is worked out first."""
        places = self._places(numbers, context)
        self._fill(places, terms, theme)
        return places

    def put(self, numbers: Sequence[int], scores: NDArray[np.float32], *, context: int) -> NDArray[np.int64]:
        """Rows that were worked out elsewhere; where they stand."""
        places = self._places(numbers, context)
        self.table[places, : scores.shape[1]] = scores
        return places

    def _places(self, numbers: Sequence[int], context: int) -> NDArray[np.int64]:
        found = [self._rows.get((context, number), -1) for number in numbers]
        for at, number in enumerate(numbers):
            if found[at] < 0:
                found[at] = self._rows[context, number] = len(self._rows)
        self._reserve()
        return np.array(found, dtype=np.int64)

    def scores(
        self,
        places: NDArray[np.int64],
        *,
        bits: NDArray[np.float32] | None,
        rivals: NDArray[np.bool_],
        temperature: float | None,
    ) -> NDArray[np.float32]:
        """The rows at these places with bits added; with a temperature, contrasted with the columns of rivals."""
        raw = self.table[places, : max(1, len(self.columns))]
        if bits is not None:
            raw = shifted(raw, bits)
        if temperature is None or not len(self.columns):
            return raw
        return contrasted(raw, raw[:, rivals].max(axis=1, initial=0.0), temperature)

    def _reserve(self) -> None:
        rows, columns = len(self._rows), len(self.columns)
        if columns > self.table.shape[1]:
            wider = np.zeros((self.table.shape[0], max(columns, 2 * self.table.shape[1])), dtype=np.float32)
            wider[:, : self.table.shape[1]] = self.table
            self.table = wider
        self.table, self._stamp = grown(self.table, rows), grown(self._stamp, rows)

    def _fill(self, places: NDArray[np.int64], terms: Sequence[str], theme: Sequence[str]) -> None:
        slices = self.columns.slices()
        if not len(places) or not slices or int(self._stamp[places].min()) >= slices[-1].stamp:
            return
        for part in slices:
            lacking = np.flatnonzero(self._stamp[places] < part.stamp)
            if len(lacking):
                scores = part.ready.rows([terms[at] for at in lacking.tolist()], event_theme=theme)
                # A measure may not know a word, but never may a score be "not a number".
                self.table[places[lacking], part.begin : part.end] = np.nan_to_num(
                    scores, nan=0.0, posinf=1.0, neginf=0.0
                )
        self._stamp[places] = slices[-1].stamp


# Neighbours: for each event term the subscription terms that are near it, and no others.


FLOOR = 0.01
"""A relatedness below this counts as none where there are very many subscriptions."""

STRONG = 0.2
"""Neighbours at least so near are kept apart, to find candidates quickly."""

MOST = 4096
"""So many neighbours of a term are kept, the nearest."""


class Neighbours:
    """Sparse rows of relatedness, each in the order of the columns."""

    def __init__(self, columns: TermColumns) -> None:
        self.columns = columns
        self.forget()

    def forget(self) -> None:
        """Drop all rows."""
        self._numbers: dict[tuple[int, int], int] = {}
        self.lists = Lists(np.int32, np.float32)
        self.strong = Lists(np.int32, np.float32)
        self._stamp = np.zeros(64, dtype=np.int64)
        self.rival = np.zeros(64, dtype=np.float32)
        self._rival_version = np.full(64, -1, dtype=np.int64)

    def rows(
        self, numbers: Sequence[int], terms: Sequence[str], *, context: int = 0, theme: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """The lists of these event terms; what is not known yet is worked out first."""
        places = np.array([self._place(context, number) for number in numbers], dtype=np.int64)
        slices = self.columns.slices()
        lacking = np.flatnonzero(self._stamp[places] < (slices[-1].stamp if slices else 0))
        if len(lacking):
            self._fill(places[lacking], [terms[at] for at in lacking.tolist()], theme)
        return places

    def contest(self, places: NDArray[np.int64], rivals: NDArray[np.bool_], version: int) -> None:
        """Find the best score of a rival in the lists where it may have changed."""
        stale = places[self._rival_version[places] != version]
        for place in stale.tolist():
            begin = int(self.lists.start[place])
            end = begin + int(self.lists.length[place])
            taking_part = rivals[self.lists.fields[0][begin:end]]
            self.rival[place] = np.max(self.lists.fields[1][begin:end][taking_part], initial=0.0)
        self._rival_version[stale] = version

    def _place(self, context: int, number: int) -> int:
        place = self._numbers.get((context, number))
        if place is None:
            place = self._numbers[context, number] = len(self._numbers)
            self.lists.reserve(place + 1)
            self.strong.reserve(place + 1)
            if place >= len(self._stamp):
                self._stamp, self.rival = grown(self._stamp, place + 1), grown(self.rival, place + 1)
                self._rival_version = grown(self._rival_version, place + 1, fill=-1)
        return place

    def _fill(self, places: NDArray[np.int64], terms: list[str], theme: Sequence[str]) -> None:
        slices = self.columns.slices()
        for part in slices:
            lacking = np.flatnonzero(self._stamp[places] < part.stamp)
            if len(lacking):
                scores = part.ready.rows([terms[at] for at in lacking.tolist()], event_theme=theme)
                for place, row in zip(places[lacking].tolist(), np.nan_to_num(scores), strict=True):
                    self._merge(place, row, part)
        self._stamp[places] = slices[-1].stamp
        self._rival_version[places] = -1

    def _merge(self, place: int, row: NDArray[np.float32], part: Slice) -> None:
        """Put in the neighbours of one slice; what an earlier look at these columns gave is replaced."""
        near = np.flatnonzero(row >= FLOOR)
        columns = self.lists[place]
        start, size = int(self.lists.start[place]), len(columns)
        scores = self.lists.fields[1][start : start + size]
        before, after = np.searchsorted(columns, (part.begin, part.end)).tolist()
        scores = np.concatenate([scores[:before], row[near], scores[after:]])
        columns = np.concatenate([columns[:before], (near + part.begin).astype(np.int32), columns[after:]])
        if len(columns) > MOST:
            best = np.sort(np.argpartition(scores, -MOST)[-MOST:])
            columns, scores = columns[best], scores[best]
        self.lists.set(place, columns, scores)
        strong = scores >= STRONG
        self.strong.set(place, columns[strong], scores[strong])
