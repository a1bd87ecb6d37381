"""Moves a pattern from the compiled to the general path, with its waiting instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.composite.compiled.registry import PatternCounts, WaitingInstance
from likewise.composite.compiled.shape import Shape
from likewise.composite.compiled.store import BROKEN, FOLLOWED, REPLACED
from likewise.composite.general.absence import Blockers
from likewise.composite.general.choice import Chooser
from likewise.composite.general.conjunction import Held, JointProcess
from likewise.composite.general.prefix import Prefix
from likewise.composite.general.run import Run
from likewise.composite.general.sequence import SequenceProcess
from likewise.composite.instance import FilledRole, Instance, RoleToken
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.conditions import key_of, values_of
from likewise.composite.plan.nodes import LeafNode, Part, PlanNode
from likewise.events import Event, Instant
from likewise.language import Keep

if TYPE_CHECKING:
    from likewise.composite.composer import Composer


def run_general(
    detector: Composer,
    name: str,
    *,
    number: int,
    counts: PatternCounts,
    waiting: Sequence[WaitingInstance],
    shape: Shape,
) -> None:
    """Run a compiled pattern on the general path, starting with its waiting instances."""
    catalogue = detector._catalogue
    run = detector._new_run(build_plan(catalogue.running(name), catalogue.scope(name)), number)
    detector._pool.register(run)
    detector._runs[name] = run
    run.detected, run.dropped = counts.detected, counts.dropped
    if counts.started is None:
        detector._unstarted.append(run)
        return
    run.start(counts.started)
    resumed = _Resumed(run, shape, waiting)
    clock = detector._timers.clock
    for row in waiting:
        if row.until is None or row.until > clock:
            resumed.take(row)


class _Resumed:
    """Converts rows of the compiled path to objects of the general path; each event has one token."""

    def __init__(self, run: Run, shape: Shape, waiting: Sequence[WaitingInstance]) -> None:
        self._run = run
        self._shape = shape
        self._events = {rank: event for row in waiting for rank, event in zip(row.ranks, row.events, strict=True)}
        self._tokens: dict[int, RoleToken] = {}
        self._instances: dict[tuple[int, int], Instance] = {}
        self._prefixes: dict[tuple[int, ...], Prefix] = {}

    def take(self, row: WaitingInstance) -> None:
        """Restore one waiting instance, or an event of the guard."""
        if isinstance(self._run.root, SequenceProcess) and row.member == len(self._shape.roles):
            self._blocker(self._run.root, row)
        elif isinstance(self._run.root, SequenceProcess):
            self._prefix(self._run.root, row)
        elif isinstance(self._run.root, JointProcess):
            self._held(self._run.root, row)

    def _instance(self, node: PlanNode, member: int, rank: int, event: Event, chance: float = 1.0) -> Instance:
        known = self._instances.get((member, rank))
        if known is not None:
            return known
        assert isinstance(node, LeafNode)
        start, end = event.span
        token = self._tokens.setdefault(rank, RoleToken(event, rank, end))
        instance = Instance(
            node.id,
            time=end,
            phase=0,
            first=end,
            start=start,
            end=end,
            probability=chance,
            roles=(FilledRole(node.role, token, chance),),
        )
        self._instances[member, rank] = instance
        return instance

    def _blocker(self, process: SequenceProcess, row: WaitingInstance) -> None:
        blockers = process.blockers.get(0)
        if blockers is not None:
            node = process.node.guards[0].node
            blockers.add(self._instance(node, row.member, row.ranks[0], row.events[0], row.probability))

    def _held(self, process: JointProcess, row: WaitingInstance) -> None:
        part, within = process.node.parts[row.member], process.node.within
        instance = self._instance(part.node, row.member, row.ranks[0], row.events[0], row.probability)
        held, hold = Held(process, row.member, instance), None if within is None else instance.time + within
        process._enter(held, hold)
        if row.flag & REPLACED:
            held.replace(row.until or 0)
        else:
            _choose(process.choosers[row.member], part, instance, held, hold)

    def _prefix(self, process: SequenceProcess, row: WaitingInstance) -> None:
        steps = [step for step in process.node.steps if isinstance(step, Part)]
        filled = zip(steps, row.ranks, row.events, row.chances, strict=False)
        parts = tuple(
            self._instance(step.node, k, rank, event, chance) for k, (step, rank, event, chance) in enumerate(filled)
        )
        within = process.node.within
        deadline = None if within is None else parts[0].time + within
        prefix = self._prefixes[row.ranks] = Prefix(
            process, parts=parts, probability=row.probability, deadline=deadline
        )
        prefix.spent = bool(row.flag & FOLLOWED)
        owner = self._prefixes.get(row.ranks[:-1])
        prefix.home = process.chooser if row.member == 0 else None if owner is None else owner.chooser
        process.held[row.member][prefix] = None
        process._enter(prefix)
        process.consumption.keep(prefix, prefix.roles, free=False)
        self._run.hold(prefix)
        process._activate(prefix)
        if self._shape.guard is not None and row.member > self._shape.after:
            self._past_the_guard(process, prefix, row)
        if row.flag & BROKEN and self._shape.guard is not None:
            prefix.broken = f"{self._shape.guard.name} happened"
        if row.flag & (REPLACED | BROKEN):
            prefix.replace(row.until or 0)
        if row.member == 0 and not row.flag & REPLACED:
            _choose(process.chooser, steps[0], parts[0], prefix, deadline)
        if row.blocker != -1:
            self._block(prefix, steps[row.member + 1], row)

    def _past_the_guard(self, process: SequenceProcess, prefix: Prefix, row: WaitingInstance) -> None:
        """The guard was already checked and is part of the probability; its events may be gone."""
        prefix.probability *= row.p_absent
        guard = process.node.guards[0]
        time = prefix.parts[-1].time
        prefix.absent[0] = Blockers(process, guard, 0, after=time, fresh=True).acquire()

    def _block(self, prefix: Prefix, step: Part, row: WaitingInstance) -> None:
        """Mark that an event already followed this prefix, so that no other may."""
        event = self._events.get(row.blocker) or self._stand_in(step, row)
        instance = self._instance(step.node, row.member + 1, row.blocker, event)
        prefix.chooser = Chooser(step)
        prefix.chooser.block(key_of(instance.roles, step.key), instance, prefix.deadline)

    def _stand_in(self, step: Part, row: WaitingInstance) -> Event:
        """A stand-in for a forgotten event, with the values that join it to the earlier ones."""
        own, following = (self._shape.roles[row.member + k].attributes for k in (0, 1))
        last = FilledRole("", RoleToken(row.events[-1], row.ranks[-1], 0), 1.0)
        tuples = [(side.attribute, values_of(last, own[following.index(side.attribute)])[0][0]) for side in step.key]
        start, end = row.events[-1].span
        return Event("", tuple(tuples), (), start, end)


def _choose(chooser: Chooser, part: Part, instance: Instance, waiting: Prefix | Held, hold: Instant | None) -> None:
    """Register an instance with its chooser, as it was before."""
    if part.keep.keep is Keep.FIRST:
        chooser.block(key_of(instance.roles, part.key), instance, hold)
    else:
        chooser.waits(instance, waiting)
