"""Assigns each condition to the smallest operator that contains all of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from likewise.composite.plan import nodes as plan
from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.errors import BuildError


def place(condition: Condition, node: plan.PlanNode) -> None:
    """Descend while one child has all roles, then attach the condition; a named pattern takes it at its gate."""
    if isinstance(node, plan.GateNode) and node.named:
        _at_gate(condition, node)
        return
    if isinstance(node, plan.SelectionNode | plan.RepetitionNode) and _counts_here(condition, node):
        node.key = (*node.key, condition.left)
        _keep_branches_separate(condition, node)
    inside = [child for child in node.children if condition.roles <= child.roles]
    if inside:
        for child in inside:
            place(condition, child)
    elif isinstance(node, plan.LeafNode | plan.ExclusiveNode):
        node.conditions.append(condition)
        _keep_branches_separate(condition, node)
    elif isinstance(node, plan.SequenceNode):
        _in_sequence(condition, node)
        _keep_branches_separate(condition, node)
    elif isinstance(node, plan.JointNode):
        _in_joint(condition, node)
        _keep_branches_separate(condition, node)
    elif isinstance(node, plan.DisjunctionNode):
        raise _refusal(condition, "are in different branches of `or` and never occur together")
    else:
        raise _refusal(condition, "are not events with attributes")


def _keep_branches_separate(condition: Condition, node: plan.PlanNode) -> None:
    """Keep the branches of `or` nodes below separate up to here if the condition refers to them."""
    pending = list(node.children)
    while pending:
        child = pending.pop()
        if not condition.roles & child.roles or (isinstance(child, plan.GateNode) and child.named):
            continue
        if isinstance(child, plan.DisjunctionNode) and (
            child.separate_until is None or node.depth < child.separate_until.depth
        ):
            child.separate_until = node
        pending += child.children


def settle(node: plan.PlanNode) -> list[plan.DisjunctionNode]:
    """Set where separate branches are merged; returns the `or` nodes that are merged further up."""
    pending: list[plan.DisjunctionNode] = []
    for child in node.children:
        if not (isinstance(child, plan.GateNode) and child.named):
            pending += settle(child)
    if isinstance(node, plan.DisjunctionNode) and node.separate_until is not None:
        node.node_ids = frozenset(_ids(node))
        pending.append(node)
    if isinstance(node, plan.SelectionNode | plan.RepetitionNode):
        node.unmerged = _outermost(pending)
    node.merges = _outermost([branch for branch in pending if branch.separate_until is node])
    return [branch for branch in pending if branch.separate_until is not node]


def _ids(node: plan.PlanNode) -> Iterator[int]:
    yield node.id
    for child in node.children:
        yield from _ids(child)


def _outermost(nodes: list[plan.DisjunctionNode]) -> tuple[plan.DisjunctionNode, ...]:
    """The nodes that are not inside another one."""
    return tuple([node for node in nodes if not any(node.roles < other.roles for other in nodes)])


def _counts_here(condition: Condition, node: plan.PlanNode) -> bool:
    return condition.counts and not _counted(condition, node)


def _counted(condition: Condition, node: plan.PlanNode) -> bool:
    """Whether a count further inside contains the member that is compared with itself."""
    below = [child for child in node.children if condition.roles <= child.roles]
    return any(
        isinstance(child, plan.SelectionNode | plan.RepetitionNode)
        or (not (isinstance(child, plan.GateNode) and child.named) and _counted(condition, child))
        for child in below
    )


def _at_gate(condition: Condition, node: plan.GateNode) -> None:
    if condition.roles & node.hidden:
        raise _refusal(condition, "include a member inside a separate negation")
    node.conditions.append(condition)


def _in_sequence(condition: Condition, node: plan.SequenceNode) -> None:
    places = [k for k, step in enumerate(node.steps) if condition.roles & step.node.roles]
    if (guard := _guard_of(condition, node.guards)) is not None:
        if any(isinstance(node.steps[k], plan.Absence) for k in places):
            raise _refusal(condition, "are both negated, so they cannot be compared")
        _check_visible(condition, node.steps)
        _bind(condition, guard, node)
        return
    for k in places:
        step = node.steps[k]
        if isinstance(step, plan.Absence) and places[-1] > k:
            raise _refusal(condition, "include a negated member and one that only comes later")
    _check_visible(condition, node.steps)
    step = node.steps[places[-1]]
    _bind(condition, step, node)


def _in_joint(condition: Condition, node: plan.JointNode) -> None:
    guard = _guard_of(condition, node.guards)
    _check_visible(condition, node.parts)
    if guard is not None:
        _bind(condition, guard, node)
        return
    node.conditions.append(condition)
    if condition.joins and isinstance(condition.right, ConditionSide):
        _tie(condition.left, condition.right, node)


def _tie(left: ConditionSide, right: ConditionSide, node: plan.JointNode) -> None:
    """Record that instances of two parts find each other by key."""
    [k, *more_left] = [k for k, part in enumerate(node.parts) if left.roles & part.node.roles]
    [i, *more_right] = [i for i, part in enumerate(node.parts) if right.roles & part.node.roles]
    if not more_left and not more_right:
        node.joins.setdefault((k, i), (left, right))
        node.joins.setdefault((i, k), (right, left))


def _guard_of(condition: Condition, guards: Iterable[plan.Absence]) -> plan.Absence | None:
    guards_met = [guard for guard in guards if condition.roles & guard.node.roles]
    if len(guards_met) > 1:
        raise _refusal(condition, "are both negated, so they cannot be compared")
    if guards_met and condition.roles & guards_met[0].node.hidden:
        raise _refusal(condition, "include a member inside a separate negation")
    return guards_met[0] if guards_met else None


def _check_visible(condition: Condition, steps: Iterable[plan.Step]) -> None:
    for step in steps:
        if condition.roles & step.node.hidden:
            raise _refusal(condition, "include a member inside a separate negation")


def _bind(condition: Condition, step: plan.Step, node: plan.PlanNode) -> None:
    step.conditions.append(condition)
    if isinstance(step, plan.Absence):
        step.asks |= condition.roles - step.node.roles
    step.join = _widened(step.join, _join(condition, step.node), node)
    known = set() if step.join is None or max(map(len, step.join)) > 1 else {step.join[0][0], step.join[1][0]}
    step.other_conditions = [
        condition
        for condition in step.conditions
        if not (condition.joins and {condition.left, condition.right} == known)
    ]


def _widened(
    known: plan.NodeJoin | None, new: tuple[ConditionSide, ConditionSide] | None, node: plan.PlanNode
) -> plan.NodeJoin | None:
    """Extend a join: by a role that is always filled, else by all roles that may be filled (branches of `or`)."""
    if new is None:
        return known
    own, others = (new[0],), (new[1],)
    certain = _certain(node)
    if known is None or _covers(known[1], certain):
        return known or (own, others)
    if _covers(others, certain):
        return own, others
    if known[0] == own:
        return own, (*known[1], *others)
    return ((*known[0], *own), others) if known[1] == others else known


def _covers(sides: tuple[ConditionSide, ...], certain: frozenset[str]) -> bool:
    return len(sides) == 1 and bool(sides[0].roles & certain)


def _certain(node: plan.PlanNode) -> frozenset[str]:
    """The roles that every instance fills."""
    if isinstance(node, plan.LeafNode | plan.TimeNode):
        return frozenset({node.role})
    below = [_certain(child) for child in node.children]
    if isinstance(node, plan.DisjunctionNode | plan.ExclusiveNode):
        return frozenset.intersection(*below)
    return frozenset().union(*below) - node.hidden


def _join(condition: Condition, node: plan.PlanNode) -> tuple[ConditionSide, ConditionSide] | None:
    """The side of this node and the side of earlier parts, if a condition sets them equal."""
    if not condition.joins or not isinstance(condition.right, ConditionSide):
        return None
    sides = (condition.left, condition.right)
    own, other = sides if condition.left.roles <= node.roles else sides[::-1]
    return (own, other) if own.roles <= node.roles and not other.roles & node.roles else None


def _refusal(condition: Condition, why: str) -> BuildError:
    names = " and ".join(sorted(condition.roles))
    return BuildError(f"a condition cannot be checked: {names} {why}", hint="compare other members")


def complete(part: plan.Part, conditions: Iterable[Condition]) -> None:
    """Set the sides whose values distinguish duplicates of a part."""
    sides = [side for condition in conditions for side in condition.equated if side.roles == part.node.visible]
    part.key = tuple(dict.fromkeys(sides))
