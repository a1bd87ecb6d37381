"""Processes: running operators. Each belongs to a node of the plan and was activated at some moment.

In every step (an event, or a moment at which timers are due) the deepest processes act first, so that an operator has
all instances of its parts before it acts. Instances are handled in a fixed order, and timers after events, so that the
result does not depend on the order of the calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from likewise.composite.instance import FilledRole, Instance, RoleToken, WeightedValue, group_by_reading, merge_readings
from likewise.composite.plan.conditions import Condition, ConditionSide
from likewise.composite.plan.nodes import JointNode, LeafNode, Part, PlanNode, SequenceNode, TimeNode
from likewise.events import Event, Instant

if TYPE_CHECKING:
    from likewise.composite.general.run import Run
    from likewise.composite.snapshot import Dump, Load


EVENTS: Final = 0
TIMERS: Final = 1
TERMINATORS: Final = 2


class Parent(Protocol):
    """Receives the instances that a process emits."""

    def accept(self, slot: Any, instance: Instance) -> None:
        """Take an instance of the part at `slot`."""
        ...


class Process:
    """One activation of a node; it emits instances to its parent."""

    __slots__ = (
        "after", "alive", "consumption", "due", "found", "inbox", "marked", "node", "origin", "parent", "run", "slot",
    )  # fmt: skip

    node: PlanNode

    def __init__(
        self,
        run: Run,
        node: PlanNode,
        *,
        parent: Parent,
        slot: Any,
        after: Instant,
        origin: Instant,
        consumption: ConsumptionScope,
        fresh: bool = True,
    ) -> None:
        self.run = run
        self.node = node
        self.parent = parent
        self.slot = slot
        self.after = after
        self.origin = origin
        self.consumption = consumption
        self.found: list[Instance] = []
        self.inbox: list[tuple[Any, Instance]] = []
        self.due: list[Any] = []
        self.marked = False
        self.alive = True
        self.begin(fresh=fresh)

    def begin(self, *, fresh: bool) -> None:
        """Start the parts; without `fresh`, a state will be loaded."""

    def spawn(self, node: PlanNode, *, slot: Any, after: Instant | None = None, fresh: bool = True) -> Process:
        """Activate a part, from `after` on or from this process's own start."""
        moment = self.after if after is None else after
        origin = self.origin if after is None else after
        return self.run.spawn(
            node, parent=self, slot=slot, after=moment, origin=origin, consumption=self.consumption, fresh=fresh
        )

    def accept(self, slot: Any, instance: Instance) -> None:
        """Take an instance of a part; it is handled when the step reaches this depth."""
        if self.alive:
            self.inbox.append((slot, instance))
            if not self.marked:
                self.run.mark(self)

    def timer_due(self, item: Any) -> None:
        """Take a due timer of this process."""
        if self.alive:
            self.due.append(item)
            self.run.mark(self)

    def step(self) -> None:
        """Handle received instances, then due timers."""
        inbox, self.inbox = self.inbox, []
        if len(inbox) > 1:
            inbox.sort(key=_order)
        self.handle(inbox)
        while self.due and self.alive:
            due, self.due = self.due, []
            for item in due:
                self.fire(item)
        if self.found:
            instances, self.found = self.found, []
            for readings in group_by_reading(instances, self.node.merges):
                self.parent.accept(self.slot, merge_readings(readings))

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        """Act on instances of the parts, in order."""

    def fire(self, item: Any) -> None:
        """Act on a timer."""

    def expire(self, item: Any) -> None:
        """Act on a terminator: drop what can no longer contribute [003 sec 4]."""

    def emit(self, instance: Instance) -> None:
        """Pass an instance on, unless it is impossible or uses consumed events."""
        if instance.probability > 0.0 and (self.node.lasting or not instance.consumed):
            if self.node.merges:
                self.found.append(instance)
            else:
                self.parent.accept(self.slot, instance)

    def schedule(self, time: Instant, item: Any) -> None:
        """Set a timer; one due at the current moment fires within this step."""
        if time == self.run.now and self.run.phase == TIMERS:
            self.due.append(item)
            self.run.mark(self)
        else:
            self.run.schedule(time, TIMERS, self, item)

    def factor(self, conditions: list[Condition], roles: tuple[FilledRole, ...]) -> float:
        """The product of the conditions' factors; 0 if one fails."""
        product = 1.0
        for condition in conditions:
            product *= condition.factor(roles, self.run.relate)
            if product == 0.0:
                break
        return product

    def close(self) -> None:
        """Stop: nothing below can contribute any more."""
        self.alive = False

    def dump(self, dump: Dump) -> Any:  # noqa: ARG002 - not needed by this kind
        """The state as plain values."""
        return None

    def load(self, state: Any, load: Load) -> None:
        """Load a dumped state."""


def lacks_join_value(sides: tuple[ConditionSide, ...], instance: Instance) -> bool:
    """Whether an instance lacks a value that it needs to be joined, so it never can be."""
    for side in sides:  # noqa: SIM110  (hot loop: no generator)
        if not side.keys(instance.roles):
            return True
    return False


def join_sides_by_part(node: SequenceNode | JointNode) -> list[tuple[ConditionSide, ...]]:
    """For each part, the sides that need a value; empty unless all parts are profiles and every condition applies."""
    parts = node.steps if isinstance(node, SequenceNode) else node.parts
    if node.depth or not all(isinstance(part, Part) and isinstance(part.node, LeafNode) for part in parts):
        return [() for _ in parts]
    own = node.conditions if isinstance(node, JointNode) else [c for step in node.steps for c in step.conditions]
    sides = {side for condition in own if condition.joins for side in (condition.left, condition.right)}
    return [tuple([side for side in part.key if side in sides]) for part in parts if isinstance(part, Part)]


def _order(entry: tuple[Any, Instance]) -> tuple[object, ...]:
    return entry[1].order


class LeafProcess(Process):
    """A primitive profile: active in the pool only while it listens."""

    __slots__ = ("awaited", "listening")

    node: LeafNode

    def begin(self, *, fresh: bool) -> None:  # noqa: ARG002 - not needed by this kind
        self.listening = False
        self.awaited: Callable[[Any, tuple[FilledRole, ...]], bool] | None = None
        self.listen()

    def listen(self) -> None:
        """Enter the pool."""
        if not self.listening:
            self.listening = True
            self.run.listen(self)

    def unlisten(self) -> None:
        """Leave the pool."""
        if self.listening:
            self.listening = False
            self.run.unlisten(self)

    def receive(
        self, token: RoleToken, probability: float, mapped: dict[str, tuple[WeightedValue, ...]] | None
    ) -> None:
        """Take an event that matches the profile."""
        end, node = token.time, self.node
        if end <= self.after:
            return
        seen = token if self.consumption.outer is None else self.consumption.token(token)
        filled = (FilledRole(node.role, seen, probability, mapped),)
        if self.awaited is not None and not self.awaited(self.slot, filled):
            return
        if node.conditions:
            probability *= self.factor(node.conditions, filled)
        if probability > 0.0:
            start: Any = token.event.start
            # Nothing is consumed before the step ends, so a new event never is.
            self.parent.accept(
                self.slot,
                Instance(
                    node.id,
                    time=end,
                    phase=EVENTS,
                    first=end,
                    start=start,
                    end=end,
                    probability=probability,
                    roles=filled,
                ),
            )

    def close(self) -> None:
        self.unlisten()
        super().close()


class TimeProcess(Process):
    """A time event: once in every period, aligned to midnight UTC."""

    __slots__ = ()

    node: TimeNode

    def begin(self, *, fresh: bool) -> None:
        if fresh:
            self._plan_next(self.after)

    def _plan_next(self, after: Instant) -> None:
        period, shift = self.node.period, self.node.shift
        self.run.schedule((after - shift) // period * period + period + shift, TIMERS, self, None)

    def fire(self, item: Any) -> None:  # noqa: ARG002 - not needed by this kind
        now = self.run.now
        token = RoleToken(Event("", (), (), now, now), -1, now)
        self.emit(
            Instance(
                self.node.id,
                time=now,
                phase=TIMERS,
                first=now,
                start=now,
                end=now,
                probability=1.0,
                roles=(FilledRole(self.node.role, token, 1.0),),
            )
        )
        self._plan_next(now)

    def load(self, state: Any, load: Load) -> None:  # noqa: ARG002 - not needed by this kind
        # Moments before the snapshot have passed.
        self._plan_next(max(self.after, self.run.clock))


# Consumption: which events the detections of one pattern consumed, and which processes still hold them.
#
# A pattern used by name consumes separately: its consumed events stay available to the outer pattern, and events that
# the outer pattern consumes stay available to it.


class Holder(Protocol):
    """A waiting process that holds events."""

    def __hash__(self) -> int: ...

    @property
    def notify_order(self) -> tuple[int, int]:
        """The order in which holders learn of a consumption: by part, then by age."""
        ...

    def consume(self) -> None:
        """React to the consumption of one of its events."""
        ...


class InnerToken(RoleToken):
    """An event within a pattern used by name; `outer` is its token in the outer pattern."""

    __slots__ = ("outer",)

    def __init__(self, outer: RoleToken, *, consumed: bool = False) -> None:
        super().__init__(outer.event, outer.rank, outer.time, consumed=consumed)
        self.outer = outer
        if outer.attribute_values is None:
            outer.attribute_values = {}
        self.attribute_values = outer.attribute_values


class ConsumptionScope:
    """The consumed tokens of one pattern, and the processes that hold its tokens."""

    def __init__(self, *, unique: bool, outer: ConsumptionScope | None = None) -> None:
        self.unique = unique
        self.outer = outer
        self._last: InnerToken | None = None
        self._holders: dict[int, dict[Holder, None]] = {}

    def token(self, token: RoleToken) -> RoleToken:
        """The token of this step's event in this scope, shared by all roles."""
        if self.outer is None:
            return token
        outside = self.outer.token(token)
        if self._last is None or self._last.outer is not outside:
            self._last = InnerToken(outside)
        return self._last

    def keep(self, holder: Holder, roles: tuple[FilledRole, ...], *, free: bool) -> None:
        """Record which process holds which events, so that a detection finds it."""
        if self.unique and not free:
            for filled in roles:
                self._holders.setdefault(filled.token.rank, {})[holder] = None

    def unkeep(self, holder: Holder, roles: tuple[FilledRole, ...]) -> None:
        """Forget a holder."""
        for filled in roles if self.unique else ():
            holders = self._holders.get(filled.token.rank)
            if holders is not None:
                holders.pop(holder, None)
                if not holders:
                    del self._holders[filled.token.rank]

    def consume(self, instance: Instance) -> None:
        """Consume the events of a detection, and notify their holders."""
        tokens = [filled.token for filled in instance.roles if filled.token.rank >= 0]
        for token in tokens:
            token.consumed = True
        holders = {holder: None for token in tokens for holder in self._holders.get(token.rank, ())}
        for holder in sorted(holders, key=_notify_order) if len(holders) > 1 else holders:
            holder.consume()


def outside(instance: Instance) -> Instance:
    """The instance with the tokens of the outer pattern."""
    return Instance(
        instance.node,
        time=instance.time,
        phase=instance.phase,
        first=instance.first,
        start=instance.start,
        end=instance.end,
        probability=instance.probability,
        roles=tuple([_filled(role) for role in instance.roles]),
        parts=tuple([outside(part) for part in instance.parts]),
    )


def _filled(filled: FilledRole) -> FilledRole:
    token = filled.token
    if not isinstance(token, InnerToken):
        return filled
    return FilledRole(filled.role, token.outer, filled.probability, filled.mapped)


def _notify_order(holder: Holder) -> tuple[int, int]:
    return holder.notify_order
