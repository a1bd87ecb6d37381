"""Negated parts: the instances that break an absence, and `not … for` on its own [003 table 1]."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from likewise.composite.general.process import TIMERS, LeafProcess, Process
from likewise.composite.instance import FilledRole, Instance
from likewise.composite.plan.conditions import UNFILLED, has_one_key, keys_of
from likewise.composite.plan.nodes import Absence, SilenceNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


class Guarded(Process):
    """A process with negated parts."""

    __slots__ = ()

    def on_blocker(self, blockers: Blockers, instance: Instance, keys: tuple[Any, ...]) -> None:
        """React to a certain instance of a negated part, with its join keys: drop what it breaks."""
        raise NotImplementedError


class Blockers:
    """Instances of a negated part in order of time, kept while a window can reach back to them."""

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
        """Take an instance of the negated part."""
        keys = self.add(instance)
        if instance.probability == 1.0:
            self._owner.on_blocker(self, instance, keys)
        run, instances = self._owner.run, self._found
        # No limit evicts blockers in use: that would cause false detections.
        if self._window is not None:
            if instances[0].time < run.now - 2 * self._window:
                self.prune(run.now - self._window)
        elif len(instances) > run.limits.instances:
            self._owner.timer_due(self)

    def crowded(self) -> Instant | None:
        """If there are too many and no window bounds them: the time of the middle one."""
        instances = self._found
        if self.absence.within is not None or len(instances) <= self._owner.run.limits.instances:
            return None
        return instances[len(instances) // 2].time

    def add(self, instance: Instance) -> tuple[Any, ...]:
        """Keep an instance; returns its join keys."""
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
        """Forget instances before a moment. The oldest of all is also the oldest of its keys."""
        instances, by_key = self._found, self._by_key
        while instances and instances[0].time < before:
            for key in self._keys(instances.popleft()):
                held = by_key[key]
                held.popleft()
                if not held:
                    del by_key[key]

    def factor(self, roles: tuple[FilledRole, ...], *, low: Instant, high: Instant, closed: bool) -> float:
        """The probability that no blocker happened after `low` and before (or at) `high`."""
        product = 1.0
        candidates, same_key = self._candidates(roles)
        for instance in candidates:
            time = instance.time
            if low < time and (time <= high if closed else time < high):
                product *= 1.0 - instance.probability * self._condition_factor(roles, instance, same_key)
                if product == 0.0:
                    break
        return product

    def breaks(self, roles: tuple[FilledRole, ...], instance: Instance, *, same_key: bool = False) -> bool:
        """Whether a certain instance satisfies all conditions; with `same_key`, the join is already checked."""
        conditions = self.absence.other_conditions if same_key else self.absence.conditions
        return not conditions or self._owner.factor(conditions, roles + instance.roles) == 1.0

    def _condition_factor(self, roles: tuple[FilledRole, ...], instance: Instance, same_key: bool) -> float:
        """The probability that an instance satisfies the conditions."""
        absence = self.absence
        join = absence.join
        joined = (
            same_key and join is not None and len(self._keys(instance)) == 1 and has_one_key(instance.roles, join[0])
        )
        conditions = absence.other_conditions if joined else absence.conditions
        return self._owner.factor(conditions, roles + instance.roles) if conditions else 1.0

    def _candidates(self, roles: tuple[FilledRole, ...]) -> tuple[Iterable[Instance], bool]:
        """Instances that may satisfy the join, and whether they certainly share the single key of these roles."""
        if self.absence.join is None:
            return self._found, False
        keys = keys_of(roles, self.absence.join[1])
        if UNFILLED in keys:
            return self._found, False
        if len(keys) == 1 and UNFILLED not in self._by_key:
            return self._by_key.get(keys[0], ()), has_one_key(roles, self.absence.join[1])
        candidates = {id(blocker): blocker for key in (*keys, UNFILLED) for blocker in self._by_key.get(key, ())}
        return list(candidates.values()), False

    @property
    def needed(self) -> bool:
        """Whether any prefix, or the start of a sequence, uses them."""
        return self._refs > 0 or self.absence.after < 0

    def acquire(self) -> Blockers:
        """Count one more prefix that uses them."""
        self._refs += 1
        if self._refs == 1 and isinstance(self._process, LeafProcess):
            self._process.listen()
        return self

    def release(self) -> None:
        """Count one prefix less; with none left the profile leaves the pool."""
        self._refs -= 1
        if self._refs > 0:
            return
        if isinstance(self._process, LeafProcess) and self._after is None:
            self._process.unlisten()
            self._found, self._by_key = deque(), {}
        else:
            self.close()

    def close(self) -> None:
        """Stop collecting."""
        self._process.close()

    def dump(self, dump: Dump) -> Any:
        """The state as plain values."""
        return [[dump.instance(instance) for instance in self._found], self._process.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        """Load a dumped state."""
        numbers, process = state
        for number in numbers:
            self.add(load.known(number))
        self._process.load(process, load)


class SilenceStart:
    """A silence that began at a moment, and the probability that it began and still lasts."""

    __slots__ = ("alive", "moment", "number", "owner", "probability")

    def __init__(self, owner: SilenceProcess, moment: Instant, probability: float) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.moment = moment
        self.probability = probability
        self.alive = True

    def discard(self) -> None:
        """End the silence."""
        self.alive = False
        del self.owner.silences[self]
        self.owner.run.unhold(self)

    evict = discard


class SilenceProcess(Process):
    """`not E for t`: measured from the start and again from every E; emits once per silence."""

    __slots__ = ("child", "silences")

    node: SilenceNode

    def begin(self, *, fresh: bool) -> None:
        self.silences: dict[SilenceStart, None] = {}
        self.child = self.spawn(self.node.part, slot=0, fresh=fresh)
        if fresh:
            self._begin_silence(self.origin, 1.0)

    def _begin_silence(self, moment: Instant, probability: float) -> None:
        if self.run.has_room(self):
            self._enter(SilenceStart(self, moment, probability))

    def _enter(self, silence: SilenceStart) -> None:
        self.silences[silence] = None
        self.run.hold(silence)
        self.schedule(silence.moment + self.node.within, silence)

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        for _, instance in inbox:
            for silence in list(self.silences):
                silence.probability *= 1.0 - instance.probability
                if silence.probability == 0.0:
                    silence.discard()
            self._begin_silence(instance.time, instance.probability)

    def fire(self, item: Any) -> None:
        silence: SilenceStart = item
        if not silence.alive:
            return
        silence.discard()
        now = self.run.now
        self.emit(
            Instance(
                self.node.id,
                time=now,
                phase=TIMERS,
                first=now,
                start=silence.moment,
                end=now,
                probability=silence.probability,
            )
        )

    def close(self) -> None:
        super().close()
        for silence in list(self.silences):
            silence.discard()
        self.child.close()

    def dump(self, dump: Dump) -> Any:
        silences = [[silence.number, silence.moment, silence.probability] for silence in self.silences]
        return [silences, self.child.dump(dump)]

    def load(self, state: Any, load: Load) -> None:
        silences, child = state
        for number, moment, probability in silences:
            silence = SilenceStart(self, moment, probability)
            silence.number = number
            self._enter(silence)
        self.child.load(child, load)
