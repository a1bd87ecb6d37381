"""Relatedness of the terms of events with the terms of subscriptions, worked out once for each pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.matching._lists import grown
from likewise.semantics import Measure, Prepared, contrasted, prepare

SLICE = 1024
"""Terms that come one by one are joined up to so many: made ready anew together, they are not noticed."""

BULK = 1 << 14
"""Terms that come all at once, when a matcher is filled, are made ready in slices of so many."""


class Columns:
    """The subscription terms of one measure and theme, as columns that only ever grow.

    >>> from likewise.testing import TableMeasure
    >>> columns = Columns(TableMeasure({("laptop", "computer"): 0.5}))
    >>> columns.add("laptop"), columns.add("lamp"), columns.add("laptop")
    (0, 1, 0)
    """

    def __init__(self, measure: Measure, *, theme: Sequence[str] = ()) -> None:
        self.measure = measure
        self.theme = tuple(theme)
        self.terms: list[str] = []
        self._numbers: dict[str, int] = {}
        self._slices: list[tuple[int, int, Prepared]] = []

    def __len__(self) -> int:
        return len(self.terms)

    def add(self, term: str) -> int:
        """The column of a term."""
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self.terms)
            self.terms.append(term)
        return number

    def slices(self) -> list[tuple[int, int, Prepared]]:
        """First and last column and the prepared terms of every slice, all terms included."""
        size = len(self.terms)
        done = self._slices[-1][1] if self._slices else 0
        if done == size:
            return self._slices
        # As in a binary counter, a slice is joined with those before it that are no larger: a term is
        # made ready anew only a few times, and there are never many slices.
        while self._slices and self._may_join(done, size):
            done = self._slices.pop()[0]
        while done < size:
            end = min(done + BULK, size)
            ready = prepare(self.measure, self.terms[done:end], subscription_theme=self.theme)
            self._slices.append((done, end, ready))
            done = end
        return self._slices

    def _may_join(self, done: int, size: int) -> bool:
        begin, end, _ = self._slices[-1]
        return end - begin <= size - done and size - begin <= SLICE


class Relations:
    """A row per event term (of one event theme), a column per subscription term."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._rows: dict[tuple[int, int], int] = {}
        self._width = np.zeros(64, dtype=np.int32)
        self.table = np.zeros((64, 16), dtype=np.float32)

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return self.table.nbytes

    def forget(self) -> None:
        """Drop all rows."""
        self.__init__(self.columns)  # type: ignore[misc]

    def rows(
        self, numbers: Sequence[int], terms: Sequence[str], *, context: int = 0, theme: Sequence[str] = ()
    ) -> NDArray[np.int64]:
        """Where the rows of these event terms stand; what is not known yet is worked out first."""
        found = [self._rows.get((context, number), -1) for number in numbers]
        for at, number in enumerate(numbers):
            if found[at] < 0:
                found[at] = self._rows[context, number] = len(self._rows)
        places = np.array(found, dtype=np.int64)
        self._reserve()
        self._fill(places, terms, theme)
        return places

    def scores(
        self, places: NDArray[np.int64], *, rivals: NDArray[np.int64], temperature: float | None
    ) -> NDArray[np.float32]:
        """The rows at these places; with a temperature, contrasted with the columns of their rivals."""
        raw = self.table[places, : max(1, len(self.columns))]
        if temperature is None or not len(self.columns):
            return raw
        return contrasted(raw, raw[:, rivals].max(axis=1, initial=0.0), temperature)

    def _reserve(self) -> None:
        rows, columns = len(self._rows), len(self.columns)
        if columns > self.table.shape[1]:
            wider = np.zeros((self.table.shape[0], max(columns, 2 * self.table.shape[1])), dtype=np.float32)
            wider[:, : self.table.shape[1]] = self.table
            self.table = wider
        self.table, self._width = grown(self.table, rows), grown(self._width, rows)

    def _fill(self, places: NDArray[np.int64], terms: Sequence[str], theme: Sequence[str]) -> None:
        if not len(places) or int(self._width[places].min()) == len(self.columns):
            return
        for begin, end, prepared in self.columns.slices():
            lacking = np.flatnonzero(self._width[places] < end)
            if len(lacking):
                scores = prepared.rows([terms[at] for at in lacking.tolist()], event_theme=theme)
                # A measure may not know a word, but never may a score be "not a number".
                self.table[places[lacking], begin:end] = np.nan_to_num(scores, nan=0.0, posinf=1.0, neginf=0.0)
        self._width[places] = len(self.columns)
