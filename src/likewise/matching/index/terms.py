"""Columns: the subscription terms of one measure and theme, and their relatedness to event terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import NEAREST
from likewise.matching.index.lists import Lists, grown
from likewise.matching.index.sparse_kernel import FLOOR
from likewise.semantics import Measure, Prepared, contrasted
from likewise.semantics.evidence import SurroundedTerms, Surroundings, shifted

PAGE = 256
"""Columns are allocated and freed in pages of this size. Slices of single new terms are joined within a page only, so
that preparing a joined slice again takes little time."""

BULK = 1 << 14
"""The size of slices for many terms added at once, when a matcher is filled."""

STEP = 256
"""Terms that move at a time when pages are freed, so that no call takes long."""


EAGER = 128
"""New terms that may be unprepared while events are coming."""


class Slice(NamedTuple):
    """Columns from `begin` to `end`, prepared together; stamps grow in the order of preparation."""

    begin: int
    end: int
    stamp: int
    ready: Prepared


class Move(NamedTuple):
    """Terms that moved to new columns, and a table from every column, -1 included, to its current one."""

    old: NDArray[np.int64]
    new: NDArray[np.int64]
    table: NDArray[np.int32]


class TermColumns:
    """Terms as columns with reference counts; columns of terms that are no longer needed are reused.

    Columns are freed in pages: the few terms still needed in the emptiest page move to new columns.

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
        """One more than the highest column."""
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
        """Release a column once; after the last time it may be reused later."""
        self._uses[number] -= 1
        self._live -= not self._uses[number]

    def slices(self) -> list[Slice]:
        """All slices, prepared, the latest last; together they have all terms."""
        for begin, end in self._pending:
            self._prepare(begin, end)
        self._pending.clear()
        return self._slices

    def keep_up(self) -> None:
        """Prepare new terms a few at a time once events are coming, so that no event has to wait for many."""
        if self._slices and sum(end - begin for begin, end in self._pending) >= EAGER:
            self.slices()

    def make_room(self) -> Iterator[Move]:
        """Free pages if most terms are no longer needed; gives the terms that move out of them."""
        while len(self._numbers) - self._live > max(4 * PAGE, self._live):
            parts = [part for part in self._parts() if not part[0] <= self._room[0] < part[1]]
            if not parts:
                return
            begin, end = max(parts, key=self._unneeded)
            needed = np.flatnonzero(self._uses[begin:end]) + begin
            move = self._move(needed[:STEP])
            if len(needed) <= STEP:
                self._drop(begin, end)
            if len(needed):
                yield move
                return

    def _parts(self) -> list[tuple[int, int]]:
        """Ranges of pages; pages that share a slice form one range."""
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
        # Only a slice from the start of a page may cross its end; else a chain of slices would join all pages.
        if end == number and end - begin < BULK and (number % PAGE or not begin % PAGE):
            self._pending[-1] = (begin, number + 1)
        else:
            self._pending.append((number, number + 1))
        return number

    def _next_room(self) -> tuple[int, int]:
        begin = self._free.pop() if self._free else len(self.terms)
        return begin, begin + PAGE

    def _prepare(self, begin: int, end: int) -> None:
        # As in a binary counter, a slice is joined with those before it that are no larger: each term is
        # prepared only a few times, and there are never many slices.
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
        # A pending range may begin here and continue with terms that moved out: that part stays.
        rest = [(end, last) if begin <= first < end else (first, last) for first, last in self._pending]
        self._pending = [(first, last) for first, last in rest if first < last]
        self._free += range(begin, end, PAGE)


class Relations:
    """Relatedness computed once: a row per event term (of one event theme), a column per subscription term."""

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
        """The places of these event terms' rows; missing scores are computed first."""
        places = self._places(numbers, context)
        self._fill(places, terms, theme)
        return places

    def put(self, numbers: Sequence[int], scores: NDArray[np.float32], *, context: int) -> NDArray[np.int64]:
        """Store rows computed elsewhere, and return their places."""
        places = self._places(numbers, context)
        self.table[places, : scores.shape[1]] = scores
        return places

    def _places(self, numbers: Sequence[int], context: int) -> NDArray[np.int64]:
        places = [self._rows.get((context, number), -1) for number in numbers]
        for at, number in enumerate(numbers):
            if places[at] < 0:
                places[at] = self._rows[context, number] = len(self._rows)
        self._reserve()
        return np.array(places, dtype=np.int64)

    def scores(
        self,
        places: NDArray[np.int64],
        *,
        bits: NDArray[np.float32] | None,
        rivals: NDArray[np.bool_],
        temperature: float | None,
    ) -> NDArray[np.float32]:
        """The rows at these places, with bits added and, with a temperature, contrasted with the rivals' columns."""
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
                # A measure may give NaN for an unknown word; a score never is NaN.
                self.table[places[lacking], part.begin : part.end] = np.nan_to_num(
                    scores, nan=0.0, posinf=1.0, neginf=0.0
                )
        self._stamp[places] = slices[-1].stamp


STRONG = 0.2
"""Neighbours with at least this relatedness also have lists of their own, to find candidates quickly."""

MOST = 4096
"""The number of nearest neighbours kept for a term."""


class Neighbours:
    """Sparse rows of relatedness: for each event term the near subscription terms, in the order of columns."""

    def __init__(self, columns: TermColumns) -> None:
        self.columns = columns
        self.around: Surroundings | None = None
        self._surrounded: dict[int, SurroundedTerms] = {}
        self.forget()

    def surround(self, around: Surroundings | None) -> None:
        """Set the words of the stream, which are evidence about the terms, and drop all rows."""
        self.around = around
        self._surrounded.clear()
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
        """The lists of these event terms; missing scores are computed first."""
        places = np.array([self._place(context, number) for number in numbers], dtype=np.int64)
        slices = self.columns.slices()
        lacking = np.flatnonzero(self._stamp[places] < (slices[-1].stamp if slices else 0))
        if len(lacking):
            self._fill(places[lacking], [terms[at] for at in lacking.tolist()], theme)
        return places

    def complete(
        self, places: NDArray[np.int32], terms: Sequence[str], columns: NDArray[np.int32], *, theme: Sequence[str] = ()
    ) -> None:
        """List these columns for these event terms, even those that are hardly related."""
        ready = self.columns.measure.prepare(
            [self.columns.terms[column] for column in columns.tolist()], subscription_theme=self.columns.theme
        )
        scores = np.nan_to_num(ready.rows(terms, event_theme=theme))
        if self.around is not None:
            scores = shifted(scores, self.around.prepare(ready.terms).bits(terms))
        for place, row in zip(places.tolist(), scores, strict=True):
            new = np.flatnonzero(~np.isin(columns, self.lists[place]))
            before = slice(int(self.lists.start[place]), int(self.lists.start[place]) + int(self.lists.length[place]))
            everything = np.concatenate([self.lists.fields[0][before], columns[new]])
            order = np.argsort(everything)
            self.lists.set(place, everything[order], np.concatenate([self.lists.fields[1][before], row[new]])[order])

    def contest(self, places: NDArray[np.int64], rivals: NDArray[np.bool_], version: int) -> None:
        """Update the best score of a rival in lists of an older version."""
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
                new = [terms[at] for at in lacking.tolist()]
                scores = np.nan_to_num(part.ready.rows(new, event_theme=theme))
                if self.around is not None:
                    self._shift(scores, new, part)
                for place, row in zip(places[lacking].tolist(), scores, strict=True):
                    self._merge(place, row, part)
        self._stamp[places] = slices[-1].stamp
        self._rival_version[places] = -1

    def _shift(self, scores: NDArray[np.float32], terms: Sequence[str], part: Slice) -> None:
        """Add the bits of the stream's words where terms are near: even the most cannot lift others to the floor."""
        assert self.around is not None
        if part.stamp not in self._surrounded:
            current = {each.stamp for each in self.columns.slices()}
            self._surrounded = {stamp: kept for stamp, kept in self._surrounded.items() if stamp in current}
            self._surrounded[part.stamp] = self.around.prepare(part.ready.terms)
        near = np.nonzero(scores >= FLOOR / 2**NEAREST)
        scores[near] = shifted(scores[near], self._surrounded[part.stamp].bits_of(terms, *near))

    def _merge(self, place: int, row: NDArray[np.float32], part: Slice) -> None:
        """Insert the neighbours of one slice, and replace earlier ones of the same columns."""
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
