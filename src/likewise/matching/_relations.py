"""Relatedness of the terms of events with the terms of subscriptions, worked out once for each pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.matching._columns import Columns
from likewise.matching._lists import grown
from likewise.semantics import contrasted


class Relations:
    """A row per event term (of one event theme), a column per subscription term."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._rows: dict[tuple[int, int], int] = {}
        self._stamp = np.zeros(64, dtype=np.int64)
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
        self, places: NDArray[np.int64], *, rivals: NDArray[np.bool_], temperature: float | None
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
