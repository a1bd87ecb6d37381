"""Why a pattern did not fire: how far its instances came, and what stopped them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from likewise.composite.compiled.patterns import FlatPatterns
from likewise.composite.detection import Line, partial_lines
from likewise.composite.general.run import Run, Stop
from likewise.composite.plan.nodes import PlanNode, SequenceNode
from likewise.events import Event, Instant, clock_text


class PatternState(msgspec.Struct, frozen=True):
    """What a pattern holds and what became of its instances."""

    name: str
    held: int
    detected: int
    dropped: int
    started: Instant | None
    furthest: str
    stops: dict[str, int]
    partial: list[Line] = []


def run_state(run: Run) -> PatternState:
    """The state of a pattern on the general path."""
    return PatternState(
        run.plan.name,
        run.size(),
        run.detected,
        run.dropped,
        run.started,
        furthest_of(run),
        stops_of(run),
        partial_of(run),
    )


def flat_state(flat: FlatPatterns, name: str) -> PatternState:
    """The state of a pattern on the compiled path, told as on the general one."""
    shape, facts, furthest = flat.shape(name), flat.facts(name), flat.furthest(name)
    names = [role.name for role in shape.roles]

    def at(level: int) -> str:
        return f"at {names[level]}: " if not shape.joint and 0 < level < len(names) else ""

    counts: Counter[str] = Counter()
    for (level, why), count in flat.stops(name).items():
        counts[f"{at(level)}{why}"] += count
    if furthest is not None:
        told = _had(zip(furthest.names, furthest.events, strict=True), at(furthest.level), furthest.why, furthest.time)
    else:
        told = _not_stopped(facts.held, facts.detected)
    stops = dict(counts.most_common())
    partial: list[Line] = []
    if furthest is not None:
        filled = ((role, event, 1.0) for role, event in zip(furthest.names, furthest.events, strict=True))
        awaited = names[furthest.level] if 0 < furthest.level < len(names) and not shape.joint else ""
        partial = partial_lines(filled, awaited, furthest.time)
    return PatternState(name, facts.held, facts.detected, facts.dropped, facts.started, told, stops, partial)


def stops_of(run: Run) -> dict[str, int]:
    """Reasons why partial instances ended, most frequent first."""
    counts: Counter[str] = Counter()
    for (node, level, why), count in run.record.stops.items():
        counts[f"{_waiting_for(run.plan.nodes[node], level)}{why}"] += count
    return dict(counts.most_common())


def furthest_of(run: Run) -> str:
    """The partial instance that came furthest, in words."""
    stop = run.record.furthest
    if stop is not None:
        return _told(run, stop)
    return _not_stopped(run.size(), run.detected)


def _not_stopped(held: int, detected: int) -> str:
    if held:
        return "instances wait for their next event"
    return "detected all that began" if detected else "no event matched its first member"


def partial_of(run: Run) -> list[Line]:
    """The same as a trace."""
    stop = run.record.furthest
    if stop is None:
        return []
    filled = ((one.role, one.token.event, one.probability) for one in stop.roles)
    return partial_lines(filled, _awaited(run.plan.nodes[stop.node], stop.level), stop.time)


def _told(run: Run, stop: Stop) -> str:
    filled = ((one.role, one.token.event) for one in stop.roles)
    return _had(filled, _waiting_for(run.plan.nodes[stop.node], stop.level), stop.why, stop.time)


def _had(filled: Iterable[tuple[str, Event | None]], at: str, why: str, time: Instant) -> str:
    roles = ", ".join(f"{role} = {(event and event.id) or '?'}" for role, event in filled)
    return f"had {roles or 'nothing'}; {at}{why} ({clock_text(time)})"


def _waiting_for(node: PlanNode, level: int) -> str:
    awaited = _awaited(node, level)
    return f"at {awaited}: " if awaited else ""


def _awaited(node: PlanNode, level: int) -> str:
    if isinstance(node, SequenceNode) and level < len(node.steps):
        return ", ".join(sorted(node.steps[level].node.roles))
    return ""
