"""The disjunction and the exclusive or [003 table 1, 001 sec III]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite.general.process import TIMERS, Process
from likewise.composite.instance import Instance, changed, merge_readings
from likewise.composite.plan.nodes import DisjunctionNode, ExclusiveNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


class DisjunctionProcess(Process):
    """Any of the parts; instances of the same events are merged, with probability 1 - prod(1 - p)."""

    __slots__ = ("children",)

    node: DisjunctionNode

    def begin(self, *, fresh: bool) -> None:
        self.children = [self.spawn(part, slot=k, fresh=fresh) for k, part in enumerate(self.node.parts)]

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        if len(inbox) == 1:
            self._pass_on(inbox[0][1])
            return
        groups: dict[tuple[int, ...], list[Instance]] = {}
        for _, instance in inbox:
            groups.setdefault(instance.ranks, []).append(instance)
        for group in groups.values():
            if len(group) == 1:
                self._pass_on(group[0])
            elif self.node.separate_until is not None:
                for reading in self._readings(group):
                    self.emit(reading)
            else:
                self.emit(merge_readings(self._readings(group)))

    def _pass_on(self, instance: Instance) -> None:
        """Pass on an instance that only one branch found, unchanged apart from its step."""
        instance.step = self.run.rank
        self.emit(instance)

    def _readings(self, group: list[Instance]) -> list[Instance]:
        """The alternative readings of the same events, all with the earliest span."""
        early = min(group, key=_span)
        return [
            Instance(
                self.node.id,
                time=reading.time,
                phase=reading.phase,
                first=early.first,
                start=early.start,
                end=early.end,
                probability=reading.probability,
                roles=reading.roles,
                parts=(reading,),
                branch_probability=reading.probability,
                step=self.run.rank,
            )
            for reading in group
        ]

    def close(self) -> None:
        super().close()
        for child in self.children:
            child.close()

    def dump(self, dump: Dump) -> Any:
        return [child.dump(dump) for child in self.children]

    def load(self, state: Any, load: Load) -> None:
        for child, entry in zip(self.children, state, strict=True):
            child.load(entry, load)


def _span(instance: Instance) -> tuple[Instant, Instant]:
    return instance.start, instance.end


class ExclusiveCandidate:
    """An instance of one part, waiting until none of the others can come within the window."""

    __slots__ = ("alive", "instance", "number", "owner", "part")

    def __init__(self, owner: ExclusiveProcess, part: int, instance: Instance) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.part = part
        self.instance = instance
        self.alive = True

    def discard(self) -> None:
        """Stop waiting."""
        self.alive = False
        self.owner.pending.pop(self, None)
        self.owner.run.unhold(self)

    evict = discard


class ExclusiveProcess(Process):
    """Exactly one of the parts, emitted once none of the others came within the window."""

    __slots__ = ("children", "pending", "recent")

    node: ExclusiveNode

    def begin(self, *, fresh: bool) -> None:
        self.children = [self.spawn(part, slot=k, fresh=fresh) for k, part in enumerate(self.node.parts)]
        self.recent: list[tuple[int, Instance]] = []
        self.pending: dict[ExclusiveCandidate, None] = {}

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        horizon = self.run.now - 2 * self.node.within
        if inbox and self.recent and self.recent[0][1].time < horizon:
            self.recent = [entry for entry in self.recent if entry[1].time >= horizon]
        for k, instance in inbox:
            # Keep all recent instances, without a limit: they exclude the others while those wait.
            self.recent.append((k, instance))
            for waiting in list(self.pending):
                if self._exclusion(waiting.part, waiting.instance, k, instance) == 1.0:
                    waiting.discard()
            if self._factor(k, instance) > 0.0 and self.run.has_room(self):
                self._wait(ExclusiveCandidate(self, k, instance))

    def _wait(self, waiting: ExclusiveCandidate) -> None:
        self.pending[waiting] = None
        self.run.hold(waiting)
        self.schedule(waiting.instance.time + self.node.within, waiting)

    def _exclusion(self, k: int, instance: Instance, other_part: int, other: Instance) -> float:
        """The probability that an instance of another part excludes this one."""
        if other_part == k or abs(other.time - instance.time) > self.node.within:
            return 0.0
        return other.probability * self.factor(self.node.conditions, instance.roles + other.roles)

    def _factor(self, k: int, instance: Instance) -> float:
        """The probability that no recent instance of another part excludes this one."""
        probability = 1.0
        for other_part, other in self.recent:
            probability *= 1.0 - self._exclusion(k, instance, other_part, other)
        return probability

    def fire(self, item: Any) -> None:
        waiting: ExclusiveCandidate = item
        if not waiting.alive:
            return
        waiting.discard()
        k, instance = waiting.part, waiting.instance
        probability = instance.probability * self._factor(k, instance)
        now, branch = self.run.now, instance.branch_probability
        self.emit(changed(instance, time=now, phase=TIMERS, probability=probability, branch_probability=branch))

    def close(self) -> None:
        super().close()
        for waiting in list(self.pending):
            waiting.discard()
        for child in self.children:
            child.close()

    def dump(self, dump: Dump) -> Any:
        return [
            [[k, dump.instance(instance)] for k, instance in self.recent],
            [[waiting.number, waiting.part, dump.instance(waiting.instance)] for waiting in self.pending],
            [child.dump(dump) for child in self.children],
        ]

    def load(self, state: Any, load: Load) -> None:
        recent, pending, children = state
        self.recent = [(k, load.known(instance)) for k, instance in recent]
        for number, k, instance in pending:
            waiting = ExclusiveCandidate(self, k, load.known(instance))
            waiting.number = number
            self._wait(waiting)
        for child, entry in zip(self.children, children, strict=True):
            child.load(entry, load)
