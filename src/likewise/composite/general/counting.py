"""Selection of the i-th instance, and repetition [003 table 1]; with a key, counted for each of its values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from likewise.composite.general.process import TIMERS, Process
from likewise.composite.instance import Instance, group_by_reading, joined
from likewise.composite.plan.conditions import ConditionSide
from likewise.composite.plan.nodes import RepetitionNode, SelectionNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load

_SLOTS: Final = 1024
_FOREVER: Final = 1 << 62


_NO_KEY: Final[Sequence[Any]] = ((),)


def _keys(instance: Instance, sides: tuple[ConditionSide, ...]) -> Sequence[Any]:
    """The keys for which an instance is counted, one for each of its values."""
    if not sides:
        return _NO_KEY
    if len(sides) == 1:
        keys = sides[0].keys(instance.roles)
        return (keys,) if len(keys) == 1 else [(key,) for key in dict.fromkeys(keys or (None,))]
    return list(product(*[dict.fromkeys(side.keys(instance.roles) or (None,)) for side in sides]))


def _by_key(
    inbox: list[tuple[Any, Instance]], node: SelectionNode | RepetitionNode
) -> Iterable[Collection[tuple[Any, list[Instance]]]]:
    """For each instance, its keys, each with the readings that have that key."""
    for readings in group_by_reading([instance for _, instance in inbox], node.unmerged):
        out: dict[Any, list[Instance]] = {}
        for reading in readings:
            for key in _keys(reading, node.key):
                out.setdefault(key, []).append(reading)
        yield out.items()


class KeyCount:
    """The count of a key, and when its window opened."""

    __slots__ = ("count", "key", "number", "opened", "owner")

    def __init__(self, owner: SelectionProcess, key: Any, opened: Instant) -> None:
        self.owner = owner
        self.key = key
        self.opened = opened
        self.number = owner.run.ticket()
        self.count = 0

    def evict(self) -> None:
        """Make room; later instances of this key are ignored, as their count would be wrong."""
        self.owner.forget(self)
        self.owner.block(self.key, self.opened)


class SelectionProcess(Process):
    """Counts instances since activation, or in windows that open with an instance; newest window last."""

    __slots__ = ("_blocked_until", "child", "counts")

    node: SelectionNode

    def begin(self, *, fresh: bool) -> None:
        self.counts: dict[Any, KeyCount] = {}
        # By slot: until when its keys are not counted, since one of them was evicted.
        self._blocked_until: dict[int, Instant] = {}
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        node = self.node
        if not node.unmerged:
            for _, instance in inbox:
                # An instance counts for each of its values, and is emitted if it is the i-th for any.
                places = [self._count(key, instance.time) for key in _keys(instance, node.key)]
                if node.index in places:
                    self.emit(instance)
        else:
            for keyed in _by_key(inbox, node):
                counted = [readings for key, readings in keyed if self._count(key, readings[0].time) == node.index]
                for instance in dict.fromkeys([reading for readings in counted for reading in readings]):
                    self.emit(instance)
        if self.done:
            self.child.close()

    def _count(self, key: Any, time: Instant) -> int:
        """Count an instance for one key; returns its number, or 0 if there is no room to count."""
        within = self.node.within
        known = self.counts.get(key)
        if known is not None and within is not None and time > known.opened + within:
            self.forget(known)
            known = None
        if known is None:
            known = self._open(key, time)
            if known is None:
                return 0
        known.count += 1
        if within is not None:
            self._trim(time - within)
        return known.count

    def _open(self, key: Any, time: Instant) -> KeyCount | None:
        if self.node.key:
            if self._blocked_until and self._blocked_until.get(_slot(key), -_FOREVER) >= time:
                self.run.dropped += 1
                self.block(key, time)
                return None
            if not self.run.has_room(self):
                self.block(key, time)
                return None
        count = KeyCount(self, key, time)
        self._enter(count)
        return count

    def _enter(self, count: KeyCount) -> None:
        self.counts[count.key] = count
        if self.node.key:
            self.run.hold(count)

    def forget(self, count: KeyCount) -> None:
        """Drop the count of a key."""
        del self.counts[count.key]
        self.run.unhold(count)

    def block(self, key: Any, opened: Instant) -> None:
        """Ignore a key until the window that opened at a moment ends, or forever without a window."""
        slot, within = _slot(key), self.node.within
        until = _FOREVER if within is None else opened + within
        self._blocked_until[slot] = max(until, self._blocked_until.get(slot, until))

    def _trim(self, before: Instant) -> None:
        """Drop counts whose windows are over."""
        while len(self.counts) > 1:
            oldest = next(iter(self.counts.values()))
            if oldest.opened >= before:
                break
            self.forget(oldest)

    @property
    def done(self) -> bool:
        """Whether there is nothing more to count."""
        node = self.node
        return node.within is None and not node.key and () in self.counts and self.counts[()].count >= node.index

    def close(self) -> None:
        super().close()
        for count in self.counts.values():
            self.run.unhold(count)
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        counts = [[count.key, count.count, count.opened, count.number] for count in self.counts.values()]
        return [counts, sorted(self._blocked_until.items()), None if self.done else self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        counts, block, child = state
        for key, number, opened, ticket in counts:
            count = KeyCount(self, load.key(key), opened)
            count.count, count.number = number, ticket
            self._enter(count)
        self._blocked_until = dict(block)
        if self.done:
            self.child.close()
        else:
            self.child.load(child, load)


def _slot(key: Any) -> int:
    """A slot number for a key, the same in every process."""
    if isinstance(key, str):
        return crc32(key.encode()) % _SLOTS
    if isinstance(key, tuple):
        out = 0
        for part in key:
            out = (31 * out + _slot(part)) % _SLOTS
        return out
    return hash(key) % _SLOTS


class CountedRow:
    """Consecutive instances of one key; a `spoiled` row has lost some, so it cannot be the longest."""

    __slots__ = ("alive", "items", "key", "opened", "spoiled")

    def __init__(self, key: Any, opened: Instant) -> None:
        self.key = key
        self.opened = opened
        self.items: list[Counted] = []
        self.spoiled = False
        self.alive = True


class Counted:
    """An instance in a row, with all readings of its events."""

    __slots__ = ("number", "owner", "readings", "row", "time")

    def __init__(self, owner: RepetitionProcess, row: CountedRow, readings: list[Instance]) -> None:
        self.owner = owner
        self.time = readings[0].time
        self.number = owner.run.ticket()
        self.row = row
        self.readings = readings

    def evict(self) -> None:
        """Make room; the oldest held item is the first of its row."""
        if self.owner.node.longest:
            self.owner.spoil(self.row)
        else:
            self.row.items.remove(self)
            self.owner.run.unhold(self)


class RepetitionProcess(Process):
    """The current rows, each as long as one more instance can reach back; the row that grew last is at the end."""

    __slots__ = ("child", "emitted", "rows", "several")

    node: RepetitionNode

    def begin(self, *, fresh: bool) -> None:
        self.rows: dict[Any, CountedRow] = {}
        self.emitted: set[tuple[int, ...]] = set()
        self.several = False
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        node = self.node
        if self.several:
            self.emitted.clear()
        if not node.unmerged:
            for _, instance in inbox:
                keys = _keys(instance, node.key)
                if len(keys) > 1:
                    self.several = True
                for key in keys:
                    self._take(key, [instance])
        else:
            for keyed in _by_key(inbox, node):
                if len(keyed) > 1:
                    self.several = True
                for key, readings in keyed:
                    self._take(key, readings)

    def _take(self, key: Any, readings: list[Instance]) -> None:
        row = self.rows.pop(key, None)
        if row is not None and row.items and row.items[-1].time >= readings[0].first:
            # It overlaps the last one, so the row ends here.
            self._over(row, self.run.phase)
            row = None
        if row is None:
            row = CountedRow(key, readings[0].time)
            if self.node.longest:
                self._await_end(row)
        self.rows[key] = row
        if self.node.longest:
            self._grow(row, readings)
        else:
            self._slide(row, readings)
            self._trim(readings[0].time)

    # every row

    def _slide(self, row: CountedRow, readings: list[Instance]) -> None:
        """Emit all rows that end with this instance, then let it wait for the next."""
        node, items, last = self.node, row.items, readings[0]
        most, within, now = node.most, node.within, last.time
        if within is not None and items and now - items[0].time > within:
            self._cut(row, sum([now - item.time > within for item in items]))
        held = len(items)
        for size in range(node.least, held + 2):
            before = items[held + 1 - size :]
            if node.unmerged:
                self._found([*[item.readings for item in before], readings], now, last.phase)
            else:
                self._emit_row((*[item.readings[0] for item in before], last), now, last.phase)
        # The next instance can reach back to all but one of the largest row.
        if most is not None and len(items) + 2 > most:
            self._cut(row, len(items) + 2 - most)
        if most == 1:
            return
        if self.run.has_room(self):
            self._enter(Counted(self, row, readings))
        else:
            self._cut(row, len(items))

    def _enter(self, counted: Counted) -> None:
        counted.row.items.append(counted)
        self.run.hold(counted)

    def _cut(self, row: CountedRow, count: int) -> None:
        """Drop the first items of a row."""
        if count == 1 and row.items:
            # The most frequent case: one comes, one goes.
            self.run.unhold(row.items.pop(0))
        elif count > 0:
            for counted in row.items[:count]:
                self.run.unhold(counted)
            del row.items[:count]

    def _trim(self, now: Instant) -> None:
        """Drop rows that are over or empty."""
        within = self.node.within
        while self.rows:
            oldest = next(iter(self.rows.values()))
            if oldest.items and (within is None or now - oldest.items[-1].time <= within):
                break
            self._cut(oldest, len(oldest.items))
            del self.rows[oldest.key]

    def _found(self, row: list[list[Instance]], time: Instant, phase: int) -> None:
        if not self.node.unmerged:
            self._emit_row(tuple([readings[0] for readings in row]), time, phase)
            return
        for run in product(*row):
            if not self.run.may_build():
                return
            self._emit_row(run, time, phase)

    def _emit_row(self, run: tuple[Instance, ...], time: Instant, phase: int) -> None:
        # With several keys the same row may be found again.
        if self.several:
            identity = tuple([id(instance) for instance in run])
            if identity in self.emitted:
                return
            self.emitted.add(identity)
        probability = 1.0
        for instance in run:
            probability *= instance.probability
        self.emit(joined(self.node.id, run, time=time, phase=phase, probability=probability))

    # the longest row

    def _grow(self, row: CountedRow, readings: list[Instance]) -> None:
        if row.spoiled:
            self.run.dropped += 1
            return
        if not self.run.has_room(self):
            if self.alive:
                self.spoil(row)
            return
        if not row.spoiled:
            self._enter(Counted(self, row, readings))
        if len(row.items) == self.node.most:
            del self.rows[row.key]
            self._over(row, readings[0].phase)

    def spoil(self, row: CountedRow) -> None:
        """Mark a row that lost instances: it is not emitted, and no other row of its key begins before it ends."""
        row.spoiled = True
        self._cut(row, len(row.items))

    def _over(self, row: CountedRow, phase: int) -> None:
        """End a row, and emit it if it is a longest one."""
        row.alive = False
        if self.node.longest and len(row.items) >= self.node.least:
            self._found([item.readings for item in row.items], self.run.now, phase)
        self._cut(row, len(row.items))

    def fire(self, item: Any) -> None:
        row: CountedRow = item
        if row.alive and not row.spoiled and 1 < len(row.items) < self.node.least:
            # Too few within the window of the first; try from the next one.
            self._cut(row, 1)
            row.opened = row.items[0].readings[0].time
            self._await_end(row)
        elif row.alive:
            del self.rows[row.key]
            self._over(row, TIMERS)

    def _await_end(self, row: CountedRow) -> None:
        assert self.node.within is not None  # checked when the plan was built
        self.schedule(row.opened + self.node.within, row)

    def close(self) -> None:
        super().close()
        for row in self.rows.values():
            self._cut(row, len(row.items))
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        rows = [
            [
                row.key,
                row.opened,
                row.spoiled,
                [[item.number, [*map(dump.instance, item.readings)]] for item in row.items],
            ]
            for row in self.rows.values()
        ]
        return [rows, self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        rows, child = state
        self.several = len(rows) > 1
        for key, opened, spoiled, items in rows:
            row = self.rows[load.key(key)] = CountedRow(load.key(key), opened)
            row.spoiled = spoiled
            for number, readings in items:
                counted = Counted(self, row, [load.known(reading) for reading in readings])
                counted.number = number
                self._enter(counted)
            if self.node.longest:
                self._await_end(row)
        self.child.load(child, load)
