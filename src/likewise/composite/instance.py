"""Instances: events that fill some or all roles of a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from likewise.events import Event, Instant, Value

WeightedValue: TypeAlias = tuple[Value, float]
"""A value, and its probability relative to the best mapping."""

AttributeValues: TypeAlias = tuple[tuple[Value, ...], tuple[Any, ...]]
"""The values of an attribute, and their comparable forms."""


class Alternatives(Protocol):
    """An `or` node whose branches are kept as separate instances."""

    roles: frozenset[str]
    node_ids: frozenset[int]


class RoleToken:
    """One event in one pattern: its position in the stream, and whether a detection consumed it."""

    __slots__ = ("attribute_values", "consumed", "event", "rank", "time")

    def __init__(self, event: Event, rank: int, time: Instant, *, consumed: bool = False) -> None:
        self.event = event
        self.rank = rank
        self.time = time
        self.consumed = consumed
        # Cache for conditions, by attribute.
        self.attribute_values: dict[str, AttributeValues] | None = None


class FilledRole:
    """A role and the event that fills it."""

    __slots__ = ("mapped", "probability", "role", "token")

    def __init__(
        self,
        role: str,
        token: RoleToken,
        probability: float,
        mapped: dict[str, tuple[WeightedValue, ...]] | None = None,
    ) -> None:
        self.role = role
        self.token = token
        self.probability = probability
        self.mapped = mapped


class Instance:
    """A combination of events found by an operator.

    `time` is when it was complete; `phase` is 1 if a timer completed it. `first` is the time of its earliest event,
    which orders the steps of a sequence; `start` and `end` are the interval of its events. If the same events can be
    read as different branches of an `or`, `branch_probability` is that of the branches chosen here, and `step` is the
    position of the event at which the `or` was decided.
    """

    __slots__ = (
        "_ranks",
        "branch_probability",
        "end",
        "first",
        "node",
        "parts",
        "phase",
        "probability",
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
        roles: tuple[FilledRole, ...] = (),
        parts: tuple[Instance, ...] = (),
        branch_probability: float = 1.0,
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
        self.branch_probability = branch_probability
        self.step = step
        self._ranks: tuple[int, ...] | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The positions of its events in the stream, sorted; computed on first use."""
        if self._ranks is None:
            self._ranks = tuple(sorted([filled.token.rank for filled in self.roles if filled.token.rank >= 0]))
        return self._ranks

    @property
    def consumed(self) -> bool:
        """Whether an earlier detection consumed any of its events."""
        for filled in self.roles:  # noqa: SIM110  (hot loop: no generator)
            if filled.token.consumed:
                return True
        return False

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key of instances completed in the same step: earliest events first."""
        roles = tuple([(filled.role, filled.token.rank, filled.token.time) for filled in self.roles])
        return self.ranks, roles, self.start, -self.probability


def roles_of(parts: tuple[Instance, ...]) -> tuple[FilledRole, ...]:
    """The filled roles of all parts."""
    return tuple([filled for part in parts for filled in part.roles])


def joined(node: int, parts: tuple[Instance, ...], *, time: Instant, phase: int, probability: float) -> Instance:
    """Combine parts into one instance."""
    branch_probability, first, start, end = 1.0, parts[0].first, parts[0].start, parts[0].end
    for part in parts:
        # Hot loop: comparing costs a fifth of calling min and max.
        branch_probability *= part.branch_probability
        if part.first < first:  # noqa: PLR1730 - faster than min and max
            first = part.first
        if part.start < start:  # noqa: PLR1730 - faster than min and max
            start = part.start
        if part.end > end:  # noqa: PLR1730 - faster than min and max
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
        branch_probability=branch_probability,
    )


def changed(
    instance: Instance, *, time: Instant, phase: int, probability: float, branch_probability: float
) -> Instance:
    """A copy with another time and probability."""
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
        branch_probability=branch_probability,
        step=instance.step,
    )


def group_by_reading(instances: list[Instance], ors: Iterable[Alternatives]) -> list[list[Instance]]:
    """Group instances that differ only in the `or` branches by which they read the same events."""
    if len(instances) == 1:
        return [instances]
    groups: dict[Any, list[Instance]] = {}
    inside = frozenset().union(*[node.roles for node in ors])
    branches = [(node.roles, node.node_ids) for node in ors]
    for instance in instances:
        outside = [filled for filled in instance.roles if filled.role not in inside]
        others = tuple([(filled.role, filled.token.rank, filled.token.time) for filled in outside])
        same = tuple([(_events(instance, roles), _steps(instance, node_ids)) for roles, node_ids in branches])
        groups.setdefault((same, others), []).append(instance)
    return list(groups.values())


def _events(instance: Instance, roles: frozenset[str]) -> tuple[int, ...]:
    """The positions of the events of some roles, without time events."""
    ranks = [filled.token.rank for filled in instance.roles if filled.role in roles]
    return tuple(sorted([rank for rank in ranks if rank >= 0]))


def _steps(instance: Instance, node_ids: frozenset[int]) -> tuple[tuple[Instant, int, int], ...]:
    """When the parts found by an `or` were complete: different steps mean different instances."""
    if instance.node in node_ids:
        return ((instance.time, instance.phase, instance.step),)
    return tuple([step for part in instance.parts for step in _steps(part, node_ids)])


def merge_readings(readings: list[Instance]) -> Instance:
    """Merge alternative readings of the same events: the most likely one, with probability 1 - prod(1 - p).

    Factors common to all readings count once. Ties are broken by role names.
    """
    if len(readings) == 1:
        return readings[0]
    best = min(readings, key=_most_likely_first)
    common = max([reading.probability / reading.branch_probability for reading in readings])
    none_holds = 1.0
    for reading in readings:
        none_holds *= 1.0 - reading.probability / common
    return changed(
        best, time=best.time, phase=best.phase, probability=common * (1.0 - none_holds), branch_probability=1.0
    )


def _most_likely_first(instance: Instance) -> tuple[object, ...]:
    return -instance.probability, instance.order
