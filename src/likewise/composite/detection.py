"""Detections: which events completed a pattern, when, and with which probability."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Protocol

import msgspec

from likewise.composite.instance import FilledRole, Instance, RoleToken
from likewise.composite.plan.conditions import Condition
from likewise.composite.plan.nodes import (
    Absence,
    JointNode,
    LeafNode,
    Plan,
    PlanNode,
    SequenceNode,
    SilenceNode,
    TimeNode,
)
from likewise.events import Event, Instant

# The trace of a detection: each role, from its activation to the event that filled it.


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One role of a trace: active from `activated` to `terminated`, filled at `time` by `event`.

    `what` is `event`, `time` for a time event, `absence` for something that did not happen, `missing` for an event that
    was still awaited, or `condition` for a comparison by meaning.
    """

    role: str
    what: str
    time: Instant
    probability: float | None
    event: str | None = None
    start: Instant | None = None
    activated: Instant | None = None
    terminated: Instant | None = None


def trace_of(plan: Plan, instance: Instance) -> list[Line]:
    """The trace lines of a detection, in the order of the pattern."""
    return list(_walk(plan, instance, None, None))


def members_instance(
    plan: Plan,
    filled: Iterable[tuple[str, Event, float]],
    *,
    time: Instant,
    probability: float,
) -> Instance:
    """Build the instance of a compiled detection, which has one member per profile."""
    leaves = {node.role: node for node in plan.leaves}
    parts = []
    for rank, (name, event, chance) in enumerate(filled):
        start, end = event.span
        roles = (FilledRole(name, RoleToken(event, rank, end), chance),)
        parts.append(
            Instance(
                leaves[name].id, time=end, phase=0, first=end, start=start, end=end, probability=chance, roles=roles
            )
        )
    if isinstance(plan.root.node, LeafNode):
        return parts[0]
    return Instance(
        plan.root.node.id,
        time=time,
        phase=0,
        first=min(part.time for part in parts),
        start=min(part.start for part in parts),
        end=max(part.end for part in parts),
        probability=probability,
        roles=tuple(role for part in parts for role in part.roles),
        parts=tuple(parts),
    )


def _walk(plan: Plan, instance: Instance, activated: Instant | None, terminated: Instant | None) -> Iterator[Line]:
    node = plan.nodes[instance.node]
    if not instance.parts:
        yield _line(node, instance, activated, terminated)
        return
    for k, part in enumerate(instance.parts):
        opened, closed = activated, terminated
        if isinstance(node, SequenceNode) and k > 0:
            opened = instance.parts[k - 1].time
            closed = None if node.within is None else instance.parts[0].time + node.within
        elif isinstance(node, JointNode) and node.within is not None:
            earliest = min(other.time for other in instance.parts)
            closed = earliest + node.within if part.time > earliest else terminated
        yield from _walk(plan, part, opened, closed)
    if isinstance(node, SequenceNode | JointNode):
        yield from _by_meaning(node, instance)
        yield from _absences(node, instance)


def _by_meaning(node: SequenceNode | JointNode, instance: Instance) -> Iterator[Line]:
    """One line for the conditions decided by meaning, with the probability that all hold."""
    conditions = [condition for condition in _conditions(node) if condition.approximate]
    if conditions:
        probability = None if node.guards else _rest(instance)
        yield Line(" and ".join(map(str, conditions)), "condition", instance.time, probability)


def _conditions(node: SequenceNode | JointNode) -> list[Condition]:
    if isinstance(node, JointNode):
        return node.conditions
    return [condition for step in node.steps for condition in step.conditions]


def _absences(node: SequenceNode | JointNode, instance: Instance) -> Iterator[Line]:
    """Lines for the guards, with a probability where the rest of the instance determines it."""
    probability = None
    if len(node.guards) == 1 and not any(condition.approximate for condition in _conditions(node)):
        probability = _rest(instance)
    for guard in node.guards:
        low, high = _span(node, guard, instance)
        names = ", ".join(sorted(guard.node.roles))
        yield Line(names, "absence", high, 1.0 if instance.probability == 1.0 else probability, None, low, low, high)


def _rest(instance: Instance) -> float | None:
    """An instance's probability divided by that of its parts; None if theirs are unknown."""
    parts = prod(part.probability for part in instance.parts)
    return min(1.0, instance.probability / parts) if parts else None


def _span(node: SequenceNode | JointNode, guard: Absence, instance: Instance) -> tuple[Instant, Instant]:
    """The interval in which a guard must not happen."""
    parts, within = instance.parts, node.within or 0
    if isinstance(node, JointNode):
        times = [part.time for part in parts]
        return max(times) - within, min(times) + within
    if guard.after < 0:
        return parts[0].first - within, parts[0].first
    if guard.after == len(parts) - 1:
        return parts[-1].time, instance.time
    return parts[guard.after].time, parts[guard.after + 1].first


def partial_lines(filled: Iterable[tuple[str, Event | None, float]], awaited: str, time: Instant) -> list[Line]:
    """The trace lines of an incomplete instance: its filled roles, and the role it awaited until `time`."""
    lines = []
    for role, event, probability in filled:
        if event is not None:
            start, end = event.span
            lines.append(Line(role, "event" if event.id else "time", end, probability, event.id, start))
    if awaited:
        since = max((line.time for line in lines), default=time)
        lines.append(Line(awaited, "missing", time, None, None, since, since, time))
    return lines


def _line(node: PlanNode, instance: Instance, activated: Instant | None, terminated: Instant | None) -> Line:
    if instance.roles:
        filled = instance.roles[0]
        kind = "time" if isinstance(node, TimeNode) else "event"
        event = filled.token.event
        return Line(
            filled.role,
            kind,
            filled.token.time,
            filled.probability,
            event.id,
            event.start,
            activated,
            terminated,
        )
    absent = node.part if isinstance(node, SilenceNode) else node
    return Line(
        ", ".join(sorted(absent.roles)),
        "absence",
        instance.time,
        instance.probability,
        None,
        instance.start,
        instance.start,
        instance.time,
    )


class DetectionSource(Protocol):
    """Provides the plan of a pattern on demand."""

    @property
    def plan(self) -> Plan:
        """The plan of the pattern."""
        ...


class Detection(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A completed instance. `time` is when it was detected; `start` and `end` are the interval of its events."""

    pattern: str
    time: Instant
    start: Instant
    end: Instant
    probability: float
    names: tuple[str, ...]
    members: tuple[Event, ...]
    source: tuple[Plan | DetectionSource, Instance | tuple[float, ...] | None]
    """The plan, and the whole instance; or, if it ran compiled, each member's probability (None: all are certain)."""

    @classmethod
    def of(cls, plan: Plan, instance: Instance) -> Detection:
        """The detection of a root instance."""
        return cls(
            plan.name,
            instance.time,
            instance.start,
            instance.end,
            instance.probability,
            tuple([filled.role for filled in instance.roles]),
            tuple([filled.token.event for filled in instance.roles]),
            (plan, instance),
        )

    def __repr__(self) -> str:
        ids = ", ".join(event.id or "?" for event in self.members)
        return f"Detection({self.pattern!r}, events=[{ids}], probability={self.probability:.3f})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(role)}</td><td>{html.escape(event.id)}</td>"
            f"<td>{html.escape(', '.join(f'{name} = {value}' for name, value in event.tuples))}</td></tr>"
            for role, event in zip(self.names, self.members, strict=True)
        )
        return f"<b>{html.escape(repr(self))}</b><table>{rows}</table>"

    @property
    def events(self) -> dict[str, tuple[Event, ...]]:
        """The events by role; a repeated member has several."""
        out: dict[str, tuple[Event, ...]] = {}
        for name, event in zip(self.names, self.members, strict=True):
            out[name] = (*out.get(name, ()), event)
        return out

    @property
    def trace(self) -> list[Line]:
        """The trace: which event filled which role, when each profile was active, and the probabilities."""
        origin, known = self.source
        if isinstance(origin, Plan):
            assert isinstance(known, Instance)
            return trace_of(origin, known)
        assert not isinstance(known, Instance)
        chances = (1.0,) * len(self.members) if known is None else known
        filled = zip(self.names, self.members, chances, strict=True)
        return trace_of(
            origin.plan, members_instance(origin.plan, filled, time=self.time, probability=self.probability)
        )

    @property
    def signature(self) -> tuple[Any, ...]:
        """Equal for two detections of the same pattern, time, events and probability."""
        ids = tuple(
            (name, event.id, event.start, event.end) for name, event in zip(self.names, self.members, strict=True)
        )
        return (self.pattern, self.time, self.start, self.end, ids, round(self.probability, 9))


def ranked(detections: Iterable[Detection]) -> list[Detection]:
    """Sort detections by probability, highest first, then by time."""
    return sorted(detections, key=lambda detection: (-detection.probability, detection.time, detection.pattern))
