"""Instances: events that fill the roles of a pattern, in part or in whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from likewise.events import Event, Instant, Value

Weighted: TypeAlias = tuple[Value, float]
"""A value and how likely it is the one meant, against the best mapping."""

Asked: TypeAlias = tuple[tuple[Value, ...], tuple[Any, ...]]
"""The values of an attribute, and the same as they compare."""


class Alternatives(Protocol):
    """An `or` whose branches stay apart."""

    roles: frozenset[str]
    makers: frozenset[int]


class RoleToken:
    """One event as one pattern sees it: its place in the order, and whether a detection consumed it."""

    __slots__ = ("asked", "event", "rank", "taken", "time")

    def __init__(self, event: Event, rank: int, time: Instant, *, taken: bool = False) -> None:
        self.event = event
        self.rank = rank
        self.time = time
        self.taken = taken
        # What conditions asked of the event, by attribute: they ask again and again.
        self.asked: dict[str, Asked] | None = None


class Filled:
    """A role with the event that fills it."""

    __slots__ = ("mapped", "probability", "role", "token")

    def __init__(
        self, role: str, token: RoleToken, probability: float, mapped: dict[str, tuple[Weighted, ...]] | None = None
    ) -> None:
        self.role = role
        self.token = token
        self.probability = probability
        self.mapped = mapped


class Instance:
    """Whatever an operator found; `time` is when it is known, `phase` 1 if a timer completed it.

    `first` is the time of its earliest event, by which a sequence tells what came after what;
    `start` and `end` are the interval that its events span. `reading` is the probability of the branches of `or` by
    which its events are read, where there are other ways to read the same events: `step` is the place of the event in
    whose step the `or` was known.
    """

    __slots__ = (
        "_ranks",
        "end",
        "first",
        "node",
        "parts",
        "phase",
        "probability",
        "reading",
        "roles",
        "start",
        "step",
        "time",
    )

    def __init__(
        self,
        node: int,
        *,
        time: Instant,
        phase: int,
        first: Instant,
        start: Instant,
        end: Instant,
        probability: float,
        roles: tuple[Filled, ...] = (),
        parts: tuple[Instance, ...] = (),
        reading: float = 1.0,
        step: int = -1,
    ) -> None:
        self.node = node
        self.time = time
        self.phase = phase
        self.first = first
        self.start = start
        self.end = end
        self.probability = probability
        self.roles = roles
        self.parts = parts
        self.reading = reading
        self.step = step
        self._ranks: tuple[int, ...] | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The places of its events in the order of all; most instances are never asked."""
        if self._ranks is None:
            self._ranks = tuple(sorted([filled.token.rank for filled in self.roles if filled.token.rank >= 0]))
        return self._ranks

    @property
    def taken(self) -> bool:
        """Whether an earlier detection consumed any of its events."""
        for filled in self.roles:  # noqa: SIM110  (asked of every instance: no generator)
            if filled.token.taken:
                return True
        return False

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts instances that become known in the same step: earliest events first."""
        roles = tuple([(filled.role, filled.token.rank, filled.token.time) for filled in self.roles])
        return self.ranks, roles, self.start, -self.probability


def roles_of(parts: tuple[Instance, ...]) -> tuple[Filled, ...]:
    """All roles that parts fill."""
    return tuple([filled for part in parts for filled in part.roles])


def joined(node: int, parts: tuple[Instance, ...], *, time: Instant, phase: int, probability: float) -> Instance:
    """The instance that parts make together."""
    reading, first, start, end = 1.0, parts[0].first, parts[0].start, parts[0].end
    for part in parts:
        # Made for every instance: comparing costs a fifth of calling min and max.
        reading *= part.reading
        if part.first < first:  # noqa: PLR1730 - quicker than min and max
            first = part.first
        if part.start < start:  # noqa: PLR1730 - quicker than min and max
            start = part.start
        if part.end > end:  # noqa: PLR1730 - quicker than min and max
            end = part.end
    return Instance(
        node,
        time=time,
        phase=phase,
        first=first,
        start=start,
        end=end,
        probability=probability,
        roles=roles_of(parts),
        parts=parts,
        reading=reading,
    )


def changed(instance: Instance, *, time: Instant, phase: int, probability: float, reading: float) -> Instance:
    """The same events, known at another time or with another probability."""
    return Instance(
        instance.node,
        time=time,
        phase=phase,
        first=instance.first,
        start=instance.start,
        end=instance.end,
        probability=probability,
        roles=instance.roles,
        parts=instance.parts,
        reading=reading,
        step=instance.step,
    )


def readings(found: list[Instance], ors: Iterable[Alternatives]) -> list[list[Instance]]:
    """Instances that differ only in how each of these `or` reads the same events, together."""
    if len(found) == 1:
        return [found]
    groups: dict[Any, list[Instance]] = {}
    inside = frozenset().union(*[one.roles for one in ors])
    sought = [(one.roles, one.makers) for one in ors]
    for instance in found:
        others = tuple([(one.role, one.token.rank, one.token.time) for one in instance.roles if one.role not in inside])
        same = tuple([(_events(instance, roles), _steps(instance, makers)) for roles, makers in sought])
        groups.setdefault((same, others), []).append(instance)
    return list(groups.values())


def _events(instance: Instance, roles: frozenset[str]) -> tuple[int, ...]:
    """The places of the events of some roles; a tick of the clock is no event."""
    ranks = [one.token.rank for one in instance.roles if one.role in roles]
    return tuple(sorted([rank for rank in ranks if rank >= 0]))


def _steps(instance: Instance, makers: frozenset[int]) -> tuple[tuple[Instant, int, int], ...]:
    """When that which an `or` found was known: what is known in another step is another instance."""
    if instance.node in makers:
        return ((instance.time, instance.phase, instance.step),)
    return tuple([step for part in instance.parts for step in _steps(part, makers)])


def merged(ways: list[Instance]) -> Instance:
    """One instance for all ways to read the same events: read as is most likely, with 1 - prod(1 - p) over the ways.

    What all ways have in common counts once. Of equally likely ones the names of the roles decide.
    """
    if len(ways) == 1:
        return ways[0]
    best = min(ways, key=_likely)
    common = max([way.probability / way.reading for way in ways])
    none = 1.0
    for way in ways:
        none *= 1.0 - way.probability / common
    return changed(best, time=best.time, phase=best.phase, probability=common * (1.0 - none), reading=1.0)


def _likely(instance: Instance) -> tuple[object, ...]:
    return -instance.probability, instance.order
