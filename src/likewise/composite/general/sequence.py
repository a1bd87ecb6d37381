"""The sequence: one step after the other, with absences between them [003 table 1].

After each step the next profile enters the pool, with a terminator that removes it at the end of the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from likewise.composite.general.absence import Blockers, Guarded
from likewise.composite.general.choice import Chooser, chooser_for
from likewise.composite.general.prefix import Prefix, dump_sequence, load_sequence
from likewise.composite.general.process import TERMINATORS, TIMERS, LeafProcess, join_sides_by_part, lacks_join_value
from likewise.composite.instance import FilledRole, Instance, joined, roles_of
from likewise.composite.plan.conditions import UNFILLED, has_one_key, keys_of
from likewise.composite.plan.nodes import Absence, LeafNode, Part, SequenceNode, TimeNode, longest_delay
from likewise.events import Instant
from likewise.language import Keep

if TYPE_CHECKING:
    from likewise.composite.snapshot import Dump, Load


class SequenceProcess(Guarded):
    """Keeps prefixes by the number of steps they have filled."""

    __slots__ = (
        "blockers",
        "children",
        "chooser",
        "chooses",
        "forbids",
        "held",
        "index",
        "join_sides",
        "leaves",
        "watched",
    )  # fmt: skip

    node: SequenceNode

    def begin(self, *, fresh: bool) -> None:
        steps = self.node.steps
        self.join_sides = join_sides_by_part(self.node)
        self.held: list[dict[Prefix, None]] = [{} for _ in steps]
        self.index: list[dict[Any, dict[Prefix, None]]] = [{} for _ in steps]
        self.leaves: dict[int, LeafProcess] = {}
        self.blockers: dict[int, Blockers] = {}
        # For each absence decided by the steps before it: the prefixes that it breaks, by key.
        self.watched: dict[int, dict[Any, dict[Prefix, None]]] = {}
        # For each step, the absences before it that are checked when it comes.
        self.forbids: list[list[int]] = [[] for _ in steps]
        self._assign_absences()
        first = steps[0]
        assert isinstance(first, Part)
        self.chooser = Chooser(first)
        self.chooses = first.keep.keep is not Keep.ALL
        self.children = [self.spawn(first.node, slot=(0, None), fresh=fresh)]
        for k, guard in enumerate(self.node.guards):
            if guard.after < 0:
                # They count for a full window before the first step, which may itself take time.
                assert self.node.within is not None
                began = longest_delay(first.node)
                window = None if began is None else began + 2 * self.node.within
                self.blockers[k] = Blockers(self, guard, k, fresh=fresh, window=window)

    def _assign_absences(self) -> None:
        """Determine when each absence is checked: by the steps before it, with the step after it, or later."""
        node, known = self.node, frozenset[str]()
        for k, step in enumerate(node.steps):
            if isinstance(step, Absence):
                self.watched[-1 - k] = {}
            with_step = known | step.node.roles
            for g, guard in enumerate(node.guards):
                # A part of several events may have begun before the blocker.
                at_once = isinstance(step, Absence) or isinstance(step.node, LeafNode | TimeNode)
                directly = guard.after == k - 1
                if directly and k and at_once and guard.asks <= known:
                    self.watched[g] = {}
                elif guard.after < k and guard.asks <= with_step and (directly or not guard.asks <= known):
                    self.forbids[k].append(g)
            known = with_step
        for g, guard in enumerate(node.guards):
            if guard.after == len(node.steps) - 1:
                self.watched[g] = {}

    # incoming instances

    def handle(self, inbox: list[tuple[Any, Instance]]) -> None:
        if len(inbox) > 1:
            # Complete before beginning: at the limit, a new prefix must not evict one that is ready.
            inbox.sort(key=_last_step_first)
        for (k, prefix), instance in inbox:
            if self.join_sides[k] and lacks_join_value(self.join_sides[k], instance):
                continue
            if k == 0:
                self._begin_with(instance)
            else:
                owners, same_key = ([prefix], False) if prefix is not None else self._waiting(k, instance)
                for owner in owners:
                    self._offer(k, instance, owner, same_key=same_key and owner.one_key)

    def _begin_with(self, instance: Instance) -> None:
        within = self.node.within
        deadline = None if within is None else instance.time + within
        if self.forbids[0] and self._forbidden(0, (instance,), {}):
            return
        if self.chooser.admit(instance, deadline):
            self._advance(instance, None, instance.probability, deadline)
        if len(self.chooser) > self.run.limits.instances:
            self.run.dropped += self.chooser.trim(self.run.limits.instances)

    def awaits(self, slot: Any, roles: tuple[FilledRole, ...]) -> bool:
        """Whether any prefix waits for the key of an event of a later step; most events can be skipped."""
        join, index = self.node.steps[slot[0]].join, self.index[slot[0] - 1]
        assert join is not None
        if UNFILLED in index:
            return True
        for key in keys_of(roles, join[0]):  # noqa: SIM110  (hot loop: no generator)
            if key in index or key is UNFILLED:
                return True
        return False

    def _waiting(self, k: int, instance: Instance) -> tuple[list[Prefix], bool]:
        """The prefixes that may wait for an instance, and whether they certainly share its single key."""
        join = self.node.steps[k].join
        if join is None:
            return list(self.held[k - 1]), False
        index = self.index[k - 1]
        keys = keys_of(instance.roles, join[0])
        if UNFILLED in keys:
            return list(self.held[k - 1]), False
        if len(keys) == 1 and UNFILLED not in index:
            return list(index.get(keys[0], ())), has_one_key(instance.roles, join[0])
        prefixes = dict(index.get(UNFILLED, {}))
        for key in keys:
            prefixes.update(index.get(key, {}))
        return list(prefixes), False

    def _offer(self, k: int, instance: Instance, owner: Prefix, *, same_key: bool = False) -> None:
        """Try to extend a prefix by an instance; with `same_key`, the join is already checked."""
        if not owner.alive or owner.parts[-1].time >= instance.first:
            return
        late = owner.deadline is not None and instance.time > owner.deadline
        if late or (owner.until is not None and instance.time > owner.until):
            return
        step = self.node.steps[k]
        assert isinstance(step, Part)
        conditions = step.other_conditions if same_key else step.conditions
        factor = self.factor(conditions, owner.roles + instance.roles) if conditions else 1.0
        if factor == 0.0:
            # A failed join is no reason to report: other keys belong to other instances.
            joins = [condition for condition in step.conditions if condition.joins]
            if self.factor(joins, owner.roles + instance.roles) > 0.0:
                self.run.stopped(self.node, k, "a condition failed", owner, instance)
            return
        if self.forbids[k] and self._forbidden(k, (*owner.parts, instance), owner.absent):
            return
        if owner.chooser is None:
            owner.chooser = chooser_for(step)
        if owner.chooser is None or owner.chooser.admit(instance, owner.deadline):
            self._advance(instance, owner, instance.probability * factor, owner.deadline)

    def _forbidden(self, k: int, parts: tuple[Instance, ...], absent: dict[int, Blockers]) -> bool:
        """Whether a negated part certainly happened before a step: then the step replaces no duplicate."""
        roles = roles_of(parts)
        for g in self.forbids[k]:
            if self._absence_probability(g, parts, roles, absent) == 0.0:
                self.run.blocked(self.node, self.node.guards[g].node, parts, parts[-1].time)
                return True
        return False

    # extending prefixes

    def _advance(
        self,
        instance: Instance,
        owner: Prefix | None,
        probability: float,
        deadline: Instant | None,
        *,
        home: Chooser | None = None,
    ) -> None:
        parts = (*owner.parts, instance) if owner else (instance,)
        if owner is not None:
            owner.spent = True
        probability *= owner.probability if owner else 1.0
        if len(parts) == len(self.node.steps) and not self.node.deferred:
            self._complete(parts, probability, instance.time, instance.phase, owner.absent if owner else {})
            return
        prefix = Prefix(self, parts=parts, probability=probability, deadline=deadline)
        prefix.home = (self.chooser if self.chooses else None) if owner is None else owner.chooser
        if home is not None and owner is not None:
            prefix.home, prefix.chosen = home, owner.chosen
        if owner is not None:
            # Acquire before making room, which may drop the owner and release the shared blockers.
            prefix.absent = {k: blockers.acquire() for k, blockers in owner.absent.items()}
        if not self._hold(prefix):
            self._refused(prefix)
            return
        if prefix.home is not None:
            prefix.home.waits(prefix.chosen, prefix)
        self._activate(prefix)

    def _refused(self, prefix: Prefix) -> None:
        """Without room, release what the prefix holds; a duplicate may take its place."""
        if prefix.home is not None:
            prefix.home.release(prefix.chosen, prefix)
        for blockers in prefix.absent.values():
            blockers.release()

    def _hold(self, prefix: Prefix) -> bool:
        if not self.run.has_room(self):
            return False
        self.run.hold(prefix)
        self.held[prefix.level][prefix] = None
        self._enter(prefix)
        self.consumption.keep(prefix, prefix.roles, free=self.node.lasting)
        return True

    def _enter(self, prefix: Prefix) -> None:
        """Add a prefix to its index, and set its terminator."""
        step = self._next(prefix)
        if step is not None and step.join is not None:
            prefix.keys = keys = keys_of(prefix.roles, step.join[1])
            prefix.one_key = len(keys) == 1 and keys[0] is not UNFILLED and has_one_key(prefix.roles, step.join[1])
            index = self.index[prefix.level]
            for key in keys:
                bucket = index.get(key)
                if bucket is None:
                    index[key] = {prefix: None}
                else:
                    bucket[prefix] = None
        if prefix.deadline is not None:
            self.run.schedule(prefix.deadline, TERMINATORS, self, prefix)

    def _next(self, prefix: Prefix) -> Part | Absence | None:
        steps = self.node.steps
        return steps[prefix.level + 1] if prefix.level + 1 < len(steps) else None

    def _activate(self, prefix: Prefix, *, fresh: bool = True) -> None:
        """Activate what may come next."""
        time, step = prefix.parts[-1].time, self._next(prefix)
        for k, guard in enumerate(self.node.guards):
            if guard.after == prefix.level:
                self._watch(k, guard, prefix, fresh=fresh)
        if step is None:
            assert prefix.deadline is not None
            self.schedule(prefix.deadline, prefix)
        elif isinstance(step, Absence):
            assert step.within is not None
            if prefix.deadline is None or time + step.within <= prefix.deadline:
                self._watch(-1 - (prefix.level + 1), step, prefix, fresh=fresh)
                self.schedule(time + step.within, prefix)
        elif isinstance(step.node, LeafNode):
            self._leaf(prefix.level + 1, step.node).listen()
        else:
            prefix.child = self.spawn(step.node, slot=(prefix.level + 1, prefix), after=time, fresh=fresh)

    def _leaf(self, k: int, node: LeafNode) -> LeafProcess:
        leaf = self.leaves.get(k)
        if leaf is None:
            spawned = self.spawn(node, slot=(k, None))
            assert isinstance(spawned, LeafProcess)
            leaf = self.leaves[k] = spawned
            if self.node.steps[k].join is not None:
                leaf.awaited = self.awaits
        return leaf

    def _watch(self, k: int, absence: Absence, prefix: Prefix, *, fresh: bool) -> None:
        """Collect blockers: shared by all prefixes for a profile, else separate for each prefix."""
        if isinstance(absence.node, LeafNode):
            shared = self.blockers.get(k)
            if shared is None:
                shared = self.blockers[k] = Blockers(self, absence, k, window=self._window(absence))
            prefix.absent[k] = shared.acquire()
        else:
            prefix.absent[k] = Blockers(self, absence, k, after=prefix.parts[-1].time, fresh=fresh).acquire()
        watched = self.watched.get(k)
        if watched is not None:
            keys = (None,) if absence.join is None else keys_of(prefix.roles, absence.join[1])
            for key in keys:
                bucket = watched.get(key)
                if bucket is None:
                    watched[key] = {prefix: None}
                else:
                    bucket[prefix] = None
            prefix.guarded.append((watched, keys))

    def on_blocker(self, blockers: Blockers, instance: Instance, keys: tuple[Any, ...]) -> None:
        """Mark the prefixes that the instance breaks; they are dropped at the end of this moment."""
        watched = self.watched.get(blockers.number)
        if not watched:
            return
        prefixes: Iterable[Prefix]
        join, same_key = blockers.absence.join, False
        if join is None:
            prefixes = watched.get(None, ())
        elif len(keys) == 1 and UNFILLED not in watched and keys[0] is not UNFILLED:
            prefixes, same_key = watched.get(keys[0], ()), has_one_key(instance.roles, join[0])
        else:
            candidates = watched if UNFILLED in keys else (*keys, UNFILLED)
            prefixes = dict.fromkeys([prefix for key in candidates for prefix in watched.get(key, ())])
        for prefix in prefixes:
            if prefix.absent.get(blockers.number) is blockers and prefix.parts[-1].time < instance.time:
                joined_by_key = same_key and len(prefix.roles) == 1 and prefix.roles[0].mapped is None
                if blockers.breaks(prefix.roles, instance, same_key=joined_by_key):
                    prefix.breaks(self.run.now, f"{min(blockers.absence.node.roles)} happened")

    def _window(self, absence: Absence) -> int | None:
        return self.node.within if absence.within is None else absence.within

    # timers

    def fire(self, item: Any) -> None:
        if isinstance(item, Blockers):
            self._limit_blockers(item)
            return
        prefix: Prefix = item
        if not prefix.alive:
            return
        step = self._next(prefix)
        if step is None:
            # Not if it is broken, or replaced by a duplicate at this very moment.
            if prefix.until is None:
                prefix.spent = True
                self._complete(prefix.parts, prefix.probability, self.run.now, TIMERS, prefix.absent)
        elif isinstance(step, Absence) and (prefix.until is None or self.run.now <= prefix.until):
            # A blocker at this very moment is not earlier; the step checks its own blockers.
            self._silent(prefix, step)

    def _silent(self, prefix: Prefix, step: Absence) -> None:
        now, time = self.run.now, prefix.parts[-1].time
        blockers = prefix.absent[-1 - (prefix.level + 1)]
        probability = blockers.factor(prefix.roles, low=time, high=now, closed=True)
        if probability == 0.0:
            self.drop(prefix, f"{min(step.node.roles)} happened")
            return
        silence = Instance(
            step.node.id, time=now, phase=TIMERS, first=now, start=time, end=now, probability=probability
        )
        # It fires once. With `first`, the extended prefix keeps its place; with `last`, it no longer waits.
        home = None
        if prefix.home is not None and not prefix.home.takes_all:
            home, prefix.home = prefix.home, None
        self._advance(silence, prefix, probability, prefix.deadline, home=home)
        self.drop(prefix, None)

    def _complete(
        self, parts: tuple[Instance, ...], probability: float, time: Instant, phase: int, absent: dict[int, Blockers]
    ) -> None:
        complete = joined(self.node.id, parts, time=time, phase=phase, probability=probability)
        for g, guard in enumerate(self.node.guards):
            if guard.after == len(parts) - 1:
                low = parts[-1].time
                complete.probability *= absent[g].factor(complete.roles, low=low, high=time, closed=True)
            else:
                complete.probability *= self._absence_probability(g, parts, complete.roles, absent)
            if complete.probability == 0.0:
                self.run.blocked(self.node, guard.node, parts, time)
                return
        self.emit(complete)

    def _absence_probability(
        self, g: int, parts: tuple[Instance, ...], roles: tuple[FilledRole, ...], absent: dict[int, Blockers]
    ) -> float:
        """The probability that a guard did not happen before its step, given the parts up to that step or later."""
        after, within = self.node.guards[g].after, self.node.within
        high = parts[after + 1].first
        if after < 0:
            assert within is not None
            return self.blockers[g].factor(roles, low=high - within - 1, high=high, closed=False)
        return absent[g].factor(roles, low=parts[after].time, high=high, closed=False)

    # dropping prefixes

    def expire(self, item: Any) -> None:
        prefix: Prefix = item
        replaced = prefix.until is not None and prefix.until <= self.run.now
        self.drop(prefix, (prefix.broken or "replaced by a later duplicate") if replaced else "the window was over")

    def drop(self, prefix: Prefix, why: str | None) -> None:
        """Drop a prefix that can no longer contribute, and all that waits for it."""
        if not prefix.alive:
            return
        prefix.alive = False
        del self.held[prefix.level][prefix]
        self.run.unhold(prefix)
        self.consumption.unkeep(prefix, prefix.roles)
        if why is not None and not prefix.spent:
            self.run.stopped(self.node, prefix.level + 1, why, prefix, None)
        self._unindex(prefix)
        if prefix.child is not None:
            prefix.child.close()
        if prefix.home is not None:
            prefix.home.release(prefix.chosen, prefix)
        for blockers in prefix.absent.values():
            blockers.release()
        if not self.held[prefix.level] and (leaf := self.leaves.get(prefix.level + 1)) is not None:
            leaf.unlisten()

    def _unindex(self, prefix: Prefix) -> None:
        if prefix.keys:
            _remove_from_index(self.index[prefix.level], prefix.keys, prefix)
        for watched, keys in prefix.guarded:
            _remove_from_index(watched, keys, prefix)

    def _limit_blockers(self, blockers: Blockers) -> None:
        """Without a window blockers accumulate: at the limit, drop prefixes that need the oldest blockers."""
        before, after = blockers.crowded(), blockers.absence.after
        if before is None or self.node.within is not None:
            return
        for prefix in [prefix for level in self.held[after:] for prefix in level]:
            if prefix.parts[after].time < before and blockers in prefix.absent.values():
                self.run.dropped += 1
                self.drop(prefix, "the limit was reached")
        blockers.prune(before)

    def close(self) -> None:
        super().close()
        for level in self.held:
            for prefix in list(level):
                self.drop(prefix, None)
        for process in (*self.children, *self.leaves.values()):
            process.close()
        for blockers in self.blockers.values():
            blockers.close()

    # snapshots

    def dump(self, dump: Dump) -> Any:
        return dump_sequence(self, dump)

    def load(self, state: Any, load: Load) -> None:
        load_sequence(self, state, load)


def _last_step_first(entry: tuple[Any, Instance]) -> int:
    return -int(entry[0][0])


def _remove_from_index(index: dict[Any, dict[Prefix, None]], keys: tuple[Any, ...], prefix: Prefix) -> None:
    for key in keys:
        bucket = index[key]
        del bucket[prefix]
        if not bucket:
            del index[key]
