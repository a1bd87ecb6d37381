"""What must not happen: the instances that break it, and the silence on its own [003 table 1]."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from likewise.composite._conditions import UNFILLED, keys_of
from likewise.composite._instance import Filled, Instance
from likewise.composite._plan import Absence, SilenceNode
from likewise.composite._process import TIMERS, LeafProcess, Process
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._state import Dump, Load


def _time(instance: Instance) -> Instant:
    return instance.time


class Blockers:
    """Instances of a negated part, kept for as long as a window can reach back to them."""

    __slots__ = ("_after", "_by_key", "_found", "_owner", "_process", "_refs", "_window", "absence")

    def __init__(
        self,
        owner: Process,
        absence: Absence,
        slot: int,
        *,
        after: Instant | None = None,
        window: int | None = None,
        fresh: bool = True,
    ) -> None:
        self.absence = absence
        self._owner = owner
        self._window = window
        self._refs = 0
        self._after = after
        self._found: list[Instance] = []
        self._by_key: dict[Any, list[Instance]] = {}
        moment = owner.after if after is None else after
        origin = owner.origin if after is None else after
        self._process = owner.run.spawn(absence.node, parent=self, slot=slot, after=moment, origin=origin, fresh=fresh)

    def accept(self, _slot: Any, instance: Instance) -> None:
        """One more that breaks the silence."""
        self._add(instance)
        run = self._owner.run
        if self._window is not None and self._found[0].time < run.now - 2 * self._window:
            self._prune(run.now - self._window)
        if len(self._found) > run.limits.instances:
            run.dropped += len(self._found) // 2
            self._prune(self._found[len(self._found) // 2].time)

    def _add(self, instance: Instance) -> None:
        self._found.append(instance)
        if self.absence.join is not None:
            for key in keys_of(instance.roles, self.absence.join[0]):
                self._by_key.setdefault(key, []).append(instance)

    def _prune(self, before: Instant) -> None:
        kept = self._found[bisect_left(self._found, before, key=_time) :]
        self._found, self._by_key = [], {}
        for instance in kept:
            self._add(instance)

    def factor(self, roles: tuple[Filled, ...], *, low: Instant, high: Instant, closed: bool) -> float:
        """The probability that none of them happened after `low` and before (or at) `high`."""
        product = 1.0
        for instance in self._candidates(roles):
            inside = low < instance.time and (instance.time <= high if closed else instance.time < high)
            if inside:
                bound = self._owner.factor(self.absence.conditions, roles + instance.roles)
                product *= 1.0 - instance.probability * bound
                if product == 0.0:
                    break
        return product

    def between(self, low: Instant, high: Instant) -> list[Instance]:
        """Those of a closed span of time."""
        return self._found[bisect_left(self._found, low, key=_time) : bisect_right(self._found, high, key=_time)]

    def _candidates(self, roles: tuple[Filled, ...]) -> list[Instance]:
        if self.absence.join is None:
            return self._found
        keys = keys_of(roles, self.absence.join[1])
        if UNFILLED in keys:
            return self._found
        if len(keys) == 1 and UNFILLED not in self._by_key:
            return self._by_key.get(next(iter(keys)), [])
        found = {id(one): one for key in (*keys, UNFILLED) for one in self._by_key.get(key, ())}
        return list(found.values())

    @property
    def needed(self) -> bool:
        """Whether any prefix, or the start of a sequence, looks at them."""
        return self._refs > 0 or self.absence.after < 0

    def shared(self) -> Blockers:
        """One more prefix needs them."""
        self._refs += 1
        if self._refs == 1 and isinstance(self._process, LeafProcess):
            self._process.listen()
        return self

    def release(self) -> None:
        """One prefix less; with none left the profile leaves the pool."""
        self._refs -= 1
        if self._refs > 0:
            return
        if isinstance(self._process, LeafProcess) and self._after is None:
            self._process.rest()
            self._found, self._by_key = [], {}
        else:
            self.close()

    def close(self) -> None:
        """Stop collecting."""
        self._process.close()

    def size(self) -> int:
        """How many are held."""
        return len(self._found) + self._process.size()

    def dump(self, dump: Dump) -> Any:
        """The state as plain values."""
        return [[dump.instance(one) for one in self._found], self._process.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        """Take a dumped state."""
        found, process = state
        for one in found:
            self._add(load.known(one))
        self._process.load(process, load)


class SilenceProcess(Process):
    """`not E for t`: counted from the start and anew from every E; once per silence."""

    __slots__ = ("anchors", "child")

    node: SilenceNode

    def begin(self, *, fresh: bool) -> None:
        # Each anchor: the moment it began, and the probability that it did and still lasts.
        self.anchors: dict[int, list[Any]] = {}
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)
        if fresh:
            self._anchor(self.origin, 1.0)

    def _anchor(self, moment: Instant, probability: float) -> None:
        if self.run.limits.instances <= len(self.anchors):
            self.anchors.pop(next(iter(self.anchors)))
            self.run.dropped += 1
        number = self.run.ticket()
        self.anchors[number] = [moment, probability]
        self.wake(moment + self.node.within, number)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for _, instance in inbox:
            for number, anchor in list(self.anchors.items()):
                anchor[1] *= 1.0 - instance.probability
                if anchor[1] == 0.0:
                    del self.anchors[number]
            self._anchor(instance.time, instance.probability)

    def fire(self, item: Any) -> None:
        anchor = self.anchors.pop(item, None)
        if anchor is None:
            return
        now = self.run.now
        self.emit(
            Instance(self.node.id, time=now, phase=TIMERS, first=now, start=anchor[0], end=now, probability=anchor[1])
        )

    def close(self) -> None:
        super().close()
        self.child.close()

    def size(self) -> int:
        return len(self.anchors) + self.child.size()

    def dump(self, dump: Dump) -> Any:
        return [list(self.anchors.values()), self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        anchors, child = state
        for moment, probability in anchors:
            self._anchor(moment, probability)
        self.child.load(child, load)
