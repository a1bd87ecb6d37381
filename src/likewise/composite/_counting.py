"""Selection of the i-th, and repetition [003 table 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite._instance import Instance, joined
from likewise.composite._plan import RepetitionNode, SelectionNode
from likewise.composite._process import Process
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._state import Dump, Load


class SelectionProcess(Process):
    """Counts instances since activation, or in windows that open with an instance."""

    __slots__ = ("child", "count", "opened")

    node: SelectionNode

    def begin(self, *, fresh: bool) -> None:
        self.count = 0
        self.opened: Instant | None = None
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        within = self.node.within
        for _, instance in inbox:
            over = self.opened is not None and within is not None and instance.time > self.opened + within
            if self.opened is None or over:
                self.opened, self.count = instance.time, 0
            self.count += 1
            if self.count == self.node.index:
                self.emit(instance)
        if self.done:
            self.child.close()

    @property
    def done(self) -> bool:
        """Whether there is nothing more to count."""
        return self.node.within is None and self.count >= self.node.index

    def close(self) -> None:
        super().close()
        self.child.close()

    def size(self) -> int:
        return self.child.size()

    def dump(self, dump: Dump) -> Any:
        return [self.count, self.opened, None if self.done else self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        self.count, self.opened, child = state
        if self.done:
            self.child.close()
        else:
            self.child.load(child, load)


class RepetitionProcess(Process):
    """The instances of the present row, as far back as one more can reach."""

    __slots__ = ("child", "row")

    node: RepetitionNode

    def begin(self, *, fresh: bool) -> None:
        self.row: list[Instance] = []
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for _, instance in inbox:
            if self.row and self.row[-1].time >= instance.first:
                self.row = []
            self.row.append(instance)
            self._trim(instance.time)
            self._found()

    def _trim(self, now: Instant) -> None:
        most, within = self.node.most, self.node.within
        keep = len(self.row) if most is None else most
        keep = min(keep, self.run.limits.instances)
        if most is None and keep < len(self.row):
            self.run.dropped += len(self.row) - keep
        self.row = self.row[-keep:]
        if within is not None:
            self.row = [instance for instance in self.row if now - instance.time <= within]

    def _found(self) -> None:
        last = self.row[-1]
        for size in range(self.node.least, len(self.row) + 1):
            run = tuple(self.row[-size:])
            probability = 1.0
            for instance in run:
                probability *= instance.probability
            self.emit(joined(self.node.id, run, time=last.time, phase=last.phase, probability=probability))

    def close(self) -> None:
        super().close()
        self.child.close()

    def size(self) -> int:
        return len(self.row) + self.child.size()

    def dump(self, dump: Dump) -> Any:
        return [[dump.instance(instance) for instance in self.row], self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        row, child = state
        self.row = [load.known(instance) for instance in row]
        self.child.load(child, load)
