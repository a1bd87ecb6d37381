"""Selection of the i-th, and repetition [003 table 1]; with a key, counted for each of its values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from likewise.composite.general.process import TIMERS, Process
from likewise.composite.instance import Instance, joined, readings
from likewise.composite.plan.conditions import ConditionSide
from likewise.composite.plan.nodes import RepetitionNode, SelectionNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load

_SLOTS: Final = 1024
_FOREVER: Final = 1 << 62


_WHOLE: Final[Sequence[Any]] = ((),)


def _keys(instance: Instance, sides: tuple[ConditionSide, ...]) -> Sequence[Any]:
    """The keys that it is counted for: of several values each is one."""
    if not sides:
        return _WHOLE
    if len(sides) == 1:
        keys = sides[0].keys(instance.roles)
        return (keys,) if len(keys) == 1 else [(key,) for key in dict.fromkeys(keys or (None,))]
    return list(product(*[dict.fromkeys(side.keys(instance.roles) or (None,)) for side in sides]))


def _by_key(
    inbox: list[tuple[Any, Instance]], node: SelectionNode | RepetitionNode
) -> Iterable[Collection[tuple[Any, list[Instance]]]]:
    """Of each instance the keys that it is counted for, each with the ways to read it that have that key."""
    for ways in readings([instance for _, instance in inbox], node.ways):
        out: dict[Any, list[Instance]] = {}
        for way in ways:
            for key in _keys(way, node.key):
                out.setdefault(key, []).append(way)
        yield out.items()


class KeyCount:
    """How often a key was counted, and when its window opened."""

    __slots__ = ("count", "key", "number", "opened", "owner")

    def __init__(self, owner: SelectionProcess, key: Any, opened: Instant) -> None:
        self.owner = owner
        self.key = key
        self.opened = opened
        self.number = owner.run.ticket()
        self.count = 0

    def give_up(self) -> None:
        """Make room: what comes of this key is no longer counted, as it would be counted from the wrong one on."""
        self.owner.forget(self)
        self.owner.blind(self.key, self.opened)


class SelectionProcess(Process):
    """Counts instances since activation, or in windows that open with an instance; the one opened last at the end."""

    __slots__ = ("_blind", "child", "counts")

    node: SelectionNode

    def begin(self, *, fresh: bool) -> None:
        self.counts: dict[Any, KeyCount] = {}
        # Until when keys that share a slot are not counted, since one of them had to make room.
        self._blind: dict[int, Instant] = {}
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        node = self.node
        if not node.ways:
            for _, instance in inbox:
                # It is counted for each of its values, and found if it is the i-th for any.
                places = [self._count(key, instance.time) for key in _keys(instance, node.key)]
                if node.index in places:
                    self.emit(instance)
        else:
            for keyed in _by_key(inbox, node):
                counted = [mine for key, mine in keyed if self._count(key, mine[0].time) == node.index]
                for instance in dict.fromkeys([way for mine in counted for way in mine]):
                    self.emit(instance)
        if self.done:
            self.child.close()

    def _count(self, key: Any, time: Instant) -> int:
        """Count what came at a time for one key, and say which one it is; 0 if there is no room to count."""
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
            if self._blind and self._blind.get(_slot(key), -_FOREVER) >= time:
                self.run.dropped += 1
                self.blind(key, time)
                return None
            if not self.run.room(self):
                self.blind(key, time)
                return None
        made = KeyCount(self, key, time)
        self._enter(made)
        return made

    def _enter(self, count: KeyCount) -> None:
        self.counts[count.key] = count
        if self.node.key:
            self.run.hold(count)

    def forget(self, count: KeyCount) -> None:
        """It is counted no longer."""
        del self.counts[count.key]
        self.run.let_go(count)

    def blind(self, key: Any, opened: Instant) -> None:
        """KeyCount nothing of a key for as long as a window that opened at a moment, or forever without one."""
        slot, within = _slot(key), self.node.within
        until = _FOREVER if within is None else opened + within
        self._blind[slot] = max(until, self._blind.get(slot, until))

    def _trim(self, before: Instant) -> None:
        """Forget windows that are over."""
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
            self.run.let_go(count)
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        counts = [[count.key, count.count, count.opened, count.number] for count in self.counts.values()]
        return [counts, sorted(self._blind.items()), None if self.done else self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        counts, blind, child = state
        for key, number, opened, ticket in counts:
            count = KeyCount(self, load.key(key), opened)
            count.count, count.number = number, ticket
            self._enter(count)
        self._blind = dict(blind)
        if self.done:
            self.child.close()
        else:
            self.child.load(child, load)


def _slot(key: Any) -> int:
    """One of few numbers for a key, the same in every process; equal keys have the same."""
    if isinstance(key, str):
        return crc32(key.encode()) % _SLOTS
    if isinstance(key, tuple):
        out = 0
        for part in key:
            out = (31 * out + _slot(part)) % _SLOTS
        return out
    return hash(key) % _SLOTS


class CountedRow:
    """Instances of one key that follow one another; a `spoiled` one lost some and is the longest no more."""

    __slots__ = ("alive", "items", "key", "opened", "spoiled")

    def __init__(self, key: Any, opened: Instant) -> None:
        self.key = key
        self.opened = opened
        self.items: list[Counted] = []
        self.spoiled = False
        self.alive = True


class Counted:
    """An instance in a row, with all ways to read its events."""

    __slots__ = ("number", "owner", "row", "time", "ways")

    def __init__(self, owner: RepetitionProcess, row: CountedRow, ways: list[Instance]) -> None:
        self.owner = owner
        self.time = ways[0].time
        self.number = owner.run.ticket()
        self.row = row
        self.ways = ways

    def give_up(self) -> None:
        """Make room: the oldest of all is the first of its row."""
        if self.owner.node.longest:
            self.owner.spoil(self.row)
        else:
            self.row.items.remove(self)
            self.owner.run.let_go(self)


class RepetitionProcess(Process):
    """The instances of the present rows, as far back as one more can reach; the row that grew last is at the end."""

    __slots__ = ("child", "rows", "said", "several")

    node: RepetitionNode

    def begin(self, *, fresh: bool) -> None:
        self.rows: dict[Any, CountedRow] = {}
        self.said: set[tuple[int, ...]] = set()
        self.several = False
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        node = self.node
        if self.several:
            self.said.clear()
        if not node.ways:
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
                for key, mine in keyed:
                    self._take(key, mine)

    def _take(self, key: Any, ways: list[Instance]) -> None:
        row = self.rows.pop(key, None)
        if row is not None and row.items and row.items[-1].time >= ways[0].first:
            # It does not come after the last one: here the row ends.
            self._over(row, self.run.phase)
            row = None
        if row is None:
            row = CountedRow(key, ways[0].time)
            if self.node.longest:
                self._await_end(row)
        self.rows[key] = row
        if self.node.longest:
            self._grow(row, ways)
        else:
            self._slide(row, ways)
            self._trim(ways[0].time)

    # every row

    def _slide(self, row: CountedRow, ways: list[Instance]) -> None:
        """All rows that end with this instance; then it waits for the next."""
        node, items, last = self.node, row.items, ways[0]
        most, within, now = node.most, node.within, last.time
        if within is not None and items and now - items[0].time > within:
            self._cut(row, sum([now - item.time > within for item in items]))
        held = len(items)
        for size in range(node.least, held + 2):
            before = items[held + 1 - size :]
            if node.ways:
                self._found([*[item.ways for item in before], ways], now, last.phase)
            else:
                self._tell((*[item.ways[0] for item in before], last), now, last.phase)
        # One more reaches back to all but one of the largest row.
        if most is not None and len(items) + 2 > most:
            self._cut(row, len(items) + 2 - most)
        if most == 1:
            return
        if self.run.room(self):
            self._enter(Counted(self, row, ways))
        else:
            self._cut(row, len(items))

    def _enter(self, counted: Counted) -> None:
        counted.row.items.append(counted)
        self.run.hold(counted)

    def _cut(self, row: CountedRow, count: int) -> None:
        """Let go of the first of a row."""
        if count == 1 and row.items:
            # By far the most frequent: one comes, one goes.
            self.run.let_go(row.items.pop(0))
        elif count > 0:
            for counted in row.items[:count]:
                self.run.let_go(counted)
            del row.items[:count]

    def _trim(self, now: Instant) -> None:
        """Forget rows that are over or empty."""
        within = self.node.within
        while self.rows:
            oldest = next(iter(self.rows.values()))
            if oldest.items and (within is None or now - oldest.items[-1].time <= within):
                break
            self._cut(oldest, len(oldest.items))
            del self.rows[oldest.key]

    def _found(self, row: list[list[Instance]], time: Instant, phase: int) -> None:
        if not self.node.ways:
            self._tell(tuple([ways[0] for ways in row]), time, phase)
            return
        for run in product(*row):
            if not self.run.build():
                return
            self._tell(run, time, phase)

    def _tell(self, run: tuple[Instance, ...], time: Instant, phase: int) -> None:
        # Under several keys the same row may be found again.
        if self.several:
            told = tuple([id(instance) for instance in run])
            if told in self.said:
                return
            self.said.add(told)
        probability = 1.0
        for instance in run:
            probability *= instance.probability
        self.emit(joined(self.node.id, run, time=time, phase=phase, probability=probability))

    # the longest row

    def _grow(self, row: CountedRow, ways: list[Instance]) -> None:
        if row.spoiled:
            self.run.dropped += 1
            return
        if not self.run.room(self):
            if self.alive:
                self.spoil(row)
            return
        if not row.spoiled:
            self._enter(Counted(self, row, ways))
        if len(row.items) == self.node.most:
            del self.rows[row.key]
            self._over(row, ways[0].phase)

    def spoil(self, row: CountedRow) -> None:
        """Some of it is lost: nothing is said of it, nor of another that begins before it is over."""
        row.spoiled = True
        self._cut(row, len(row.items))

    def _over(self, row: CountedRow, phase: int) -> None:
        """A row is at its end."""
        row.alive = False
        if self.node.longest and len(row.items) >= self.node.least:
            self._found([item.ways for item in row.items], self.run.now, phase)
        self._cut(row, len(row.items))

    def fire(self, item: Any) -> None:
        row: CountedRow = item
        if row.alive and not row.spoiled and 1 < len(row.items) < self.node.least:
            # Too few in the time after the first: there may be enough in that after the next.
            self._cut(row, 1)
            row.opened = row.items[0].ways[0].time
            self._await_end(row)
        elif row.alive:
            del self.rows[row.key]
            self._over(row, TIMERS)

    def _await_end(self, row: CountedRow) -> None:
        assert self.node.within is not None  # or it would have been refused
        self.wake(row.opened + self.node.within, row)

    def close(self) -> None:
        super().close()
        for row in self.rows.values():
            self._cut(row, len(row.items))
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        rows = [
            [row.key, row.opened, row.spoiled, [[one.number, [*map(dump.instance, one.ways)]] for one in row.items]]
            for row in self.rows.values()
        ]
        return [rows, self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        rows, child = state
        self.several = len(rows) > 1
        for key, opened, spoiled, items in rows:
            row = self.rows[load.key(key)] = CountedRow(load.key(key), opened)
            row.spoiled = spoiled
            for number, ways in items:
                counted = Counted(self, row, [load.known(way) for way in ways])
                counted.number = number
                self._enter(counted)
            if self.node.longest:
                self._await_end(row)
        self.child.load(child, load)
