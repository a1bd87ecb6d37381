"""Values of the reference implementation: instances, when they are known, and activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import NamedTuple

from guard_conditions import Roles

from likewise.events import Event
from likewise.language import Duplicates, Member, Negation, Pattern, Reference, TimeEvent

Known = tuple[int, float]
"""When something is known: its time and the position of the event that decides it; a timer comes after all events."""


class Active(NamedTuple):
    """The activation of an operator: a moment, and the position of the first event that it considers."""

    moment: int
    position: int
    whole: bool = False


@dataclass(frozen=True)
class Found:
    """One instance: `first` is the time of its first event, `readings` are the ways to fill its roles.

    `place` is its place among those that are counted.
    """

    time: int
    known: Known
    first: int
    start: int
    end: int
    readings: tuple[Roles, ...]
    events: frozenset[Known] = frozenset()
    place: int = 0

    @property
    def reading(self) -> Roles:
        """The reported reading: the first by role names, then by events."""
        return min(self.readings, key=roles_in_order)

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: earliest events first; for equal events, the reading."""
        return (self.known, sorted(self.events), roles_in_order(self.reading))


class SeenEvent(Event, frozen=True, gc=False):
    """An event with its place in the trace."""

    place: int = -1


def roles_in_order(roles: Roles) -> list[tuple[str, int, int | None]]:
    return [(role, event.place if isinstance(event, SeenEvent) else -1, event.end) for role, event in roles]


def joined(parts: Sequence[Found], *, time: int | None = None, known: Known | None = None) -> Found:
    """Several instances as one."""
    return Found(
        max(p.time for p in parts) if time is None else time,
        max(p.known for p in parts) if known is None else known,
        min(p.first for p in parts),
        min(p.start for p in parts),
        max(p.end for p in parts),
        tuple(sum(roles, ()) for roles in product(*(p.readings for p in parts))),
        frozenset().union(*(p.events for p in parts)),
    )


def until(moment: int) -> Known:
    """After all that happens at a moment."""
    return (moment, inf)


def duplicates_of(part: Pattern) -> Duplicates:
    chosen = part.duplicates if isinstance(part, Member | Reference) else None
    return chosen or Duplicates()


def label_of(part: Pattern) -> str:
    if isinstance(part, Reference):
        return part.alias or part.name
    return (part.alias or "") if isinstance(part, Member | TimeEvent) else ""


def absent(part: Pattern) -> bool:
    """Whether a part of a sequence or an `and` is a negation without its own duration."""
    return isinstance(part, Negation) and part.within is None
