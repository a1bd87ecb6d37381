"""A detection: which events made a pattern true, when, and how surely."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from likewise.composite._instance import Instance
from likewise.composite._plan import Plan
from likewise.composite._trace import Line, flat_instance, trace_of
from likewise.events import Event, Instant


class Planned(Protocol):
    """Someone who can tell the plan when it is asked for."""

    @property
    def plan(self) -> Plan:
        """The plan of the pattern."""
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
        plan = origin if isinstance(origin, Plan) else origin.plan
        return trace_of(plan, instance or flat_instance(plan, self.names, self.members, self.time))

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
