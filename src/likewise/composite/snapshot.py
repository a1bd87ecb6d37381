"""Snapshots of a detector: versioned bytes, from which it resumes exactly."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from likewise import language
from likewise.composite.compiled.patterns import CompiledPatterns
from likewise.composite.compiled.registry import PatternCounts, WaitingInstance
from likewise.composite.compiled.resume import run_general
from likewise.composite.general.process import InnerToken
from likewise.composite.general.run import Limits, Run
from likewise.composite.hits import (
    MemberProfile,
    dump_event,
    dump_hits,
    dump_mapped,
    load_event,
    load_hits,
    load_mapped,
)
from likewise.composite.instance import FilledRole, Instance, RoleToken
from likewise.composite.plan.builder import build_plan
from likewise.errors import InputError
from likewise.language import Subscription

if TYPE_CHECKING:
    from likewise.composite.composer import Composer
    from likewise.composite.general.absence import Blockers
    from likewise.composite.general.choice import Chooser, Replaceable
    from likewise.composite.intake import Arrived


C = TypeVar("C", bound="Composer")

FORMAT: Final = "likewise-detector"
VERSION: Final = 5


def write(detector: Composer) -> bytes:
    """The whole state of a detector, without its matcher and measure."""
    return msgspec.msgpack.encode(
        {
            "format": FORMAT,
            "version": VERSION,
            "lateness": detector.lateness,
            "limits": [detector.limits.instances, detector.limits.policy],
            "max_jump": detector.max_jump,
            "relatedness": detector.relatedness,
            "late": detector.late,
            "clock": detector._timers.clock,
            "seen": detector._intake.seen,
            "now": detector._now,
            "ranks": detector._ranks,
            "numbers": detector._numbers,
            "known": [to_plain(subscription) for subscription in detector._catalogue.others],
            "profiles": _dump_profiles(detector),
            "buffer": [_dump_arrived(arrived, hits=detector._keeps_hits) for arrived in detector._intake.waiting],
            "runs": [_source(detector, run.plan.name) | _dump_run(run) for run in detector._runs.values()],
            "flat": [] if detector._compiled is None else _dump_compiled(detector, detector._compiled),
        }
    )


def _dump_profiles(detector: Composer) -> list[Any] | None:
    """The profiles by the number that hits refer to; a detector's numbers are its matcher's handles."""
    if not detector._keeps_hits:
        return None
    profiles = detector.profiles.items()
    return [[number, to_plain(member.profile), to_plain(member.options)] for number, member in profiles]


def _dump_arrived(arrived: Arrived, *, hits: bool) -> list[Any]:
    event, known = arrived
    return [dump_event(event), None if known is None or not hits else dump_hits(known)]


def _source(detector: Composer, name: str) -> dict[str, Any]:
    """A pattern as it was added, and the definitions it was built from."""
    catalogue = detector._catalogue
    return {
        "pattern": to_plain(catalogue.running(name)),
        "scope": [to_plain(definition) for definition in catalogue.scope(name).values()],
        "known": catalogue.named.get(name) is catalogue.running(name),
    }


def _resume(detector: Composer, entry: dict[str, Any]) -> Subscription:
    pattern: Subscription = from_plain(entry["pattern"])
    detector._catalogue.resume(pattern, map(from_plain, entry["scope"]))
    if entry["known"]:
        detector.define(pattern)
    return pattern


def _dump_run(run: Run) -> dict[str, Any]:
    dump = Dump()
    root = None if run.root is None else run.root.dump(dump)
    chooser = run._chooser.dump(dump)
    return {
        "number": run.number,
        "started": run.started,
        "detected": run.detected,
        "dropped": run.dropped,
        "tickets": run.tickets,
        "root": root,
        "chooser": chooser,
        "instances": dump.instances,
        "tokens": dump.tokens,
    }


def _dump_compiled(detector: Composer, compiled: CompiledPatterns) -> list[dict[str, Any]]:
    return [
        _source(detector, name)
        | {
            "number": compiled.number(name),
            "facts": list(compiled.counts(name)),
            "kept": [[[dump_event(event) for event in row.events], *row[1:]] for row in compiled.waiting(name)],
        }
        for name in compiled.names
    ]


def read(kind: type[C], data: bytes, **parts: Any) -> C:
    """Restore a detector from a snapshot; the matcher and the measure are passed again."""
    state = _decode(data)
    instances, policy = state["limits"]
    detector = kind(
        relatedness=state["relatedness"],
        lateness=state["lateness"],
        limits=Limits(instances, policy),
        max_jump=state["max_jump"],
        **parts,
    )
    detector._intake.late = state["late"]
    detector._timers.clock = state["clock"]
    for plain in state["known"]:
        detector.define(from_plain(plain))
    known = state.get("profiles")
    if detector._keeps_hits:
        if known is None:
            raise InputError("the snapshot is of a detector, not of a composer", hint="replay the events instead")
        detector._profile_numbers.resume((number, MemberProfile(*map(from_plain, plain))) for number, *plain in known)
    for entry in state["flat"]:
        _load_compiled(detector, entry)
    for entry in state["runs"]:
        _load_run(detector, entry)
    detector._numbers = state["numbers"]
    detector._now, detector._ranks = state["now"], state["ranks"]
    detector._intake.seen = state["seen"]
    for plain, hits in state["buffer"]:
        event = load_event(plain)
        detector._intake.hold(event, load_hits(event, hits) if hits is not None and detector._keeps_hits else None)
    return detector


def _load_run(detector: Composer, entry: dict[str, Any]) -> None:
    subscription = _resume(detector, entry)
    run = detector._new_run(build_plan(subscription, detector._catalogue.scope(subscription.name)), entry["number"])
    detector._install(run)
    run.detected, run.dropped = entry["detected"], entry["dropped"]
    if entry["started"] is None:
        return
    detector._unstarted.remove(run)
    run.start(entry["started"], fresh=False)
    load = Load(entry["instances"], entry["tokens"])
    assert run.root is not None
    run.root.load(entry["root"], load)
    run._chooser.load(entry["chooser"], load)
    run.loaded(entry["tickets"])


def _load_compiled(detector: Composer, entry: dict[str, Any]) -> None:
    """Restore a compiled pattern, on the general path if `compiled` is off now."""
    subscription = _resume(detector, entry)
    name, counts, number = subscription.name, PatternCounts(*entry["facts"]), entry["number"]
    waiting = [
        WaitingInstance(tuple(map(load_event, events)), tuple(ranks), tuple(chances), *rest)
        for events, ranks, chances, *rest in entry["kept"]
    ]
    shape = detector._forms.known(subscription)
    if shape is None:
        shape = detector._forms.learn(subscription, build_plan(subscription, detector._catalogue.scope(name)))
    assert shape is not None  # it was a compiled pattern when it was written
    if detector._compiled is not None:
        detector._compiled.add(name, shape, number=number, started=counts.started)
        detector._compiled.load(name, waiting, counts)
    else:
        run_general(detector, name, number=number, counts=counts, waiting=waiting, shape=shape)


def _decode(data: bytes) -> dict[str, Any]:
    try:
        state = msgspec.msgpack.decode(data, strict=False)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"this is not a snapshot: {error}", hint="the data may be truncated") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError("not a snapshot of a detector")
    if state["version"] != VERSION:
        raise InputError(
            f"the snapshot has version {state['version']}, this program reads {VERSION}",
            hint="replay the events instead",
        )
    return state


# Instances and waiting processes are written once and referenced by number.


class Dump:
    """Collects the objects of one pattern for writing."""

    def __init__(self) -> None:
        self.instances: list[Any] = []
        self.tokens: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []

    def _number(self, item: object, count: int) -> tuple[int, bool]:
        known = self._numbers.get(id(item))
        if known is not None:
            return known, False
        self._numbers[id(item)] = count
        self._kept.append(item)
        return count, True

    def token(self, token: RoleToken) -> int:
        """The number of a token; a token of a named inner pattern refers to the outer one, which has the event."""
        if isinstance(token, InnerToken):
            return self._inner(token)
        number, new = self._number(token, len(self.tokens))
        if new:
            self.tokens.append([dump_event(token.event), token.rank, token.time, token.consumed])
        return number

    def _inner(self, token: InnerToken) -> int:
        outer = self.token(token.outer)
        number, new = self._number(token, len(self.tokens))
        if new:
            self.tokens.append([outer, token.consumed])
        return number

    def instance(self, instance: Instance | None) -> int | None:
        """The number of an instance."""
        if instance is None:
            return None
        if id(instance) in self._numbers:
            return self._numbers[id(instance)]
        parts = [self.instance(part) for part in instance.parts]
        roles = [[f.role, self.token(f.token), f.probability, dump_mapped(f.mapped)] for f in instance.roles]
        number, _ = self._number(instance, len(self.instances))
        self.instances.append(
            [
                instance.node,
                instance.time,
                instance.phase,
                instance.first,
                instance.start,
                instance.end,
                instance.probability,
                roles,
                parts,
                instance.branch_probability,
                instance.step,
            ]
        )
        return number

    def waiting(self, waiting: Replaceable | None) -> int | None:
        """The number of a waiting process."""
        return None if waiting is None else self._number(waiting, len(self._kept))[0]

    def chooser(self, chooser: Chooser | None) -> int | None:
        """The number of a chooser."""
        return None if chooser is None else self._number(chooser, len(self._kept))[0]

    def blockers(self, blockers: Blockers) -> int:
        """The number of blockers, which prefixes may share."""
        return self._number(blockers, len(self._kept))[0]


class Load:
    """Restores the objects of a dump, each once."""

    def __init__(self, instances: list[Any], tokens: list[Any]) -> None:
        self._tokens: list[RoleToken] = []
        for entry in tokens:
            self._tokens.append(self._token(entry))
        self._instances: list[Instance] = []
        for entry in instances:
            self._instances.append(self._instance(entry))
        self._waiting: dict[int, Any] = {}
        self._choosers: dict[int, Chooser] = {}
        self._blockers: dict[int, Blockers] = {}

    def _token(self, entry: Any) -> RoleToken:
        if len(entry) == 2:
            outer, consumed = entry
            return InnerToken(self._tokens[outer], consumed=consumed)
        event, rank, time, consumed = entry
        return RoleToken(load_event(event), rank, time, consumed=consumed)

    def _instance(self, entry: Any) -> Instance:
        node, time, phase, first, start, end, probability, roles, parts, reading, step = entry
        return Instance(
            node,
            time=time,
            phase=phase,
            first=first,
            start=start,
            end=end,
            probability=probability,
            roles=tuple(FilledRole(role, self._tokens[t], p, load_mapped(mapped)) for role, t, p, mapped in roles),
            parts=tuple(self._instances[part] for part in parts),
            branch_probability=reading,
            step=step,
        )

    def known(self, number: int) -> Instance:
        """An instance by its number."""
        return self._instances[number]

    def instance(self, number: int | None) -> Instance | None:
        """An instance by its number; None if there is none."""
        return None if number is None else self._instances[number]

    def define_waiting(self, number: int, waiting: Any) -> None:
        """Register a waiting process by its number."""
        self._waiting[number] = waiting

    def waiting(self, number: int | None) -> Any:
        """The waiting process with that number; None if it has ended."""
        return None if number is None else self._waiting.get(number)

    def define_chooser(self, number: int, chooser: Chooser) -> Chooser:
        """Register a chooser by its number."""
        self._choosers[number] = chooser
        return chooser

    def chooser(self, number: int | None) -> Chooser | None:
        """The chooser with that number, if it is loaded."""
        return None if number is None else self._choosers.get(number)

    def define_blockers(self, number: int, blockers: Blockers) -> None:
        """Register blockers by their number."""
        self._blockers[number] = blockers

    def blockers(self, number: int) -> Blockers | None:
        """The blockers with that number, if they are loaded."""
        return self._blockers.get(number)

    def key(self, key: Any) -> Any:
        """Convert lists back to tuples, so that they can be dict keys."""
        return tuple(self.key(part) for part in key) if isinstance(key, list | tuple) else key


# Patterns as plain values, so that a snapshot includes them.


_CLASSES: Final = {name: getattr(language, name) for name in language.__all__}
_KIND: Final = "$"


def to_plain(value: Any) -> Any:
    """Dataclasses, enumerations, tuples and datetimes as dicts, lists and scalars.

    >>> to_plain(language.Duplicates(language.Keep.FIRST))["keep"]
    {'$': 'Keep', 'value': 'first'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {_KIND: type(value).__name__} | {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return {_KIND: type(value).__name__, "value": value.value}
    if isinstance(value, datetime):
        return {_KIND: "datetime", "value": value.isoformat()}
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(value: Any) -> Any:
    """The inverse of `to_plain`."""
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind == "datetime":
        return datetime.fromisoformat(value["value"])
    known = _CLASSES.get(cast("str", kind))
    if not isinstance(known, type):
        raise InputError(f"the snapshot contains an unknown type {kind!r}", hint="it was written by another version")
    if issubclass(known, Enum):
        return known(value["value"])
    return known(**{name: from_plain(item) for name, item in value.items() if name != _KIND})
