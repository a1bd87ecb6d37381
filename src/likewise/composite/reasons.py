"""Reasons: why a pattern did or did not fire, as text and as plain values for JSON."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from likewise.composite.compiled.patterns import CompiledPatterns
from likewise.composite.detection import Detection, Line, partial_lines
from likewise.composite.general.run import Run, Stop
from likewise.composite.plan.nodes import PlanNode, SequenceNode
from likewise.events import Event, Instant, clock_text, iso_text
from likewise.matching import Explanation

# How far the instances of a pattern came, and what stopped them.


class PatternState(msgspec.Struct, frozen=True):
    """The counts of a pattern, its furthest incomplete instance, and why instances stopped."""

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


def compiled_state(compiled: CompiledPatterns, name: str) -> PatternState:
    """The state of a pattern on the compiled path, in the same form."""
    shape, totals, furthest = compiled.shape(name), compiled.counts(name), compiled.furthest(name)
    names = [role.name for role in shape.roles]

    def at(level: int) -> str:
        return f"at {names[level]}: " if not shape.joint and 0 < level < len(names) else ""

    counts: Counter[str] = Counter()
    for (level, why), count in compiled.stops(name).items():
        counts[f"{at(level)}{why}"] += count
    if furthest is not None:
        filled = zip(furthest.names, furthest.events, strict=True)
        reached = _had(filled, at(furthest.level), furthest.why, furthest.time)
    else:
        reached = _not_stopped(totals.held, totals.detected)
    stops = dict(counts.most_common())
    partial: list[Line] = []
    if furthest is not None:
        roles = zip(furthest.names, furthest.events, furthest.chances, strict=True)
        awaited = names[furthest.level] if 0 < furthest.level < len(names) and not shape.joint else ""
        partial = partial_lines(roles, awaited, furthest.time)
    return PatternState(name, totals.held, totals.detected, totals.dropped, totals.started, reached, stops, partial)


def stops_of(run: Run) -> dict[str, int]:
    """Why incomplete instances ended, most frequent reason first."""
    counts: Counter[str] = Counter()
    for (node, level, why), count in run.record.stops.items():
        counts[f"{_waiting_for(run.plan.nodes[node], level)}{why}"] += count
    return dict(counts.most_common())


def furthest_of(run: Run) -> str:
    """The furthest incomplete instance, in words."""
    stop = run.record.furthest
    if stop is not None:
        return _stopped(run, stop)
    return _not_stopped(run.size(), run.detected)


def _not_stopped(held: int, detected: int) -> str:
    if held:
        return "instances wait for their next event"
    return "detected all that began" if detected else "no event matched its first member"


def partial_of(run: Run) -> list[Line]:
    """The furthest incomplete instance as a trace."""
    stop = run.record.furthest
    if stop is None:
        return []
    filled = ((role.role, role.token.event, role.probability) for role in stop.roles)
    return partial_lines(filled, _awaited(run.plan.nodes[stop.node], stop.level), stop.time)


def _stopped(run: Run, stop: Stop) -> str:
    filled = ((role.role, role.token.event) for role in stop.roles)
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


# Detections and states as text and as plain values.


_WIDTH = 60
"""The longest text of an event's tuples."""


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
    """A detection as text: one line, and with `trace` one more line per role."""
    roles = ", ".join(f"{role} = {' '.join(map(_name, events))}" for role, events in detection.events.items())
    probability = "" if detection.probability == 1.0 else f"  p = {detection.probability:.3f}"
    yield f"{clock_text(detection.time)}  {detection.pattern}{probability}  {roles}".rstrip()
    if trace:
        for line in detection.trace:
            yield f"    {_line_text(line)}"


def _name(event: Event) -> str:
    """An event's id and tuples; a time event has no id and shows its time of day."""
    if not event.id:
        return clock_text(event.span[1])[11:] if event.start is not None and not event.tuples else "?"
    return f"{event.id} ({_words(event)})" if event.tuples else event.id


def _words(event: Event) -> str:
    """The event's tuples, shortened to fit a line."""
    text = ", ".join(f"{name}: {value}" for name, value in event.tuples)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1].rstrip(' ,')}…"


def _line_text(line: Line) -> str:
    probability = "" if line.probability is None else f"  p = {line.probability:.3f}"
    if line.what == "condition":
        return f"{line.role}{probability}"
    if line.what in ("absence", "missing"):
        begin = clock_text(line.start if line.start is not None else line.time)
        return f"no {line.role} from {begin} to {clock_text(line.time)}{probability}"
    active = "from the start" if line.activated is None else f"from {clock_text(line.activated)}"
    until = "" if line.terminated is None else f" to {clock_text(line.terminated)}"
    name = "" if line.what == "time" else f" {line.event or '?'}"
    return f"{line.role}:{name} at {clock_text(line.time)}{probability}  (active {active}{until})"


def state_plain(state: PatternState) -> dict[str, Any]:
    """A state for JSON, with the furthest instance as a trace."""
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
    """Pattern states as text: counts, the furthest instance, and why instances stopped."""
    for state in states:
        yield f"{state.name}: {state.detected:,} detected, {state.held:,} held, {state.dropped:,} dropped"
        yield f"    furthest: {state.furthest}"
        for why, count in state.stops.items():
            yield f"    {count:,} x {why}"


# How one event relates to the parts of a pattern.


@dataclass(frozen=True, slots=True, repr=False)
class PatternExplanation:
    """How an event matches each part, and the state of the pattern."""

    pattern: str
    event: str
    parts: tuple[tuple[str, Explanation], ...]
    state: PatternState
    lacks: tuple[tuple[str, str], ...] = ()
    """Matched parts with an attribute that a condition needs and the event does not have."""

    def __repr__(self) -> str:
        result = "answers a part" if self.matched else "answers no part"
        return f"<PatternExplanation: {self.event} {result} of {self.pattern}, score {self.score:.3f}>"

    @property
    def matched(self) -> bool:
        """Whether the event matches any part."""
        return any(part.matched for _, part in self.parts)

    @property
    def score(self) -> float:
        """The score of the best part."""
        return max((part.score for _, part in self.parts), default=0.0)

    @property
    def why_not(self) -> str:
        """Why the best part does not match; empty if a part matches."""
        if self.matched or not self.parts:
            return ""
        role, part = max(self.parts, key=lambda named: named[1].score)
        return f"{role}: {part.why_not}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        parts = {role: part.as_dict() for role, part in self.parts}
        return {
            "pattern": self.pattern,
            "event": self.event,
            "matched": self.matched,
            "parts": parts,
            "lacks": [list(lack) for lack in self.lacks],
            "state": state_plain(self.state),
        }

    def text(self, *, full: bool = False) -> str:
        """For people: how the event matches each part, how far the pattern came, and what stopped it."""
        return "\n".join([*self.event_lines(full=full), *state_lines([self.state])])

    def event_lines(self, *, full: bool = False) -> list[str]:
        """How the event matches each part, as lines of text."""
        roles = [role for role, part in self.parts if part.matched]
        matched = f"answers {' and '.join(roles)}" if roles else "answers no part"
        lines = [f"{self.event} {matched} of {self.pattern}"]
        for _, part in self.parts:
            lines += [f"  {line}" for line in part.text(full=full).splitlines()]
        for role, attribute in self.lacks:
            lines.append(f"  {role}: a condition asks for {attribute!r}, which {self.event} does not have")
        return lines

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"
