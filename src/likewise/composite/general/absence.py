"""What must not happen: the instances that break it, and the silence on its own [003 table 1]."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from likewise.composite.general.process import TIMERS, LeafProcess, Process
from likewise.composite.instance import Filled, Instance
from likewise.composite.plan.conditions import UNFILLED, is_plain, keys_of
from likewise.composite.plan.nodes import Absence, SilenceNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


class Guarded(Process):
    """A process with parts that must not happen."""

    __slots__ = ()

    def broken_by(self, blockers: Blockers, instance: Instance, keys: tuple[Any, ...]) -> None:
        """Something that must not happen did for sure, with its join keys: whatever that breaks can go."""
        raise NotImplementedError


class Blockers:
    """Instances of a negated part in order of time, kept for as long as a window can reach back to them."""

    __slots__ = ("_after", "_by_key", "_found", "_owner", "_process", "_refs", "_window", "absence", "number")

    def __init__(
        self,
        owner: Guarded,
        absence: Absence,
        slot: int,
        *,
        after: Instant | None = None,
        window: int | None = None,
        fresh: bool = True,
    ) -> None:
        self.absence = absence
        self.number = slot
        self._owner = owner
        self._window = window
        self._refs = 0
        self._after = after
        self._found: deque[Instance] = deque()
        self._by_key: dict[Any, deque[Instance]] = {}
        moment = owner.after if after is None else after
        origin = owner.origin if after is None else after
        self._process = owner.run.spawn(
            absence.node,
            parent=self,
            slot=slot,
            after=moment,
            origin=origin,
            consumption=owner.consumption,
            fresh=fresh,
        )

    def accept(self, _slot: Any, instance: Instance) -> None:
        """One more that breaks the silence."""
        keys = self.add(instance)
        if instance.probability == 1.0:
            self._owner.broken_by(self, instance, keys)
        run, found = self._owner.run, self._found
        # No limit takes them out while anyone asks for them: that would let a false detection through.
        if self._window is not None:
            if found[0].time < run.now - 2 * self._window:
                self.prune(run.now - self._window)
        elif len(found) > run.limits.instances:
            self._owner.ring(self)

    def crowded(self) -> Instant | None:
        """Without a window, if there are too many: the moment from which on there would be half of them."""
        found = self._found
        if self.absence.within is not None or len(found) <= self._owner.run.limits.instances:
            return None
        return found[len(found) // 2].time

    def add(self, instance: Instance) -> tuple[Any, ...]:
        """Keep an instance; gives the keys under which it is found."""
        self._found.append(instance)
        keys = self._keys(instance)
        for key in keys:
            held = self._by_key.get(key)
            if held is None:
                held = self._by_key[key] = deque()
            held.append(instance)
        return keys

    def _keys(self, instance: Instance) -> tuple[Any, ...]:
        join = self.absence.join
        return () if join is None else keys_of(instance.roles, join[0])

    def prune(self, before: Instant) -> None:
        """Forget those from before a moment. The oldest of all is the oldest of its keys, too."""
        found, by_key = self._found, self._by_key
        while found and found[0].time < before:
            for key in self._keys(found.popleft()):
                held = by_key[key]
                held.popleft()
                if not held:
                    del by_key[key]

    def factor(self, roles: tuple[Filled, ...], *, low: Instant, high: Instant, closed: bool) -> float:
        """The probability that none of them happened after `low` and before (or at) `high`."""
        product = 1.0
        candidates, alike = self._candidates(roles)
        for instance in candidates:
            time = instance.time
            if low < time and (time <= high if closed else time < high):
                product *= 1.0 - instance.probability * self._bound(roles, instance, alike)
                if product == 0.0:
                    break
        return product

    def breaks(self, roles: tuple[Filled, ...], instance: Instance, *, alike: bool = False) -> bool:
        """Whether a sure instance is one that is meant for sure; those that are alike have met by their only key."""
        conditions = self.absence.rest if alike else self.absence.conditions
        return not conditions or self._owner.factor(conditions, roles + instance.roles) == 1.0

    def _bound(self, roles: tuple[Filled, ...], instance: Instance, alike: bool) -> float:
        """How surely it is one that is meant."""
        absence = self.absence
        join = absence.join
        plain = alike and join is not None and len(self._keys(instance)) == 1 and is_plain(instance.roles, join[0])
        conditions = absence.rest if plain else absence.conditions
        return self._owner.factor(conditions, roles + instance.roles) if conditions else 1.0

    def _candidates(self, roles: tuple[Filled, ...]) -> tuple[Iterable[Instance], bool]:
        """Those that may be meant, and whether they are known to have the one key of these roles."""
        if self.absence.join is None:
            return self._found, False
        keys = keys_of(roles, self.absence.join[1])
        if UNFILLED in keys:
            return self._found, False
        if len(keys) == 1 and UNFILLED not in self._by_key:
            return self._by_key.get(keys[0], ()), is_plain(roles, self.absence.join[1])
        found = {id(one): one for key in (*keys, UNFILLED) for one in self._by_key.get(key, ())}
        return list(found.values()), False

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
            self._found, self._by_key = deque(), {}
        else:
            self.close()

    def close(self) -> None:
        """Stop collecting."""
        self._process.close()

    def dump(self, dump: Dump) -> Any:
        """The state as plain values."""
        return [[dump.instance(one) for one in self._found], self._process.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        """Take a dumped state."""
        found, process = state
        for one in found:
            self.add(load.known(one))
        self._process.load(process, load)


class Anchor:
    """A silence that began at a moment, and the probability that it did and still lasts."""

    __slots__ = ("alive", "moment", "number", "owner", "probability")

    def __init__(self, owner: SilenceProcess, moment: Instant, probability: float) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.moment = moment
        self.probability = probability
        self.alive = True

    def leave(self) -> None:
        """It is over."""
        self.alive = False
        del self.owner.anchors[self]
        self.owner.run.let_go(self)

    give_up = leave


class SilenceProcess(Process):
    """`not E for t`: counted from the start and anew from every E; once per silence."""

    __slots__ = ("anchors", "child")

    node: SilenceNode

    def begin(self, *, fresh: bool) -> None:
        self.anchors: dict[Anchor, None] = {}
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)
        if fresh:
            self._anchor(self.origin, 1.0)

    def _anchor(self, moment: Instant, probability: float) -> None:
        if self.run.room(self):
            self._enter(Anchor(self, moment, probability))

    def _enter(self, anchor: Anchor) -> None:
        self.anchors[anchor] = None
        self.run.hold(anchor)
        self.wake(anchor.moment + self.node.within, anchor)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for _, instance in inbox:
            for anchor in list(self.anchors):
                anchor.probability *= 1.0 - instance.probability
                if anchor.probability == 0.0:
                    anchor.leave()
            self._anchor(instance.time, instance.probability)

    def fire(self, item: Any) -> None:
        anchor: Anchor = item
        if not anchor.alive:
            return
        anchor.leave()
        now, sure = self.run.now, anchor.probability
        self.emit(
            Instance(self.node.id, time=now, phase=TIMERS, first=now, start=anchor.moment, end=now, probability=sure)
        )

    def close(self) -> None:
        super().close()
        for anchor in list(self.anchors):
            anchor.leave()
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        anchors = [[anchor.number, anchor.moment, anchor.probability] for anchor in self.anchors]
        return [anchors, self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        anchors, child = state
        for number, moment, probability in anchors:
            anchor = Anchor(self, moment, probability)
            anchor.number = number
            self._enter(anchor)
        self.child.load(child, load)
