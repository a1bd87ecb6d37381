"""Detections and states in words and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from likewise.composite.detection import Detection, Line
from likewise.composite.reasons.explain import PatternState
from likewise.events import Event, clock_text, iso_text

_WIDTH = 60
"""So much is shown of what an event says."""

__all__ = ["detection_lines", "detection_plain", "state_lines", "state_plain"]


def detection_plain(detection: Detection, *, trace: bool = False) -> dict[str, Any]:
    """A detection for JSON."""
    plain: dict[str, Any] = {
        "pattern": detection.pattern,
        "time": iso_text(detection.time),
        "start": iso_text(detection.start),
        "end": iso_text(detection.end),
        "probability": detection.probability,
        "events": {role: [event.id for event in events] for role, events in detection.events.items()},
    }
    if trace:
        plain["trace"] = [_line_plain(line) for line in detection.trace]
    return plain


def _line_plain(line: Line) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": line.role, "what": line.what}
    if line.probability is not None:
        plain["probability"] = line.probability
    if line.event is not None:
        plain["event"] = line.event
    for name in ("start", "time", "activated", "terminated"):
        value = getattr(line, name)
        if value is not None:
            plain[name] = iso_text(value)
    return plain


def detection_lines(detection: Detection, *, trace: bool = False) -> Iterator[str]:
    """A detection in words: one line, and with its trace one line per role."""
    roles = ", ".join(f"{role} = {' '.join(map(_name, events))}" for role, events in detection.events.items())
    sure = "" if detection.probability == 1.0 else f"  p = {detection.probability:.3f}"
    yield f"{clock_text(detection.time)}  {detection.pattern}{sure}  {roles}".rstrip()
    if trace:
        for line in detection.trace:
            yield f"    {_told(line)}"


def _name(event: Event) -> str:
    """A moment has no id: its time of day says which one it is."""
    if not event.id:
        return clock_text(event.span[1])[11:] if event.start is not None and not event.tuples else "?"
    return f"{event.id} ({_words(event)})" if event.tuples else event.id


def _words(event: Event) -> str:
    """What the event says, cut where a line would become too long."""
    said = ", ".join(f"{name}: {value}" for name, value in event.tuples)
    return said if len(said) <= _WIDTH else f"{said[: _WIDTH - 1].rstrip(' ,')}…"


def _told(line: Line) -> str:
    sure = "" if line.probability is None else f"  p = {line.probability:.3f}"
    if line.what == "condition":
        return f"{line.role}{sure}"
    if line.what in ("absence", "missing"):
        begin = clock_text(line.start if line.start is not None else line.time)
        return f"no {line.role} from {begin} to {clock_text(line.time)}{sure}"
    active = "from the start" if line.activated is None else f"from {clock_text(line.activated)}"
    until = "" if line.terminated is None else f" to {clock_text(line.terminated)}"
    name = "" if line.what == "time" else f" {line.event or '?'}"
    return f"{line.role}:{name} at {clock_text(line.time)}{sure}  (active {active}{until})"


def state_plain(state: PatternState) -> dict[str, Any]:
    """A state for JSON, with the instance that came furthest as a trace."""
    plain: dict[str, Any] = {
        "name": state.name,
        "held": state.held,
        "detected": state.detected,
        "dropped": state.dropped,
        "started": None if state.started is None else iso_text(state.started),
        "furthest": state.furthest,
        "stops": state.stops,
    }
    return plain | ({"trace": [_line_plain(line) for line in state.partial]} if state.partial else {})


def state_lines(states: list[PatternState]) -> Iterator[str]:
    """What each pattern holds, and why its instances stopped."""
    for state in states:
        yield f"{state.name}: {state.detected:,} detected, {state.held:,} held, {state.dropped:,} dropped"
        yield f"    furthest: {state.furthest}"
        for why, count in state.stops.items():
            yield f"    {count:,} x {why}"
