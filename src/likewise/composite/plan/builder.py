"""Builds the plan of a pattern; raises BuildError for patterns that cannot work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as List
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final

from likewise.composite.plan import nodes as plan
from likewise.composite.plan.conditions import (
    NEEDS_DISTANCE,
    NEEDS_LENGTH_LEFT,
    NEEDS_LENGTH_RIGHT,
    Condition,
    ConditionSide,
)
from likewise.composite.plan.placing import complete, place, settle
from likewise.errors import BuildError
from likewise.events import normalise
from likewise.language import (
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Disjunction,
    Duplicates,
    Duration,
    ExclusiveOr,
    Field,
    Keep,
    Member,
    Negation,
    Operator,
    Options,
    Pattern,
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    Subscription,
    TimeEvent,
)

# Checks that fail when a pattern is built, not when it runs.


_DAY = 86_400_000_000


def check_length(length: Duration | None, subject: str, *, least: int = 1) -> None:
    """Refuse a window that is too short."""
    if length is not None and length < least:
        raise BuildError(f"the time of {subject} must be at least {least} µs, not {length}", hint="use a longer time")


def check_keep(keep: Duplicates) -> None:
    """Refuse an n-th duplicate without a valid n."""
    if keep.keep is Keep.NTH and (keep.nth is None or keep.nth < 1):
        raise BuildError(f"there is no duplicate number {keep.nth}", hint="duplicates are numbered from 1")


def check_time(event: TimeEvent) -> None:
    """Refuse a time event that does not have exactly one valid time of day or period."""
    if (event.at is None) == (event.every is None):
        raise BuildError("a time event needs either `at` a time or `every` with a period", hint="use one of them")
    if event.every is not None:
        check_length(event.every, "`every`")
    elif event.at is not None and not 0 <= event.at < _DAY:
        raise BuildError("the time of day is out of range", hint="use 00:00 to 23:59:59")


def check_sequence(steps: List[plan.Step], guards: List[plan.Absence], within: Duration | None) -> bool:
    """Refuse sequences that can never complete; True if one completes only when its window ends."""
    if not steps or isinstance(steps[0], plan.Absence):
        raise BuildError("a sequence must begin with a part that is not negated", hint="use `not … for` with a time")
    for guard in guards:
        if within is None and guard.after in (-1, len(steps) - 1):
            raise BuildError("a negation at the edge of a sequence needs a window", hint="add `within` to the sequence")
    final = steps[-1]
    last = isinstance(final, plan.Part) and final.keep.keep is Keep.LAST
    if last and within is None:
        raise BuildError("`last` of the final part needs a window to end", hint="add `within` to the sequence")
    check_length(within, "a sequence", least=0)
    _check_room(steps, within)
    return last or any(guard.after == len(steps) - 1 for guard in guards)


def _check_room(steps: List[plan.Step], within: Duration | None) -> None:
    """Refuse a window too short for its steps: times must rise strictly, and absences take their time."""
    if within is None:
        return
    needed = sum(step.within or 0 for step in steps if isinstance(step, plan.Absence))
    needed += sum(isinstance(step, plan.Part) for step in steps[1:])
    if needed > within:
        raise BuildError(
            f"the steps need at least {needed} µs, but `within` is {within} µs", hint="make `within` longer"
        )


def check_relation(relation: Relation, parts: tuple[plan.Part, plan.Part]) -> None:
    """Refuse relations that can never hold."""
    check_length(relation.within, "a relation", least=0)
    name = relation.relation.value
    if relation.within == 0 and relation.relation in NEEDS_DISTANCE:
        raise BuildError(
            f"`{name}` cannot hold within a time of 0", hint="the two ends always differ: use a longer time"
        )
    for part, needs in zip(parts, (NEEDS_LENGTH_LEFT, NEEDS_LENGTH_RIGHT), strict=True):
        if relation.relation in needs and isinstance(part.node, plan.TimeNode):
            raise BuildError(f"a time event cannot be on this side of `{name}`", hint="that side needs a duration")


DAY: Final = 86_400_000_000
MAX_NODES: Final = 10_000
MAX_NAME_DEPTH: Final = 50
"""Limits on the parts of a pattern, including those used by name, and on the nesting of names."""
_ALL: Final = Duplicates()
_SHARING: Final = (plan.DisjunctionNode, plan.ExclusiveNode)
_KINDS: Final = {Member: "member", Sequence: "sequence", Conjunction: "conjunction"}
"""The most frequent kinds."""


def build_plan(subscription: Subscription, known: Mapping[str, Subscription] | None = None) -> plan.Plan:
    """Resolve and check a pattern; `known` are the subscriptions it may refer to."""
    body = subscription.body
    composite = body if isinstance(body, Composite) else Composite(Member(body, "event"))
    planner = Planner(subscription, known or {})
    try:
        root = planner.part(composite, options=subscription.options)
    except BuildError as error:
        raise BuildError(f"{subscription.name}: {error.message}", hint=error.hint) from None
    for part in planner.parts if planner.conditions else ():
        complete(part, planner.conditions)
    return plan.Plan(
        subscription.name,
        root,
        composite.consumption or Consumption.ALL_PAIRS,
        _threshold(subscription.options),
        tuple(planner.nodes),
        (*planner.settled, *planner.conditions),
    )


class Planner:
    """Builds the nodes of one pattern; names are resolved in the scope of their composite."""

    def __init__(self, subscription: Subscription, known: Mapping[str, Subscription]) -> None:
        self.known = known
        self.stack = [subscription.name]
        self.nodes: list[plan.PlanNode] = []
        self.parts: list[plan.Part] = []
        self.conditions: list[Condition] = []
        self.settled: list[Condition] = []
        self._sides: dict[ConditionSide, ConditionSide] = {}
        self._options = subscription.options
        self._prefix = ""
        self._scope: dict[str, set[str]] = {}
        self._unnamed = 0
        self._near = False
        self._counts = 0
        self._alternatives = False

    def part(self, composite: Composite, *, options: Options, depth: int = 0, free: bool = False) -> plan.Part:
        """Build a composite with its conditions."""
        saved = self._options, self._scope
        self._options, self._scope = options, {}
        keep = _keep_of(composite.root)
        check_keep(keep)
        if keep.keep is Keep.LAST:
            raise BuildError("`last` of a single member is never decided", hint="use it in a sequence with `within`")
        node = self._node(composite.root, depth, free)
        for binding in composite.where:
            condition = self._condition(binding)
            self.conditions.append(condition)
            place(condition, node)
        if self._alternatives:
            settle(node)
        self._options, self._scope = saved
        part = plan.Part(node=node, keep=keep)
        self.parts.append(part)
        return part

    def _condition(self, binding: Binding) -> Condition:
        if binding.operator is Operator.IN:
            raise BuildError("a condition between members cannot use `in`", hint="use two conditions, >= and <=")
        if binding.approximate and binding.operator not in (Operator.EQ, Operator.NE):
            raise BuildError(f"`{binding.operator.value}` cannot compare by meaning", hint="remove the ~")
        right = self._side(binding.right) if isinstance(binding.right, Field) else binding.right
        return Condition(self._side(binding.left), binding.operator, right, binding.approximate)

    def _side(self, field: Field) -> ConditionSide:
        roles = self._scope.get(field.alias)
        if roles is None:
            close = get_close_matches(field.alias, self._scope, n=1)
            guess = f"did you mean {close[0]!r}?" if close else f"members: {', '.join(self._scope) or 'none'}"
            raise BuildError(f"no member is named {field.alias!r}", hint=guess)
        if not roles:
            raise BuildError(
                f"{field.alias!r} has no attributes: its pattern has only negated parts",
                hint="compare other members",
            )
        side = ConditionSide(frozenset(roles), normalise(field.attribute), field.offset)
        # Share equal sides, so that comparing them is fast.
        return self._sides.setdefault(side, side)

    def _register(self, node: plan.PlanNode) -> plan.PlanNode:
        node.id = len(self.nodes)
        node.lasting = node.free or self._counts > 0
        if node.id == MAX_NODES:
            raise BuildError(
                f"the pattern has more than {MAX_NODES:,} parts",
                hint="a name used twice counts twice, with all its parts",
            )
        self.nodes.append(node)
        return node

    def _node(self, pattern: Pattern, depth: int, free: bool) -> plan.PlanNode:
        kind = _KINDS.get(type(pattern)) or type(pattern).__name__.lower()
        node: plan.PlanNode = self._register(getattr(self, f"_{kind}")(pattern, depth, free))
        node.text = node.text or kind
        return node

    def _child(self, pattern: Pattern, depth: int, free: bool, *, hold: Duration | None = None) -> plan.PlanNode:
        """Build a part that no other part waits for; it may keep all duplicates, the first or the n-th."""
        keep = _keep_of(pattern)
        if keep == _ALL:
            return self._node(pattern, depth + 1, free)
        check_keep(keep)
        if keep.keep is Keep.LAST:
            raise BuildError(
                "`last` cannot be decided here: a later duplicate may still come",
                hint="use `last` on a direct part of `then`, `and` or a relation, or on the name of the whole pattern",
            )
        part = plan.Part(node=self._node(pattern, depth + 2, free), keep=keep)
        self.parts.append(part)
        return self._register(self._gate(part, depth=depth + 1, free=free, hold=hold))

    def _gate(self, part: plan.Part, *, depth: int, free: bool, **rules: Any) -> plan.GateNode:
        node = part.node
        return plan.GateNode(
            depth=depth, free=free, roles=node.roles, hidden=node.hidden, text=node.text, part=part, **rules
        )

    def _chosen(self, pattern: Pattern, depth: int, free: bool) -> plan.Part:
        keep = _keep_of(pattern)
        check_keep(keep)
        part = plan.Part(node=self._node(pattern, depth + 1, free), keep=keep)
        self.parts.append(part)
        return part

    # leaves

    def _role(self, alias: str | None) -> str:
        if alias is None:
            self._unnamed += 1
            return f"{self._prefix}e{self._unnamed}"
        role = self._prefix + alias
        self._scope.setdefault(alias, set()).add(role)
        return role

    def _member(self, member: Member, depth: int, free: bool) -> plan.PlanNode:
        return self._leaf(member.profile, self._role(member.alias), self._options, depth, free)

    def _leaf(self, profile: Profile, role: str, options: Options, depth: int, free: bool) -> plan.PlanNode:
        if not profile.predicates:
            raise BuildError("a member needs at least one predicate", hint="write {attribute = value}")
        threshold = plan.NEAR if free or self._near else options.threshold
        return plan.LeafNode(
            depth=depth,
            free=free,
            roles=frozenset({role}),
            profile=profile,
            options=options if threshold == options.threshold else replace(options, threshold=threshold),
            role=role,
        )

    def _timeevent(self, event: TimeEvent, depth: int, free: bool) -> plan.PlanNode:
        check_time(event)
        role = self._role(event.alias)
        period, shift = (event.every, 0) if event.every is not None else (DAY, event.at)
        return plan.TimeNode(
            depth=depth, free=free, roles=frozenset({role}), period=period or DAY, shift=shift or 0, role=role
        )

    def _reference(self, reference: Reference, depth: int, free: bool) -> plan.PlanNode:
        target = self.known.get(reference.name)
        if reference.name in self.stack:
            raise BuildError(
                f"the pattern refers to itself: {' -> '.join([*self.stack, reference.name])}",
                hint="a pattern can only refer to other patterns",
            )
        if target is None:
            close = get_close_matches(reference.name, self.known, n=1)
            raise BuildError(
                f"no subscription is named {reference.name!r}",
                hint=f"did you mean {close[0]!r}?" if close else "define it first, or use braces: {type = x}",
            )
        if len(self.stack) > MAX_NAME_DEPTH:
            raise BuildError(f"names are nested more than {MAX_NAME_DEPTH} levels deep", hint="use fewer nested names")
        alias = reference.alias or self._unused_alias(reference.name)
        if isinstance(target.body, Profile):
            return self._leaf(target.body, self._role(alias), target.options, depth, free)
        return self._expanded(target, alias, depth, free)

    def _unused_alias(self, name: str) -> str:
        """The name of a subscription as a role, numbered if used before: `smoke`, `smoke 2`."""
        count, free = 1, name
        while free in self._scope:
            count += 1
            free = f"{name} {count}"
        return free

    def _expanded(self, target: Subscription, alias: str, depth: int, free: bool) -> plan.PlanNode:
        assert isinstance(target.body, Composite)
        unique = target.body.consumption is Consumption.UNIQUE
        parts, conditions = len(self.parts), len(self.conditions)
        saved = self._prefix, self._near, self._counts
        self.stack.append(target.name)
        self._prefix, self._near, self._counts = f"{self._prefix}{alias}.", self._near or free, 0
        # A named pattern consumes events even inside a negation.
        inner = self.part(target.body, options=target.options, depth=depth + 1, free=free and not unique)
        self._prefix, self._near, self._counts = saved
        self.stack.pop()
        self._scope.setdefault(alias, set()).update(inner.node.visible)
        # Using a name does not change how its duplicates are distinguished.
        for part in self.parts[parts:]:
            complete(part, self.conditions[conditions:])
        del self.parts[parts:]
        # Its conditions do not distinguish duplicates of the outer pattern.
        self.settled += self.conditions[conditions:]
        del self.conditions[conditions:]
        threshold = _threshold(target.options)
        return self._gate(inner, depth=depth, free=free, named=True, unique=unique, threshold=threshold)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Nodes built in this context keep counting consumed events."""
        self._counts += 1
        yield
        self._counts -= 1

    # operators

    def _sequence(self, sequence: Sequence, depth: int, free: bool) -> plan.PlanNode:
        steps: list[plan.Step] = []
        guards: list[plan.Absence] = []
        for pattern in sequence.parts:
            if isinstance(pattern, Negation) and (pattern.within is None or steps):
                absence = self._absence(pattern, len(steps) - 1, depth)
                (guards if pattern.within is None else steps).append(absence)
            else:
                steps.append(self._chosen(pattern, depth, free))
        deferred = check_sequence(steps, guards, sequence.within)
        node = plan.SequenceNode(
            depth=depth,
            free=free,
            steps=tuple(steps),
            guards=tuple(guards),
            within=sequence.within,
            deferred=deferred,
        )
        absent = [step for step in (*steps, *guards) if isinstance(step, plan.Absence)]
        return _with_roles(node, absent)

    def _absence(self, negation: Negation, after: int, depth: int) -> plan.Absence:
        check_length(negation.within, "`not … for`")
        node = self._child(negation.part, depth, True)
        return plan.Absence(node=node, after=after, within=negation.within)

    def _conjunction(self, conjunction: Conjunction, depth: int, free: bool) -> plan.PlanNode:
        guards, parts = [], []
        for pattern in conjunction.parts:
            if isinstance(pattern, Negation) and pattern.within is None:
                guards.append(self._absence(pattern, -1, depth))
            else:
                parts.append(self._chosen(pattern, depth, free))
        if not parts:
            raise BuildError("a conjunction needs a part that is not negated", hint="use `not … for` with a time")
        if guards and conjunction.within is None:
            raise BuildError("`and not` needs a window", hint="add `within`, or write `not … for` with a time")
        check_length(conjunction.within, "`and`", least=0)
        node = plan.JointNode(
            depth=depth,
            free=free,
            parts=tuple(parts),
            guards=tuple(guards),
            within=conjunction.within,
        )
        return _with_roles(node, guards)

    def _relation(self, relation: Relation, depth: int, free: bool) -> plan.PlanNode:
        parts = (self._chosen(relation.left, depth, free), self._chosen(relation.right, depth, free))
        check_relation(relation, parts)
        node = plan.JointNode(
            depth=depth,
            free=free,
            parts=parts,
            guards=(),
            within=relation.within,
            relation=relation.relation,
        )
        return _with_roles(node, [])

    def _disjunction(self, disjunction: Disjunction, depth: int, free: bool) -> plan.PlanNode:
        self._alternatives = True
        parts = tuple(self._child(pattern, depth, free) for pattern in disjunction.parts)
        return _with_roles(plan.DisjunctionNode(depth=depth, free=free, parts=parts), [])

    def _exclusiveor(self, exclusive: ExclusiveOr, depth: int, free: bool) -> plan.PlanNode:
        if exclusive.within is None:
            raise BuildError("`xor` needs a window", hint="add `within`: it limits how long to wait for the others")
        check_length(exclusive.within, "`xor`", least=0)
        with self._counting():
            parts = tuple(self._child(pattern, depth, free, hold=exclusive.within) for pattern in exclusive.parts)
        node = plan.ExclusiveNode(depth=depth, free=free, parts=parts, within=exclusive.within)
        return _with_roles(node, [])

    def _negation(self, negation: Negation, depth: int, free: bool) -> plan.PlanNode:
        if negation.within is None:
            raise BuildError("a negation needs a window", hint="write `not … for 30 minutes`, or use it in a sequence")
        check_length(negation.within, "`not … for`")
        part = self._child(negation.part, depth, True)
        return plan.SilenceNode(
            depth=depth, free=free, roles=part.roles, hidden=part.roles, part=part, within=negation.within
        )

    def _selection(self, selection: Selection, depth: int, free: bool) -> plan.PlanNode:
        if selection.index < 1:
            raise BuildError(f"there is no instance number {selection.index}", hint="instances are numbered from 1")
        check_length(selection.within, "the i-th")
        with self._counting():
            part = self._child(selection.part, depth, free)
        node = plan.SelectionNode(depth=depth, free=free, part=part, index=selection.index, within=selection.within)
        return _with_roles(node, [])

    def _repetition(self, repetition: Repetition, depth: int, free: bool) -> plan.PlanNode:
        if repetition.least < 1 or (repetition.most is not None and repetition.most < repetition.least):
            raise BuildError(
                f"cannot repeat {repetition.least} to {repetition.most} times",
                hint="the first count must be at least 1, the second not smaller",
            )
        if repetition.most is None and repetition.within is None:
            raise BuildError("an unlimited repetition needs a window", hint="add `within` or a maximum count")
        if repetition.longest and repetition.within is None:
            raise BuildError("`longest` needs a window: a repetition could always grow", hint="add `within`")
        check_length(repetition.within, "a repetition", least=0)
        with self._counting():
            part = self._child(repetition.part, depth, free)
        node = plan.RepetitionNode(
            depth=depth,
            free=free,
            part=part,
            least=repetition.least,
            most=repetition.most,
            within=repetition.within,
            longest=repetition.longest,
        )
        return _with_roles(node, [])


def _keep_of(pattern: Pattern) -> Duplicates:
    return getattr(pattern, "duplicates", None) or _ALL


def _threshold(options: Options) -> float:
    return plan.DEFAULT_THRESHOLD if options.threshold is None else options.threshold


def _with_roles(node: plan.PlanNode, absent: list[plan.Absence]) -> plan.PlanNode:
    """Collect the roles below a node; only alternatives may use the same name twice."""
    shared = isinstance(node, _SHARING)
    roles: set[str] = set()
    hidden: set[str] = set()
    for child in node.children:
        if not shared and not roles.isdisjoint(child.roles):
            twice = min(roles & child.roles)
            raise BuildError(f"two members are named {twice!r}", hint="name each differently with `as`")
        roles |= child.roles
        hidden |= child.hidden
    for absence in absent:
        hidden |= absence.node.roles
    node.roles, node.hidden = frozenset(roles), frozenset(hidden)
    return node
