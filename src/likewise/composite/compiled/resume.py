"""A plain pattern goes over to the general path, with all that it holds on the compiled one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.composite.compiled.registry import Facts, KeptPattern
from likewise.composite.compiled.shape import Shape
from likewise.composite.compiled.store import BROKEN, REPLACED, SPENT
from likewise.composite.general.absence import Blockers
from likewise.composite.general.choice import Chooser
from likewise.composite.general.conjunction import Held, JointProcess
from likewise.composite.general.prefix import Prefix
from likewise.composite.general.run import Run
from likewise.composite.general.sequence import SequenceProcess
from likewise.composite.instance import Filled, Instance, RoleToken
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.conditions import key_of, values_of
from likewise.composite.plan.nodes import LeafNode, Part, PlanNode
from likewise.events import Event, Instant
from likewise.language import Keep

if TYPE_CHECKING:
    from likewise.composite.composer import Composer


def run_general(
    detector: Composer, name: str, *, number: int, facts: Facts, kept: Sequence[KeptPattern], shape: Shape
) -> None:
    """Run a plain pattern on the general path, beginning with what it holds."""
    catalogue = detector._catalogue
    run = detector._new_run(build_plan(catalogue.running(name), catalogue.scope(name)), number)
    detector._pool.register(run)
    detector._runs[name] = run
    run.detected, run.dropped = facts.detected, facts.dropped
    if facts.started is None:
        detector._unstarted.append(run)
        return
    run.start(facts.started)
    resumed = _Resumed(run, shape, kept)
    clock = detector._timers.clock
    for row in kept:
        if row.until is None or row.until > clock:
            resumed.take(row)


class _Resumed:
    """Rows of the compiled path as processes know them; an event is one token, however many wait with it."""

    def __init__(self, run: Run, shape: Shape, kept: Sequence[KeptPattern]) -> None:
        self._run = run
        self._shape = shape
        self._events = {rank: event for row in kept for rank, event in zip(row.ranks, row.events, strict=True)}
        self._tokens: dict[int, RoleToken] = {}
        self._instances: dict[tuple[int, int], Instance] = {}
        self._prefixes: dict[tuple[int, ...], Prefix] = {}

    def take(self, row: KeptPattern) -> None:
        """One instance that waits, or an event that may break others."""
        if isinstance(self._run.root, SequenceProcess) and row.member == len(self._shape.roles):
            self._blocker(self._run.root, row)
        elif isinstance(self._run.root, SequenceProcess):
            self._prefix(self._run.root, row)
        elif isinstance(self._run.root, JointProcess):
            self._held(self._run.root, row)

    def _instance(self, node: PlanNode, member: int, rank: int, event: Event) -> Instance:
        known = self._instances.get((member, rank))
        if known is not None:
            return known
        assert isinstance(node, LeafNode)
        start, end = event.span
        token = self._tokens.setdefault(rank, RoleToken(event, rank, end))
        # Only the product is known, and stands with the whole.
        made = Instance(
            node.id,
            time=end,
            phase=0,
            first=end,
            start=start,
            end=end,
            probability=1.0,
            roles=(Filled(node.role, token, 1.0),),
        )
        self._instances[member, rank] = made
        return made

    def _blocker(self, process: SequenceProcess, row: KeptPattern) -> None:
        blockers = process.blockers.get(0)
        if blockers is not None:
            instance = self._instance(process.node.guards[0].node, row.member, row.ranks[0], row.events[0])
            instance.probability = row.probability
            blockers.add(instance)

    def _held(self, process: JointProcess, row: KeptPattern) -> None:
        part, within = process.node.parts[row.member], process.node.within
        instance = self._instance(part.node, row.member, row.ranks[0], row.events[0])
        instance.probability = row.probability
        held, hold = Held(process, row.member, instance), None if within is None else instance.time + within
        process._enter(held, hold)
        if row.flag & REPLACED:
            held.replace(row.until or 0)
        else:
            _choose(process.choosers[row.member], part, instance, held, hold)

    def _prefix(self, process: SequenceProcess, row: KeptPattern) -> None:
        steps = [step for step in process.node.steps if isinstance(step, Part)]
        filled = zip(steps, row.ranks, row.events, strict=False)
        parts = tuple(self._instance(step.node, k, rank, event) for k, (step, rank, event) in enumerate(filled))
        within = process.node.within
        deadline = None if within is None else parts[0].time + within
        prefix = self._prefixes[row.ranks] = Prefix(
            process, parts=parts, probability=row.probability, deadline=deadline
        )
        prefix.spent = bool(row.flag & SPENT)
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
        if row.flag & REPLACED:
            pass
        elif row.member == 0:
            _choose(process.chooser, steps[0], parts[0], prefix, deadline)
        if row.blocker != -1:
            self._block(prefix, steps[row.member + 1], row)

    def _past_the_guard(self, process: SequenceProcess, prefix: Prefix, row: KeptPattern) -> None:
        """What must not happen is decided, and part of how sure it is: what decided it may be gone."""
        prefix.probability *= row.quiet
        guard = process.node.guards[0]
        time = prefix.parts[-1].time
        prefix.absent[0] = Blockers(process, guard, 0, after=time, fresh=True).shared()

    def _block(self, prefix: Prefix, step: Part, row: KeptPattern) -> None:
        """Something followed it already, and nothing else may."""
        event = self._events.get(row.blocker) or self._likeness(step, row)
        instance = self._instance(step.node, row.member + 1, row.blocker, event)
        prefix.chooser = Chooser(step)
        prefix.chooser.block(key_of(instance.roles, step.key), instance, prefix.deadline)

    def _likeness(self, step: Part, row: KeptPattern) -> Event:
        """An event with the values that join it to those before, in place of one that nobody waits with."""
        mine, theirs = (self._shape.roles[row.member + k].attributes for k in (0, 1))
        last = Filled("", RoleToken(row.events[-1], row.ranks[-1], 0), 1.0)
        found = [(side.attribute, values_of(last, mine[theirs.index(side.attribute)])[0][0]) for side in step.key]
        start, end = row.events[-1].span
        return Event("", tuple(found), (), start, end)


def _choose(chooser: Chooser, part: Part, instance: Instance, waiting: Prefix | Held, hold: Instant | None) -> None:
    """Take the place among duplicates that it has."""
    if part.keep.keep is Keep.FIRST:
        chooser.block(key_of(instance.roles, part.key), instance, hold)
    else:
        chooser.waits(instance, waiting)
