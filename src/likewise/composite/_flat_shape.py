"""Which patterns are plain enough for the compiled path: profiles in sequence or together, joined by a key of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from likewise.composite._flat_tables import ALL, FIRST, LAST, MOST_KEYS, MOST_MEMBERS
from likewise.composite._plan import LEAST, NEAR
from likewise.events import Value, normalise
from likewise.language import (
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Duplicates,
    Field,
    Keep,
    Member,
    Negation,
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
    """One member: its name, its profile and how that is matched, which duplicates it keeps, what it is joined by."""

    name: str
    profile: Profile
    options: Options
    keep: int = ALL
    attributes: tuple[str, ...] = ()


class Shape(NamedTuple):
    """All that the compiled path needs to know of a pattern."""

    roles: tuple[Role, ...]
    joint: bool
    within: int
    unique: bool
    threshold: float
    guard: Role | None = None
    after: int = -1

    @property
    def all_roles(self) -> tuple[Role, ...]:
        """The members, and what must not happen after the one numbered `after`."""
        return self.roles if self.guard is None else (*self.roles, self.guard)

    @property
    def spread(self) -> bool:
        """Whether an event may have different keys in different roles."""
        return any(role.attributes != self.roles[0].attributes for role in self.roles)

    @property
    def deferred(self) -> bool:
        """Whether it is known only when its window is over."""
        return self.guard is not None and self.after == len(self.roles) - 1


def shape_of(subscription: Subscription, known: Mapping[str, Subscription]) -> Shape | None:
    """The shape of a plain pattern; None for all others, and for those that are to be refused."""
    body, options = subscription.body, subscription.options
    composite = body if isinstance(body, Composite) else Composite(Member(body, "event"))
    root = composite.root
    parts = root.parts if isinstance(root, Sequence | Conjunction) else (root,)
    joint = isinstance(root, Conjunction)
    within = root.within if isinstance(root, Sequence | Conjunction) else None
    absent = _absent(root)
    roles = None if absent is None else _roles(_all_parts(parts) if absent else parts, options, known)
    joined = None if roles is None else _joined(roles, composite.where, absent or None, joint=joint)
    if absent is None or joined is None:
        return None
    members, guard = joined, None
    if absent > 0:
        members, guard = (*joined[:absent], *joined[absent + 1 :]), joined[absent]
        guard = guard._replace(options=replace(guard.options, threshold=NEAR))
    shape = Shape(
        members,
        joint,
        -1 if within is None else within,
        composite.consumption is Consumption.UNIQUE,
        LEAST if options.threshold is None else options.threshold,
        guard,
        absent - 1,
    )
    return shape if _enough(within, members, joint) and _chosen(shape) else None


def _absent(root: Pattern) -> int | None:
    """Where the one part stands that must not happen: 0 if there is none, None if the kernel cannot watch for it."""
    parts = root.parts if isinstance(root, Sequence) else ()
    places = [k for k, part in enumerate(parts) if isinstance(part, Negation)]
    if not places or not isinstance(root, Sequence):
        return 0
    [place, *more], part = places, parts[places[0]]
    assert isinstance(part, Negation)
    watched = not more and place > 0 and root.within is not None and part.within is None
    chosen = getattr(part.part, "duplicates", None)
    return place if watched and _keep(chosen) == ALL else None


def _all_parts(parts: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return tuple(part.part if isinstance(part, Negation) else part for part in parts)


def _roles(parts: tuple[Pattern, ...], options: Options, known: Mapping[str, Subscription]) -> tuple[Role, ...] | None:
    roles, unnamed = list[Role](), 0
    for part in parts:
        unnamed += isinstance(part, Member) and part.alias is None
        role = _role(part, options, known, f"e{unnamed}")
        if role is None:
            return None
        roles.append(role)
    names = {role.name for role in roles}
    return tuple(roles) if len(names) == len(roles) <= MOST_MEMBERS else None


def _role(part: Pattern, options: Options, known: Mapping[str, Subscription], unnamed: str) -> Role | None:
    keep = _keep(getattr(part, "duplicates", None))
    if keep is None:
        return None
    if isinstance(part, Member) and part.profile.predicates:
        return Role(part.alias or unnamed, part.profile, options, keep)
    target = known.get(part.name) if isinstance(part, Reference) else None
    if not isinstance(part, Reference) or target is None:
        return None
    if not isinstance(target.body, Profile) or not target.body.predicates:
        return None
    return Role(part.alias or part.name, target.body, target.options, keep)


def _keep(duplicates: Duplicates | None) -> int | None:
    return ALL if duplicates is None else _KEEP.get(duplicates.keep)


def _chosen(shape: Shape) -> bool:
    """Whether duplicates are chosen where the kernel can: the last only where nothing stands before it.

    Of several instances that a timer makes whole at once, it could not tell which one may consume.
    """
    roles = shape.roles
    if len(roles) == 1:
        return roles[0].keep == ALL or (shape.deferred and roles[0].keep == FIRST)
    if shape.deferred and shape.unique:
        return False
    return shape.joint or all(role.keep != LAST for role in roles[1:])


def _enough(within: int | None, roles: tuple[Role, ...], joint: bool) -> bool:
    """Whether the window can hold the steps; one that cannot is refused elsewhere."""
    return within is None or within >= (0 if joint else len(roles) - 1)


def _joined(
    roles: tuple[Role, ...], where: tuple[Binding, ...], absent: int | None, *, joint: bool
) -> tuple[Role, ...] | None:
    """The roles with what joins them, if conditions are equalities and each tells the same of all members.

    The members must be joined without the one that is `absent`, which joins nothing, and in a sequence each member by
    those before it: then all that waits under a key has that key for sure.
    """
    found: list[set[tuple[int, str]]] = []
    places = {role.name: k for k, role in enumerate(roles)}
    for binding in where:
        sides = _equality(binding, places)
        if sides is None or any(_by_meaning(roles[k], attribute) for k, attribute in sides):
            return None
        found.append(sides)
    groups = _connected(found)
    members = [k for k in range(len(roles)) if k != absent]
    if len(groups) > MOST_KEYS or any(sorted(k for k, _ in group) != list(range(len(roles))) for group in groups):
        return None
    # A sequence grows member by member, a conjunction meets when all are there; an absence is decided where it stands.
    grown = [members] if joint else [members[:size] for size in range(2, len(members) + 1)]
    if absent is not None:
        grown.append([*members[:absent], absent])
    for some in grown:
        among = [sides for sides in found if all(k in some for k, _ in sides)]
        if len(some) > 1 and [len(group) for group in _connected(among)] != [len(some)] * len(groups):
            return None
    keys = [dict(group) for group in groups]
    return tuple(role._replace(attributes=tuple(key[k] for key in keys)) for k, role in enumerate(roles))


def _connected(found: list[set[tuple[int, str]]]) -> list[set[tuple[int, str]]]:
    """What is equal by any chain of equalities."""
    groups: list[set[tuple[int, str]]] = []
    for sides in found:
        touched = [group for group in groups if group & sides]
        groups = [group for group in groups if not group & sides]
        groups.append(sides.union(*touched))
    return groups


def _equality(binding: Binding, places: Mapping[str, int]) -> set[tuple[int, str]] | None:
    left, right = binding.left, binding.right
    plain = binding.operator is Operator.EQ and not binding.approximate
    if not plain or not isinstance(right, Field) or left.offset or right.offset:
        return None
    if left.alias not in places or right.alias not in places or left.alias == right.alias:
        return None
    return {(places[side.alias], normalise(side.attribute)) for side in (left, right)}


def _by_meaning(role: Role, attribute: str) -> bool:
    """A name that is matched by meaning may stand for another attribute of the event."""
    return any(p.attribute_approximate and normalise(p.attribute) == attribute for p in role.profile.predicates)


def anchor_of(role: Role) -> Value | None:
    """A value that every event must have to match the profile, whatever the name it goes by."""
    if role.options.approach not in (None, "exact", "approximate"):
        return None
    for predicate in role.profile.predicates:
        exact = predicate.operator is Operator.EQ and not predicate.value_approximate
        if exact and not isinstance(predicate.value, Range):
            return predicate.value
    return None
