"""The conjunction, and Allen's relations as a conjunction with a condition on intervals [003 table 1, 001 sec III]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from likewise.composite.general.absence import Blockers, Guarded
from likewise.composite.general.choice import Chooser
from likewise.composite.general.process import TERMINATORS, TIMERS, lacks, needed
from likewise.composite.instance import Instance, joined, roles_of
from likewise.composite.plan.conditions import UNFILLED, ConditionSide, keys_of, relation_of
from likewise.composite.plan.nodes import JointNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


HeldIndex: TypeAlias = "dict[Any, dict[Held, None]]"
"""Those of one part that wait, by key."""


class Held:
    """An instance of one part, waiting for the others."""

    __slots__ = ("alive", "instance", "keys", "number", "owner", "part", "until")

    def __init__(self, owner: JointProcess, part: int, instance: Instance) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.part = part
        self.instance = instance
        self.until: Instant | None = None
        self.alive = True
        # Where others find it, and by which keys.
        self.keys: list[tuple[HeldIndex, tuple[Any, ...]]] = []

    @property
    def standing(self) -> tuple[int, int]:
        """Its part, and its age."""
        return self.part, self.number

    def replace(self, time: Instant) -> None:
        """A later duplicate came: others of the same time may still join."""
        if self.alive and self.until is None:
            self.until = time
            self.owner.run.wake(time, TERMINATORS, self.owner, self)

    def give_up(self) -> None:
        """Make room for another."""
        self.owner.drop(self, "the limit was reached")

    def consume(self) -> None:
        """One of the events was taken by a detection."""
        self.owner.drop(self, "consumed by a detection")


class WaitingWhole:
    """A combination of all parts, waiting for the time to be over in which something must not happen."""

    __slots__ = ("alive", "broken", "number", "owner", "parts", "probability", "roles")

    def __init__(self, owner: JointProcess, parts: tuple[Instance, ...], probability: float) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.parts = parts
        self.roles = roles_of(parts)
        self.probability = probability
        self.broken: Instant | None = None
        self.alive = True

    @property
    def span(self) -> tuple[Instant, Instant]:
        """The times of its earliest and its latest part."""
        times = [part.time for part in self.parts]
        return min(times), max(times)

    def leave(self) -> None:
        """It waits no longer."""
        self.alive = False
        self.owner.pending.pop(self, None)
        self.owner.run.let_go(self)

    def give_up(self) -> None:
        """Make room for another."""
        self.owner.undo(self)


class JointProcess(Guarded):
    """What each part found, combined as soon as the last part comes."""

    __slots__ = ("blockers", "children", "choosers", "held", "index", "needed", "paths", "pending")

    node: JointNode

    def begin(self, *, fresh: bool) -> None:
        parts = self.node.parts
        self.needed = needed(self.node)
        self.choosers = [Chooser(part) for part in parts]
        self.held: list[dict[Held, None]] = [{} for _ in parts]
        # Of each part, by each side that others find it by: those that wait, by key.
        sides: list[dict[ConditionSide, HeldIndex]] = [{} for _ in parts]
        self.paths: dict[tuple[int, int], tuple[tuple[ConditionSide], HeldIndex]] = {}
        for (k, other), (mine, theirs) in self.node.joins.items():
            self.paths[k, other] = (mine,), sides[other].setdefault(theirs, {})
        self.index = [[((side,), index) for side, index in some.items()] for some in sides]
        self.pending: dict[WaitingWhole, None] = {}
        self.children = [self.spawn(part.node, slot=k, fresh=fresh) for k, part in enumerate(parts)]
        within = self.node.within
        window = None if within is None else 2 * within
        self.blockers = [
            Blockers(self, guard, k, fresh=fresh, window=window) for k, guard in enumerate(self.node.guards)
        ]

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        within = self.node.within
        if len(inbox) > 1:
            inbox.sort(key=_last_part_first)
        for k, instance in inbox:
            hold = None if within is None else instance.time + within
            if self.needed[k] and lacks(self.needed[k], instance):
                continue
            if self.blockers and len(self.held) == 1 and self._quiet((instance,)) == 0.0:
                continue
            if not self.choosers[k].admit(instance, hold):
                continue
            self._combine(k, instance)
            self._hold(k, instance, hold)

    def _hold(self, k: int, instance: Instance, hold: Instant | None) -> None:
        if len(self.held) == 1:
            return
        held = Held(self, k, instance)
        if not self.run.room(self):
            self.choosers[k].release(instance, held)
            return
        self._enter(held, hold)
        self.choosers[k].waits(instance, held)

    def _enter(self, held: Held, hold: Instant | None) -> None:
        self.run.hold(held)
        self.held[held.part][held] = None
        for side, index in self.index[held.part]:
            keys = keys_of(held.instance.roles, side)
            held.keys.append((index, keys))
            for key in keys:
                bucket = index.get(key)
                if bucket is None:
                    index[key] = {held: None}
                else:
                    bucket[held] = None
        self.consumption.keep(held, held.instance.roles, free=self.node.lasting)
        if hold is not None:
            self.run.wake(hold, TERMINATORS, self, held)

    def _combine(self, k: int, instance: Instance) -> None:
        others = []
        for i in range(len(self.held)):
            if i != k:
                fitting = [held.instance for held in self._fitting(k, i, instance)]
                if not fitting:
                    return
                others.append(fitting)
        if len(others) == 1:
            mine = set(instance.ranks)
            for other in others[0]:
                parts = (instance, other) if k == 0 else (other, instance)
                if mine.isdisjoint(other.ranks) and not self._try(parts):
                    return
            return
        for combination in _disjoint(others, instance):
            if not self._try((*combination[:k], instance, *combination[k:])):
                return

    def _candidates(self, k: int, other: int, instance: Instance) -> Iterable[Held]:
        """Those of another part that an instance of part `k` may be joined with."""
        path = self.paths.get((k, other))
        if path is None:
            return self.held[other]
        side, index = path
        keys = keys_of(instance.roles, side)
        if UNFILLED in keys:
            return self.held[other]
        if len(keys) == 1 and UNFILLED not in index:
            return index.get(keys[0], ())
        return dict.fromkeys([held for key in (*keys, UNFILLED) for held in index.get(key, ())])

    def _fitting(self, k: int, other: int, instance: Instance) -> list[Held]:
        within, time = self.node.within, instance.time
        return [
            held
            for held in self._candidates(k, other, instance)
            if (within is None or time - held.instance.time <= within) and (held.until is None or time <= held.until)
        ]

    def _try(self, parts: tuple[Instance, ...]) -> bool:
        """One combination of different events; False if no more may be built in this step."""
        relation = self.node.relation
        if relation is not None and relation_of(_span(parts[0]), _span(parts[1])) is not relation:
            return True
        probability = self.factor(self.node.conditions, roles_of(parts))
        for part in parts:
            probability *= part.probability
        if probability == 0.0:
            return True
        if not self.run.build():
            return False
        if not self.blockers:
            self._found(parts, probability, self.run.now, self.run.phase)
        elif self._quiet(parts) > 0.0:
            whole = WaitingWhole(self, parts, probability)
            if self.run.room(self):
                self._defer(whole)
            else:
                self.undo(whole)
        return True

    def _defer(self, whole: WaitingWhole) -> None:
        assert self.node.within is not None
        self.pending[whole] = None
        self.run.hold(whole)
        self.wake(whole.span[0] + self.node.within, whole)

    def _found(self, parts: tuple[Instance, ...], probability: float, time: Instant, phase: int) -> None:
        self.emit(joined(self.node.id, parts, time=time, phase=phase, probability=probability))

    # what must not happen

    def _quiet(self, parts: tuple[Instance, ...]) -> float:
        """The probability that nothing fits into the window that must not, by all that came."""
        product, within = 1.0, self.node.within
        for blockers in self.blockers:
            assert within is not None
            low, high = min([part.time for part in parts]), max([part.time for part in parts])
            product *= blockers.factor(roles_of(parts), low=high - within - 1, high=low + within, closed=True)
        return product

    def broken_by(self, blockers: Blockers, instance: Instance, keys: tuple[Any, ...]) -> None:  # noqa: ARG002 - not needed by this kind
        """What waits for its window to be over goes when the moment is over that broke it."""
        within = self.node.within
        for whole in self.pending:
            low, high = whole.span
            assert within is not None
            fits = whole.broken is None and high - within <= instance.time <= low + within
            if fits and blockers.breaks(whole.roles, instance):
                self._break(whole, self.run.now)

    def _break(self, whole: WaitingWhole, time: Instant) -> None:
        whole.broken = time
        self.run.wake(time, TERMINATORS, self, whole)

    def undo(self, whole: WaitingWhole) -> None:
        """A combination that is no more; where it is a single part, a duplicate may come in its place."""
        whole.leave()
        if len(self.held) == 1:
            self.choosers[0].release(whole.parts[0], whole)

    def fire(self, item: Any) -> None:
        whole: WaitingWhole = item
        if whole.alive and whole.broken is None:
            whole.leave()
            self._found(whole.parts, whole.probability * self._quiet(whole.parts), self.run.now, TIMERS)

    def expire(self, item: Any) -> None:
        if isinstance(item, WaitingWhole):
            if item.alive:
                self.undo(item)
            return
        held: Held = item
        replaced = held.until is not None and held.until <= self.run.now
        self.drop(held, "replaced by a later duplicate" if replaced else "the window was over")

    def drop(self, held: Held, why: str | None) -> None:
        """An instance that can no longer contribute."""
        if not held.alive:
            return
        held.alive = False
        del self.held[held.part][held]
        for index, keys in held.keys:
            for key in keys:
                bucket = index[key]
                del bucket[held]
                if not bucket:
                    del index[key]
        self.run.let_go(held)
        self.consumption.unkeep(held, held.instance.roles)
        self.choosers[held.part].release(held.instance, held)
        if why is not None:
            self.run.stopped(self.node, 1, why, held, None)

    def close(self) -> None:
        super().close()
        for part in self.held:
            for held in list(part):
                self.drop(held, None)
        for whole in list(self.pending):
            whole.leave()
        for process in self.children:
            process.close()
        for blockers in self.blockers:
            blockers.close()

    def dump(self, dump: Dump) -> Any:
        return {
            "held": [
                [dump.waiting(held), held.number, held.part, dump.instance(held.instance), held.until]
                for part in self.held
                for held in part
            ],
            "choosers": [chooser.dump(dump) for chooser in self.choosers],
            "pending": [
                [one.number, [dump.instance(part) for part in one.parts], one.probability, one.broken]
                for one in self.pending
            ],
            "blockers": [blockers.dump(dump) for blockers in self.blockers],
            "children": [child.dump(dump) for child in self.children],
        }

    def load(self, state: Any, load: Load) -> None:
        within = self.node.within
        for waiting, number, k, instance, until in state["held"]:
            held = Held(self, k, load.known(instance))
            held.number = number
            load.define_waiting(waiting, held)
            self._enter(held, None if within is None else held.instance.time + within)
            if until is not None:
                held.replace(until)
        for chooser, entries in zip(self.choosers, state["choosers"], strict=True):
            chooser.load(entries, load)
        for number, parts, probability, broken in state["pending"]:
            whole = WaitingWhole(self, tuple(load.known(part) for part in parts), probability)
            whole.number = number
            self._defer(whole)
            if broken is not None:
                self._break(whole, broken)
        for blockers, entry in zip(self.blockers, state["blockers"], strict=True):
            blockers.load(entry, load)
        for child, entry in zip(self.children, state["children"], strict=True):
            child.load(entry, load)


def _span(instance: Instance) -> tuple[Instant, Instant]:
    return instance.start, instance.end


def _last_part_first(entry: tuple[Any, Instance]) -> int:
    return -int(entry[0])


def _disjoint(lists: Sequence[list[Instance]], instance: Instance) -> Iterator[tuple[Instance, ...]]:
    """One of each list, in order, of different events; a prefix that repeats an event goes no further."""
    there = {rank for found in lists for one in found for rank in one.ranks}
    # What the clock alone makes needs no event.
    if len(there) < sum([all(one.ranks for one in found) for found in lists]):
        return
    used, chosen = set(instance.ranks), list[Instance]()

    def extend(k: int) -> Iterator[tuple[Instance, ...]]:
        if k == len(lists):
            yield tuple(chosen)
            return
        for one in lists[k]:
            if used.isdisjoint(one.ranks):
                used.update(one.ranks)
                chosen.append(one)
                yield from extend(k + 1)
                chosen.pop()
                used.difference_update(one.ranks)

    yield from extend(0)
