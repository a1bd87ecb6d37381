"""Why a pattern did not fire: how far its instances came, and what stopped them."""

from __future__ import annotations

from collections import Counter

import msgspec

from likewise.composite._flat import FlatPatterns
from likewise.composite._plan import Node, SequenceNode
from likewise.composite._run import Run, Stop
from likewise.composite._trace import Line, partial_lines
from likewise.events import Instant, to_datetime


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
        run.plan.name, run.size(), run.detected, run.dropped, run.started, furthest_of(run), stops_of(run), partial_of(run)
    )


def flat_state(flat: FlatPatterns, name: str) -> PatternState:
    """The state of a pattern on the compiled path, which counts but keeps no examples."""
    shape, facts = flat.shape(name), flat.facts(name)
    over = f"at {shape.second.name}: the window was over"
    if facts.expired:
        furthest = f"had {shape.first.name}; {over}"
    elif facts.held:
        furthest = "instances wait for their next event"
    else:
        furthest = "detected all that began" if facts.detected else "no event matched its first member"
    stops = {over: facts.expired} if facts.expired else {}
    return PatternState(name, facts.held, facts.detected, facts.dropped, facts.started, furthest, stops)


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
    if run.size():
        return "instances wait for their next event"
    return "detected all that began" if run.detected else "no event matched its first member"


def partial_of(run: Run) -> list[Line]:
    """The same as a trace."""
    stop = run.record.furthest
    if stop is None:
        return []
    filled = ((one.role, one.token.event, one.probability) for one in stop.roles)
    return partial_lines(filled, _awaited(run.plan.nodes[stop.node], stop.level), stop.time)


def _told(run: Run, stop: Stop) -> str:
    roles = ", ".join(f"{filled.role} = {filled.token.event.id or '?'}" for filled in stop.roles)
    when = to_datetime(stop.time).isoformat()
    return f"had {roles or 'nothing'}; {_waiting_for(run.plan.nodes[stop.node], stop.level)}{stop.why} ({when})"


def _waiting_for(node: Node, level: int) -> str:
    awaited = _awaited(node, level)
    return f"at {awaited}: " if awaited else ""


def _awaited(node: Node, level: int) -> str:
    if isinstance(node, SequenceNode) and level < len(node.steps):
        return ", ".join(sorted(node.steps[level].node.roles))
    return ""
