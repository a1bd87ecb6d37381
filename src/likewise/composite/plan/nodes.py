"""Plans: patterns with every name resolved, and each condition at the operator that checks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.language import Allen, Consumption, Duplicates, Duration, Keep, Options, Profile


@dataclass(slots=True, kw_only=True)
class PlanNode:
    """One operator or leaf.

    Nothing below a `free` node is consumed, since it is inside a negation. A `lasting` node (inside a negation, a count
    or `xor`) keeps its instances when a detection consumes their events.

    `id` numbers the nodes of a plan. `roles` are all roles below the node; `hidden` ones must not happen, so nothing
    above may refer to them. `merges` lists the `or` nodes whose branches are merged here: from here on, the same
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
        """The roles that an instance fills."""
        return self.roles - self.hidden

    @property
    def children(self) -> tuple[PlanNode, ...]:
        """The nodes directly below."""
        return ()


NodeJoin: TypeAlias = tuple[tuple[ConditionSide, ...], tuple[ConditionSide, ...]]
"""The join sides of a part and of the steps before it; instances join if they share a key. One tuple has one side."""


@dataclass(slots=True, kw_only=True)
class Part:
    """A node as part of an operator: which duplicates it keeps, and how it joins the parts before it.

    `other_conditions` must still be checked when two instances share the single key of the join.
    """

    node: PlanNode
    keep: Duplicates
    conditions: list[Condition] = field(default_factory=list)
    key: tuple[ConditionSide, ...] = ()
    join: NodeJoin | None = None
    other_conditions: list[Condition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Absence:
    """A negated part: it must not happen after step `after` (-1: before the first), or for its own `within`."""

    node: PlanNode
    after: int
    within: Duration | None = None
    conditions: list[Condition] = field(default_factory=list)
    join: NodeJoin | None = None
    other_conditions: list[Condition] = field(default_factory=list)
    asks: frozenset[str] = frozenset()
    """The roles of other parts that its conditions refer to."""


@dataclass(slots=True, kw_only=True)
class LeafNode(PlanNode):
    """A primitive profile."""

    profile: Profile
    options: Options
    role: str
    conditions: list[Condition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TimeNode(PlanNode):
    """A time event: every `period`, starting `shift` after midnight."""

    period: Duration
    shift: Duration
    role: str


Step: TypeAlias = Part | Absence


@dataclass(slots=True, kw_only=True)
class SequenceNode(PlanNode):
    """Steps in order, and absences between them; an absence with its own duration is a step."""

    steps: tuple[Step, ...]
    guards: tuple[Absence, ...]
    within: Duration | None
    deferred: bool

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return tuple(step.node for step in self.steps) + tuple(guard.node for guard in self.guards)


@dataclass(slots=True, kw_only=True)
class JointNode(PlanNode):
    """A conjunction, or two parts in an Allen relation; `joins` has the sides by which two parts are equal."""

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
    """Any of several parts; conditions may distinguish its branches up to the node `separate_until`.

    `node_ids` are this node and all below: a branch's instance may be passed on as it is.
    """

    parts: tuple[PlanNode, ...]
    separate_until: PlanNode | None = field(default=None, repr=False, compare=False)
    node_ids: frozenset[int] = field(default=frozenset(), repr=False, compare=False)

    @property
    def children(self) -> tuple[PlanNode, ...]:
        return self.parts


@dataclass(slots=True, kw_only=True)
class ExclusiveNode(PlanNode):
    """Exactly one of several parts."""

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
    """No instance of the part for a time, repeatedly."""

    within: Duration


@dataclass(slots=True, kw_only=True)
class SelectionNode(NodeOverPart):
    """The i-th instance, counted for each value of `key` if any; `unmerged` are `or` nodes with separate branches."""

    index: int
    within: Duration | None
    key: tuple[ConditionSide, ...] = ()
    unmerged: tuple[DisjunctionNode, ...] = ()


@dataclass(slots=True, kw_only=True)
class RepetitionNode(NodeOverPart):
    """Several instances in a row, or only the `longest` row, for each value of `key` if any."""

    least: int
    most: int | None
    within: Duration | None
    longest: bool = False
    key: tuple[ConditionSide, ...] = ()
    unmerged: tuple[DisjunctionNode, ...] = ()


@dataclass(slots=True, kw_only=True)
class GateNode(PlanNode):
    """A part with its own choice of duplicates, threshold or consumption.

    A `named` gate is a pattern used by name: outer conditions apply to the instances it lets through.
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
        """Whether it chooses and consumes nothing, so that it can be detected for each key separately."""
        return not self.unique and not _chooses(self.part)


def _chooses(step: Part | Absence) -> bool:
    if isinstance(step, Part) and step.keep.keep is not Keep.ALL:
        return True
    steps = getattr(step.node, "steps", ()) or getattr(step.node, "parts", ())
    return any(_chooses(part) for part in steps if isinstance(part, Part | Absence))


def longest_delay(node: PlanNode) -> Duration | None:
    """The longest time from the first event of an instance until it is complete; None if unlimited."""
    if isinstance(node, LeafNode | TimeNode | SilenceNode):
        return 0
    longest = 0
    for child in node.children[:1] if isinstance(node, SequenceNode) else node.children:
        time = longest_delay(child)
        if time is None:
            return None
        longest = max(longest, time)
    own = 0 if isinstance(node, DisjunctionNode | SelectionNode | GateNode) else getattr(node, "within", None)
    return None if own is None else own + longest


NEAR: Final = 0.1
"""Near matches of a negated part count against its absence down to this probability."""

DEFAULT_THRESHOLD: Final = 0.1
"""The default threshold of a pattern: three members at even odds pass, a silence with many near matches fails."""


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
        """The leaf nodes."""
        return (node for node in self.nodes if isinstance(node, LeafNode))

    @property
    def approximate(self) -> bool:
        """Whether a condition compares by meaning."""
        return any(condition.approximate for condition in self.conditions)
