"""Instances of the reference implementation, and functions of patterns and of pairs of instances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from likewise.events import Event
from likewise.language import model as m

DAY = 86_400_000_000
INF = math.inf
Step = tuple[float, int, int]


@dataclass(frozen=True)
class Found:
    """One instance: when it is known, the times it spans, which event (by rank) fills which role.

    `by` is the event in whose step it is known, `read` says when each `or` that may be read in other ways was.
    """

    time: int
    phase: int
    first: int
    start: int
    end: int
    roles: tuple[tuple[str, int | None, Event], ...]
    p: float
    reading: float = 1.0
    by: int | None = None
    read: tuple[tuple[int, Step], ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(rank for _, rank, _ in self.roles if rank is not None))

    @property
    def step(self) -> Step:
        if self.phase:
            return (self.time, 1, 0)
        return (self.time, 0, max(self.ranks) if self.by is None else self.by)

    @property
    def order(self) -> tuple[object, ...]:
        roles = tuple((a, -1 if r is None else r, e.end) for a, r, e in self.roles)
        return (self.step, self.ranks, roles, self.start, -self.p)


def values(event: Event, attribute: str) -> list[object]:
    return [v for name, v in event.tuples if name == attribute]


def top(role: str) -> str:
    """The name in the pattern itself; the part after a dot is inside a named pattern."""
    return role.split(".", maxsplit=1)[0]


def aliases(node: m.Pattern) -> set[str]:
    """The roles of a positive or negated node."""
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
    return Found(
        time,
        phase,
        min(f.first for f in parts),
        min(f.start for f in parts),
        max(f.end for f in parts),
        tuple(r for f in parts for r in f.roles),
        p,
        math.prod(f.reading for f in parts),
        None if phase else max((f.step[2] for f in parts if f.time == time), default=None),
        tuple(reading for f in parts for reading in f.read),
    )


def merged(ways: list[Found]) -> Found:
    """One instance for all readings of the same events; common factors count once."""
    if len(ways) == 1:
        return ways[0]
    best = min(ways, key=lambda f: (-f.p, f.order))
    common = max(f.p / f.reading for f in ways)
    return replace(best, p=common * (1 - math.prod(1 - f.p / common for f in ways)), reading=1.0, read=())


def read_by(ors: list[m.Disjunction], f: Found) -> object:
    """What stays the same whichever way each `or` reads its events; one inside another goes with that."""
    largest = [node for node in ors if not any(aliases(node) < aliases(other) for other in ors)]
    sets = [aliases(node) for node in largest]
    ranks = [[rank for a, rank, _ in f.roles if top(a) in names and rank is not None] for names in sets]
    times = tuple(tuple(step for node, step in f.read if node == id(disjunction)) for disjunction in largest)
    events = tuple(tuple(sorted(some)) for some in ranks), times
    others = tuple((a, rank, e.end) for a, rank, e in f.roles if not any(top(a) in names for names in sets))
    return events, others


def below(node: m.Pattern) -> Iterator[m.Pattern]:
    """A pattern and all its parts."""
    yield node
    for child in children(node):
        yield from below(child)


def binds(b: m.Binding) -> set[str]:
    """The members of a condition."""
    return {b.left.alias} | ({b.right.alias} if isinstance(b.right, m.Field) else set())


def smallest(node: m.Pattern, names: set[str]) -> m.Pattern:
    """The smallest part with all these members."""
    for child in children(node):
        if names <= aliases(child):
            return smallest(child, names)
    return node


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


def nth(node: m.Selection, found: list[list[Found]]) -> list[list[Found]]:
    if node.within is None:
        return found[node.index - 1 : node.index]
    out = []
    while found:
        run = [fs for fs in found if fs[0].time <= found[0][0].time + node.within]
        out += run[node.index - 1 : node.index]
        found = found[len(run) :]
    return out


def rows(node: m.Repetition, found: list[list[Found]]) -> list[Found]:
    within = INF if node.within is None else node.within
    out = []
    for i in range(len(found)):
        for size in range(node.least, min(node.most or len(found), len(found) - i) + 1):
            run = found[i : i + size]
            if _in_a_row(run) and run[-1][0].time - run[0][0].time <= within:
                out += [_row(fs, run[-1][0].time, run[-1][0].phase) for fs in itertools.product(*run)]
    return out


def _in_a_row(run: list[list[Found]]) -> bool:
    return all(a[0].time < b[0].first for a, b in itertools.pairwise(run))


def _row(fs: tuple[Found, ...], time: int, phase: int) -> Found:
    return joined(list(fs), time, phase, math.prod(f.p for f in fs))


def longest(node: m.Repetition, found: list[list[Found]]) -> list[Found]:
    """From the left: the longest run within the window, then continue with the next instance."""
    assert node.within is not None
    out = []
    while found:
        over = found[0][0].time + node.within
        size = 1
        while size < min(node.most or len(found), len(found)):
            if found[size][0].time > over or not _in_a_row(found[size - 1 : size + 1]):
                break
            size += 1
        # If a run is too short, try the one that begins with its second instance.
        run, found = found[:size], found[size if size >= node.least else 1 :]
        time, phase, by = over, 1, None
        if size == node.most:
            time, phase = run[-1][0].time, run[-1][0].phase
        elif found and found[0][0].time <= over:
            time, phase, by = found[0][0].time, found[0][0].phase, found[0][0]
        if size >= node.least:
            made = [_row(fs, time, phase) for fs in itertools.product(*run)]
            out += made if by is None or phase else [replace(instance, by=by.step[2]) for instance in made]
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
