"""A running pattern: its processes, its steps, and records of its instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias

from likewise.composite.detection import Detection
from likewise.composite.general.absence import SilenceProcess
from likewise.composite.general.alternatives import DisjunctionProcess, ExclusiveProcess
from likewise.composite.general.choice import Chooser, GateProcess
from likewise.composite.general.conjunction import Held, JointProcess
from likewise.composite.general.counting import RepetitionProcess, SelectionProcess
from likewise.composite.general.pools import Timers, new_lanes
from likewise.composite.general.prefix import Prefix
from likewise.composite.general.process import EVENTS, ConsumptionScope, LeafProcess, Parent, Process, TimeProcess
from likewise.composite.general.sequence import SequenceProcess
from likewise.composite.instance import FilledRole, Instance, RoleToken, WeightedValue
from likewise.composite.plan.conditions import Relate
from likewise.composite.plan.nodes import Plan, PlanNode
from likewise.events import Event, Instant
from likewise.language import Consumption as Consume

if TYPE_CHECKING:
    from likewise.composite.general.pools import Answer, Pool

PROCESSES: Final[dict[str, type[Process]]] = {
    "LeafNode": LeafProcess,
    "TimeNode": TimeProcess,
    "SequenceNode": SequenceProcess,
    "JointNode": JointProcess,
    "DisjunctionNode": DisjunctionProcess,
    "ExclusiveNode": ExclusiveProcess,
    "SilenceNode": SilenceProcess,
    "SelectionNode": SelectionProcess,
    "RepetitionNode": RepetitionProcess,
    "GateNode": GateProcess,
}


_NONE_FOUND: Final[list[Instance]] = []

Delivery: TypeAlias = tuple[Iterable[LeafProcess], float, dict[str, tuple[WeightedValue, ...]] | None]
"""The processes that wait for an event, its probability, and its mapped values."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most instances one pattern may hold, and what happens then: drop the oldest, or refuse the newest."""

    instances: int = 100_000
    policy: Literal["drop oldest", "refuse"] = "drop oldest"


class HeldItem(Protocol):
    """Something that is held and counts against the limit."""

    def __hash__(self) -> int: ...

    number: int

    def evict(self) -> None:
        """Stop waiting, to make room for another."""
        ...


@dataclass(slots=True)
class Stop:
    """Where and why an incomplete instance ended."""

    node: int
    level: int
    why: str
    roles: tuple[FilledRole, ...]
    time: Instant


@dataclass(slots=True)
class Record:
    """Why instances of a pattern ended: counts, and the instance that came furthest."""

    stops: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    furthest: Stop | None = None


class Run:
    """One running pattern: tokens for events, processes by depth, detections at the root."""

    processes: ClassVar[dict[str, type[Process]]] = PROCESSES

    def __init__(
        self, plan: Plan, *, number: int, pool: Pool, timers: Timers, relate: Relate | None, limits: Limits
    ) -> None:
        self.plan = plan
        self.number = number
        self.limits = limits
        self.relate = relate
        self.now: Instant = 0
        self.phase = EVENTS
        # The position of this step's event; -1 if timers fire.
        self.rank = -1
        self.dropped = 0
        self.detected = 0
        self.record = Record()
        self.root: Process | None = None
        self.started: Instant | None = None
        self._pool = pool
        self._timers = timers
        self.lanes = new_lanes(len(plan.nodes))
        self._chooser = Chooser(plan.root)
        self._found: list[Instance] = []
        self._marked: list[list[Process]] = [[] for _ in range(max(node.depth for node in plan.nodes) + 1)]
        self._deepest = -1
        self._tickets = 0
        self._built = 0
        self._consumption = ConsumptionScope(unique=plan.consumption is Consume.UNIQUE)
        # All held items, oldest first.
        self._held: dict[HeldItem, None] = {}

    @property
    def clock(self) -> Instant:
        """All timers up to this moment have fired."""
        return self._timers.clock

    def start(self, moment: Instant, *, fresh: bool = True) -> None:
        """Activate the pattern: it processes events from `moment` on."""
        self.started = moment
        self.root = self.spawn(
            self.plan.root.node,
            parent=self,
            slot=0,
            after=moment - 1,
            origin=moment,
            consumption=self._consumption,
            fresh=fresh,
        )

    def spawn(
        self,
        node: PlanNode,
        *,
        parent: Parent,
        slot: Any,
        after: Instant,
        origin: Instant,
        consumption: ConsumptionScope,
        fresh: bool = True,
    ) -> Process:
        """Create a process for a node."""
        kind = self.processes[type(node).__name__]
        return kind(
            self, node, parent=parent, slot=slot, after=after, origin=origin, consumption=consumption, fresh=fresh
        )

    # steps

    def begin_step(self, now: Instant, phase: int) -> None:
        """Begin a step; all until `end_step` happens at the same time."""
        self.now, self.phase, self.rank, self._built = now, phase, -1, 0

    @property
    def idle(self) -> bool:
        """Whether nothing happened in this step."""
        return self._deepest < 0 and not self._found

    def take(self, event: Event, rank: int, deliveries: Iterable[Delivery]) -> list[Instance]:
        """Process one event as a step: deliver it, with one token for all roles that it may fill."""
        end: Any = event.end if event.end is not None else event.start
        self.now, self.phase, self.rank, self._built = end, EVENTS, rank, 0
        token = RoleToken(event, rank, end)
        for leaves, probability, mapped in deliveries:
            for leaf in leaves:
                leaf.receive(token, probability, mapped)
        return self.end_step() if self._deepest >= 0 or self._found else _NONE_FOUND

    def mark(self, process: Process) -> None:
        """Mark a process to act in this step."""
        if not process.marked:
            process.marked = True
            depth = process.node.depth
            self._marked[depth].append(process)
            if depth > self._deepest:  # noqa: PLR1730 - faster than max, in a hot loop
                self._deepest = depth

    def accept(self, _slot: Any, instance: Instance) -> None:
        """Take a complete instance."""
        self._found.append(instance)

    def end_step(self) -> list[Instance]:
        """Let the marked processes act, deepest first, and return the detections."""
        while self._deepest >= 0:
            marked = self._marked[self._deepest]
            if not marked:
                self._deepest -= 1
                continue
            process = marked.pop(0)
            process.marked = False
            if process.alive:
                process.step()
        if not self._found:
            return _NONE_FOUND
        instances, self._found = self._found, []
        if len(instances) > 1:
            instances.sort(key=lambda instance: instance.order)
        if not self._chooser.takes_all:
            # Choose among the instances of one step before any is consumed.
            instances = [instance for instance in instances if self._chooser.admit(instance, None)]
        return [instance for instance in instances if self._detect(instance)]

    def _detect(self, instance: Instance) -> bool:
        if instance.probability < self.plan.threshold:
            self.note(Stop(instance.node, 1 << 16, "below the threshold", instance.roles, instance.time))
            return False
        if self._consumption.unique:
            if instance.consumed:
                return False
            self._consumption.consume(instance)
        self.detected += 1
        return True

    # services for processes

    def ticket(self) -> int:
        """A new unique number."""
        self._tickets += 1
        return self._tickets

    def listen(self, leaf: LeafProcess) -> None:
        """Activate a profile in the primitive pool."""
        self._pool.insert(self, leaf)

    def unlisten(self, leaf: LeafProcess) -> None:
        """Deactivate a profile."""
        self._pool.remove(self, leaf)

    def schedule(self, time: Instant, phase: int, process: Process, item: Any) -> None:
        """Insert a timer or a terminator into the temporal pool."""
        self._timers.insert(time, phase, self, process, item)

    def has_room(self, process: Process) -> bool:
        """Whether one more item may be held; at the limit the policy decides."""
        if len(self._held) < self.limits.instances:
            return True
        self.dropped += 1
        if self.limits.policy != "drop oldest":
            return False
        next(iter(self._held)).evict()
        # Dropping the oldest may close the asking process.
        return process.alive

    def hold(self, item: HeldItem) -> None:
        """Hold an item."""
        self._held[item] = None

    def unhold(self, item: HeldItem) -> None:
        """Stop holding an item."""
        self._held.pop(item, None)

    def may_build(self) -> bool:
        """Whether one more combination may be built in this step; the limit is that of held instances."""
        self._built += 1
        if self._built <= self.limits.instances:
            return True
        self.dropped += 1
        return False

    # why instances ended

    def stopped(self, node: PlanNode, level: int, why: str, holder: Prefix | Held, instance: Instance | None) -> None:
        """Record that an incomplete instance ended, or that an event did not fit it."""
        roles = holder.roles if isinstance(holder, Prefix) else holder.instance.roles
        extra = instance.roles if instance is not None else ()
        self.note(Stop(node.id, level, why, roles + extra, self.now))

    def blocked(self, node: PlanNode, by: PlanNode, parts: tuple[Instance, ...], time: Instant) -> None:
        """Record that all parts were found but a negated part happened."""
        roles = tuple(filled for part in parts for filled in part.roles)
        self.note(Stop(node.id, len(parts), f"{min(by.roles)} happened", roles, time))

    def note(self, stop: Stop) -> None:
        """Count a stop, and keep the one that came furthest."""
        self.record.stops[stop.node, stop.level, stop.why] += 1
        best = self.record.furthest
        if best is None or (len(stop.roles), stop.level) >= (len(best.roles), best.level):
            self.record.furthest = stop

    def close(self) -> None:
        """Leave all pools."""
        if self.root is not None:
            self.root.close()
            self.root = None

    def size(self) -> int:
        """The number of held instances."""
        return len(self._held)

    def loaded(self, tickets: int) -> None:
        """Finish loading a snapshot: sort held items by age, and continue the ticket numbers."""
        self._tickets = tickets
        self._held = dict.fromkeys(sorted(self._held, key=_age))

    @property
    def tickets(self) -> int:
        """The number of tickets given out."""
        return self._tickets


def deliver(hits: Sequence[Answer], event: Event, rank: int) -> list[Detection]:
    """Deliver an event to the patterns that wait for it; returns their detections."""
    if len(hits) == 1 and len(hits[0][0].listeners) == 1:
        entry, probability, mapped = hits[0]
        [(run, leaves)] = entry.listeners.items()
        return [
            Detection.of(run.plan, instance) for instance in run.take(event, rank, ((leaves, probability, mapped),))
        ]
    deliveries: dict[Run, list[Delivery]] = {}
    for entry, probability, mapped in hits:
        for run, leaves in entry.listeners.items():
            deliveries.setdefault(run, []).append((leaves, probability, mapped))
    in_order = sorted(deliveries, key=_number) if len(deliveries) > 1 else deliveries
    return [Detection.of(run.plan, instance) for run in in_order for instance in run.take(event, rank, deliveries[run])]


def _number(run: Run) -> int:
    return run.number


def _age(item: HeldItem) -> int:
    return item.number
