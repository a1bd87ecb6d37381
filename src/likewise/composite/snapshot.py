"""Snapshots of a detector: versioned bytes, from which it goes on as if it had never stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from likewise.composite.compiled.patterns import FlatPatterns
from likewise.composite.compiled.registry import Facts, KeptPattern
from likewise.composite.compiled.resume import run_general
from likewise.composite.general.run import Limits, Run
from likewise.composite.hits import Wanted, known_hits, plain_hits
from likewise.composite.plan.builder import build_plan
from likewise.composite.state import Dump, Load, dump_event, from_plain, load_event, to_plain
from likewise.errors import InputError
from likewise.language import Subscription

if TYPE_CHECKING:
    from likewise.composite.composer import Composer
    from likewise.composite.intake import Arrived

C = TypeVar("C", bound="Composer")

FORMAT: Final = "likewise-detector"
VERSION: Final = 4


def write(detector: Composer) -> bytes:
    """Everything a detector knows, apart from its matcher and measure."""
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
            "buffer": [_dump_arrived(one, hits=detector._keeps_hits) for one in detector._intake.waiting],
            "runs": [_source(detector, run.plan.name) | _dump_run(run) for run in detector._runs.values()],
            "flat": [] if detector._flat is None else _dump_flat(detector, detector._flat),
        }
    )


def _dump_profiles(detector: Composer) -> list[Any] | None:
    """The numbers under which hits name profiles; a detector's are the handles of its matcher."""
    if not detector._keeps_hits:
        return None
    wanted = detector.profiles.items()
    return [[number, to_plain(one.profile), to_plain(one.options)] for number, one in wanted]


def _dump_arrived(arrived: Arrived, *, hits: bool) -> list[Any]:
    event, known = arrived
    return [dump_event(event), None if known is None or not hits else plain_hits(known)]


def _source(detector: Composer, name: str) -> dict[str, Any]:
    """A pattern as it was added, and what it was built from."""
    catalogue = detector._catalogue
    return {
        "pattern": to_plain(catalogue.running(name)),
        "scope": [to_plain(one) for one in catalogue.scope(name).values()],
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


def _dump_flat(detector: Composer, flat: FlatPatterns) -> list[dict[str, Any]]:
    return [
        _source(detector, name)
        | {
            "number": flat.number(name),
            "facts": list(flat.facts(name)),
            "kept": [[[dump_event(event) for event in row.events], *row[1:]] for row in flat.kept(name)],
        }
        for name in flat.names
    ]


def read(kind: type[C], data: bytes, **parts: Any) -> C:
    """A detector from a snapshot; matcher and measure are given anew."""
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
            raise InputError("this is the snapshot of a detector, not of a composer", hint="replay the events instead")
        detector._book.resume((number, Wanted(*map(from_plain, plain))) for number, *plain in known)
    for entry in state["flat"]:
        _load_flat(detector, entry)
    for entry in state["runs"]:
        _load_run(detector, entry)
    detector._numbers = state["numbers"]
    detector._now, detector._ranks = state["now"], state["ranks"]
    detector._intake.seen = state["seen"]
    for plain, hits in state["buffer"]:
        event = load_event(plain)
        detector._intake.hold(event, known_hits(event, hits) if hits is not None and detector._keeps_hits else None)
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


def _load_flat(detector: Composer, entry: dict[str, Any]) -> None:
    """Plain patterns go back to the compiled path, or to the general one if that is switched off."""
    subscription = _resume(detector, entry)
    name, facts, number = subscription.name, Facts(*entry["facts"]), entry["number"]
    kept = [KeptPattern(tuple(map(load_event, events)), tuple(ranks), *rest) for events, ranks, *rest in entry["kept"]]
    shape = detector._forms.known(subscription)
    if shape is None:
        shape = detector._forms.learn(subscription, build_plan(subscription, detector._catalogue.scope(name)))
    assert shape is not None  # it was plain when it was written
    if detector._flat is not None:
        detector._flat.add(name, shape, number=number, started=facts.started)
        detector._flat.load(name, kept, facts)
    else:
        run_general(detector, name, number=number, facts=facts, kept=kept, shape=shape)


def _decode(data: bytes) -> dict[str, Any]:
    try:
        state = msgspec.msgpack.decode(data, strict=False)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"this is not a snapshot: {error}", hint="it may be cut short") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError("this is not a snapshot of a detector")
    if state["version"] != VERSION:
        raise InputError(
            f"the snapshot has version {state['version']}, this is {VERSION}", hint="replay the events instead"
        )
    return state
