"""Why a pattern did not fire: how far its instances came, and what stopped them."""

from __future__ import annotations

from collections import Counter

from likewise.composite._plan import Node, SequenceNode
from likewise.composite._run import Run, Stop
from likewise.events import to_datetime


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


def _told(run: Run, stop: Stop) -> str:
    roles = ", ".join(f"{filled.role} = {filled.token.event.id or '?'}" for filled in stop.roles)
    when = to_datetime(stop.time).isoformat()
    return f"had {roles or 'nothing'}; {_waiting_for(run.plan.nodes[stop.node], stop.level)}{stop.why} ({when})"


def _waiting_for(node: Node, level: int) -> str:
    if isinstance(node, SequenceNode) and level < len(node.steps):
        return f"at {', '.join(sorted(node.steps[level].node.roles))}: "
    return ""
