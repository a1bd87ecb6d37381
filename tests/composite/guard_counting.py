"""Selections and repetitions of a row of instances, as docs/composite.md defines them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from guard_instances import Found, joined, until

from likewise.language import Repetition, Selection

CountedRun = tuple[Sequence[Found], Found]
"""The counted instances, and the resulting instance."""


def selected(row: Sequence[Found], node: Selection) -> Iterator[CountedRun]:
    """The i-th since activation, or in windows that do not overlap."""
    opened, count = None, 0
    for instance in row:
        if opened is None or (node.within is not None and instance.time - opened > node.within):
            opened, count = instance.time, 0
        count += 1
        if count == node.index:
            yield [instance], instance


def repeated(row: Sequence[Found], node: Repetition) -> Iterator[CountedRun]:
    """Every run of an allowed length."""
    for first in range(len(row)):
        for run in runs(row[first:], node):
            yield run, joined(run)


def runs(row: Sequence[Found], node: Repetition) -> Iterator[Sequence[Found]]:
    """The runs of an allowed length that begin with the first instance."""
    for length in range(1, len(row) + 1):
        run = row[:length]
        if length > 1 and run[-1].first <= run[-2].time:
            return
        if node.within is not None and run[-1].time - run[0].time > node.within:
            return
        if node.least <= length <= (node.most or length):
            yield run


def longest(row: Sequence[Found], node: Repetition) -> Iterator[CountedRun]:
    """From the left, each run as long as possible: known when it is full, interrupted, or its time is over."""
    while row:
        run = list(runs(row, replace(node, least=1)))[-1]
        rest = row[len(run) :]
        if len(run) < node.least:
            row = row[1:]
            continue
        ends = row[0].time + (node.within or 0)
        if len(run) == node.most:
            yield run, joined(run)
        elif rest and rest[0].first <= run[-1].time and rest[0].time <= ends:
            yield run, joined(run, time=rest[0].time, known=rest[0].known)
        else:
            yield run, joined(run, time=ends, known=until(ends))
        row = rest


def as_one(counted: Iterable[CountedRun]) -> Iterator[Found]:
    """An instance found for several values is one instance with all readings."""
    found: dict[object, Found] = {}
    for run, instance in counted:
        key = (instance.known, *(part.place for part in run))
        before = found[key].readings if key in found else ()
        found[key] = replace(instance, readings=tuple(dict.fromkeys(before + instance.readings)))
    return iter(found.values())
