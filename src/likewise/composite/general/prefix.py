"""Prefixes: sequences whose first steps are filled, while waiting and in snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.composite.general.absence import Blockers
from likewise.composite.general.choice import Chooser
from likewise.composite.general.process import TERMINATORS, Process
from likewise.composite.instance import FilledRole, Instance, roles_of
from likewise.composite.plan.nodes import Absence, Part
from likewise.events import Instant

if TYPE_CHECKING:
    from likewise.composite.general.sequence import SequenceProcess
    from likewise.composite.snapshot import Dump, Load


class Prefix:
    """A sequence whose first steps are filled, waiting for the next."""

    __slots__ = (
        "absent",
        "alive",
        "broken",
        "child",
        "chooser",
        "chosen",
        "deadline",
        "guarded",
        "home",
        "keys",
        "level",
        "number",
        "one_key",
        "owner",
        "parts",
        "probability",
        "roles",
        "spent",
        "until",
    )

    def __init__(
        self, owner: SequenceProcess, *, parts: tuple[Instance, ...], probability: float, deadline: Instant | None
    ) -> None:
        self.owner = owner
        self.number = owner.run.ticket()
        self.level = len(parts) - 1
        self.parts = parts
        self.roles: tuple[FilledRole, ...] = parts[0].roles if len(parts) == 1 else roles_of(parts)
        self.probability = probability
        self.deadline = deadline
        self.until: Instant | None = None
        self.alive = True
        self.spent = False
        # Why it is dropped at the end of this moment, if something broke it.
        self.broken: str | None = None
        # The part whose place among duplicates it takes.
        self.chosen = parts[-1]
        self.child: Process | None = None
        self.chooser: Chooser | None = None
        self.home: Chooser | None = None
        self.keys: tuple[Any, ...] = ()
        self.one_key = False
        # The indexes and keys by which a blocker finds it.
        self.guarded: list[tuple[dict[Any, dict[Prefix, None]], tuple[Any, ...]]] = []
        self.absent: dict[int, Blockers] = {}

    @property
    def notify_order(self) -> tuple[int, int]:
        """By the number of filled steps, then by age."""
        return self.level, self.number

    def replace(self, time: Instant) -> None:
        """React to a later duplicate: a next step of the same time may still join."""
        if self.alive and self.until is None:
            self.until = time
            self.owner.run.schedule(time, TERMINATORS, self.owner, self)

    def breaks(self, time: Instant, why: str) -> None:
        """React to a negated part that happened: a next step of the same time may still join."""
        if self.alive and self.until is None:
            self.broken = why
            self.replace(time)

    def evict(self) -> None:
        """Drop this one, to make room for another."""
        self.owner.drop(self, "the limit was reached")

    def consume(self) -> None:
        """React to the consumption of one of its events."""
        self.owner.drop(self, "consumed by a detection")


# A sequence in a snapshot: its prefixes with their shared objects.


def dump_sequence(process: SequenceProcess, dump: Dump) -> Any:
    """Prefixes, duplicates, shared blockers and the first step as plain values."""
    prefixes = [prefix for level in process.held for prefix in level]
    return {
        "prefixes": [_dump_prefix(process, prefix, dump) for prefix in prefixes],
        "chooser": [dump.chooser(process.chooser), process.chooser.dump(dump)],
        "first": process.children[0].dump(dump),
        "shared": {k: b.dump(dump) for k, b in sorted(process.blockers.items()) if b.needed},
    }


def _dump_prefix(process: SequenceProcess, prefix: Prefix, dump: Dump) -> Any:
    return {
        "id": dump.waiting(prefix),
        "number": prefix.number,
        "broken": prefix.broken,
        "chosen": dump.instance(prefix.chosen),
        "home": dump.chooser(prefix.home),
        "parts": [dump.instance(part) for part in prefix.parts],
        "p": prefix.probability,
        "deadline": prefix.deadline,
        "until": prefix.until,
        "child": None if prefix.child is None else prefix.child.dump(dump),
        "chooser": [dump.chooser(prefix.chooser), None if prefix.chooser is None else prefix.chooser.dump(dump)],
        "absent": {
            k: [dump.blockers(b), None if b is process.blockers.get(k) else b.dump(dump)]
            for k, b in sorted(prefix.absent.items())
        },
    }


def load_sequence(process: SequenceProcess, state: Any, load: Load) -> None:
    """Load a dumped state."""
    number, entries = state["chooser"]
    load.define_chooser(number, process.chooser)
    for k, blockers in state["shared"].items():
        _load_shared(process, int(k), blockers, load)
    choosers: list[tuple[Chooser, Any]] = [(process.chooser, entries)]
    for entry in state["prefixes"]:
        _load_prefix(process, entry, load, choosers)
    # Choosers refer to prefixes, so these are loaded first.
    for chooser, entries in choosers:
        chooser.load(entries, load)
    process.children[0].load(state["first"], load)


def _load_shared(process: SequenceProcess, k: int, state: Any, load: Load) -> None:
    absence = process.node.guards[k] if k >= 0 else process.node.steps[-1 - k]
    assert isinstance(absence, Absence)
    if k not in process.blockers:
        process.blockers[k] = Blockers(process, absence, k, window=process._window(absence))
    process.blockers[k].load(state, load)


def _load_prefix(process: SequenceProcess, entry: Any, load: Load, choosers: list[tuple[Chooser, Any]]) -> None:
    parts = tuple(load.known(part) for part in entry["parts"])
    prefix = Prefix(process, parts=parts, probability=entry["p"], deadline=entry["deadline"])
    prefix.number = entry["number"]
    prefix.chosen = load.known(entry["chosen"])
    load.define_waiting(entry["id"], prefix)
    number, entries = entry["chooser"]
    step = process._next(prefix)
    if number is not None and isinstance(step, Part):
        prefix.chooser = load.define_chooser(number, Chooser(step))
        choosers.append((prefix.chooser, entries))
    prefix.home = load.chooser(entry["home"])
    process.held[prefix.level][prefix] = None
    process._enter(prefix)
    process.consumption.keep(prefix, prefix.roles, free=process.node.lasting)
    process.run.hold(prefix)
    process._activate(prefix, fresh=False)
    if entry["until"] is not None:
        prefix.broken = entry["broken"]
        prefix.replace(entry["until"])
    for k, (number, blockers) in entry["absent"].items():
        _load_absent(int(k), prefix, number, blockers, load)
    if prefix.child is not None:
        prefix.child.load(entry["child"], load)


def _load_absent(k: int, prefix: Prefix, number: int, state: Any, load: Load) -> None:
    """Load blockers, which may be shared with a shorter prefix that was loaded before."""
    process = prefix.owner
    known = load.blockers(number)
    own = prefix.absent.get(k)
    if state is None:
        if own is None:
            prefix.absent[k] = process.blockers[k].acquire()
    elif known is not None:
        if own is not None:
            own.release()
        prefix.absent[k] = known.acquire()
    else:
        if own is None:
            absence = process.node.guards[k] if k >= 0 else process.node.steps[-1 - k]
            assert isinstance(absence, Absence)
            moment = prefix.parts[absence.after].time
            own = prefix.absent[k] = Blockers(process, absence, k, after=moment, fresh=False).acquire()
        own.load(state, load)
        load.define_blockers(number, own)
