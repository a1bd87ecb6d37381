"""Which plans are plain enough for the compiled path: profiles in sequence or together, joined by a key of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from likewise.composite.compiled.tables import ALL, FIRST, LAST, MOST_KEYS, MOST_MEMBERS
from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.composite.plan.nodes import Absence, JointNode, LeafNode, Part, Plan, PlanNode, SequenceNode, Step
from likewise.events import Value, normalise
from likewise.language import Consumption, Keep, Operator, Options, Profile, Range

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

    Of several instances that a timer makes whole at once, it could not tell which one may consume.
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
