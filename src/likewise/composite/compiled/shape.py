"""Shapes: plans simple enough for the compiled path, with profiles in sequence or together, joined by a common key.

Simple patterns that differ only in their members' profiles have the same form; its shape is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from likewise.composite.compiled.store import ALL, FIRST, LAST, MAX_KEYS, MAX_MEMBERS
from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.composite.plan.nodes import Absence, JointNode, LeafNode, Part, Plan, PlanNode, SequenceNode, Step
from likewise.events import Value, normalise
from likewise.language import (
    Composite,
    Conjunction,
    Consumption,
    Keep,
    Member,
    Negation,
    Operator,
    Options,
    Profile,
    Range,
    Subscription,
)
from likewise.language import Sequence as Then

_OPERATORS = (SequenceNode, JointNode)
_KEEP = {Keep.ALL: ALL, Keep.FIRST: FIRST, Keep.LAST: LAST}


class ShapeRole(NamedTuple):
    """One member: its name, profile, matching options, choice of duplicates, and join attributes."""

    name: str
    profile: Profile
    options: Options
    keep: int = ALL
    attributes: tuple[str, ...] = ()


class Shape(NamedTuple):
    """What the compiled path needs to know of a pattern."""

    roles: tuple[ShapeRole, ...]
    joint: bool
    within: int
    unique: bool
    threshold: float
    guard: ShapeRole | None = None
    after: int = -1

    @property
    def all_roles(self) -> tuple[ShapeRole, ...]:
        """The members, then the guard: a profile that must not happen after member `after`."""
        return self.roles if self.guard is None else (*self.roles, self.guard)

    @property
    def leaves(self) -> tuple[ShapeRole, ...]:
        """Members and guard in the order of the pattern."""
        if self.guard is None:
            return self.roles
        return (*self.roles[: self.after + 1], self.guard, *self.roles[self.after + 1 :])

    @property
    def spread(self) -> bool:
        """Whether an event may have different keys in different roles."""
        first = self.roles[0].attributes
        return any(role.attributes != first for role in self.roles)

    @property
    def deferred(self) -> bool:
        """Whether it completes only when its window ends."""
        return self.guard is not None and self.after == len(self.roles) - 1


def shape_of(plan: Plan) -> Shape | None:
    """The shape of a simple pattern; None for all others."""
    root = plan.root.node
    within = root.within if isinstance(root, _OPERATORS) else None
    guard = root.guards[0] if isinstance(root, SequenceNode) and root.guards else None
    members = _members(plan.root)
    if members and guard is not None:
        members.append(_role(guard.node, ALL))
    roles = tuple([role for role in members if role is not None])
    if len(roles) < len(members) or not 0 < len(roles) <= MAX_MEMBERS:
        return None
    joint = isinstance(root, JointNode)
    joined = _joined(roles, plan, guard, joint=joint)
    if joined is None:
        return None
    shape = Shape(
        joined if guard is None else joined[:-1],
        joint,
        -1 if within is None else within,
        plan.consumption is Consumption.UNIQUE,
        plan.threshold,
        joined[-1] if guard is not None else None,
        -1 if guard is None else guard.after,
    )
    return shape if _supports_choices(shape) else None


def _members(pattern: Part) -> list[ShapeRole | None]:
    """The members of a pattern of profiles in sequence or together, or of a single profile; else empty."""
    root = pattern.node
    if isinstance(root, LeafNode):
        return [_role(root, _KEEP.get(pattern.keep.keep))]
    if isinstance(root, SequenceNode):
        steps: tuple[Step, ...] = root.steps
        supported = all(guard.after >= 0 and guard.within is None for guard in root.guards)
        if len(root.guards) > 1 or not supported or (root.guards and root.within is None):
            return []
    elif isinstance(root, JointNode) and root.relation is None and not root.guards:
        steps = root.parts
    else:
        return []
    return [_role(step.node, _KEEP.get(step.keep.keep)) if isinstance(step, Part) else None for step in steps]


def _role(node: PlanNode, keep: int | None) -> ShapeRole | None:
    if not isinstance(node, LeafNode) or node.conditions or keep is None:
        return None
    return ShapeRole(node.role, node.profile, node.options, keep)


def _supports_choices(shape: Shape) -> bool:
    """Whether the kernel supports the choices of duplicates: `last` only for the first member.

    It cannot decide which of several instances completed by one timer may consume.
    """
    roles = shape.roles
    if len(roles) == 1:
        return roles[0].keep == ALL or (shape.deferred and roles[0].keep == FIRST)
    if shape.deferred and shape.unique:
        return False
    return shape.joint or all(role.keep != LAST for role in roles[1:])


def _joined(
    roles: tuple[ShapeRole, ...], plan: Plan, guard: Absence | None, *, joint: bool
) -> tuple[ShapeRole, ...] | None:
    """The roles with their join attributes, if all conditions are equalities that relate every member.

    The members must be joined without the guard, which comes last and joins nothing. In a sequence each member must be
    joined to those before it, so that all instances waiting under a key have that key.
    """
    if not plan.conditions:
        return roles
    equalities: list[set[tuple[int, str]]] = []
    places = {role.name: k for k, role in enumerate(roles)}
    for condition in plan.conditions:
        sides = _equality(condition, places)
        if sides is None or any(_by_meaning(roles[k], attribute) for k, attribute in sides):
            return None
        equalities.append(sides)
    groups = _connected(equalities)
    everyone = list(range(len(roles)))
    members = everyone if guard is None else everyone[:-1]
    if len(groups) > MAX_KEYS or any(sorted(k for k, _ in group) != everyone for group in groups):
        return None
    # A sequence grows member by member; a conjunction needs all members; a guard is checked where it stands.
    grown = [members] if joint else [members[:size] for size in range(2, len(members) + 1)]
    if guard is not None:
        grown.append([*members[: guard.after + 1], everyone[-1]])
    for members_so_far in grown:
        among = [sides for sides in equalities if all(k in members_so_far for k, _ in sides)]
        if [len(group) for group in _connected(among)] != [len(members_so_far)] * len(groups):
            return None
    keys = [dict(group) for group in groups]
    return tuple([role._replace(attributes=tuple([key[k] for key in keys])) for k, role in enumerate(roles)])


def _connected(equalities: list[set[tuple[int, str]]]) -> list[set[tuple[int, str]]]:
    """Group attributes that are equal by a chain of equalities."""
    groups: list[set[tuple[int, str]]] = []
    for sides in equalities:
        touched = [group for group in groups if group & sides]
        groups = [group for group in groups if not group & sides]
        groups.append(sides.union(*touched))
    return groups


def _equality(condition: Condition, places: Mapping[str, int]) -> set[tuple[int, str]] | None:
    """The two attributes that a condition sets equal; None if it does anything else."""
    left, right = condition.left, condition.right
    if not condition.joins or not isinstance(right, ConditionSide) or left.roles == right.roles:
        return None
    [left_role], [right_role] = left.roles, right.roles
    return {(places[left_role], left.attribute), (places[right_role], right.attribute)}


def _by_meaning(role: ShapeRole, attribute: str) -> bool:
    """Whether the attribute is matched by meaning, so the event may name it differently."""
    return any(p.attribute_approximate and normalise(p.attribute) == attribute for p in role.profile.predicates)


def anchor_of(role: ShapeRole) -> Value | None:
    """A value that every matching event must have, under any attribute name."""
    if role.options.approach not in (None, "exact", "approximate"):
        return None
    for predicate in role.profile.predicates:
        exact = predicate.operator is Operator.EQ and not predicate.value_approximate
        if exact and not isinstance(predicate.value, Range):
            return predicate.value
    return None


# Forms.


Form: TypeAlias = tuple[Any, ...]
"""A pattern without its profiles; patterns of equal form have equal shapes apart from the profiles."""

_MAX_FORMS: Final = 1_000
"""The most forms in the cache."""


class Forms:
    """A cache of shapes by form, so that a pattern of a known form needs no plan."""

    def __init__(self) -> None:
        self._shapes: dict[Form, Shape] = {}

    def known(self, subscription: Subscription) -> Shape | None:
        """The shape of a pattern if its form is known."""
        split = _split(subscription)
        if split is None:
            return None
        form, profiles = split
        shape = self._shapes.get(form)
        return None if shape is None else _filled(shape, profiles)

    def learn(self, subscription: Subscription, plan: Plan) -> Shape | None:
        """Derive and cache the shape of a pattern from its plan; None if it is not simple."""
        shape, split = shape_of(plan), _split(subscription)
        if shape is not None and split is not None:
            if len(self._shapes) >= _MAX_FORMS:
                self._shapes.clear()
            self._shapes[split[0]] = shape
        return shape


def _split(subscription: Subscription) -> tuple[Form, list[Profile]] | None:
    """The form and the profiles of a pattern; None if its profiles influence the shape."""
    body = subscription.body
    if not isinstance(body, Composite):
        return None
    root, joined = body.root, bool(body.where)
    members: list[tuple[Any, ...]] = []
    profiles: list[Profile] = []
    parts, within = (root.parts, root.within) if isinstance(root, Then | Conjunction) else ((root,), None)
    for part in parts:
        absent = isinstance(part, Negation) and part.within is None
        member = part.part if isinstance(part, Negation) and absent else part
        if not isinstance(member, Member) or not _is_replaceable(member.profile, joined=joined):
            return None
        members.append((member.alias, member.duplicates, absent))
        profiles.append(member.profile)
    return (type(root), *members, within, body.where, body.consumption, subscription.options), profiles


def _is_replaceable(profile: Profile, *, joined: bool) -> bool:
    """Whether another profile gives the same shape: it has predicates, and no joined attribute by meaning."""
    predicates = profile.predicates
    return bool(predicates) and not (joined and any(predicate.attribute_approximate for predicate in predicates))


def _filled(shape: Shape, profiles: Sequence[Profile]) -> Shape:
    """A shape with other profiles."""
    roles = [
        ShapeRole(role.name, profile, role.options, role.keep, role.attributes)
        for role, profile in zip(shape.leaves, profiles, strict=True)
    ]
    guard = None if shape.guard is None else roles.pop(shape.after + 1)
    return Shape(tuple(roles), shape.joint, shape.within, shape.unique, shape.threshold, guard, shape.after)
