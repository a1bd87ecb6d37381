"""The disjunction and the exclusive or [003 table 1, 001 sec III]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite.general.process import TIMERS, Process
from likewise.composite.instance import Instance, changed, merged
from likewise.composite.plan.nodes import DisjunctionNode, ExclusiveNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


class DisjunctionProcess(Process):
    """Any of the parts; what is made of the same events is one instance, of probability 1 - prod(1 - p)."""

    __slots__ = ("children",)

    node: DisjunctionNode

    def begin(self, *, fresh: bool) -> None:
        self.children = [self.spawn(part, slot=k, fresh=fresh) for k, part in enumerate(self.node.parts)]

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        if len(inbox) == 1:
            self._hand_on(inbox[0][1])
            return
        groups: dict[tuple[int, ...], list[Instance]] = {}
        for _, instance in inbox:
            groups.setdefault(instance.ranks, []).append(instance)
        for group in groups.values():
            if len(group) == 1:
                self._hand_on(group[0])
            elif self.node.apart is not None:
                for way in self._ways(group):
                    self.emit(way)
            else:
                self.emit(merged(self._ways(group)))

    def _hand_on(self, instance: Instance) -> None:
        """What one branch alone found, as it is: all who take it in this step would say the same of it."""
        instance.step = self.run.rank
        self.emit(instance)

    def _ways(self, group: list[Instance]) -> list[Instance]:
        """The ways to read the same events: one instance, with one span, the earliest."""
        early = min(group, key=_span)
        return [
            Instance(
                self.node.id,
                time=way.time,
                phase=way.phase,
                first=early.first,
                start=early.start,
                end=early.end,
                probability=way.probability,
                roles=way.roles,
                parts=(way,),
                reading=way.probability,
                step=self.run.rank,
            )
            for way in group
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


class Alone:
    """An instance of one part that waits until it is known that none of the others came near."""

    __slots__ = ("alive", "instance", "number", "owner", "part")

    def __init__(self, owner: ExclusiveProcess, part: int, instance: Instance) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.part = part
        self.instance = instance
        self.alive = True

    def leave(self) -> None:
        """It waits no longer."""
        self.alive = False
        self.owner.pending.pop(self, None)
        self.owner.run.let_go(self)

    give_up = leave


class ExclusiveProcess(Process):
    """One of the parts, once it is known that none of the others came near."""

    __slots__ = ("children", "pending", "recent")

    node: ExclusiveNode

    def begin(self, *, fresh: bool) -> None:
        self.children = [self.spawn(part, slot=k, fresh=fresh) for k, part in enumerate(self.node.parts)]
        self.recent: list[tuple[int, Instance]] = []
        self.pending: dict[Alone, None] = {}

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        horizon = self.run.now - 2 * self.node.within
        if inbox and self.recent and self.recent[0][1].time < horizon:
            self.recent = [entry for entry in self.recent if entry[1].time >= horizon]
        for k, instance in inbox:
            # What came keeps others from being alone for as long as they wait: no limit takes it out.
            self.recent.append((k, instance))
            for waiting in list(self.pending):
                if self._beside(waiting.part, waiting.instance, k, instance) == 1.0:
                    waiting.leave()
            if self._factor(k, instance) > 0.0 and self.run.room(self):
                self._wait(Alone(self, k, instance))

    def _wait(self, waiting: Alone) -> None:
        self.pending[waiting] = None
        self.run.hold(waiting)
        self.wake(waiting.instance.time + self.node.within, waiting)

    def _beside(self, k: int, instance: Instance, other: int, came: Instance) -> float:
        """How surely what came keeps an instance from being alone."""
        if other == k or abs(came.time - instance.time) > self.node.within:
            return 0.0
        return came.probability * self.factor(self.node.conditions, instance.roles + came.roles)

    def _factor(self, k: int, instance: Instance) -> float:
        """The probability that it is alone, by all that came."""
        probability = 1.0
        for other, came in self.recent:
            probability *= 1.0 - self._beside(k, instance, other, came)
        return probability

    def fire(self, item: Any) -> None:
        waiting: Alone = item
        if not waiting.alive:
            return
        waiting.leave()
        k, instance = waiting.part, waiting.instance
        probability = instance.probability * self._factor(k, instance)
        now, reading = self.run.now, instance.reading
        self.emit(changed(instance, time=now, phase=TIMERS, probability=probability, reading=reading))

    def close(self) -> None:
        super().close()
        for waiting in list(self.pending):
            waiting.leave()
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
            waiting = Alone(self, k, load.known(instance))
            waiting.number = number
            self._wait(waiting)
        for child, entry in zip(self.children, children, strict=True):
            child.load(entry, load)
