"""From a pattern to its plan; what cannot work is refused here, with the reason."""

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

# What patterns cannot mean: refused when built, not when run.


_DAY = 86_400_000_000


def check_length(length: Duration | None, what: str, *, least: int = 1) -> None:
    """A window must have a sensible length."""
    if length is not None and length < least:
        raise BuildError(f"the time of {what} must be at least {least} µs, not {length}", hint="give a longer time")


def check_keep(keep: Duplicates) -> None:
    """The n-th duplicate needs its n."""
    if keep.keep is Keep.NTH and (keep.nth is None or keep.nth < 1):
        raise BuildError(f"there is no duplicate number {keep.nth}", hint="duplicates count from 1")


def check_time(event: TimeEvent) -> None:
    """A time event is at a time of day or every so often."""
    if (event.at is None) == (event.every is None):
        raise BuildError("a time event is either `at` a time or `every` so often", hint="give one of them")
    if event.every is not None:
        check_length(event.every, "`every`")
    elif event.at is not None and not 0 <= event.at < _DAY:
        raise BuildError("there is no such time of day", hint="from 00:00 to 23:59:59")


def check_sequence(steps: List[plan.Step], guards: List[plan.Absence], within: Duration | None) -> bool:
    """Refuse sequences that cannot end; True if one is known only when its window is over."""
    if not steps or isinstance(steps[0], plan.Absence):
        raise BuildError("a sequence needs a part that happens", hint="use `not … for` a time on its own")
    for guard in guards:
        if within is None and guard.after in (-1, len(steps) - 1):
            raise BuildError("a negation at the edge of a sequence needs a window", hint="add `within` to the sequence")
    final = steps[-1]
    last = isinstance(final, plan.Part) and final.keep.keep is Keep.LAST
    if last and within is None:
        raise BuildError("the last of the final part is never known", hint="add `within` to the sequence")
    check_length(within, "a sequence", least=0)
    _check_room(steps, within)
    return last or any(guard.after == len(steps) - 1 for guard in guards)


def _check_room(steps: List[plan.Step], within: Duration | None) -> None:
    """Times must rise strictly, and silences take their time."""
    if within is None:
        return
    needed = sum(step.within or 0 for step in steps if isinstance(step, plan.Absence))
    needed += sum(isinstance(step, plan.Part) for step in steps[1:])
    if needed > within:
        raise BuildError(
            f"the steps need at least {needed} µs and the sequence allows {within}", hint="make `within` longer"
        )


def check_relation(relation: Relation, parts: tuple[plan.Part, plan.Part]) -> None:
    """Refuse relations that no two instances can have."""
    check_length(relation.within, "a relation", least=0)
    name = relation.relation.value
    if relation.within == 0 and relation.relation in NEEDS_DISTANCE:
        raise BuildError(f"nothing can stand in `{name}` within no time", hint="the two ends always differ")
    for part, needs in zip(parts, (NEEDS_LENGTH_LEFT, NEEDS_LENGTH_RIGHT), strict=True):
        if relation.relation in needs and isinstance(part.node, plan.TimeNode):
            raise BuildError(f"a moment cannot stand in `{name}` here", hint="that side needs a duration")


DAY: Final = 86_400_000_000
MOST_NODES: Final = 10_000
MOST_NAMES: Final = 50
"""How many parts a pattern may have with all that it is built from by name, and how deep names may be nested."""
_ALL: Final = Duplicates()
_SHARING: Final = (plan.DisjunctionNode, plan.ExclusiveNode)
_KINDS: Final = {Member: "member", Sequence: "sequence", Conjunction: "conjunction"}
"""What most patterns are made of."""


def build_plan(subscription: Subscription, known: Mapping[str, Subscription] | None = None) -> plan.Plan:
    """Resolve and check a pattern; `known` are the subscriptions that it may refer to."""
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
    """Builds the nodes of one pattern; names are resolved in the scope of the composite they stand in."""

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
        """A whole composite with its conditions."""
        saved = self._options, self._scope
        self._options, self._scope = options, {}
        keep = _keep_of(composite.root)
        check_keep(keep)
        if keep.keep is Keep.LAST:
            raise BuildError("the last of a single member is never known", hint="put it into a sequence with `within`")
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
            raise BuildError(f"`{binding.operator.value}` cannot be decided by meaning", hint="drop the ~")
        right = self._side(binding.right) if isinstance(binding.right, Field) else binding.right
        return Condition(self._side(binding.left), binding.operator, right, binding.approximate)

    def _side(self, wanted: Field) -> ConditionSide:
        roles = self._scope.get(wanted.alias)
        if roles is None:
            close = get_close_matches(wanted.alias, self._scope, n=1)
            guess = f"did you mean {close[0]!r}?" if close else f"members: {', '.join(self._scope) or 'none'}"
            raise BuildError(f"no member is named {wanted.alias!r}", hint=guess)
        if not roles:
            raise BuildError(
                f"{wanted.alias!r} has no attributes: its pattern says only what does not happen",
                hint="compare other members",
            )
        side = ConditionSide(frozenset(roles), normalise(wanted.attribute), wanted.offset)
        # The same object for the same side, so that comparing them costs nothing.
        return self._sides.setdefault(side, side)

    def _register(self, node: plan.PlanNode) -> plan.PlanNode:
        node.id = len(self.nodes)
        node.lasting = node.free or self._counts > 0
        if node.id == MOST_NODES:
            raise BuildError(
                f"the pattern has more than {MOST_NODES:,} parts",
                hint="a name that is used twice counts twice, with all that it is built from",
            )
        self.nodes.append(node)
        return node

    def _node(self, pattern: Pattern, depth: int, free: bool) -> plan.PlanNode:
        kind = _KINDS.get(type(pattern)) or type(pattern).__name__.lower()
        node: plan.PlanNode = self._register(getattr(self, f"_{kind}")(pattern, depth, free))
        node.text = node.text or kind
        return node

    def _child(self, pattern: Pattern, depth: int, free: bool, *, hold: Duration | None = None) -> plan.PlanNode:
        """A part for which no other part waits: of its duplicates, all, the first or the n-th since activation."""
        keep = _keep_of(pattern)
        if keep == _ALL:
            return self._node(pattern, depth + 1, free)
        check_keep(keep)
        if keep.keep is Keep.LAST:
            raise BuildError(
                "`last` has nothing to choose from here: which event is the last is known only later",
                hint="choose it of a direct part of `then`, `and` or a relation, or of the name of the whole",
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
                hint="a pattern can only be built from others",
            )
        if target is None:
            close = get_close_matches(reference.name, self.known, n=1)
            raise BuildError(
                f"no subscription is named {reference.name!r}",
                hint=f"did you mean {close[0]!r}?" if close else "define it first; or were braces meant: {type = x}?",
            )
        if len(self.stack) > MOST_NAMES:
            raise BuildError(f"names are nested more than {MOST_NAMES} deep", hint="build the pattern from fewer names")
        alias = reference.alias or self._again(reference.name)
        if isinstance(target.body, Profile):
            return self._leaf(target.body, self._role(alias), target.options, depth, free)
        return self._expanded(target, alias, depth, free)

    def _again(self, name: str) -> str:
        """The name of a subscription as a role; `smoke then not people then smoke` fills `smoke` and `smoke 2`."""
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
        # What is consumed inside is consumed even where the whole must not happen.
        inner = self.part(target.body, options=target.options, depth=depth + 1, free=free and not unique)
        self._prefix, self._near, self._counts = saved
        self.stack.pop()
        self._scope.setdefault(alias, set()).update(inner.node.visible)
        # The use of a name does not change what its duplicates are.
        for part in self.parts[parts:]:
            complete(part, self.conditions[conditions:])
        del self.parts[parts:]
        # Nor do its conditions tell apart what is found by that name.
        self.settled += self.conditions[conditions:]
        del self.conditions[conditions:]
        threshold = _threshold(target.options)
        return self._gate(inner, depth=depth, free=free, named=True, unique=unique, threshold=threshold)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """What is built meanwhile counts even if it is consumed."""
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
            raise BuildError("a conjunction needs a part that happens", hint="use `not … for` a time on its own")
        if guards and conjunction.within is None:
            raise BuildError("`and not` needs a window", hint="add `within`, or write `not … for` a time")
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
            raise BuildError("`xor` needs a window", hint="add `within`: only then the other is known to be absent")
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
            raise BuildError(f"there is no instance number {selection.index}", hint="instances count from 1")
        check_length(selection.within, "the i-th")
        with self._counting():
            part = self._child(selection.part, depth, free)
        node = plan.SelectionNode(depth=depth, free=free, part=part, index=selection.index, within=selection.within)
        return _with_roles(node, [])

    def _repetition(self, repetition: Repetition, depth: int, free: bool) -> plan.PlanNode:
        if repetition.least < 1 or (repetition.most is not None and repetition.most < repetition.least):
            raise BuildError(
                f"cannot repeat {repetition.least} to {repetition.most} times", hint="counts begin at 1 and rise"
            )
        if repetition.most is None and repetition.within is None:
            raise BuildError("a repetition without an end needs a window", hint="add `within` or a largest count")
        if repetition.longest and repetition.within is None:
            raise BuildError("the longest repetition is known only when a window is over", hint="add `within`")
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
    return plan.LEAST if options.threshold is None else options.threshold


def _with_roles(node: plan.PlanNode, absent: list[plan.Absence]) -> plan.PlanNode:
    """Collect the roles below; only alternatives may use the same name twice."""
    shared = isinstance(node, _SHARING)
    roles: set[str] = set()
    hidden: set[str] = set()
    for child in node.children:
        if not shared and not roles.isdisjoint(child.roles):
            twice = min(roles & child.roles)
            raise BuildError(f"two members are named {twice!r}", hint="give each its own name with `as`")
        roles |= child.roles
        hidden |= child.hidden
    for absence in absent:
        hidden |= absence.node.roles
    node.roles, node.hidden = frozenset(roles), frozenset(hidden)
    return node
