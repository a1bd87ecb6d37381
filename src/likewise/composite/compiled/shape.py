"""Shapes: plans that are plain enough for the compiled path, profiles in sequence or together, joined by a key of all.

Plain patterns that differ only in the profiles of their members have one form, and its shape is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from likewise.composite.compiled.store import ALL, FIRST, LAST, MOST_KEYS, MOST_MEMBERS
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
    """One member: its name, its profile and how that is matched, which duplicates it keeps, what it is joined by."""

    name: str
    profile: Profile
    options: Options
    keep: int = ALL
    attributes: tuple[str, ...] = ()


class Shape(NamedTuple):
    """All that the compiled path needs to know of a pattern."""

    roles: tuple[ShapeRole, ...]
    joint: bool
    within: int
    unique: bool
    threshold: float
    guard: ShapeRole | None = None
    after: int = -1

    @property
    def all_roles(self) -> tuple[ShapeRole, ...]:
        """The members, and what must not happen after the one numbered `after`."""
        return self.roles if self.guard is None else (*self.roles, self.guard)

    @property
    def leaves(self) -> tuple[ShapeRole, ...]:
        """The same in the order of the pattern."""
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
        """Whether it is known only when its window is over."""
        return self.guard is not None and self.after == len(self.roles) - 1


def shape_of(plan: Plan) -> Shape | None:
    """The shape of a plain pattern; None for all others."""
    root = plan.root.node
    within = root.within if isinstance(root, _OPERATORS) else None
    guard = root.guards[0] if isinstance(root, SequenceNode) and root.guards else None
    asked = _members(plan.root)
    if asked and guard is not None:
        asked.append(_role(guard.node, ALL))
    roles = tuple([role for role in asked if role is not None])
    if len(roles) < len(asked) or not 0 < len(roles) <= MOST_MEMBERS:
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
    return shape if _chosen(shape) else None


def _members(whole: Part) -> list[ShapeRole | None]:
    """The members of a pattern that may be plain: profiles in sequence or together, or one alone; else none."""
    root = whole.node
    if isinstance(root, LeafNode):
        return [_role(root, _KEEP.get(whole.keep.keep))]
    if isinstance(root, SequenceNode):
        steps: tuple[Step, ...] = root.steps
        watched = all(guard.after >= 0 and guard.within is None for guard in root.guards)
        if len(root.guards) > 1 or not watched or (root.guards and root.within is None):
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


def _chosen(shape: Shape) -> bool:
    """Whether duplicates are chosen where the kernel can: the last only where nothing stands before it.

    Of several instances that a timer makes whole at once, it does not know which one may consume.
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
    """The roles with what joins them, if conditions are equalities and each tells the same of all members.

    The members must be joined without the one that must not happen, which comes last and joins nothing, and in a
    sequence each member by those before it: then all that waits under a key has that key for sure.
    """
    if not plan.conditions:
        return roles
    found: list[set[tuple[int, str]]] = []
    places = {role.name: k for k, role in enumerate(roles)}
    for condition in plan.conditions:
        sides = _equality(condition, places)
        if sides is None or any(_by_meaning(roles[k], attribute) for k, attribute in sides):
            return None
        found.append(sides)
    groups = _connected(found)
    everyone = list(range(len(roles)))
    members = everyone if guard is None else everyone[:-1]
    if len(groups) > MOST_KEYS or any(sorted(k for k, _ in group) != everyone for group in groups):
        return None
    # A sequence grows member by member, a conjunction meets when all are there; an absence is decided where it stands.
    grown = [members] if joint else [members[:size] for size in range(2, len(members) + 1)]
    if guard is not None:
        grown.append([*members[: guard.after + 1], everyone[-1]])
    for some in grown:
        among = [sides for sides in found if all(k in some for k, _ in sides)]
        if [len(group) for group in _connected(among)] != [len(some)] * len(groups):
            return None
    keys = [dict(group) for group in groups]
    return tuple([role._replace(attributes=tuple([key[k] for key in keys])) for k, role in enumerate(roles)])


def _connected(found: list[set[tuple[int, str]]]) -> list[set[tuple[int, str]]]:
    """What is equal by any chain of equalities."""
    groups: list[set[tuple[int, str]]] = []
    for sides in found:
        touched = [group for group in groups if group & sides]
        groups = [group for group in groups if not group & sides]
        groups.append(sides.union(*touched))
    return groups


def _equality(condition: Condition, places: Mapping[str, int]) -> set[tuple[int, str]] | None:
    """The two attributes that a condition sets equal; None if it is more than that."""
    left, right = condition.left, condition.right
    if not condition.joins or not isinstance(right, ConditionSide) or left.roles == right.roles:
        return None
    [one], [other] = left.roles, right.roles
    return {(places[one], left.attribute), (places[other], right.attribute)}


def _by_meaning(role: ShapeRole, attribute: str) -> bool:
    """A name that is matched by meaning may stand for another attribute of the event."""
    return any(p.attribute_approximate and normalise(p.attribute) == attribute for p in role.profile.predicates)


def anchor_of(role: ShapeRole) -> Value | None:
    """A value that every event must have to match the profile, whatever the name it goes by."""
    if role.options.approach not in (None, "exact", "approximate"):
        return None
    for predicate in role.profile.predicates:
        exact = predicate.operator is Operator.EQ and not predicate.value_approximate
        if exact and not isinstance(predicate.value, Range):
            return predicate.value
    return None


# Forms.


Form: TypeAlias = tuple[Any, ...]
"""All of a pattern but its profiles: equal forms have equal shapes but for those."""

_MOST: Final = 1_000
"""How many forms are remembered: those of patterns that are gone need not stay."""


class Forms:
    """The shapes of plain patterns by their forms, so that a pattern of a known form needs no plan to be deployed."""

    def __init__(self) -> None:
        self._shapes: dict[Form, Shape] = {}

    def known(self, subscription: Subscription) -> Shape | None:
        """The shape of a pattern, if one of its form was learned."""
        split = _split(subscription)
        if split is None:
            return None
        form, profiles = split
        shape = self._shapes.get(form)
        return None if shape is None else _filled(shape, profiles)

    def learn(self, subscription: Subscription, plan: Plan) -> Shape | None:
        """The shape of a pattern by its plan, kept for others of its form; None if it is not plain."""
        shape, split = shape_of(plan), _split(subscription)
        if shape is not None and split is not None:
            if len(self._shapes) >= _MOST:
                self._shapes.clear()
            self._shapes[split[0]] = shape
        return shape


def _split(subscription: Subscription) -> tuple[Form, list[Profile]] | None:
    """The form and the profiles, in the order of the pattern; None where the profiles have a say in the shape."""
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
        if not isinstance(member, Member) or not _plain(member.profile, joined=joined):
            return None
        members.append((member.alias, member.duplicates, absent))
        profiles.append(member.profile)
    return (type(root), *members, within, body.where, body.consumption, subscription.options), profiles


def _plain(profile: Profile, *, joined: bool) -> bool:
    """Whether its place is taken by any other: it asks for something, and no condition may mean another attribute."""
    predicates = profile.predicates
    return bool(predicates) and not (joined and any(one.attribute_approximate for one in predicates))


def _filled(shape: Shape, profiles: Sequence[Profile]) -> Shape:
    """The same shape with other profiles."""
    made = [
        ShapeRole(role.name, profile, role.options, role.keep, role.attributes)
        for role, profile in zip(shape.leaves, profiles, strict=True)
    ]
    guard = None if shape.guard is None else made.pop(shape.after + 1)
    return Shape(tuple(made), shape.joint, shape.within, shape.unique, shape.threshold, guard, shape.after)
