"""Reasons: why a pattern fired or did not, in words and as plain values for JSON."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from likewise.composite.compiled.patterns import FlatPatterns
from likewise.composite.detection import Detection, Line, partial_lines
from likewise.composite.general.run import Run, Stop
from likewise.composite.plan.nodes import PlanNode, SequenceNode
from likewise.events import Event, Instant, clock_text, iso_text
from likewise.matching import Explanation

# How far the instances of a pattern came, and what stopped them.


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
    """The state of a pattern on the compiled path, reported as on the general one."""
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
        return _stopped(run, stop)
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


def _stopped(run: Run, stop: Stop) -> str:
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


# Detections and states in words and as plain values.


_WIDTH = 60
"""So much is shown of what an event says."""


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
            yield f"    {_line_text(line)}"


def _name(event: Event) -> str:
    """A moment has no id: its time of day says which one it is."""
    if not event.id:
        return clock_text(event.span[1])[11:] if event.start is not None and not event.tuples else "?"
    return f"{event.id} ({_words(event)})" if event.tuples else event.id


def _words(event: Event) -> str:
    """What the event says, cut where a line would become too long."""
    said = ", ".join(f"{name}: {value}" for name, value in event.tuples)
    return said if len(said) <= _WIDTH else f"{said[: _WIDTH - 1].rstrip(' ,')}…"


def _line_text(line: Line) -> str:
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


# What one event is to the parts of a pattern.


@dataclass(frozen=True, slots=True, repr=False)
class PatternExplanation:
    """Each part beside the event, and the state of the pattern."""

    pattern: str
    event: str
    parts: tuple[tuple[str, Explanation], ...]
    state: PatternState
    lacks: tuple[tuple[str, str], ...] = ()
    """Parts that the event answers, and attributes of theirs that a condition asks for and it does not have."""

    def __repr__(self) -> str:
        answered = "answers a part" if self.matched else "answers no part"
        return f"<PatternExplanation: {self.event} {answered} of {self.pattern}, score {self.score:.3f}>"

    @property
    def matched(self) -> bool:
        """Whether the event answers any part."""
        return any(part.matched for _, part in self.parts)

    @property
    def score(self) -> float:
        """How well it answers the part that it answers best."""
        return max((part.score for _, part in self.parts), default=0.0)

    @property
    def why_not(self) -> str:
        """What the best part lacks; empty if one is answered."""
        if self.matched or not self.parts:
            return ""
        role, part = max(self.parts, key=lambda each: each[1].score)
        return f"{role}: {part.why_not}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        parts = {role: part.as_dict() for role, part in self.parts}
        return {
            "pattern": self.pattern,
            "event": self.event,
            "matched": self.matched,
            "parts": parts,
            "lacks": [list(each) for each in self.lacks],
            "state": state_plain(self.state),
        }

    def text(self, *, full: bool = False) -> str:
        """For people: what the event is to each part, then how far the pattern came and what stopped it."""
        return "\n".join([*self.event_lines(full=full), *state_lines([self.state])])

    def event_lines(self, *, full: bool = False) -> list[str]:
        """What the event is to each part."""
        answered = [role for role, part in self.parts if part.matched]
        what = f"answers {' and '.join(answered)}" if answered else "answers no part"
        lines = [f"{self.event} {what} of {self.pattern}"]
        for _, part in self.parts:
            lines += [f"  {line}" for line in part.text(full=full).splitlines()]
        for role, attribute in self.lacks:
            lines.append(f"  {role}: a condition asks for {attribute!r}, which {self.event} does not have")
        return lines

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"
