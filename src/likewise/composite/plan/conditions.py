"""Conditions between members (binding predicates, 003 section 2.2): exact, numeric, by meaning, and in time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from likewise.composite.instance import Asked, Filled, RoleToken, Weighted
from likewise.events import Instant, Value, normalise, to_instant
from likewise.language import Allen, Operator
from likewise.matching import Approach, certainty, default_threshold
from likewise.semantics import Measure

# Values as conditions compare them: text by its normalised spelling, kinds never mixed.


TEXT: Final = 0
NUMBER: Final = 1
BOOLEAN: Final = 2
TIME: Final = 3
_NUMBERS: Final = (int, float)


def comparable(value: Value) -> tuple[int, Any]:
    """Kind and what to compare; a boolean is not a number, and times compare as instants.

    >>> comparable("Room_101") == comparable("room 101"), comparable(1) == comparable(True)
    (True, False)
    """
    if isinstance(value, str):
        return _TEXTS.get(value) or _text(value)
    if isinstance(value, bool):
        return BOOLEAN, value
    if isinstance(value, _NUMBERS):
        return NUMBER, value
    return TIME, to_instant(value)


_TEXTS: Final[dict[str, tuple[int, str]]] = {}
_MOST_TEXTS: Final = 1 << 14
_LONGEST: Final = 64


def _text(value: str) -> tuple[int, str]:
    """Rooms and names come again and again, so those that are short are kept, as many as there is room for."""
    made = TEXT, normalise(value)
    if len(_TEXTS) < _MOST_TEXTS and len(value) <= _LONGEST:
        _TEXTS[value] = made
    return made


Relate: TypeAlias = Callable[[str, str], float]
"""Relatedness of two terms, or 0 where it is too low to count."""

_COMPARE: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class ConditionSide:
    """One side of a condition: the roles meant, their attribute (normalised), and a number to add."""

    roles: frozenset[str]
    attribute: str
    offset: float = 0.0

    def __str__(self) -> str:
        return f"{', '.join(sorted(self.roles))}.{self.attribute}{f' + {self.offset:g}' if self.offset else ''}"

    def filled(self, filled: Iterable[Filled]) -> bool:
        """Whether any of the roles is filled."""
        roles = self.roles
        for one in filled:  # noqa: SIM110  (asked for every pair of instances: no generator)
            if one.role in roles:
                return True
        return False

    def values(self, filled: Iterable[Filled]) -> list[list[Weighted]]:
        """The values of each event that fills one of the roles."""
        roles, attribute = self.roles, self.attribute
        return [values_of(one, attribute) for one in filled if one.role in roles]

    def keys(self, filled: Iterable[Filled]) -> tuple[Any, ...]:
        """The same values, all together, as they compare."""
        roles, attribute = self.roles, self.attribute
        out: tuple[Any, ...] = ()
        for one in filled:
            if one.role in roles:
                keys = keys_at(one, attribute)
                out = out + keys if out else keys
        return out

    def distinct(self, filled: Iterable[Filled]) -> tuple[Any, ...]:
        """The same values of each event, in an order of their own."""
        roles, attribute = self.roles, self.attribute
        first: tuple[Any, ...] | None = None
        more: list[tuple[Any, ...]] = []
        for one in filled:
            if one.role in roles:
                keys = keys_at(one, attribute)
                if len(keys) != 1:
                    keys = tuple(sorted(set(keys)))
                if first is None:
                    first = keys
                else:
                    more.append(keys)
        if first is None:
            return ()
        return (first, *more) if more else first

    def only(self, filled: Iterable[Filled]) -> Filled | None:
        """The one event that is meant, if its own words for attributes are the pattern's."""
        roles, found = self.roles, None
        for one in filled:
            if one.role in roles:
                if found is not None or one.mapped is not None:
                    return None
                found = one
        return found


@dataclass(frozen=True, slots=True)
class Condition:
    """One binding predicate, with its names resolved to roles.

    If it `counts`, it sets an attribute equal to itself: a repeated member is then counted for each of its values.
    """

    left: ConditionSide
    operator: Operator
    right: ConditionSide | Value
    approximate: bool = False
    counts: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", self.joins and self.left == self.right)

    @property
    def roles(self) -> frozenset[str]:
        """All roles that it speaks of."""
        return self.left.roles | self.right.roles if isinstance(self.right, ConditionSide) else self.left.roles

    def __str__(self) -> str:
        """As it is written.

        >>> left, right = ConditionSide(frozenset({"a"}), "room"), ConditionSide(frozenset({"b"}), "place")
        >>> str(Condition(left, Operator.EQ, right, True))
        'a.room ~ b.place'
        """
        sign = {Operator.EQ: "~", Operator.NE: "!~"}[self.operator] if self.approximate else self.operator.value
        return f"{self.left} {sign} {self.right}"

    @property
    def joins(self) -> bool:
        """Whether it is a plain equality of two attributes, so that instances can be found by key."""
        right = self.right
        return (
            isinstance(right, ConditionSide)
            and self.operator is Operator.EQ
            and not (self.approximate or self.left.offset or right.offset)
        )

    @property
    def equated(self) -> tuple[ConditionSide, ...]:
        """What it sets equal, each as it stands in the event: these values distinguish duplicates."""
        right = self.right
        if not isinstance(right, ConditionSide) or self.operator is not Operator.EQ or self.approximate:
            return ()
        return ConditionSide(self.left.roles, self.left.attribute), ConditionSide(right.roles, right.attribute)

    def factor(self, filled: tuple[Filled, ...], relate: Relate | None) -> float:
        """0 if it fails, 1 if it holds, and in between by meaning or by an unlikely mapping.

        A member that stays empty (in another branch of `or`) is not asked about.
        """
        right = self.right
        if isinstance(right, ConditionSide) and not self.approximate:
            one = self.left.only(filled)
            if one is not None and self.counts:
                # What is equal to itself only has to be there.
                return 1.0 if keys_at(one, self.left.attribute) else 0.0
            other = right.only(filled)
            if one is not None and other is not None:
                return self._plainly(keys_at(one, self.left.attribute), keys_at(other, right.attribute), right.offset)
        return self._weighed(filled, relate)

    def _plainly(self, left: tuple[Any, ...], right: tuple[Any, ...], shift: float) -> float:
        """Of two events that are what they say: 1 if any of their values satisfy it."""
        test, own = _COMPARE[self.operator], self.left.offset
        for kind, x in left:
            for other, y in right:
                if (own and kind != NUMBER) or (shift and other != NUMBER):
                    continue
                if test(x + own if own else x, y + shift if shift else y) if kind == other else test is operator.ne:
                    return 1.0
        return 0.0

    def _weighed(self, filled: tuple[Filled, ...], relate: Relate | None) -> float:
        right = self.right
        if not isinstance(right, ConditionSide):
            if not self.left.filled(filled):
                return 1.0
            return min([self._best(one, [(right, 1.0)], relate) for one in self.left.values(filled)], default=0.0)
        if not (self.left.filled(filled) and right.filled(filled)):
            return 1.0
        left, others = self.left.values(filled), right.values(filled)
        return min([self._best(x, y, relate) for x in left for y in others], default=0.0)

    def _best(self, left: list[Weighted], right: list[Weighted], relate: Relate | None) -> float:
        if len(left) == 1 == len(right):
            [(x, wx)], [(y, wy)] = left, right
            return wx * wy * self._compare(x, y, relate)
        return max([wx * wy * self._compare(x, y, relate) for x, wx in left for y, wy in right], default=0.0)

    def _compare(self, x: Value, y: Value, relate: Relate | None) -> float:
        if self.approximate:
            related = relate(str(x), str(y)) if relate is not None else float(comparable(x) == comparable(y))
            return related if self.operator is Operator.EQ else 1.0 - related
        shift = self.right.offset if isinstance(self.right, ConditionSide) else 0.0
        return float(compare(self.operator, moved(x, self.left.offset), moved(y, shift)))


def moved(value: Value | None, offset: float) -> Value | None:
    """The value plus a number; what is no number has none."""
    if not offset:
        return value
    return value + offset if isinstance(value, int | float) and not isinstance(value, bool) else None


def compare(how: Operator, x: Value | None, y: Value | None) -> bool:
    """Compare two values as exact matching does: text by normalised spelling, kinds never mixed.

    >>> compare(Operator.EQ, "Room_101", "room 101"), compare(Operator.LT, 1, "2")
    (True, False)
    """
    if x is None or y is None:
        return False
    (kind, left), (other, right) = comparable(x), comparable(y)
    if kind != other:
        return how is Operator.NE
    return _COMPARE[how](left, right)


def values_of(filled: Filled, attribute: str) -> list[Weighted]:
    """The event's values of a normalised attribute, or those that the match mapped to it."""
    found = _asked(filled.token, attribute)[0]
    if found or filled.mapped is None:
        return [(value, 1.0) for value in found]
    return list(filled.mapped.get(attribute, ()))


def keys_at(filled: Filled, attribute: str) -> tuple[Any, ...]:
    """The same values as they compare."""
    asked = filled.token.asked
    keys = asked[attribute][1] if asked is not None and attribute in asked else _asked(filled.token, attribute)[1]
    if keys or filled.mapped is None:
        return keys
    return tuple([comparable(value) for value, _ in filled.mapped.get(attribute, ())])


_NAMES: Final[dict[str, str]] = {}
_MOST_NAMES: Final = 4096


def _spelt(name: str) -> str:
    """A name as attributes are compared; there are few, so most are known."""
    spelt = normalise(name)
    if len(_NAMES) < _MOST_NAMES:
        _NAMES[name] = spelt
    return spelt


def _asked(token: RoleToken, attribute: str) -> Asked:
    """What the event itself says; asked for once."""
    if token.asked is None:
        token.asked = {}
    known = token.asked.get(attribute)
    if known is None:
        tuples = token.event.tuples
        values = [value for name, value in tuples if (_NAMES.get(name) or _spelt(name)) == attribute]
        known = tuple(values), tuple([comparable(value) for value in values])
        token.asked[attribute] = known
    return known


def key_of(filled: Iterable[Filled], sides: tuple[ConditionSide, ...]) -> tuple[Any, ...]:
    """What tells duplicates of one member apart: the values that `=` conditions look at, in no order."""
    if len(sides) == 1:
        return (sides[0].distinct(filled),)
    return tuple([side.distinct(filled) for side in sides])


UNFILLED: Final = ("unfilled",)
"""The key of an instance in which the member asked about stays empty."""


def keys_of(filled: Iterable[Filled], sides: tuple[ConditionSide, ...]) -> tuple[Any, ...]:
    """Every key under which an instance can be joined; of several sides any may be the one that is filled."""
    keys = sides[0].keys(filled) if len(sides) == 1 else tuple([key for side in sides for key in side.keys(filled)])
    if len(keys) == 1:
        return keys
    if keys:
        return tuple(dict.fromkeys(keys))
    return () if any(side.filled(filled) for side in sides) else (UNFILLED,)


def is_plain(filled: tuple[Filled, ...], sides: tuple[ConditionSide, ...]) -> bool:
    """Whether the one key of an instance is that of all its events, each in the pattern's own words."""
    if len(filled) == 1:
        return filled[0].mapped is None
    for one in filled:
        if one.mapped is not None:
            return False
        for side in sides:
            if one.role in side.roles and len(keys_at(one, side.attribute)) != 1:
                return False
    return True


# Relatedness between the values of two members, through a measure.


_PLAIN = Approach("approximate")


def usual_relatedness(measure: Measure | None) -> float:
    """From where on two terms count as related by this measure, if nobody says."""
    return default_threshold(_PLAIN, "" if measure is None else measure.name)


def relate_by(measure: Measure | None, least: float) -> Relate | None:
    """A cached probability of being related: none below `least`, even odds where it usually begins, 1 if equal."""
    if measure is None:
        return None
    power = certainty(_PLAIN, measure.name)

    @lru_cache(maxsize=1 << 16)
    def related(left: str, right: str) -> float:
        if normalise(left) == normalise(right):
            return 1.0
        value = min(1.0, float(measure.matrix([left], [right])[0, 0]))
        return value**power if value >= least else 0.0

    return related


# Allen's thirteen relations between two intervals, and which of them are possible.


Interval: TypeAlias = tuple[Instant, Instant]

_BY_EDGE: Final = {
    (-1, -1): Allen.BEFORE,
    (-1, 0): Allen.MEETS,
    (-1, 1): Allen.OVERLAPS,
    (1, -1): Allen.OVERLAPPED_BY,
    (1, 0): Allen.MET_BY,
    (1, 1): Allen.AFTER,
}

INVERSE: Final = {
    Allen.BEFORE: Allen.AFTER,
    Allen.AFTER: Allen.BEFORE,
    Allen.MEETS: Allen.MET_BY,
    Allen.MET_BY: Allen.MEETS,
    Allen.OVERLAPS: Allen.OVERLAPPED_BY,
    Allen.OVERLAPPED_BY: Allen.OVERLAPS,
    Allen.STARTS: Allen.STARTED_BY,
    Allen.STARTED_BY: Allen.STARTS,
    Allen.DURING: Allen.CONTAINS,
    Allen.CONTAINS: Allen.DURING,
    Allen.FINISHES: Allen.FINISHED_BY,
    Allen.FINISHED_BY: Allen.FINISHES,
    Allen.EQUALS: Allen.EQUALS,
}

NEEDS_DISTANCE: Final = frozenset(Allen) - {Allen.EQUALS, Allen.FINISHES, Allen.FINISHED_BY}
"""Relations whose two ends always differ: impossible within no time at all."""

NEEDS_LENGTH_LEFT: Final = frozenset(
    {
        Allen.MEETS,
        Allen.MET_BY,
        Allen.OVERLAPS,
        Allen.OVERLAPPED_BY,
        Allen.STARTED_BY,
        Allen.CONTAINS,
        Allen.FINISHED_BY,
    }
)
"""Relations in which the left side cannot be a point."""

NEEDS_LENGTH_RIGHT: Final = frozenset(INVERSE[relation] for relation in NEEDS_LENGTH_LEFT)
"""Relations in which the right side cannot be a point."""


def relation_of(left: Interval, right: Interval) -> Allen:
    """The one relation that holds; a point at an interval's edge starts or finishes it [001 sec III].

    >>> relation_of((1, 5), (5, 9)).value, relation_of((1, 5), (3, 9)).value, relation_of((5, 5), (5, 9)).value
    ('meets', 'overlaps', 'starts')
    """
    starts = (left[0] > right[0]) - (left[0] < right[0])
    ends = (left[1] > right[1]) - (left[1] < right[1])
    if starts == 0:
        return (Allen.EQUALS, Allen.STARTED_BY, Allen.STARTS)[ends]
    if ends == 0:
        return Allen.FINISHED_BY if starts < 0 else Allen.FINISHES
    if starts != ends:
        return Allen.CONTAINS if starts < 0 else Allen.DURING
    edge = (left[1], right[0]) if starts < 0 else (left[0], right[1])
    return _BY_EDGE[starts, (edge[0] > edge[1]) - (edge[0] < edge[1])]
