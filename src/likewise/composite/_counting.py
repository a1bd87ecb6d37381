"""Selection of the i-th, and repetition [003 table 1]; with a key, counted for each of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite._conditions import key_of
from likewise.composite._instance import Instance, joined
from likewise.composite._plan import RepetitionNode, SelectionNode
from likewise.composite._process import Process
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._state import Dump, Load


class SelectionProcess(Process):
    """Counts instances since activation, or in windows that open with an instance.

    Of each key it knows the count and when its window opened, the one that opened last at the end.
    """

    __slots__ = ("child", "counts")

    node: SelectionNode

    def begin(self, *, fresh: bool) -> None:
        self.counts: dict[Any, tuple[int, Instant]] = {}
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for _, instance in inbox:
            self._count(key_of(instance.roles, self.node.key), instance)
        if self.done:
            self.child.close()

    def _count(self, key: Any, instance: Instance) -> None:
        counts, within = self.counts, self.node.within
        count, opened = counts.get(key, (0, instance.time))
        if within is not None and instance.time > opened + within:
            del counts[key]
            count, opened = 0, instance.time
        counts[key] = (count + 1, opened)
        if count + 1 == self.node.index:
            self.emit(instance)
        self._trim(instance.time)

    def _trim(self, now: Instant) -> None:
        """Forget windows that are over, and the oldest counts beyond the limit."""
        counts, within, limit = self.counts, self.node.within, self.run.limits.instances
        while len(counts) > 1:
            oldest = next(iter(counts))
            over = within is not None and now > counts[oldest][1] + within
            if not over and len(counts) <= limit:
                break
            self.run.dropped += not over
            del counts[oldest]

    @property
    def done(self) -> bool:
        """Whether there is nothing more to count."""
        node = self.node
        return node.within is None and not node.key and self.counts.get((), (0, 0))[0] >= node.index

    def close(self) -> None:
        super().close()
        self.child.close()

    def size(self) -> int:
        return self.child.size()

    def dump(self, dump: Dump) -> Any:
        child = None if self.done else self.child.dump(dump)
        if self.node.key:
            return [[[key, *entry] for key, entry in self.counts.items()], None, child]
        return [*self.counts.get((), (0, None)), child]

    def load(self, state: Any, load: Load) -> None:
        counts, opened, child = state
        if self.node.key:
            # What was written before there were keys begins anew.
            counts = counts if isinstance(counts, list) else []
            self.counts = {load.key(key): (count, moment) for key, count, moment in counts}
        elif opened is not None:
            self.counts = {(): (counts, opened)}
        if self.done:
            self.child.close()
        else:
            self.child.load(child, load)


class RepetitionProcess(Process):
    """The instances of the present rows, as far back as one more can reach; the row that grew last is at the end."""

    __slots__ = ("child", "held", "rows")

    node: RepetitionNode

    def begin(self, *, fresh: bool) -> None:
        self.rows: dict[Any, list[Instance]] = {}
        self.held = 0
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for _, instance in inbox:
            key = key_of(instance.roles, self.node.key)
            row = self.rows.pop(key, [])
            self.held -= len(row)
            if row and row[-1].time >= instance.first:
                row = []
            row.append(instance)
            row = self._reach(row)
            self.rows[key] = row
            self.held += len(row)
            self._trim(instance.time)
            self._found(row)

    def _reach(self, row: list[Instance]) -> list[Instance]:
        """What one more can still be in a row with."""
        most, within, now = self.node.most, self.node.within, row[-1].time
        keep = min(len(row) if most is None else most, self.run.limits.instances)
        if most is None and keep < len(row):
            self.run.dropped += len(row) - keep
        if keep < len(row):
            row = row[-keep:]
        if within is not None and now - row[0].time > within:
            row = [one for one in row if now - one.time <= within]
        return row

    def _trim(self, now: Instant) -> None:
        """Forget rows that are over, and the oldest beyond the limit."""
        rows, within, limit = self.rows, self.node.within, self.run.limits.instances
        while len(rows) > 1:
            oldest = next(iter(rows))
            over = within is not None and now - rows[oldest][-1].time > within
            if not over and self.held <= limit:
                break
            self.run.dropped += 0 if over else len(rows[oldest])
            self.held -= len(rows.pop(oldest))

    def _found(self, row: list[Instance]) -> None:
        last = row[-1]
        for size in range(self.node.least, len(row) + 1):
            run = tuple(row[-size:])
            probability = 1.0
            for instance in run:
                probability *= instance.probability
            self.emit(joined(self.node.id, run, time=last.time, phase=last.phase, probability=probability))

    def close(self) -> None:
        super().close()
        self.child.close()

    def size(self) -> int:
        return self.held + self.child.size()

    def dump(self, dump: Dump) -> Any:
        rows = [[dump.instance(instance) for instance in row] for row in self.rows.values()]
        return [rows if self.node.key else [one for row in rows for one in row], self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        rows, child = state
        if not self.node.key:
            rows = [rows] if rows else []
        for row in rows:
            known = [load.known(instance) for instance in (row if isinstance(row, list) else [row])]
            self.rows[key_of(known[-1].roles, self.node.key)] = known
            self.held += len(known)
        self.child.load(child, load)
