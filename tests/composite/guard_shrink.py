"""Smaller patterns that may still show the same disagreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from guard_conditions import labels_below, parts_of, sides
from guard_worlds import Case

from likewise.language import (
    Composite,
    Conjunction,
    Disjunction,
    ExclusiveOr,
    Member,
    Negation,
    Pattern,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    Subscription,
)


def smaller_cases(case: Case) -> Iterator[Case]:
    """The case without one event or one element of its patterns."""
    for n in range(len(case.trace)):
        if len(case.trace) > 1:
            yield replace(case, trace=case.trace[:n] + case.trace[n + 1 :])
    for patterns in smaller(case):
        yield replace(case, patterns=patterns)


def smaller(case: Case) -> Iterator[tuple[Subscription, ...]]:
    for n in range(len(case.patterns) - 1):
        yield case.patterns[:n] + case.patterns[n + 1 :]
    if len(case.patterns) > 1:
        yield case.patterns[:-1]
    for n, pattern in enumerate(case.patterns):
        assert isinstance(pattern.body, Composite)
        for body in smaller_composite(pattern.body):
            yield (*case.patterns[:n], replace(pattern, body=body), *case.patterns[n + 1 :])


def smaller_composite(composite: Composite) -> Iterator[Composite]:
    for n in range(len(composite.where)):
        yield replace(composite, where=composite.where[:n] + composite.where[n + 1 :])
    if composite.consumption is not None:
        yield replace(composite, consumption=None)
    for root in smaller_pattern(composite.root):
        left = labels_below(root)
        yield replace(composite, root=root, where=tuple(c for c in composite.where if sides(c) <= left))


def smaller_pattern(node: Pattern) -> Iterator[Pattern]:
    yield from parts_of(node)
    if isinstance(node, Member | Reference):
        if node.duplicates is not None:
            yield replace(node, duplicates=None)
        return
    if isinstance(node, Sequence | Conjunction | Disjunction | ExclusiveOr):
        if len(node.parts) > 2:
            for n in range(len(node.parts)):
                yield replace(node, parts=node.parts[:n] + node.parts[n + 1 :])
        for n, part in enumerate(node.parts):
            for less in smaller_pattern(part):
                yield replace(node, parts=(*node.parts[:n], less, *node.parts[n + 1 :]))
    elif isinstance(node, Negation | Selection | Repetition):
        for less in smaller_pattern(node.part):
            yield replace(node, part=less)
    elif isinstance(node, Relation):
        for less in smaller_pattern(node.left):
            yield replace(node, left=less)
        for less in smaller_pattern(node.right):
            yield replace(node, right=less)
