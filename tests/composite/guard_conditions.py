"""Profiles and conditions as docs/composite.md defines them, and the operator of each condition."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from likewise.events import Event, Value
from likewise.language import (
    Binding,
    Composite,
    Conjunction,
    Disjunction,
    ExclusiveOr,
    Field,
    Member,
    Negation,
    Operator,
    Pattern,
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    TimeEvent,
)
from likewise.language import Sequence as Steps

Roles = tuple[tuple[str, Event], ...]

COMPARE = {
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def equal(left: Value, right: Value) -> bool:
    """Text, booleans and numbers are never equal to each other; 1 and 1.0 are."""
    return kind(left) == kind(right) and left == right


def kind(value: Value) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, int | float) else type(value).__name__


def compare(left: Value, sign: Operator, right: Value) -> bool:
    if sign is Operator.EQ:
        return equal(left, right)
    if sign is Operator.NE:
        return not equal(left, right)
    return kind(left) == kind(right) and bool(COMPARE[sign](left, right))


def profile_holds(profile: Profile, event: Event) -> bool:
    """All predicates hold, each for one of the values of its attribute."""
    return all(
        any(name == p.attribute and compare(value, p.operator, p.value) for name, value in event.tuples)  # type: ignore[arg-type]
        for p in profile.predicates
    )


def field_values(wanted: Field, event: Event) -> Iterator[Value]:
    for name, value in event.tuples:
        if name == wanted.attribute:
            if not wanted.offset:
                yield value
            elif kind(value) == "number":
                yield value + wanted.offset  # type: ignore[operator]


def events_of(alias: str, roles: Roles) -> list[Event]:
    """The events of a member; of a name, all that it found."""
    return [event for role, event in roles if role == alias or role.startswith(f"{alias}.")]


def holds(condition: Binding, roles: Roles) -> bool:
    """Every event of each member satisfies it, with any of its values; a member that is empty is not asked."""
    left = events_of(condition.left.alias, roles)
    if not isinstance(condition.right, Field):
        return all(
            any(compare(value, condition.operator, condition.right) for value in field_values(condition.left, event))
            for event in left
        )
    right = events_of(condition.right.alias, roles)
    return all(satisfied(condition, first, other) for first in left for other in right)


def satisfied(condition: Binding, left: Event, right: Event) -> bool:
    assert isinstance(condition.right, Field)
    return any(
        compare(a, condition.operator, b)
        for a in field_values(condition.left, left)
        for b in field_values(condition.right, right)
    )


def values_of(wanted: Field, roles: Roles, *, typed: bool = True) -> list[tuple[str, Value]]:
    """The different values that the events of a member have, each with its type."""
    plain = Field(wanted.alias, wanted.attribute)
    values = (value for event in events_of(wanted.alias, roles) for value in field_values(plain, event))
    return list(dict.fromkeys((kind(value), value) for value in values))


def parts_of(node: Pattern) -> tuple[Pattern, ...]:
    if isinstance(node, Member | Reference | TimeEvent):
        return ()
    if isinstance(node, Negation | Selection | Repetition):
        return (node.part,)
    if isinstance(node, Relation):
        return (node.left, node.right)
    return node.parts


def label(node: Pattern) -> str | None:
    if isinstance(node, Reference):
        return node.alias or node.name
    return node.alias if isinstance(node, Member | TimeEvent) else None


def labels_below(node: Pattern) -> set[str]:
    own = label(node)
    return {own} - {None} | set().union(*(labels_below(part) for part in parts_of(node)))  # type: ignore[return-value]


def sides(condition: Binding) -> set[str]:
    right = {condition.right.alias} if isinstance(condition.right, Field) else set()
    return {condition.left.alias} | right


@dataclass
class Placed:
    """The conditions by the smallest operator that has their members, and the attributes that `=` uses by member."""

    by_node: dict[int, list[Binding]] = field(default_factory=dict)
    alone: dict[str, list[Binding]] = field(default_factory=dict)
    equated: dict[str, list[Field]] = field(default_factory=dict)

    def between(self, node: Pattern) -> list[Binding]:
        """The conditions of an operator without negated members."""
        absent = set().union(*(labels_below(part) for part in parts_of(node) if isinstance(part, Negation)))
        return [c for c in self.by_node.get(id(node), ()) if not sides(c) & absent]

    def guards(self, node: Pattern, absent: Negation) -> list[Binding]:
        """The conditions that decide what breaks an absence."""
        below = labels_below(absent)
        return [c for c in self.by_node.get(id(node), ()) if sides(c) & below]

    def undecided(self, node: Pattern, absent: Negation, rest: Sequence[Pattern]) -> bool:
        """Whether what breaks an absence depends on what comes after it."""
        later = set().union(*(labels_below(part) for part in rest))
        return any(sides(c) & later for c in self.guards(node, absent))


def place(composite: Composite) -> Placed:
    placed = Placed()
    for condition in composite.where:
        members = sides(condition)
        if len(members) == 1:
            placed.alone.setdefault(condition.left.alias, []).append(condition)
        else:
            placed.by_node.setdefault(id(smallest(composite.root, members)), []).append(condition)
        if condition.operator is Operator.EQ and isinstance(condition.right, Field):
            for field in (condition.left, condition.right):
                if isinstance(field, Field):
                    placed.equated.setdefault(field.alias, []).append(field)
    return placed


def smallest(node: Pattern, members: set[str]) -> Pattern:
    for part in parts_of(node):
        if members <= labels_below(part):
            return smallest(part, members)
    return node


def repeated_by(composite: Composite, part: Pattern) -> list[Field]:
    """The attributes by which what is counted is counted: those of its members that are set equal to themselves."""
    own = labels_below(part)
    for node in below(part):
        if isinstance(node, Repetition | Selection | Negation):
            own -= labels_below(node)
    return [c.left for c in composite.where if c.operator is Operator.EQ and c.left == c.right and c.left.alias in own]


def below(node: Pattern) -> Iterator[Pattern]:
    yield node
    for part in parts_of(node):
        yield from below(part)


__all__ = [
    "Conjunction",
    "Disjunction",
    "ExclusiveOr",
    "Placed",
    "Roles",
    "Steps",
    "holds",
    "place",
    "profile_holds",
    "repeated_by",
    "values_of",
]
