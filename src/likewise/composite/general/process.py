"""Processes: operators at work. Each belongs to a node of the plan and was activated at some moment.

In every step (an event, or a moment at which timers are due) the deepest processes go first, so that an
operator has all that its parts found before it acts; what parts find is handled in a fixed order, and
timers after events, so that the result does not depend on who was asked first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from likewise.composite.instance import Filled, Instance, RoleToken, Weighted, merged, readings
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
    """Takes what a process finds."""

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
        """Start the parts; one that is not fresh is about to be loaded."""

    def spawn(self, node: PlanNode, *, slot: Any, after: Instant | None = None, fresh: bool = True) -> Process:
        """Activate a part, from now on or from this process's own start."""
        moment = self.after if after is None else after
        origin = self.origin if after is None else after
        return self.run.spawn(
            node, parent=self, slot=slot, after=moment, origin=origin, consumption=self.consumption, fresh=fresh
        )

    def accept(self, slot: Any, instance: Instance) -> None:
        """Take an instance of a part; it is handled when this step comes to this depth."""
        if self.alive:
            self.inbox.append((slot, instance))
            if not self.marked:
                self.run.mark(self)

    def ring(self, item: Any) -> None:
        """A timer of this process is due."""
        if self.alive:
            self.due.append(item)
            self.run.mark(self)

    def step(self) -> None:
        """Handle what came in, then what is due."""
        inbox, self.inbox = self.inbox, []
        if len(inbox) > 1:
            inbox.sort(key=_order)
        self.handle(inbox)
        while self.due and self.alive:
            due, self.due = self.due, []
            for item in due:
                self.fire(item)
        if self.found:
            found, self.found = self.found, []
            for ways in readings(found, self.node.merges):
                self.parent.accept(self.slot, merged(ways))

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        """Act on instances of the parts, in order."""

    def fire(self, item: Any) -> None:
        """Act on a timer."""

    def expire(self, item: Any) -> None:
        """A terminator: drop what can no longer contribute [003 sec 4]."""

    def emit(self, instance: Instance) -> None:
        """Hand an instance on, unless it is impossible or made of what is consumed."""
        if instance.probability > 0.0 and (self.node.lasting or not instance.taken):
            if self.node.merges:
                self.found.append(instance)
            else:
                self.parent.accept(self.slot, instance)

    def wake(self, time: Instant, item: Any) -> None:
        """Ask for a timer; one of this very moment rings within the step."""
        if time == self.run.now and self.run.phase == TIMERS:
            self.due.append(item)
            self.run.mark(self)
        else:
            self.run.wake(time, TIMERS, self, item)

    def factor(self, conditions: list[Condition], roles: tuple[Filled, ...]) -> float:
        """The product of conditions; 0 if one fails."""
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
        """Take a dumped state."""


def lacks(sides: tuple[ConditionSide, ...], instance: Instance) -> bool:
    """Whether it has no value of an attribute by which it is to be joined, and so can never be."""
    for side in sides:  # noqa: SIM110  (asked of every instance: no generator)
        if not side.keys(instance.roles):
            return True
    return False


def needed(node: SequenceNode | JointNode) -> list[tuple[ConditionSide, ...]]:
    """Of each part, what it must have to be joined: in a whole pattern of profiles, where every condition is asked."""
    parts = node.steps if isinstance(node, SequenceNode) else node.parts
    if node.depth or not all(isinstance(part, Part) and isinstance(part.node, LeafNode) for part in parts):
        return [() for _ in parts]
    asked = node.conditions if isinstance(node, JointNode) else [one for step in node.steps for one in step.conditions]
    sides = {side for one in asked if one.joins for side in (one.left, one.right)}
    return [tuple([side for side in part.key if side in sides]) for part in parts if isinstance(part, Part)]


def _order(entry: tuple[Any, Instance]) -> tuple[object, ...]:
    return entry[1].order


class LeafProcess(Process):
    """A primitive profile: it is in the pool only while it listens."""

    __slots__ = ("awaited", "listening")

    node: LeafNode

    def begin(self, *, fresh: bool) -> None:  # noqa: ARG002 - not needed by this kind
        self.listening = False
        self.awaited: Callable[[Any, tuple[Filled, ...]], bool] | None = None
        self.listen()

    def listen(self) -> None:
        """Enter the pool."""
        if not self.listening:
            self.listening = True
            self.run.listen(self)

    def rest(self) -> None:
        """Leave the pool."""
        if self.listening:
            self.listening = False
            self.run.unlisten(self)

    def receive(self, token: RoleToken, probability: float, mapped: dict[str, tuple[Weighted, ...]] | None) -> None:
        """An event that matches the profile."""
        end, node = token.time, self.node
        if end <= self.after:
            return
        seen = token if self.consumption.outer is None else self.consumption.token(token)
        filled = (Filled(node.role, seen, probability, mapped),)
        if self.awaited is not None and not self.awaited(self.slot, filled):
            return
        sure = probability * self.factor(node.conditions, filled) if node.conditions else probability
        if sure > 0.0:
            start: Any = token.event.start
            # Nothing is consumed before the step ends, so a new event is never taken.
            self.parent.accept(
                self.slot,
                Instance(
                    node.id, time=end, phase=EVENTS, first=end, start=start, end=end, probability=sure, roles=filled
                ),
            )

    def close(self) -> None:
        self.rest()
        super().close()


class TimeProcess(Process):
    """A time event: a moment of every period, in step with midnight UTC."""

    __slots__ = ()

    node: TimeNode

    def begin(self, *, fresh: bool) -> None:
        if fresh:
            self._plan_next(self.after)

    def _plan_next(self, after: Instant) -> None:
        period, shift = self.node.period, self.node.shift
        self.run.wake((after - shift) // period * period + period + shift, TIMERS, self, None)

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
                roles=(Filled(self.node.role, token, 1.0),),
            )
        )
        self._plan_next(now)

    def load(self, state: Any, load: Load) -> None:  # noqa: ARG002 - not needed by this kind
        # What lies before the snapshot has been.
        self._plan_next(max(self.after, self.run.clock))


# ConsumptionScope: what the detections of one pattern took, and who still waits with it.
#
# A pattern that is used by name consumes for itself: what it took is still there for the pattern that uses it, and what
# that one takes changes nothing in what the name finds.


class Holder(Protocol):
    """Something that waits with events in it."""

    def __hash__(self) -> int: ...

    @property
    def standing(self) -> tuple[int, int]:
        """Which part it waits with, and since when: the order in which holders hear of a consumption."""
        ...

    def consume(self) -> None:
        """A detection took one of them."""
        ...


class InnerToken(RoleToken):
    """An event within a pattern that is used by name; `outer` is the same event in the pattern that uses the name."""

    __slots__ = ("outer",)

    def __init__(self, outer: RoleToken, *, taken: bool = False) -> None:
        super().__init__(outer.event, outer.rank, outer.time, taken=taken)
        self.outer = outer
        if outer.asked is None:
            outer.asked = {}
        self.asked = outer.asked


class ConsumptionScope:
    """The tokens of one pattern, and the processes that wait with them."""

    def __init__(self, *, unique: bool, outer: ConsumptionScope | None = None) -> None:
        self.unique = unique
        self.outer = outer
        self._last: InnerToken | None = None
        self._holders: dict[int, dict[Holder, None]] = {}

    def token(self, token: RoleToken) -> RoleToken:
        """The event of this step as it is seen here: one token for all roles."""
        if self.outer is None:
            return token
        outside = self.outer.token(token)
        if self._last is None or self._last.outer is not outside:
            self._last = InnerToken(outside)
        return self._last

    def keep(self, holder: Holder, roles: tuple[Filled, ...], *, free: bool) -> None:
        """Remember which process waits with which events, so that a detection finds them."""
        if self.unique and not free:
            for filled in roles:
                self._holders.setdefault(filled.token.rank, {})[holder] = None

    def unkeep(self, holder: Holder, roles: tuple[Filled, ...]) -> None:
        """It waits no longer."""
        for filled in roles if self.unique else ():
            holders = self._holders.get(filled.token.rank)
            if holders is not None:
                holders.pop(holder, None)
                if not holders:
                    del self._holders[filled.token.rank]

    def consume(self, instance: Instance) -> None:
        """Its events take part in nothing else here."""
        taken = [filled.token for filled in instance.roles if filled.token.rank >= 0]
        for token in taken:
            token.taken = True
        holders = {holder: None for token in taken for holder in self._holders.get(token.rank, ())}
        for holder in sorted(holders, key=_standing) if len(holders) > 1 else holders:
            holder.consume()


def outside(instance: Instance) -> Instance:
    """The instance with the tokens of the pattern that uses the name."""
    return Instance(
        instance.node,
        time=instance.time,
        phase=instance.phase,
        first=instance.first,
        start=instance.start,
        end=instance.end,
        probability=instance.probability,
        roles=tuple([_filled(one) for one in instance.roles]),
        parts=tuple([outside(part) for part in instance.parts]),
    )


def _filled(filled: Filled) -> Filled:
    token = filled.token
    if not isinstance(token, InnerToken):
        return filled
    return Filled(filled.role, token.outer, filled.probability, filled.mapped)


def _standing(holder: Holder) -> tuple[int, int]:
    return holder.standing
