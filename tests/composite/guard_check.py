"""Compares the reference implementation with each path of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random

from guard_instances import Found, duplicates_of
from guard_paths import PATHS, Row, Run, limited, when_changed
from guard_reference import World
from guard_shrink import smaller_cases
from guard_worlds import Case, features, make, nodes

from likewise.composite import Detector, Limits
from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import (
    Composite,
    Conjunction,
    Disjunction,
    ExclusiveOr,
    Keep,
    Member,
    Negation,
    Pattern,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
)

IN_ORDER = ("compiled", "batch", "pieces", "two-step", "snapshot")
"""Paths that process the events as the general path does, and so give the same detections in the same order."""


@dataclass(frozen=True)
class Disagreement:
    """A case in which a path differs from the reference."""

    case: Case
    path: str
    expected: list[Row]
    found: list[Row]

    def __str__(self) -> str:
        missing = Counter(self.expected) - Counter(self.found)
        extra = Counter(self.found) - Counter(self.expected)
        lines = [f"case {self.case.seed}, {self.path}:", self.case.text()]
        lines += [f"  missing: {text(row)}" for row in missing.elements()]
        lines += [f"  too much: {text(row)}" for row in extra.elements()]
        if not missing and not extra:
            lines += ["  in another order:", *(f"    {text(row)}" for row in self.found)]
        return "\n".join(lines)


def text(row: Row) -> str:
    name, time, start, end, roles = row
    filled = " ".join(f"{role}={','.join(ids)}" for role, ids in roles)
    return f"{name}@{time / 1e6:g} {filled} (from {start / 1e6:g} to {end / 1e6:g})"


def defined(found: Iterable[Found], name: str, *, every: bool) -> Iterator[Row]:
    """The reported reading of each detection, or every reading."""
    for instance in found:
        for reading in instance.readings if every else (instance.reading,):
            roles: dict[str, tuple[str, ...]] = {}
            for role, event in reading:
                roles[role] = (*roles.get(role, ()), event.id)
            yield (name, instance.time, instance.start, instance.end, tuple(sorted(roles.items())))


def by_definition(
    case: Case, trace: tuple[Event, ...] | None = None, *, changed: bool = False, every: bool = False
) -> list[Row]:
    """The detections of the reference, sorted; the last pattern is there all the time, or is added and removed."""
    trace = trace or case.trace
    world = World(trace, {pattern.name: pattern for pattern in case.patterns}, case.horizon)
    added, removed = when_changed(case) if changed else (0, len(trace))
    out: list[Row] = []
    for pattern in case.patterns:
        last = pattern is case.patterns[-1]
        found = world.whole(pattern.name, position=added if last else 0)
        found = [instance for instance in found if not last or known_before(instance, trace, removed)]
        out += defined(found, pattern.name, every=every)
    return sorted(out)


def known_before(instance: Found, trace: tuple[Event, ...], position: int) -> bool:
    """Whether a detection was known before the event at a position."""
    return position >= len(trace) or instance.known < (trace[position - 1].end, position)


@dataclass
class Examination:
    """One case, with cached results; `seen` counts what occurred."""

    case: Case
    seen: Counter[str] = field(default_factory=Counter)

    @cached_property
    def expected(self) -> list[Row]:
        return by_definition(self.case)

    @cached_property
    def general(self) -> list[Row]:
        return PATHS["general"](Run(self.case, "general"))

    def check(self, path: str) -> Disagreement | None:
        """Whether a path gives the detections of the reference, in the order of the general path."""
        if path == "limit":
            return self.check_limit()
        run = Run(self.case, path)
        found = self.general if path == "general" else PATHS[path](run)
        self.seen.update(run.seen)
        expected = self.expected_on(path)
        if sorted(found) != expected:
            return Disagreement(self.case, path, expected, found)
        if path in IN_ORDER and found != self.general:
            return Disagreement(self.case, f"{path} beside general", self.general, found)
        return None

    def expected_on(self, path: str) -> list[Row]:
        in_order = tuple(sorted(self.case.trace, key=lambda event: (event.end, event.start, event.id)))
        if path == "late" and in_order != self.case.trace:
            return by_definition(self.case, in_order)
        return by_definition(self.case, changed=True) if path == "changing" else self.expected

    def check_limit(self) -> Disagreement | None:
        """A limit may lose detections; it adds none, except by another choice among those without a limit."""
        random = Random(f"limit {self.case.seed}")
        limits = Limits(random.randint(1, 4), random.choice(("drop oldest", "refuse")))
        allowed = set(map(self.chosen_as, by_definition(without_choices(self.case), every=True)))
        for compiled in (True, False):
            given = limited(self.case, limits, compiled=compiled)
            path = f"limit {limits.instances}, {limits.policy}, {'compiled' if compiled else 'general'}"
            self.seen[f"limit reached, {limits.policy}"] += any(given.dropped.values())
            self.seen["limit that costs a detection"] += len(given.rows) < len(self.expected)
            lost, made = Counter(self.expected) - Counter(given.rows), Counter(given.rows) - Counter(self.expected)
            if any(not given.dropped[row[0]] for row in lost | made):
                return Disagreement(self.case, f"{path}, nothing dropped", self.expected, given.rows)
            if any(self.chosen_as(row) not in allowed for row in made) and not remembers_more(self.case):
                return Disagreement(self.case, path, self.expected, given.rows)
        return None

    def chosen_as(self, row: Row) -> tuple[object, ...]:
        """What a detection that replaces a lost one must have in common with a detection without a limit.

        Inside a name an `or` may read the same events differently, so only the events are compared, not their roles.
        """
        pattern, _, start, end, roles = row
        if not reads_names_in_ways(self.case):
            return (pattern, start, end, roles)
        return (pattern, start, end, tuple(sorted(event for _, events in roles for event in events)))


def reads_names_in_ways(case: Case) -> bool:
    """Whether a pattern refers to another one, and one of the patterns has an `or`."""
    bodies = [pattern.body for pattern in case.patterns if isinstance(pattern.body, Composite)]
    kinds = {type(node) for body in bodies for node in nodes(body.root)}
    return Reference in kinds and Disjunction in kinds


def remembers_more(case: Case) -> bool:
    """Whether an absence, a count or an `xor` is about more than a single profile with all its duplicates.

    By the page, what a limit drops inside such a part may be missed or taken again.
    """
    for body in (pattern.body for pattern in case.patterns):
        assert isinstance(body, Composite)
        for node in nodes(body.root):
            counts = isinstance(node, Negation | Repetition | Selection)
            away = node.parts if isinstance(node, ExclusiveOr) else (node.part,) if counts else ()
            if not all(isinstance(part, Member) and duplicates_of(part).keep is Keep.ALL for part in away):
                return True
    return False


def without_choices(case: Case) -> Case:
    """The case with every combination: what may be detected with a limit instead of what it dropped."""
    bodies = [(pattern, pattern.body) for pattern in case.patterns if isinstance(pattern.body, Composite)]
    loose = [replace(p, body=replace(b, root=with_all(b.root), consumption=None)) for p, b in bodies]
    return replace(case, patterns=tuple(loose))


def with_all(node: Pattern) -> Pattern:
    """The same pattern with all duplicates; negated parts are unchanged."""
    if isinstance(node, Member | Reference):
        return replace(node, duplicates=None)
    if isinstance(node, Sequence | Conjunction | Disjunction):
        return replace(node, parts=tuple(map(with_all, node.parts)))
    if isinstance(node, Relation):
        return replace(node, left=with_all(node.left), right=with_all(node.right))
    return node


def builds(case: Case) -> bool:
    try:
        Detector(case.patterns)
    except BuildError:
        return False
    return True


def shrunk(found: Disagreement, path: str) -> Disagreement:
    """The smallest case below this one that still disagrees."""
    while True:
        for case in smaller_cases(found.case):
            less = Examination(case).check(path) if builds(case) else None
            if less is not None:
                found = less
                break
        else:
            return found


def paths_of(case: Case) -> list[str]:
    """The two main paths, and one more by turns."""
    others = [name for name in PATHS if name not in ("general", "compiled")]
    return ["general", "compiled", Random(f"paths {case.seed}").choice([*others, "limit"])]


def examine(seeds: Iterable[int], seen: Counter[str]) -> Iterator[str]:
    """All disagreements of a range of cases, each shrunk and as text; counts what occurred."""
    for seed in seeds:
        case = make(seed)
        examination, case_features = Examination(case, seen), features(case)
        try:
            _ = examination.general
        except BuildError:
            seen["refused"] += 1
            continue
        seen.update(["cases", *case_features])
        if examination.expected:
            seen.update(f"{feature}, detected" for feature in ["cases", *case_features])
        for path in paths_of(case):
            seen["compared"] += 1
            seen[f"compared: {path}"] += 1
            found = examination.check(path)
            if found is not None:
                yield str(shrunk(found, path))
                break
