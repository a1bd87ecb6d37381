"""A detection: which events made a pattern true, when, and how surely."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from likewise.composite._instance import Instance
from likewise.composite._plan import Plan
from likewise.composite._trace import Line, flat_instance, trace_of
from likewise.events import Event, Instant


class Planned(Protocol):
    """Someone who can tell the plan, and how surely an event fills a role, when asked."""

    @property
    def plan(self) -> Plan:
        """The plan of the pattern."""
        ...

    @property
    def sure(self) -> Callable[[str, Event], float | None]:
        """How surely an event fills a role; None if that can no longer be told."""
        ...


class Detection(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A completed instance; `time` is when it was known, `start` and `end` are what its events span."""

    pattern: str
    time: Instant
    start: Instant
    end: Instant
    probability: float
    names: tuple[str, ...]
    members: tuple[Event, ...]
    source: tuple[Plan | Planned, Instance | None]

    @classmethod
    def of(cls, plan: Plan, instance: Instance) -> Detection:
        """What an instance of the root says."""
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
        said = "".join(
            f"<tr><td>{html.escape(role)}</td><td>{html.escape(event.id)}</td>"
            f"<td>{html.escape(', '.join(f'{name} = {value}' for name, value in event.tuples))}</td></tr>"
            for role, event in zip(self.names, self.members, strict=True)
        )
        return f"<b>{html.escape(repr(self))}</b><table>{said}</table>"

    @property
    def events(self) -> dict[str, tuple[Event, ...]]:
        """The events by role; a repeated member has several."""
        out: dict[str, tuple[Event, ...]] = {}
        for name, event in zip(self.names, self.members, strict=True):
            out[name] = (*out.get(name, ()), event)
        return out

    @property
    def trace(self) -> list[Line]:
        """Which event filled which role, when each profile was activated and terminated, and how surely."""
        origin, instance = self.source
        if isinstance(origin, Plan):
            assert instance is not None  # whoever knows the plan was there when the instance was made
            return trace_of(origin, instance)
        filled = list(zip(self.names, self.members, strict=True))
        sure = [1.0 if self.probability == 1.0 else origin.sure(name, event) for name, event in filled]
        made = flat_instance(origin.plan, filled, sure, time=self.time, probability=self.probability)
        return trace_of(origin.plan, made)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What makes two detections the same."""
        ids = tuple(
            (name, event.id, event.start, event.end) for name, event in zip(self.names, self.members, strict=True)
        )
        return (self.pattern, self.time, self.start, self.end, ids, round(self.probability, 9))


def ranked(detections: Iterable[Detection]) -> list[Detection]:
    """The surest first; of equally sure ones the earliest."""
    return sorted(detections, key=lambda found: (-found.probability, found.time, found.pattern))
