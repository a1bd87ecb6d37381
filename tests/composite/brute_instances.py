"""Instances as the definition knows them: plain values, and what can be asked of patterns and of two of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from likewise.events import Event
from likewise.language import _model as m

DAY = 86_400_000_000
INF = math.inf
Step = tuple[float, int, int]


@dataclass(frozen=True)
class Found:
    """One instance: when it is known, the times it spans, which event (by rank) fills which role."""

    time: int
    phase: int
    first: int
    start: int
    end: int
    roles: tuple[tuple[str, int | None, Event], ...]
    p: float

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(rank for _, rank, _ in self.roles if rank is not None))

    @property
    def step(self) -> Step:
        return (self.time, 0, max(self.ranks)) if self.phase == 0 else (self.time, 1, 0)

    @property
    def order(self) -> tuple[object, ...]:
        roles = tuple((a, -1 if r is None else r, e.end) for a, r, e in self.roles)
        return (self.step, self.ranks, roles, self.start, -self.p)


def values(event: Event, attribute: str) -> list[object]:
    return [v for name, v in event.tuples if name == attribute]


def top(role: str) -> str:
    """The name that a pattern itself gives; what stands behind a dot is inside a name."""
    return role.split(".", maxsplit=1)[0]


def aliases(node: m.Pattern) -> set[str]:
    """The roles a positive or negated node speaks of."""
    match node:
        case m.Member(alias=a) | m.TimeEvent(alias=a) | m.Reference(alias=a):
            return {a} if a else set()
        case m.Negation(part=p) | m.Selection(part=p) | m.Repetition(part=p):
            return aliases(p)
        case m.Relation(left=a, right=b):
            return aliases(a) | aliases(b)
        case _:
            return set().union(*(aliases(p) for p in node.parts))


def children(node: m.Pattern) -> list[m.Pattern]:
    match node:
        case m.Negation(part=p) | m.Selection(part=p) | m.Repetition(part=p):
            return [p]
        case m.Relation(left=a, right=b):
            return [a, b]
        case m.Member() | m.TimeEvent() | m.Reference():
            return []
        case _:
            return list(node.parts)


def counted_inside(node: m.Pattern, alias: str) -> bool:
    """Whether a count further inside has the member."""
    below = [child for child in (node, *children(node)) if alias in aliases(child)]
    counts = any(isinstance(child, m.Selection | m.Repetition) for child in below)
    return counts or any(counted_inside(child, alias) for child in children(node))


def joined(parts: list[Found], time: int, phase: int, p: float) -> Found:
    roles = tuple(r for f in parts for r in f.roles)
    return Found(
        time,
        phase,
        min(f.first for f in parts),
        min(f.start for f in parts),
        max(f.end for f in parts),
        roles,
        p,
    )


def allen(a: Found, b: Found) -> m.Allen:
    """Which of the thirteen relations holds; a point at an interval's edge starts or finishes it."""

    def sign(x: int, y: int) -> int:
        return (x > y) - (x < y)

    starts, ends = sign(a.start, b.start), sign(a.end, b.end)
    if starts == 0:
        return {0: m.Allen.EQUALS, -1: m.Allen.STARTS, 1: m.Allen.STARTED_BY}[ends]
    if ends == 0:
        return m.Allen.FINISHED_BY if starts < 0 else m.Allen.FINISHES
    if starts < 0 < ends:
        return m.Allen.CONTAINS
    if ends < 0 < starts:
        return m.Allen.DURING
    if starts < 0:
        return {-1: m.Allen.BEFORE, 0: m.Allen.MEETS, 1: m.Allen.OVERLAPS}[sign(a.end, b.start)]
    return {1: m.Allen.AFTER, 0: m.Allen.MET_BY, -1: m.Allen.OVERLAPPED_BY}[sign(a.start, b.end)]


def nth(node: m.Selection, found: list[Found]) -> list[Found]:
    if node.within is None:
        return found[node.index - 1 : node.index]
    out = []
    while found:
        run = [f for f in found if f.time <= found[0].time + node.within]
        out += run[node.index - 1 : node.index]
        found = found[len(run) :]
    return out


def rows(node: m.Repetition, found: list[Found]) -> list[Found]:
    within = INF if node.within is None else node.within
    out = []
    for i in range(len(found)):
        for size in range(node.least, min(node.most or len(found), len(found) - i) + 1):
            run = found[i : i + size]
            in_a_row = all(a.time < b.first for a, b in itertools.pairwise(run))
            if in_a_row and run[-1].time - run[0].time <= within:
                out.append(joined(run, run[-1].time, run[-1].phase, math.prod(f.p for f in run)))
    return out


def compare(b: m.Binding, x: object, y: object, relate: Callable[[str, str], float] | None) -> float:
    if b.approximate:
        assert relate is not None
        return relate(str(x), str(y))
    shift = b.right.offset if isinstance(b.right, m.Field) else 0.0
    if b.left.offset:
        x = x + b.left.offset  # type: ignore[operator]
    if shift:
        y = y + shift  # type: ignore[operator]
    return float(
        {
            "=": lambda: x == y,
            "!=": lambda: x != y,
            "<": lambda: x < y,  # type: ignore[operator]
            "<=": lambda: x <= y,  # type: ignore[operator]
            ">": lambda: x > y,  # type: ignore[operator]
            ">=": lambda: x >= y,  # type: ignore[operator]
        }[b.operator]()
    )
