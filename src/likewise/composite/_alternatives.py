"""The disjunction and the exclusive or [003 table 1, 001 sec III]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite._instance import Instance
from likewise.composite._plan import DisjunctionNode, ExclusiveNode
from likewise.composite._process import TIMERS, Process
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._state import Dump, Load


class DisjunctionProcess(Process):
    """Any of the parts; what is made of the same events is one instance, of probability 1 - prod(1 - p)."""

    __slots__ = ("children",)

    node: DisjunctionNode

    def begin(self, *, fresh: bool) -> None:
        self.children = [self.spawn(part, slot=k, fresh=fresh) for k, part in enumerate(self.node.parts)]

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        groups: dict[tuple[int, ...], list[Instance]] = {}
        for _, instance in sorted(inbox, key=lambda entry: entry[0]):
            groups.setdefault(instance.ranks, []).append(instance)
        for group in groups.values():
            self.emit(self._merged(group))

    def _merged(self, group: list[Instance]) -> Instance:
        if len(group) == 1:
            return group[0]
        best = max(group, key=lambda instance: instance.probability)
        none = 1.0
        for instance in group:
            none *= 1.0 - instance.probability
        return changed(best, time=best.time, phase=best.phase, probability=1.0 - none)

    def close(self) -> None:
        super().close()
        for child in self.children:
            child.close()

    def size(self) -> int:
        return sum(child.size() for child in self.children)

    def dump(self, dump: Dump) -> Any:
        return [child.dump(dump) for child in self.children]

    def load(self, state: Any, load: Load) -> None:
        for child, entry in zip(self.children, state, strict=True):
            child.load(entry, load)


class ExclusiveProcess(Process):
    """One of the parts, once it is known that none of the others came near."""

    __slots__ = ("children", "pending", "recent")

    node: ExclusiveNode

    def begin(self, *, fresh: bool) -> None:
        self.children = [self.spawn(part, slot=k, fresh=fresh) for k, part in enumerate(self.node.parts)]
        self.recent: list[tuple[int, Instance]] = []
        self.pending: dict[int, tuple[int, Instance]] = {}

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        horizon = self.run.now - 2 * self.node.within
        if inbox and self.recent and self.recent[0][1].time < horizon:
            self.recent = [entry for entry in self.recent if entry[1].time >= horizon]
        for k, instance in inbox:
            # What came keeps others from being alone for as long as they wait: no limit takes it out.
            self.recent.append((k, instance))
            if self._room():
                self._wait(k, instance)

    def _room(self) -> bool:
        """Whether one more may wait; at the limit the policy decides."""
        if len(self.pending) < self.run.limits.instances:
            return True
        self.run.dropped += 1
        if self.run.limits.policy != "drop oldest":
            return False
        del self.pending[next(iter(self.pending))]
        return True

    def _wait(self, k: int, instance: Instance) -> None:
        number = self.run.ticket()
        self.pending[number] = (k, instance)
        self.wake(instance.time + self.node.within, number)

    def fire(self, item: Any) -> None:
        waiting = self.pending.pop(item, None)
        if waiting is None:
            return
        k, instance = waiting
        probability = instance.probability
        for other, blocker in self.recent:
            if other != k and abs(blocker.time - instance.time) <= self.node.within:
                bound = self.factor(self.node.conditions, instance.roles + blocker.roles)
                probability *= 1.0 - blocker.probability * bound
        self.emit(changed(instance, time=self.run.now, phase=TIMERS, probability=probability))

    def close(self) -> None:
        super().close()
        for child in self.children:
            child.close()

    def size(self) -> int:
        return len(self.pending) + sum(child.size() for child in self.children)

    def dump(self, dump: Dump) -> Any:
        return [
            [[k, dump.instance(instance)] for k, instance in self.recent],
            [[k, dump.instance(instance)] for k, instance in self.pending.values()],
            [child.dump(dump) for child in self.children],
        ]

    def load(self, state: Any, load: Load) -> None:
        recent, pending, children = state
        self.recent = [(k, load.known(instance)) for k, instance in recent]
        for k, instance in pending:
            self._wait(k, load.known(instance))
        for child, entry in zip(self.children, children, strict=True):
            child.load(entry, load)


def changed(instance: Instance, *, time: Instant, phase: int, probability: float) -> Instance:
    """The same events, known at another time or with another probability."""
    return Instance(
        instance.node,
        time=time,
        phase=phase,
        first=instance.first,
        start=instance.start,
        end=instance.end,
        probability=probability,
        roles=instance.roles,
        parts=instance.parts,
    )
