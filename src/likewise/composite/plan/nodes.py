"""Plans: patterns with every name resolved, each condition at the operator that decides it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.language import Allen, Consumption, Duplicates, Duration, Keep, Options, Profile


@dataclass(slots=True, kw_only=True)
class PlanNode:
    """One operator or leaf; `free` ones stand under a negation, where nothing is consumed.

    What is consumed has happened all the same: `lasting` ones stand under a negation, a count or `xor` and keep it.

    `id` numbers the nodes once the plan is whole. `roles` are all below it, `hidden` those that nothing above may refer
    to, as they must not happen. `merges` are the `or` about whose branches all is decided here: from here on, the same
    events are one instance.
    """

    id: int = 0
    depth: int
    free: bool
    lasting: bool = False
    roles: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    merges: tuple[DisjunctionNode, ...] = ()
    text: str = ""

    @property
    def visible(self) -> frozenset[str]:
        """Roles that an instance fills."""
        return self.roles - self.hidden

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """The nodes directly below."""
        return ()


NodeJoin: TypeAlias = tuple[tuple[ConditionSide, ...], tuple[ConditionSide, ...]]
"""Sides of a part and of what it is joined to, one of them a single one: some key of the one is a key of the other."""


@dataclass(slots=True, kw_only=True)
class Part:
    """A node as part of an operator: which duplicates it keeps, and how it is joined to what stands before.

    `rest` are the conditions that still have to be asked where two instances have the one key of the join in common.
    """

    node: PlanNode
    keep: Duplicates
    conditions: list[Condition] = field(default_factory=list)
    key: tuple[ConditionSide, ...] = ()
    join: NodeJoin | None = None
    rest: list[Condition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Absence:
    """What must not happen: after step `after` (-1: before the first), or for a time of its own."""

    node: PlanNode
    after: int
    within: Duration | None = None
    conditions: list[Condition] = field(default_factory=list)
    join: NodeJoin | None = None
    rest: list[Condition] = field(default_factory=list)
    asks: frozenset[str] = frozenset()
    """The roles beside its own that its conditions speak of."""


@dataclass(slots=True, kw_only=True)
class LeafNode(PlanNode):
    """A primitive profile."""

    profile: Profile
    options: Options
    role: str
    conditions: list[Condition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TimeNode(PlanNode):
    """A time event: every `period`, `shift` after midnight."""

    period: Duration
    shift: Duration
    role: str


Step: TypeAlias = Part | Absence


@dataclass(slots=True, kw_only=True)
class SequenceNode(PlanNode):
    """Steps in order (an absence with its own time is one), and absences in between."""

    steps: tuple[Step, ...]
    guards: tuple[Absence, ...]
    within: Duration | None
    deferred: bool

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return tuple(step.node for step in self.steps) + tuple(guard.node for guard in self.guards)


@dataclass(slots=True, kw_only=True)
class JointNode(PlanNode):
    """A conjunction, or two parts in one of Allen's relations; `joins` has the sides by which two parts are equal."""

    parts: tuple[Part, ...]
    guards: tuple[Absence, ...]
    within: Duration | None
    relation: Allen | None = None
    conditions: list[Condition] = field(default_factory=list)
    joins: dict[tuple[int, int], tuple[ConditionSide, ConditionSide]] = field(default_factory=dict)

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return tuple(part.node for part in self.parts) + tuple(guard.node for guard in self.guards)


@dataclass(slots=True, kw_only=True)
class DisjunctionNode(PlanNode):
    """Any of several; up to `apart`, conditions may tell its branches apart.

    `makers` are the nodes whose instances may stand for one of this, since it hands on what one branch found as it is:
    all in it.
    """

    parts: tuple[PlanNode, ...]
    apart: PlanNode | None = field(default=None, repr=False, compare=False)
    makers: frozenset[int] = field(default=frozenset(), repr=False, compare=False)

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.parts


@dataclass(slots=True, kw_only=True)
class ExclusiveNode(PlanNode):
    """One without the others."""

    parts: tuple[PlanNode, ...]
    within: Duration
    conditions: list[Condition] = field(default_factory=list)

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.parts


@dataclass(slots=True, kw_only=True)
class NodeOverPart(PlanNode):
    """An operator over one part."""

    part: PlanNode

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return (self.part,)


@dataclass(slots=True, kw_only=True)
class SilenceNode(NodeOverPart):
    """Nothing for a time, again and again."""

    within: Duration


@dataclass(slots=True, kw_only=True)
class SelectionNode(NodeOverPart):
    """The i-th, for each value of the `key` where there is one; `ways` are `or` below with several readings."""

    index: int
    within: Duration | None
    key: tuple[ConditionSide, ...] = ()
    ways: tuple[DisjunctionNode, ...] = ()


@dataclass(slots=True, kw_only=True)
class RepetitionNode(NodeOverPart):
    """Several in a row, or only the `longest` row, for each value of the `key` where there is one."""

    least: int
    most: int | None
    within: Duration | None
    longest: bool = False
    key: tuple[ConditionSide, ...] = ()
    ways: tuple[DisjunctionNode, ...] = ()


@dataclass(slots=True, kw_only=True)
class GateNode(PlanNode):
    """A part that has a choice of duplicates, a threshold or a consumption of its own.

    A `named` one is a pattern in its own right: conditions of others are asked of what it lets through.
    """

    part: Part
    named: bool = False
    unique: bool = False
    threshold: float = 0.0
    hold: Duration | None = None
    conditions: list[Condition] = field(default_factory=list)

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return (self.part.node,)

    @property
    def plain(self) -> bool:
        """Whether it chooses nothing and consumes nothing, so that it may be detected key by key."""
        return not self.unique and not _chooses(self.part)


def _chooses(step: Part | Absence) -> bool:
    if isinstance(step, Part) and step.keep.keep is not Keep.ALL:
        return True
    steps = getattr(step.node, "steps", ()) or getattr(step.node, "parts", ())
    return any(_chooses(one) for one in steps if isinstance(one, Part | Absence))


def takes(node: PlanNode) -> Duration | None:
    """How long it may take from the first event of an instance until that is known; None if any time."""
    if isinstance(node, LeafNode | TimeNode | SilenceNode):
        return 0
    longest = 0
    for child in node.children[:1] if isinstance(node, SequenceNode) else node.children:
        time = takes(child)
        if time is None:
            return None
        longest = max(longest, time)
    own = 0 if isinstance(node, DisjunctionNode | SelectionNode | GateNode) else getattr(node, "within", None)
    return None if own is None else own + longest


NEAR: Final = 0.1
"""Down to this probability, what might be the thing that must not happen counts against it."""

LEAST: Final = 0.1
"""The threshold of a pattern that has none: three members at even odds pass, a silence full of near ones does not."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A pattern ready to run."""

    name: str
    root: Part
    consumption: Consumption
    threshold: float
    nodes: tuple[PlanNode, ...]
    conditions: tuple[Condition, ...]

    @property
    def leaves(self) -> Iterator[LeafNode]:
        """The primitive profiles."""
        return (node for node in self.nodes if isinstance(node, LeafNode))

    @property
    def approximate(self) -> bool:
        """Whether a condition compares by meaning."""
        return any(condition.approximate for condition in self.conditions)
