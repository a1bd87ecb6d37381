"""Conditions between members (binding predicates, 003 section 2.2): exact, numeric, by meaning, and Allen relations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from likewise.composite.instance import AttributeValues, FilledRole, RoleToken, WeightedValue
from likewise.events import Instant, Value, normalise, to_instant
from likewise.language import Allen, Operator
from likewise.matching import Approach, certainty, default_threshold
from likewise.semantics import Measure

# Comparable values: text by its normalised spelling; different kinds never compare equal.


TEXT: Final = 0
NUMBER: Final = 1
BOOLEAN: Final = 2
TIME: Final = 3
_NUMBERS: Final = (int, float)


def comparable(value: Value) -> tuple[int, Any]:
    """The kind of a value and what to compare; a boolean is not a number, and times compare as instants.

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
_MAX_TEXTS: Final = 1 << 14
_LONGEST: Final = 64


def _text(value: str) -> tuple[int, str]:
    """Normalise a text; short ones are cached, up to a limit."""
    text = TEXT, normalise(value)
    if len(_TEXTS) < _MAX_TEXTS and len(value) <= _LONGEST:
        _TEXTS[value] = text
    return text


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
    """One side of a condition: the roles, their normalised attribute, and a number to add."""

    roles: frozenset[str]
    attribute: str
    offset: float = 0.0

    def __str__(self) -> str:
        return f"{', '.join(sorted(self.roles))}.{self.attribute}{f' + {self.offset:g}' if self.offset else ''}"

    def filled(self, filled: Iterable[FilledRole]) -> bool:
        """Whether any of the roles is filled."""
        roles = self.roles
        for role in filled:  # noqa: SIM110  (hot loop: no generator)
            if role.role in roles:
                return True
        return False

    def values(self, filled: Iterable[FilledRole]) -> list[list[WeightedValue]]:
        """The values of each event that fills one of the roles."""
        roles, attribute = self.roles, self.attribute
        return [values_of(role, attribute) for role in filled if role.role in roles]

    def keys(self, filled: Iterable[FilledRole]) -> tuple[Any, ...]:
        """All these values together, in comparable form."""
        roles, attribute = self.roles, self.attribute
        out: tuple[Any, ...] = ()
        for role in filled:
            if role.role in roles:
                keys = keys_at(role, attribute)
                out = out + keys if out else keys
        return out

    def distinct(self, filled: Iterable[FilledRole]) -> tuple[Any, ...]:
        """The distinct comparable values of each event, in a fixed order."""
        roles, attribute = self.roles, self.attribute
        first: tuple[Any, ...] | None = None
        more: list[tuple[Any, ...]] = []
        for role in filled:
            if role.role in roles:
                keys = keys_at(role, attribute)
                if len(keys) != 1:
                    keys = tuple(sorted(set(keys)))
                if first is None:
                    first = keys
                else:
                    more.append(keys)
        if first is None:
            return ()
        return (first, *more) if more else first

    def only(self, filled: Iterable[FilledRole]) -> FilledRole | None:
        """The single role that this side refers to; None if there are several, or its values are mapped."""
        roles, single = self.roles, None
        for role in filled:
            if role.role in roles:
                if single is not None or role.mapped is not None:
                    return None
                single = role
        return single


@dataclass(frozen=True, slots=True)
class Condition:
    """A binding predicate, with its names resolved to roles.

    `counts` means that it sets an attribute equal to itself: a repeated member is then counted for each of its values.
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
        """All roles that it refers to."""
        return self.left.roles | self.right.roles if isinstance(self.right, ConditionSide) else self.left.roles

    def __str__(self) -> str:
        """As written in a pattern.

        >>> left, right = ConditionSide(frozenset({"a"}), "room"), ConditionSide(frozenset({"b"}), "place")
        >>> str(Condition(left, Operator.EQ, right, True))
        'a.room ~ b.place'
        """
        sign = {Operator.EQ: "~", Operator.NE: "!~"}[self.operator] if self.approximate else self.operator.value
        return f"{self.left} {sign} {self.right}"

    @property
    def joins(self) -> bool:
        """Whether it is a simple equality of two attributes, so that instances can be found by key."""
        right = self.right
        return (
            isinstance(right, ConditionSide)
            and self.operator is Operator.EQ
            and not (self.approximate or self.left.offset or right.offset)
        )

    @property
    def equated(self) -> tuple[ConditionSide, ...]:
        """The sides that it sets equal, without offsets: their values distinguish duplicates."""
        right = self.right
        if not isinstance(right, ConditionSide) or self.operator is not Operator.EQ or self.approximate:
            return ()
        return ConditionSide(self.left.roles, self.left.attribute), ConditionSide(right.roles, right.attribute)

    def factor(self, filled: tuple[FilledRole, ...], relate: Relate | None) -> float:
        """0 if it fails, 1 if it holds, in between if it is decided by meaning or by an uncertain mapping.

        A member that is not filled (in another branch of `or`) is ignored.
        """
        right = self.right
        if isinstance(right, ConditionSide) and not self.approximate:
            role = self.left.only(filled)
            if role is not None and self.counts:
                # An attribute equal to itself only has to exist.
                return 1.0 if keys_at(role, self.left.attribute) else 0.0
            other = right.only(filled)
            if role is not None and other is not None:
                return self._exactly(keys_at(role, self.left.attribute), keys_at(other, right.attribute), right.offset)
        return self._weighed(filled, relate)

    def _exactly(self, left: tuple[Any, ...], right: tuple[Any, ...], shift: float) -> float:
        """1 if any of the values of two events satisfy the condition, else 0."""
        test, own = _COMPARE[self.operator], self.left.offset
        for kind, x in left:
            for other, y in right:
                if (own and kind != NUMBER) or (shift and other != NUMBER):
                    continue
                if test(x + own if own else x, y + shift if shift else y) if kind == other else test is operator.ne:
                    return 1.0
        return 0.0

    def _weighed(self, filled: tuple[FilledRole, ...], relate: Relate | None) -> float:
        right = self.right
        if not isinstance(right, ConditionSide):
            if not self.left.filled(filled):
                return 1.0
            return min([self._best(left, [(right, 1.0)], relate) for left in self.left.values(filled)], default=0.0)
        if not (self.left.filled(filled) and right.filled(filled)):
            return 1.0
        left, others = self.left.values(filled), right.values(filled)
        return min([self._best(x, y, relate) for x in left for y in others], default=0.0)

    def _best(self, left: list[WeightedValue], right: list[WeightedValue], relate: Relate | None) -> float:
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
    """The value plus a number; None if the value is not a number."""
    if not offset:
        return value
    return value + offset if isinstance(value, int | float) and not isinstance(value, bool) else None


def compare(how: Operator, x: Value | None, y: Value | None) -> bool:
    """Compare two values as exact matching does: text by normalised spelling, different kinds never equal.

    >>> compare(Operator.EQ, "Room_101", "room 101"), compare(Operator.LT, 1, "2")
    (True, False)
    """
    if x is None or y is None:
        return False
    (kind, left), (other, right) = comparable(x), comparable(y)
    if kind != other:
        return how is Operator.NE
    return _COMPARE[how](left, right)


def values_of(filled: FilledRole, attribute: str) -> list[WeightedValue]:
    """The event's values of a normalised attribute, or those mapped to it by the match."""
    values = _attribute_values(filled.token, attribute)[0]
    if values or filled.mapped is None:
        return [(value, 1.0) for value in values]
    return list(filled.mapped.get(attribute, ()))


def keys_at(filled: FilledRole, attribute: str) -> tuple[Any, ...]:
    """These values in comparable form."""
    cache = filled.token.attribute_values
    keys = (
        cache[attribute][1]
        if cache is not None and attribute in cache
        else _attribute_values(filled.token, attribute)[1]
    )
    if keys or filled.mapped is None:
        return keys
    return tuple([comparable(value) for value, _ in filled.mapped.get(attribute, ())])


_NAMES: Final[dict[str, str]] = {}
_MAX_NAMES: Final = 4096


def _spelt(name: str) -> str:
    """Normalise an attribute name; cached, as there are few."""
    spelt = normalise(name)
    if len(_NAMES) < _MAX_NAMES:
        _NAMES[name] = spelt
    return spelt


def _attribute_values(token: RoleToken, attribute: str) -> AttributeValues:
    """The event's own values of an attribute, cached in the token."""
    if token.attribute_values is None:
        token.attribute_values = {}
    known = token.attribute_values.get(attribute)
    if known is None:
        tuples = token.event.tuples
        values = [value for name, value in tuples if (_NAMES.get(name) or _spelt(name)) == attribute]
        known = tuple(values), tuple([comparable(value) for value in values])
        token.attribute_values[attribute] = known
    return known


def key_of(filled: Iterable[FilledRole], sides: tuple[ConditionSide, ...]) -> tuple[Any, ...]:
    """The values that distinguish duplicates of a member: those that `=` conditions compare."""
    if len(sides) == 1:
        return (sides[0].distinct(filled),)
    return tuple([side.distinct(filled) for side in sides])


UNFILLED: Final = ("unfilled",)
"""The key of an instance in which the compared member is not filled."""


def keys_of(filled: Iterable[FilledRole], sides: tuple[ConditionSide, ...]) -> tuple[Any, ...]:
    """All keys by which an instance can be joined; with several sides, any may be the filled one."""
    keys = sides[0].keys(filled) if len(sides) == 1 else tuple([key for side in sides for key in side.keys(filled)])
    if len(keys) == 1:
        return keys
    if keys:
        return tuple(dict.fromkeys(keys))
    return () if any(side.filled(filled) for side in sides) else (UNFILLED,)


def has_one_key(filled: tuple[FilledRole, ...], sides: tuple[ConditionSide, ...]) -> bool:
    """Whether all events of an instance have a single key, and none of their values is mapped."""
    if len(filled) == 1:
        return filled[0].mapped is None
    for role in filled:
        if role.mapped is not None:
            return False
        for side in sides:
            if role.role in side.roles and len(keys_at(role, side.attribute)) != 1:
                return False
    return True


# Relatedness between the values of two members, through a measure.


_PLAIN = Approach("approximate")


def default_relatedness(measure: Measure | None) -> float:
    """The default threshold at which this measure's terms count as related."""
    return default_threshold(_PLAIN, "" if measure is None else measure.name)


def relate_by(measure: Measure | None, least: float) -> Relate | None:
    """A cached function for the probability that two terms are related: 0 below `least`, 1 if equal."""
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
"""Relations whose interval ends always differ, so they need a window longer than zero."""

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
    """The Allen relation of two intervals; a point at an interval's edge starts or finishes it [001 sec III].

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
