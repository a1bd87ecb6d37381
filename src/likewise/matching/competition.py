"""Competition: the terms that contrast compares with each other, with a version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise
from likewise.language import Operator, Profile
from likewise.matching.encoding import term_of
from likewise.matching.index.lists import grown
from likewise.matching.index.terms import Move, TermColumns
from likewise.semantics import Competitors

_LOGGED = 4096


class Change(NamedTuple):
    """A term that entered or left the competition of attributes (0) or values (1)."""

    side: int
    term: str
    entered: bool


class Competition:
    """The competing terms: the approximate terms of all registered profiles, or a fixed vocabulary.

    Attributes compete with attributes and values with values. Scores depend on the competitors, so `version` grows
    with every change, and matchers that must give the same scores share one competition.

    >>> competition = Competition(Competitors.of(["Spain", "Ireland"]))
    >>> competition.values
    ('Ireland', 'Spain')
    """

    def __init__(self, fixed: Competitors | tuple[Competitors, Competitors] | None = None) -> None:
        both = (fixed, fixed) if isinstance(fixed, Competitors) else fixed
        self.fixed = both is not None
        self.version = 0
        self._log: list[Change] = []
        self._attributes: Counter[str] = Counter()
        self._values: Counter[str] = Counter()
        if both is not None:
            self._attributes.update(both[0].terms)
            self._values.update(both[1].terms)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that compete."""
        return tuple(self._attributes)

    @property
    def values(self) -> tuple[str, ...]:
        """The values that compete."""
        return tuple(self._values)

    @property
    def competitors(self) -> tuple[Competitors, Competitors]:
        """The competing attributes and the competing values, each with its version."""
        return Competitors.of(self._attributes), Competitors.of(self._values)

    def enter(self, profile: Profile) -> None:
        """Add the terms of a profile."""
        if not self.fixed:
            self._count(0, _attributes(profile), 1)
            self._count(1, _values(profile), 1)

    def leave(self, profile: Profile) -> None:
        """Remove the terms of a profile that no other profile has."""
        if not self.fixed:
            self._count(0, _attributes(profile), -1)
            self._count(1, _values(profile), -1)

    def since(self, version: int) -> Sequence[Change] | None:
        """The changes since a version; None if the log does not go back that far."""
        behind = self.version - version
        return self._log[len(self._log) - behind :] if 0 <= behind <= len(self._log) else None

    def as_of(self, version: int) -> Competition | None:
        """The competition as it was at an earlier version; None if the log does not go back that far.

        >>> from likewise.language import Predicate
        >>> competition = Competition()
        >>> for place in ("Spain", "Ireland"):
        ...     competition.enter(Profile((Predicate("country", Operator.EQ, place, False, True),)))
        >>> competition.as_of(1).values, competition.values
        (('spain',), ('spain', 'ireland'))
        """
        changes = self.since(version)
        if changes is None:
            return None
        past = Competition()
        past.fixed = True
        past._attributes, past._values = Counter(self._attributes), Counter(self._values)
        for side, term, entered in reversed(changes):
            counter = (past._attributes, past._values)[side]
            counter[term] = int(not entered)
            if entered:
                del counter[term]
        return past

    def _count(self, side: int, terms: Iterable[str], step: int) -> None:
        counter = (self._attributes, self._values)[side]
        for term in terms:
            before = counter[term]
            counter[term] = before + step
            if not counter[term]:
                del counter[term]
            if not before or before + step == 0:
                self.version += 1
                self._log.append(Change(side, term, step > 0))
        if len(self._log) > _LOGGED:
            del self._log[: _LOGGED // 2]


def _attributes(profile: Profile) -> Iterable[str]:
    return (normalise(predicate.attribute) for predicate in profile.predicates if predicate.attribute_approximate)


def _values(profile: Profile) -> Iterable[str]:
    for predicate in profile.predicates:
        by_meaning = predicate.value_approximate and predicate.operator in (Operator.EQ, Operator.NE)
        if by_meaning and isinstance(predicate.value, str):
            yield term_of(predicate.value)


class Rivals:
    """The competitors as columns of a group of profiles, for attributes (0) and values (1).

    >>> from likewise.semantics import Competitors
    >>> from likewise.testing import TableMeasure
    >>> columns = TermColumns(TableMeasure({})), TermColumns(TableMeasure({}))
    >>> rivals = Rivals(Competition(Competitors.of(["Spain", "Ireland"])), columns)
    >>> rivals.update()
    True
    >>> rivals.competing(1).tolist(), rivals.update()
    ([True, True], False)
    """

    def __init__(self, competition: Competition, columns: tuple[TermColumns, TermColumns]) -> None:
        self._competition = competition
        self._columns = columns
        self._masks = [np.zeros(64, dtype=np.bool_), np.zeros(64, dtype=np.bool_)]
        self.version = -1

    def update(self) -> bool:
        """Apply the changes of the competition; whether there were any."""
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
        """For every column, whether its term competes."""
        self._masks[side] = grown(self._masks[side], len(self._columns[side]))
        return self._masks[side][: len(self._columns[side])]

    def moved(self, side: int, move: Move) -> None:
        """Update the columns of terms that moved."""
        self.competing(side)
        mask = self._masks[side]
        mask[move.new], mask[move.old] = mask[move.old], False

    def _difference(self) -> list[Change]:
        """The changes from the current columns to the current competitors."""
        changes = []
        for side, terms in enumerate((self._competition.attributes, self._competition.values)):
            columns = self._columns[side]
            current = {columns.terms[number] for number in np.flatnonzero(self._masks[side]).tolist()}
            changes += [Change(side, term, False) for term in current.difference(terms)]
            changes += [Change(side, term, True) for term in terms if term not in current]
        return changes
