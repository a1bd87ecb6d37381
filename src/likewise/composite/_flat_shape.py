"""Which patterns are plain enough for the compiled path: two profiles in sequence, joined by at most one attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from likewise.composite._flat_tables import ALL, FIRST, LAST
from likewise.composite._plan import LEAST
from likewise.events import Value, normalise
from likewise.language import (
    Binding,
    Composite,
    Consumption,
    Duplicates,
    Field,
    Keep,
    Member,
    Operator,
    Options,
    Pattern,
    Profile,
    Range,
    Reference,
    Sequence,
    Subscription,
)

_KEEP = {Keep.ALL: ALL, Keep.FIRST: FIRST, Keep.LAST: LAST}


class Role(NamedTuple):
    """One member: its name, its profile and how that is matched."""

    name: str
    profile: Profile
    options: Options


class Shape(NamedTuple):
    """All that the compiled path needs to know of a pattern."""

    first: Role
    second: Role
    within: int
    keep: int
    keep_next: int
    unique: bool
    threshold: float
    attribute: str | None


def shape_of(subscription: Subscription, known: Mapping[str, Subscription]) -> Shape | None:
    """The shape of a plain pattern; None for all others, and for those that are to be refused."""
    body, options = subscription.body, subscription.options
    if not isinstance(body, Composite) or not isinstance(body.root, Sequence) or len(body.root.parts) != 2:
        return None
    parts, within = body.root.parts, body.root.within
    first, second = (_role(part, options, known, k) for k, part in enumerate(parts))
    keep, keep_next = (_keep(getattr(part, "duplicates", None)) for part in parts)
    if first is None or second is None or first.name == second.name or keep is None or keep_next not in (ALL, FIRST):
        return None
    attribute = _attribute(body.where, first, second)
    if (body.where and attribute is None) or (within is not None and within < 1):
        return None
    return Shape(
        first,
        second,
        -1 if within is None else within,
        keep,
        keep_next,
        body.consumption is Consumption.UNIQUE,
        LEAST if options.threshold is None else options.threshold,
        attribute,
    )


def _role(part: Pattern, options: Options, known: Mapping[str, Subscription], k: int) -> Role | None:
    if isinstance(part, Member) and part.profile.predicates:
        return Role(part.alias or f"e{k + 1}", part.profile, options)
    target = known.get(part.name) if isinstance(part, Reference) else None
    if not isinstance(part, Reference) or target is None:
        return None
    if not isinstance(target.body, Profile) or not target.body.predicates:
        return None
    return Role(part.alias or part.name, target.body, target.options)


def _keep(duplicates: Duplicates | None) -> int | None:
    return ALL if duplicates is None else _KEEP.get(duplicates.keep)


def _attribute(where: tuple[Binding, ...], first: Role, second: Role) -> str | None:
    """The attribute by which the two are joined, if that is all there is."""
    if len(where) != 1:
        return None
    left, right = where[0].left, where[0].right
    plain = where[0].operator is Operator.EQ and not where[0].approximate
    if not isinstance(right, Field) or not plain or left.offset or right.offset:
        return None
    attribute = normalise(left.attribute)
    if {left.alias, right.alias} != {first.name, second.name} or attribute != normalise(right.attribute):
        return None
    # A name that is matched by meaning may stand for another attribute of the event.
    approximate = any(
        p.attribute_approximate and normalise(p.attribute) == attribute
        for role in (first, second)
        for p in role.profile.predicates
    )
    return None if approximate else attribute


def is_simple(role: Role) -> bool:
    """Whether a profile is one exact equality, which a dictionary answers."""
    predicates = role.profile.predicates
    if len(predicates) != 1 or role.options.approach not in (None, "exact"):
        return False
    [p] = predicates
    plain = not (p.attribute_approximate or p.value_approximate) or role.options.approach == "exact"
    return plain and p.operator is Operator.EQ and not isinstance(p.value, Range)


def anchor_of(role: Role) -> Value | None:
    """A value that every event must have to match the profile, whatever the name it goes by."""
    if role.options.approach not in (None, "exact", "approximate"):
        return None
    for predicate in role.profile.predicates:
        exact = predicate.operator is Operator.EQ and not predicate.value_approximate
        if exact and not isinstance(predicate.value, Range):
            return predicate.value
    return None
