"""The conjunction, and Allen's relations as a conjunction with a condition on intervals [003 table 1, 001 sec III]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from likewise.composite.general.absence import Blockers, Guarded
from likewise.composite.general.choice import Chooser
from likewise.composite.general.process import TERMINATORS, TIMERS, join_sides_by_part, lacks_join_value
from likewise.composite.instance import Instance, joined, roles_of
from likewise.composite.plan.conditions import UNFILLED, ConditionSide, keys_of, relation_of
from likewise.composite.plan.nodes import JointNode
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


HeldIndex: TypeAlias = "dict[Any, dict[Held, None]]"
"""The waiting instances of one part, by key."""


class Held:
    """An instance of one part, waiting for the other parts."""

    __slots__ = ("alive", "instance", "keys", "number", "owner", "part", "until")

    def __init__(self, owner: JointProcess, part: int, instance: Instance) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.part = part
        self.instance = instance
        self.until: Instant | None = None
        self.alive = True
        # The indexes it is in, and its keys there.
        self.keys: list[tuple[HeldIndex, tuple[Any, ...]]] = []

    @property
    def notify_order(self) -> tuple[int, int]:
        """By part, then by age."""
        return self.part, self.number

    def replace(self, time: Instant) -> None:
        """React to a later duplicate: others of the same time may still join."""
        if self.alive and self.until is None:
            self.until = time
            self.owner.run.schedule(time, TERMINATORS, self.owner, self)

    def evict(self) -> None:
        """Make room for another."""
        self.owner.drop(self, "the limit was reached")

    def consume(self) -> None:
        """React to the consumption of one of its events."""
        self.owner.drop(self, "consumed by a detection")


class PendingCombination:
    """A combination of all parts, waiting for the end of the window in which a guard must not happen."""

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

    def discard(self) -> None:
        """Stop waiting."""
        self.alive = False
        self.owner.pending.pop(self, None)
        self.owner.run.unhold(self)

    def evict(self) -> None:
        """Make room for another."""
        self.owner.undo(self)


class JointProcess(Guarded):
    """The instances of each part, combined when the last part comes."""

    __slots__ = ("blockers", "children", "choosers", "held", "index", "join_sides", "paths", "pending")

    node: JointNode

    def begin(self, *, fresh: bool) -> None:
        parts = self.node.parts
        self.join_sides = join_sides_by_part(self.node)
        self.choosers = [Chooser(part) for part in parts]
        self.held: list[dict[Held, None]] = [{} for _ in parts]
        # For each part and each side by which others find it: the waiting instances by key.
        sides: list[dict[ConditionSide, HeldIndex]] = [{} for _ in parts]
        self.paths: dict[tuple[int, int], tuple[tuple[ConditionSide], HeldIndex]] = {}
        for (k, other), (own, others) in self.node.joins.items():
            self.paths[k, other] = (own,), sides[other].setdefault(others, {})
        self.index = [[((side,), index) for side, index in indexes.items()] for indexes in sides]
        self.pending: dict[PendingCombination, None] = {}
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
            if self.join_sides[k] and lacks_join_value(self.join_sides[k], instance):
                continue
            if self.blockers and len(self.held) == 1 and self._absence_probability((instance,)) == 0.0:
                continue
            if not self.choosers[k].admit(instance, hold):
                continue
            self._combine(k, instance)
            self._hold(k, instance, hold)

    def _hold(self, k: int, instance: Instance, hold: Instant | None) -> None:
        if len(self.held) == 1:
            return
        held = Held(self, k, instance)
        if not self.run.has_room(self):
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
            self.run.schedule(hold, TERMINATORS, self, held)

    def _combine(self, k: int, instance: Instance) -> None:
        others = []
        for i in range(len(self.held)):
            if i != k:
                fitting = [held.instance for held in self._fitting(k, i, instance)]
                if not fitting:
                    return
                others.append(fitting)
        if len(others) == 1:
            ranks = set(instance.ranks)
            for other in others[0]:
                parts = (instance, other) if k == 0 else (other, instance)
                if ranks.isdisjoint(other.ranks) and not self._try(parts):
                    return
            return
        for combination in _disjoint(others, instance):
            if not self._try((*combination[:k], instance, *combination[k:])):
                return

    def _candidates(self, k: int, other: int, instance: Instance) -> Iterable[Held]:
        """The instances of another part that an instance of part `k` may join."""
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
        """Try one combination of different events; False if no more may be built in this step."""
        relation = self.node.relation
        if relation is not None and relation_of(_span(parts[0]), _span(parts[1])) is not relation:
            return True
        probability = self.factor(self.node.conditions, roles_of(parts))
        for part in parts:
            probability *= part.probability
        if probability == 0.0:
            return True
        if not self.run.may_build():
            return False
        if not self.blockers:
            self._found(parts, probability, self.run.now, self.run.phase)
        elif self._absence_probability(parts) > 0.0:
            combination = PendingCombination(self, parts, probability)
            if self.run.has_room(self):
                self._defer(combination)
            else:
                self.undo(combination)
        return True

    def _defer(self, combination: PendingCombination) -> None:
        assert self.node.within is not None
        self.pending[combination] = None
        self.run.hold(combination)
        self.schedule(combination.span[0] + self.node.within, combination)

    def _found(self, parts: tuple[Instance, ...], probability: float, time: Instant, phase: int) -> None:
        self.emit(joined(self.node.id, parts, time=time, phase=phase, probability=probability))

    # guards

    def _absence_probability(self, parts: tuple[Instance, ...]) -> float:
        """The probability that no guard happened in the window, by what is known so far."""
        product, within = 1.0, self.node.within
        for blockers in self.blockers:
            assert within is not None
            low, high = min([part.time for part in parts]), max([part.time for part in parts])
            product *= blockers.factor(roles_of(parts), low=high - within - 1, high=low + within, closed=True)
        return product

    def on_blocker(self, blockers: Blockers, instance: Instance, keys: tuple[Any, ...]) -> None:  # noqa: ARG002 - not needed by this kind
        """Mark pending combinations that the instance breaks; they are dropped at the end of this moment."""
        within = self.node.within
        for combination in self.pending:
            low, high = combination.span
            assert within is not None
            fits = combination.broken is None and high - within <= instance.time <= low + within
            if fits and blockers.breaks(combination.roles, instance):
                self._break(combination, self.run.now)

    def _break(self, combination: PendingCombination, time: Instant) -> None:
        combination.broken = time
        self.run.schedule(time, TERMINATORS, self, combination)

    def undo(self, combination: PendingCombination) -> None:
        """Drop a combination; if it has a single part, a duplicate may take its place."""
        combination.discard()
        if len(self.held) == 1:
            self.choosers[0].release(combination.parts[0], combination)

    def fire(self, item: Any) -> None:
        combination: PendingCombination = item
        if combination.alive and combination.broken is None:
            combination.discard()
            self._found(
                combination.parts,
                combination.probability * self._absence_probability(combination.parts),
                self.run.now,
                TIMERS,
            )

    def expire(self, item: Any) -> None:
        if isinstance(item, PendingCombination):
            if item.alive:
                self.undo(item)
            return
        held: Held = item
        replaced = held.until is not None and held.until <= self.run.now
        self.drop(held, "replaced by a later duplicate" if replaced else "the window was over")

    def drop(self, held: Held, why: str | None) -> None:
        """Drop an instance that can no longer contribute."""
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
        self.run.unhold(held)
        self.consumption.unkeep(held, held.instance.roles)
        self.choosers[held.part].release(held.instance, held)
        if why is not None:
            self.run.stopped(self.node, 1, why, held, None)

    def close(self) -> None:
        super().close()
        for part in self.held:
            for held in list(part):
                self.drop(held, None)
        for combination in list(self.pending):
            combination.discard()
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
                [pending.number, [dump.instance(part) for part in pending.parts], pending.probability, pending.broken]
                for pending in self.pending
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
            combination = PendingCombination(self, tuple(load.known(part) for part in parts), probability)
            combination.number = number
            self._defer(combination)
            if broken is not None:
                self._break(combination, broken)
        for blockers, entry in zip(self.blockers, state["blockers"], strict=True):
            blockers.load(entry, load)
        for child, entry in zip(self.children, state["children"], strict=True):
            child.load(entry, load)


def _span(instance: Instance) -> tuple[Instant, Instant]:
    return instance.start, instance.end


def _last_part_first(entry: tuple[Any, Instance]) -> int:
    return -int(entry[0])


def _disjoint(lists: Sequence[list[Instance]], instance: Instance) -> Iterator[tuple[Instance, ...]]:
    """One instance of each list, without repeating an event."""
    ranks = {rank for instances in lists for candidate in instances for rank in candidate.ranks}
    # Instances made only of time events need no event.
    if len(ranks) < sum([all(candidate.ranks for candidate in instances) for instances in lists]):
        return
    used, chosen = set(instance.ranks), list[Instance]()

    def extend(k: int) -> Iterator[tuple[Instance, ...]]:
        if k == len(lists):
            yield tuple(chosen)
            return
        for candidate in lists[k]:
            if used.isdisjoint(candidate.ranks):
                used.update(candidate.ranks)
                chosen.append(candidate)
                yield from extend(k + 1)
                chosen.pop()
                used.difference_update(candidate.ranks)

    yield from extend(0)
