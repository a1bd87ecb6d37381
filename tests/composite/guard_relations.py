"""Allen's thirteen relations as in docs/composite.md: a point at an edge starts or finishes, equal points are equal."""

from __future__ import annotations

from likewise.language import Allen

INVERSE = {
    Allen.BEFORE: Allen.AFTER,
    Allen.MEETS: Allen.MET_BY,
    Allen.OVERLAPS: Allen.OVERLAPPED_BY,
    Allen.STARTS: Allen.STARTED_BY,
    Allen.DURING: Allen.CONTAINS,
    Allen.FINISHES: Allen.FINISHED_BY,
}


def one_way(left: tuple[int, int], right: tuple[int, int]) -> Allen | None:
    """The relation, if it is one of those that the other six are the inverse of."""
    (a, b), (c, d) = left, right
    if a == c:
        return Allen.STARTS if b < d else None
    if b == d:
        return Allen.FINISHES if a > c else None
    if a > c and b < d:
        return Allen.DURING
    if b < c:
        return Allen.BEFORE
    if b == c:
        return Allen.MEETS
    return Allen.OVERLAPS if a < c < b < d else None


def allen(left: tuple[int, int], right: tuple[int, int]) -> Allen:
    """The one relation between two intervals.

    >>> allen((1, 1), (1, 3)), allen((1, 3), (3, 3)), allen((2, 2), (2, 2))
    (<Allen.STARTS: 'starts'>, <Allen.FINISHED_BY: 'finished by'>, <Allen.EQUALS: 'equals'>)
    """
    if left == right:
        return Allen.EQUALS
    return one_way(left, right) or INVERSE[one_way(right, left) or Allen.EQUALS]
