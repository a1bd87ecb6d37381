"""Exclusive ors and negations over several nodes give the same reports as one engine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from equality import reports_equal_the_engines
from worlds import event, member

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import (
    Allen,
    Composite,
    Conjunction,
    Disjunction,
    ExclusiveOr,
    Negation,
    Pattern,
    Relation,
    Sequence,
    Subscription,
    parse_subscription,
)
from likewise.overlay import decompose
from likewise.overlay.cube.decompose import Compound, reach_of
from likewise.overlay.node import explain_tree


class Patterns:
    """Random patterns with composites inside an exclusive or or a negation."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = 0

    def leaf(self) -> Pattern:
        self.numbers += 1
        return member(self.random.choice("ABC"), f"m{self.numbers}")

    def pair(self) -> Pattern:
        kind = self.random.choice((Sequence, Conjunction, Relation))
        within = self.random.choice((3, 5, 8))
        if kind is Relation:
            return Relation(self.leaf(), self.random.choice((Allen.BEFORE, Allen.OVERLAPS)), self.leaf(), within)
        parts = tuple(self.leaf() for _ in range(self.random.choice((2, 2, 3))))
        return kind(parts, self.random.choice((within, within, within, None)))

    def part(self) -> Pattern:
        return self.random.choice((self.leaf, self.pair, self.pair))()

    def root(self) -> Pattern:
        within = self.random.choice((5, 8))
        match self.random.randrange(5):
            case 0:
                return ExclusiveOr((self.pair(), self.part()), within)
            case 1:
                return Negation(self.pair(), within)
            case 2:
                return Sequence((self.part(), Negation(self.part()), self.part()), within)
            case 3:
                return Conjunction((self.part(), self.leaf(), Negation(self.part())), within)
            case _:
                return Disjunction((Sequence((self.leaf(), Negation(self.part())), within), self.pair()))

    def __iter__(self) -> Iterator[Composite]:
        while True:
            pattern = Composite(self.root())
            try:
                decompose(Subscription("p", pattern))
            except BuildError:
                continue
            yield pattern


def trace(chance: random.Random) -> list[Event]:
    """Events of three kinds, some of them long."""
    out, time = [], 10
    for number in range(10):
        time += chance.choice((0, 1, 1, 2, 3))
        begin = time - chance.choice((0, 0, 1, 2, 4))
        out.append(event(chance.choice("ABC"), time, start=begin, id=f"e{number:02}"))
    return out


def _kinds(pattern: object) -> set[str]:
    kinds = {type(pattern).__name__}
    for name in getattr(pattern, "__dataclass_fields__", ()):
        value = getattr(pattern, name)
        for part in value if isinstance(value, tuple) else (value,):
            kinds |= _kinds(part)
    return kinds


@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_exclusive_ors_and_negations_are_reported_as_by_one_engine(count: int) -> None:
    seen: Counter[str] = Counter()
    patterns = iter(Patterns(count))
    chance = random.Random(count)
    for number in range(count):
        pair = [next(patterns), next(patterns)]
        for pattern in pair:
            tree = decompose(Subscription("p", pattern))
            assert isinstance(tree, Compound)
            if any(isinstance(part, Compound) for part in tree.members):
                seen.update(_kinds(pattern) & {"ExclusiveOr", "Negation"})
        reports_equal_the_engines(pair, trace(chance), chance.choice((1, 7, 30)), number)
    assert seen["ExclusiveOr"] >= count // 6
    assert seen["Negation"] >= count // 3


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        # Near matches count against a negation, so its topics have a low threshold.
        ("not ({kind = a} then {kind = b} within 3 s) within 10 s", "{kind = a} then {kind = b} threshold 0.1"),
        ("({kind = a} then {kind = b} within 3 s) xor {kind = c} within 10 s", "{kind = a} and {kind = b}"),
        ("{kind = a} then not {kind = c} then {kind = b} within 3 s", "{kind = a} and {kind = b}"),
    ],
)
def test_composites_inside_an_ordered_pattern_have_a_shared_rendezvous(text: str, shared: str) -> None:
    tree = decompose(parse_subscription(text))
    assert isinstance(tree, Compound)
    assert tree.join is None
    [pair] = [part for part in tree.members if isinstance(part, Compound)]
    assert pair.key == decompose(parse_subscription(shared)).key
    assert reach_of(tree) == 3_000_000
    assert any(" then " in line for line in explain_tree(tree))


@pytest.mark.parametrize(
    "text",
    [
        "not ({kind = a} then {kind = b}) within 10 s",
        "(first {kind = a} then {kind = b} within 3 s) xor {kind = c} within 10 s",
        "2nd ({kind = a} then {kind = b} within 3 s) within 10 s",
        "({kind = a} then {kind = b} within 3 s) xor {kind = c} within 10 s consume unique",
    ],
)
def test_patterns_that_need_single_events_are_not_split(text: str) -> None:
    """Without a window, with a choice among events, with counting, or with unique consumption."""
    tree = decompose(parse_subscription(text))
    assert isinstance(tree, Compound)
    assert not any(isinstance(part, Compound) for part in tree.members)
