"""The conjunction, and Allen's relations as a conjunction with a condition on intervals [003 table 1, 001 sec III]."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

from likewise.composite._absence import Blockers
from likewise.composite._choice import Chooser
from likewise.composite._conditions import UNFILLED, Side, keys_of
from likewise.composite._instance import Instance, joined, roles_of
from likewise.composite._plan import JointNode
from likewise.composite._process import TERMINATORS, TIMERS, Process, lacks, needed
from likewise.composite.relations import relation_of
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite._state import Dump, Load


class Held:
    """An instance of one part, waiting for the others."""

    __slots__ = ("alive", "instance", "number", "owner", "part", "until")

    def __init__(self, owner: JointProcess, part: int, instance: Instance) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.part = part
        self.instance = instance
        self.until: Instant | None = None
        self.alive = True

    @property
    def standing(self) -> tuple[int, int]:
        """Its part, and its age."""
        return self.part, self.number

    def replace(self, time: Instant) -> None:
        """A later duplicate came: others of the same time may still join."""
        if self.alive and self.until is None:
            self.until = time
            self.owner.run.wake(time, TERMINATORS, self.owner, self)

    def consume(self) -> None:
        """One of the events was taken by a detection."""
        self.owner.drop(self, "consumed by a detection")


class JointProcess(Process):
    """What each part found, combined as soon as the last part comes."""

    __slots__ = ("blockers", "children", "choosers", "held", "index", "needed", "pending")

    node: JointNode

    def begin(self, *, fresh: bool) -> None:
        parts = self.node.parts
        self.needed = needed(self.node)
        self.choosers = [Chooser(part) for part in parts]
        self.held: list[dict[Held, None]] = [{} for _ in parts]
        # Of each part, by each side that others find it by: those that wait, by key.
        self.index: list[dict[Side, dict[Any, dict[Held, None]]]] = [{} for _ in parts]
        for (_, part), (_, side) in self.node.joins.items():
            self.index[part][side] = {}
        self.pending: dict[int, tuple[tuple[Instance, ...], float]] = {}
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
            if (self.needed[k] and lacks(self.needed[k], instance)) or not self.choosers[k].admit(instance, hold):
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
        self.held[held.part][held] = None
        for side, index in self.index[held.part].items():
            for key in keys_of(held.instance.roles, (side,)):
                index.setdefault(key, {})[held] = None
        self.run.keep(held, held.instance.roles, free=self.node.free)
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
        for combination in product(*others):
            self._try((*combination[:k], instance, *combination[k:]))

    def _candidates(self, k: int, other: int, instance: Instance) -> Iterable[Held]:
        """Those of another part that an instance of part `k` may be joined with."""
        sides = self.node.joins.get((k, other))
        if sides is None:
            return self.held[other]
        keys, index = keys_of(instance.roles, sides[:1]), self.index[other][sides[1]]
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

    def _try(self, parts: tuple[Instance, ...]) -> None:
        ranks = [rank for part in parts for rank in part.ranks]
        if len(ranks) != len(set(ranks)):
            return
        relation = self.node.relation
        if relation is not None and relation_of(_span(parts[0]), _span(parts[1])) is not relation:
            return
        probability = self.factor(self.node.conditions, roles_of(parts))
        for part in parts:
            probability *= part.probability
        if probability == 0.0:
            return
        if self.blockers:
            number = self.run.ticket()
            self._defer(number, parts, probability)
        else:
            self._found(parts, probability, self.run.now, self.run.phase)

    def _defer(self, number: int, parts: tuple[Instance, ...], probability: float) -> None:
        assert self.node.within is not None
        self.pending[number] = (parts, probability)
        self.wake(min(part.time for part in parts) + self.node.within, number)

    def _found(self, parts: tuple[Instance, ...], probability: float, time: Instant, phase: int) -> None:
        self.emit(joined(self.node.id, parts, time=time, phase=phase, probability=probability))

    def fire(self, item: Any) -> None:
        entry = self.pending.pop(item, None)
        if entry is None:
            return
        parts, probability = entry
        within = self.node.within
        assert within is not None
        low, high = min(part.time for part in parts), max(part.time for part in parts)
        roles = roles_of(parts)
        for blockers in self.blockers:
            probability *= blockers.factor(roles, low=high - within - 1, high=low + within, closed=True)
        self._found(parts, probability, self.run.now, TIMERS)

    def expire(self, item: Any) -> None:
        held: Held = item
        replaced = held.until is not None and held.until <= self.run.now
        self.drop(held, "replaced by a later duplicate" if replaced else "the window was over")

    def drop(self, held: Held, why: str | None) -> None:
        """An instance that can no longer contribute."""
        if not held.alive:
            return
        held.alive = False
        del self.held[held.part][held]
        for side, index in self.index[held.part].items():
            for key in keys_of(held.instance.roles, (side,)):
                bucket = index[key]
                del bucket[held]
                if not bucket:
                    del index[key]
        self.run.let_go(1)
        self.run.unkeep(held, held.instance.roles)
        self.choosers[held.part].release(held.instance, held)
        if why is not None:
            self.run.stopped(self.node, 1, why, held, None)

    def give_up(self) -> bool:
        """Drop the one that waits longest, to make room."""
        waiting = [next(iter(part)) for part in self.held if part]
        oldest = min(waiting, key=_age, default=None)
        if oldest is not None:
            self.drop(oldest, "the limit was reached")
        return oldest is not None

    def close(self) -> None:
        super().close()
        for part in self.held:
            for held in list(part):
                self.drop(held, None)
        for process in self.children:
            process.close()
        for blockers in self.blockers:
            blockers.close()

    def size(self) -> int:
        own = sum(len(part) for part in self.held) + len(self.pending)
        return own + sum(b.size() for b in self.blockers) + sum(child.size() for child in self.children)

    def dump(self, dump: Dump) -> Any:
        return {
            "held": [
                [dump.waiting(held), held.part, dump.instance(held.instance), held.until]
                for part in self.held
                for held in part
            ],
            "choosers": [chooser.dump(dump) for chooser in self.choosers],
            "pending": [[[dump.instance(part) for part in parts], p] for parts, p in self.pending.values()],
            "blockers": [blockers.dump(dump) for blockers in self.blockers],
            "children": [child.dump(dump) for child in self.children],
        }

    def load(self, state: Any, load: Load) -> None:
        within = self.node.within
        for number, k, instance, until in state["held"]:
            held = Held(self, k, load.known(instance))
            load.define_waiting(number, held)
            self._enter(held, None if within is None else held.instance.time + within)
            self.run.held += 1
            if until is not None:
                held.replace(until)
        for chooser, entries in zip(self.choosers, state["choosers"], strict=True):
            chooser.load(entries, load)
        for parts, probability in state["pending"]:
            self._defer(self.run.ticket(), tuple(load.known(part) for part in parts), probability)
        for blockers, entry in zip(self.blockers, state["blockers"], strict=True):
            blockers.load(entry, load)
        for child, entry in zip(self.children, state["children"], strict=True):
            child.load(entry, load)


def _span(instance: Instance) -> tuple[Instant, Instant]:
    return instance.start, instance.end


def _last_part_first(entry: tuple[Any, Instance]) -> int:
    return -int(entry[0])


def _age(held: Held) -> int:
    return held.number
