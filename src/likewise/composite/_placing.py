"""Places each condition at the smallest operator that has all of its members."""

from __future__ import annotations

from collections.abc import Iterable

from likewise.composite import _plan as plan
from likewise.composite._conditions import Condition, Side
from likewise.errors import BuildError


def place(condition: Condition, node: plan.Node) -> None:
    """Descend as long as one child has all roles, then attach; a name has decided before it is asked."""
    if isinstance(node, plan.GateNode) and node.named:
        _at_gate(condition, node)
        return
    inside = [child for child in node.children if condition.roles <= child.roles]
    if inside:
        for child in inside:
            place(condition, child)
    elif isinstance(node, plan.LeafNode | plan.ExclusiveNode):
        node.conditions.append(condition)
    elif isinstance(node, plan.SequenceNode):
        _in_sequence(condition, node)
    elif isinstance(node, plan.JointNode):
        _in_joint(condition, node)
    elif isinstance(node, plan.DisjunctionNode):
        raise _refusal(condition, "stand in different branches of `or` and are never there together")
    else:
        raise _refusal(condition, "are not events with attributes")


def _at_gate(condition: Condition, node: plan.GateNode) -> None:
    if condition.roles & node.hidden:
        raise _refusal(condition, "include one inside a negation of its own")
    node.conditions.append(condition)


def _in_sequence(condition: Condition, node: plan.SequenceNode) -> None:
    places = [k for k, step in enumerate(node.steps) if condition.roles & step.node.roles]
    if (guard := _guard_of(condition, node.guards)) is not None:
        guard.conditions.append(condition)
        guard.join = guard.join or _join(condition, guard.node)
        return
    for k in places:
        step = node.steps[k]
        if isinstance(step, plan.Absence) and places[-1] > k:
            raise _refusal(condition, "include one that must not happen, and one that comes only later")
    _check_visible(condition, node.steps)
    step = node.steps[places[-1]]
    step.conditions.append(condition)
    step.join = step.join or _join(condition, step.node)


def _in_joint(condition: Condition, node: plan.JointNode) -> None:
    if (guard := _guard_of(condition, node.guards)) is not None:
        guard.conditions.append(condition)
        return
    _check_visible(condition, node.parts)
    node.conditions.append(condition)


def _guard_of(condition: Condition, guards: Iterable[plan.Absence]) -> plan.Absence | None:
    found = [guard for guard in guards if condition.roles & guard.node.roles]
    if len(found) > 1:
        raise _refusal(condition, "both must not happen, so they cannot be compared")
    if found and condition.roles & found[0].node.hidden:
        raise _refusal(condition, "include one inside a negation of its own")
    return found[0] if found else None


def _check_visible(condition: Condition, steps: Iterable[plan.Step]) -> None:
    for step in steps:
        if condition.roles & step.node.hidden:
            raise _refusal(condition, "include one inside a negation of its own")


def _join(condition: Condition, node: plan.Node) -> tuple[Side, Side] | None:
    """The side of this node and the side of what stands before, if the two are simply equal."""
    if not condition.joins or not isinstance(condition.right, Side):
        return None
    sides = (condition.left, condition.right)
    mine, theirs = sides if condition.left.roles <= node.roles else sides[::-1]
    return (mine, theirs) if mine.roles <= node.roles and not theirs.roles & node.roles else None


def _refusal(condition: Condition, why: str) -> BuildError:
    names = " and ".join(sorted(condition.roles))
    return BuildError(f"a condition cannot be decided: {names} {why}", hint="compare other members")


def complete(part: plan.Part, conditions: Iterable[Condition]) -> None:
    """Find what tells duplicates of a part apart."""
    sides = [
        side
        for condition in conditions
        if condition.joins
        for side in (condition.left, condition.right)
        if isinstance(side, Side) and side.roles == part.node.visible
    ]
    part.key = tuple(dict.fromkeys(sides))
