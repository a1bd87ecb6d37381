"""Neighbours: for each event term the subscription terms that are near it, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.matching._columns import Columns, Slice
from likewise.matching._lists import Lists, grown

FLOOR = 0.01
"""A relatedness below this counts as none where there are very many subscriptions."""

STRONG = 0.2
"""Neighbours at least so near are kept apart, to find candidates quickly."""

MOST = 4096
"""So many neighbours of a term are kept, the nearest."""


class Neighbours:
    """Sparse rows of relatedness, each in the order of the columns."""

    def __init__(self, columns: Columns) -> None:
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
