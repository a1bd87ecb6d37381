"""Places each condition at the smallest operator that has all of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from likewise.composite.plan import nodes as plan
from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.errors import BuildError


def place(condition: Condition, node: plan.PlanNode) -> None:
    """Descend as long as one child has all roles, then attach; a name has decided before it is asked."""
    if isinstance(node, plan.GateNode) and node.named:
        _at_gate(condition, node)
        return
    if isinstance(node, plan.SelectionNode | plan.RepetitionNode) and _counts_here(condition, node):
        node.key = (*node.key, condition.left)
        _tell_apart(condition, node)
    inside = [child for child in node.children if condition.roles <= child.roles]
    if inside:
        for child in inside:
            place(condition, child)
    elif isinstance(node, plan.LeafNode | plan.ExclusiveNode):
        node.conditions.append(condition)
        _tell_apart(condition, node)
    elif isinstance(node, plan.SequenceNode):
        _in_sequence(condition, node)
        _tell_apart(condition, node)
    elif isinstance(node, plan.JointNode):
        _in_joint(condition, node)
        _tell_apart(condition, node)
    elif isinstance(node, plan.DisjunctionNode):
        raise _refusal(condition, "stand in different branches of `or` and are never there together")
    else:
        raise _refusal(condition, "are not events with attributes")


def _tell_apart(condition: Condition, node: plan.PlanNode) -> None:
    """Branches of `or` below that the condition speaks of stay apart up to here, the same events or not."""
    pending = list(node.children)
    while pending:
        child = pending.pop()
        if not condition.roles & child.roles or (isinstance(child, plan.GateNode) and child.named):
            continue
        if isinstance(child, plan.DisjunctionNode) and (child.apart is None or node.depth < child.apart.depth):
            child.apart = node
        pending += child.children


def settle(node: plan.PlanNode) -> list[plan.DisjunctionNode]:
    """Say where branches that stay apart come together; gives those that do so further up."""
    pending: list[plan.DisjunctionNode] = []
    for child in node.children:
        if not (isinstance(child, plan.GateNode) and child.named):
            pending += settle(child)
    if isinstance(node, plan.DisjunctionNode) and node.apart is not None:
        node.makers = frozenset(_ids(node))
        pending.append(node)
    if isinstance(node, plan.SelectionNode | plan.RepetitionNode):
        node.ways = _largest(pending)
    node.merges = _largest([one for one in pending if one.apart is node])
    return [one for one in pending if one.apart is not node]


def _ids(node: plan.PlanNode) -> Iterator[int]:
    yield node.id
    for child in node.children:
        yield from _ids(child)


def _largest(found: list[plan.DisjunctionNode]) -> tuple[plan.DisjunctionNode, ...]:
    """Those that stand in no other."""
    return tuple([one for one in found if not any(one.roles < other.roles for other in found)])


def _counts_here(condition: Condition, node: plan.PlanNode) -> bool:
    return condition.counts and not _counted(condition, node)


def _counted(condition: Condition, node: plan.PlanNode) -> bool:
    """Whether a count further inside has the member that is compared with itself."""
    below = [child for child in node.children if condition.roles <= child.roles]
    return any(
        isinstance(child, plan.SelectionNode | plan.RepetitionNode)
        or (not (isinstance(child, plan.GateNode) and child.named) and _counted(condition, child))
        for child in below
    )


def _at_gate(condition: Condition, node: plan.GateNode) -> None:
    if condition.roles & node.hidden:
        raise _refusal(condition, "include one inside a negation of its own")
    node.conditions.append(condition)


def _in_sequence(condition: Condition, node: plan.SequenceNode) -> None:
    places = [k for k, step in enumerate(node.steps) if condition.roles & step.node.roles]
    if (guard := _guard_of(condition, node.guards)) is not None:
        if any(isinstance(node.steps[k], plan.Absence) for k in places):
            raise _refusal(condition, "both must not happen, so they cannot be compared")
        _check_visible(condition, node.steps)
        _bind(condition, guard, node)
        return
    for k in places:
        step = node.steps[k]
        if isinstance(step, plan.Absence) and places[-1] > k:
            raise _refusal(condition, "include one that must not happen, and one that comes only later")
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
    """Two parts of which an instance of the one finds those of the other by key."""
    [k, *more] = [k for k, part in enumerate(node.parts) if left.roles & part.node.roles]
    [i, *others] = [i for i, part in enumerate(node.parts) if right.roles & part.node.roles]
    if not more and not others:
        node.joins.setdefault((k, i), (left, right))
        node.joins.setdefault((i, k), (right, left))


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


def _bind(condition: Condition, step: plan.Step, node: plan.PlanNode) -> None:
    step.conditions.append(condition)
    if isinstance(step, plan.Absence):
        step.asks |= condition.roles - step.node.roles
    step.join = _widened(step.join, _join(condition, step.node), node)
    known = set() if step.join is None or max(map(len, step.join)) > 1 else {step.join[0][0], step.join[1][0]}
    step.rest = [one for one in step.conditions if not (one.joins and {one.left, one.right} == known)]


def _widened(
    known: plan.NodeJoin | None, new: tuple[ConditionSide, ConditionSide] | None, node: plan.PlanNode
) -> plan.NodeJoin | None:
    """A join that finds more by key: by what is always filled, else by all that may be (branches of `or`)."""
    if new is None:
        return known
    mine, theirs = (new[0],), (new[1],)
    sure = _certain(node)
    if known is None or _covers(known[1], sure):
        return known or (mine, theirs)
    if _covers(theirs, sure):
        return mine, theirs
    if known[0] == mine:
        return mine, (*known[1], *theirs)
    return ((*known[0], *mine), theirs) if known[1] == theirs else known


def _covers(sides: tuple[ConditionSide, ...], sure: frozenset[str]) -> bool:
    return len(sides) == 1 and bool(sides[0].roles & sure)


def _certain(node: plan.PlanNode) -> frozenset[str]:
    """The roles that every instance fills."""
    if isinstance(node, plan.LeafNode | plan.TimeNode):
        return frozenset({node.role})
    below = [_certain(child) for child in node.children]
    if isinstance(node, plan.DisjunctionNode | plan.ExclusiveNode):
        return frozenset.intersection(*below)
    return frozenset().union(*below) - node.hidden


def _join(condition: Condition, node: plan.PlanNode) -> tuple[ConditionSide, ConditionSide] | None:
    """The side of this node and the side of what stands before, if the two are simply equal."""
    if not condition.joins or not isinstance(condition.right, ConditionSide):
        return None
    sides = (condition.left, condition.right)
    mine, theirs = sides if condition.left.roles <= node.roles else sides[::-1]
    return (mine, theirs) if mine.roles <= node.roles and not theirs.roles & node.roles else None


def _refusal(condition: Condition, why: str) -> BuildError:
    names = " and ".join(sorted(condition.roles))
    return BuildError(f"a condition cannot be decided: {names} {why}", hint="compare other members")


def complete(part: plan.Part, conditions: Iterable[Condition]) -> None:
    """Find what tells duplicates of a part apart."""
    sides = [side for condition in conditions for side in condition.equated if side.roles == part.node.visible]
    part.key = tuple(dict.fromkeys(sides))
