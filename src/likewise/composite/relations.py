"""Allen's thirteen relations between two intervals, and which of them are possible."""

from __future__ import annotations

from typing import Final, TypeAlias

from likewise.events import Instant
from likewise.language import Allen

__all__ = ["INVERSE", "NEEDS_DISTANCE", "NEEDS_LENGTH_LEFT", "NEEDS_LENGTH_RIGHT", "relation_of"]

Interval: TypeAlias = tuple[Instant, Instant]

_BY_EDGE: Final = {
    (-1, -1): Allen.BEFORE,
    (-1, 0): Allen.MEETS,
    (-1, 1): Allen.OVERLAPS,
    (1, -1): Allen.OVERLAPPED_BY,
    (1, 0): Allen.MET_BY,
    (1, 1): Allen.AFTER,
}

INVERSE: Final = {
    Allen.BEFORE: Allen.AFTER,
    Allen.AFTER: Allen.BEFORE,
    Allen.MEETS: Allen.MET_BY,
    Allen.MET_BY: Allen.MEETS,
    Allen.OVERLAPS: Allen.OVERLAPPED_BY,
    Allen.OVERLAPPED_BY: Allen.OVERLAPS,
    Allen.STARTS: Allen.STARTED_BY,
    Allen.STARTED_BY: Allen.STARTS,
    Allen.DURING: Allen.CONTAINS,
    Allen.CONTAINS: Allen.DURING,
    Allen.FINISHES: Allen.FINISHED_BY,
    Allen.FINISHED_BY: Allen.FINISHES,
    Allen.EQUALS: Allen.EQUALS,
}

NEEDS_DISTANCE: Final = frozenset(Allen) - {Allen.EQUALS, Allen.FINISHES, Allen.FINISHED_BY}
"""Relations whose two ends always differ: impossible within no time at all."""

NEEDS_LENGTH_LEFT: Final = frozenset(
    {
        Allen.MEETS,
        Allen.MET_BY,
        Allen.OVERLAPS,
        Allen.OVERLAPPED_BY,
        Allen.STARTED_BY,
        Allen.CONTAINS,
        Allen.FINISHED_BY,
    }
)
"""Relations in which the left side cannot be a point."""

NEEDS_LENGTH_RIGHT: Final = frozenset(INVERSE[relation] for relation in NEEDS_LENGTH_LEFT)
"""Relations in which the right side cannot be a point."""


def relation_of(left: Interval, right: Interval) -> Allen:
    """The one relation that holds; a point at an interval's edge starts or finishes it [001 sec III].

    >>> relation_of((1, 5), (5, 9)).value, relation_of((1, 5), (3, 9)).value, relation_of((5, 5), (5, 9)).value
    ('meets', 'overlaps', 'starts')
    """
    starts = (left[0] > right[0]) - (left[0] < right[0])
    ends = (left[1] > right[1]) - (left[1] < right[1])
    if starts == 0:
        return (Allen.EQUALS, Allen.STARTED_BY, Allen.STARTS)[ends]
    if ends == 0:
        return Allen.FINISHED_BY if starts < 0 else Allen.FINISHES
    if starts != ends:
        return Allen.CONTAINS if starts < 0 else Allen.DURING
    edge = (left[1], right[0]) if starts < 0 else (left[0], right[1])
    return _BY_EDGE[starts, (edge[0] > edge[1]) - (edge[0] < edge[1])]
