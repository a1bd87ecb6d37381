"""Rivals: the competitors of a group of profiles as columns, kept up with the competition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.matching._columns import Columns, Move
from likewise.matching._competition import Change, Competition
from likewise.matching._lists import grown


class Rivals:
    """Which columns compete, of the attributes (0) and of the values (1); each is held while it does.

    >>> from likewise.semantics import Competitors
    >>> from likewise.testing import TableMeasure
    >>> columns = Columns(TableMeasure({})), Columns(TableMeasure({}))
    >>> rivals = Rivals(Competition(Competitors.of(["Spain", "Ireland"])), columns)
    >>> rivals.update()
    True
    >>> rivals.competing(1).tolist(), rivals.update()
    ([True, True], False)
    """

    def __init__(self, competition: Competition, columns: tuple[Columns, Columns]) -> None:
        self._competition = competition
        self._columns = columns
        self._masks = [np.zeros(64, dtype=np.bool_), np.zeros(64, dtype=np.bool_)]
        self.version = -1

    def update(self) -> bool:
        """Take in what changed; whether anything did."""
        if self.version == self._competition.version:
            return False
        changes = self._competition.since(self.version) if self.version >= 0 else None
        for side, term, entered in self._difference() if changes is None else changes:
            columns = self._columns[side]
            number = columns.add(term) if entered else columns.number(term)
            if not entered:
                columns.release(number)
            self._masks[side] = grown(self._masks[side], number + 1)
            self._masks[side][number] = entered
        self.version = self._competition.version
        return True

    def competing(self, side: int) -> NDArray[np.bool_]:
        """For every column whether its term competes."""
        self._masks[side] = grown(self._masks[side], len(self._columns[side]))
        return self._masks[side][: len(self._columns[side])]

    def moved(self, side: int, move: Move) -> None:
        """Follow terms to their new columns."""
        self.competing(side)
        mask = self._masks[side]
        mask[move.new], mask[move.old] = mask[move.old], False

    def _difference(self) -> list[Change]:
        """What to do to have all competitors and no others."""
        out = []
        for side, terms in enumerate((self._competition.attributes, self._competition.values)):
            columns = self._columns[side]
            here = {columns.terms[number] for number in np.flatnonzero(self._masks[side]).tolist()}
            out += [Change(side, term, False) for term in here.difference(terms)]
            out += [Change(side, term, True) for term in terms if term not in here]
        return out
