"""Patterns, event streams and clocks of the benchmark of composite events."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from likewise.composite import Detector
from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    Consumption,
    Duplicates,
    Field,
    Keep,
    Member,
    Operator,
    Predicate,
    Profile,
)
from likewise.language import Sequence as Then

Row = dict[str, object]
SPAN = 100_000
MINUTE = 60_000_000
FIRST = Duplicates(Keep.FIRST)


class Spent(NamedTuple):
    """Seconds of wall-clock time and of processor time, which other work on the machine affects less."""

    wall: float
    cpu: float


def row(what: str, value: float, unit: str, target: str = "") -> Row:
    """A row of the table."""
    made: Row = {"what": what, "value": round(value, 3) if value < 100 else round(value), "unit": unit}
    return made | ({"target": target} if target else {})


def rate(what: str, count: int, spent: Spent, target: str = "") -> Row:
    """A row of events per second in both times."""
    return row(what, count / spent.wall, "events/s", target) | {"by processor time": round(count / spent.cpu)}


def timed(work: Callable[[], Any]) -> tuple[Spent, Any]:
    """The time of one run, and its result."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu), result


def best(make: Callable[[], Detector], work: Callable[[Detector], Any], times: int = 3) -> tuple[Spent, Any]:
    """The best of several runs, each with a new detector, since other work on the machine only adds time."""
    runs = []
    for _ in range(times):
        detector = make()
        runs.append(timed(lambda d=detector: work(d)))  # type: ignore[misc]
    return Spent(min(run[0].wall for run in runs), min(run[0].cpu for run in runs)), runs[0][1]


def deploy(detector: Detector, patterns: Sequence[Composite]) -> None:
    """Add all patterns."""
    for number, pattern in enumerate(patterns):
        detector.add(f"p{number}", pattern)


def ready(patterns: Sequence[Composite], stream: Sequence[Event], **options: Any) -> Detector:
    """A warm detector with these patterns."""
    detector = Detector(**options)
    deploy(detector, patterns)
    detector.publish_batch(stream[:100])
    return detector


# 003 section 5.1: sequences over one integer attribute


def pair(first: Profile, last: Profile, consumption: Consumption) -> Composite:
    """(A; Z), the first of the duplicates."""
    return Composite(Then((Member(first, "a", FIRST), Member(last, "z"))), (), consumption)


def sequences(count: int, *, consumption: Consumption, seed: int = 1) -> list[Composite]:
    """Distinct (A; Z) pairs of numbers."""
    numbers = random.Random(seed).sample(range(-SPAN, SPAN + 1), 2 * count)
    profiles = [Profile((Predicate("value", Operator.EQ, number),)) for number in numbers]
    return [pair(a, z, consumption) for a, z in zip(profiles[::2], profiles[1::2], strict=True)]


def readings(count: int, *, seed: int = 2) -> list[Event]:
    """Events of one attribute, a millisecond apart."""
    chance = random.Random(seed)
    return [Event(str(i), (("value", chance.randint(-SPAN, SPAN)),), (), 1000 * i, 1000 * i) for i in range(count)]


# the same with words instead of numbers, compared by meaning


class Words(NamedTuple):
    """Synonyms: each entry has the subscribed word and a synonym."""

    attributes: list[tuple[str, str]]
    values: list[tuple[str, str]]

    @classmethod
    def of_wordnet(cls, *, attributes: int, values: int, seed: int = 4) -> Words:
        """Nouns of WordNet, two for each synset."""
        from likewise.semantics import WordNet

        wordnet = WordNet.load()
        nouns = [synset.words for synset in wordnet.synsets() if synset.part == "noun" and len(synset.words) > 1]
        chosen = random.Random(seed).sample(nouns, attributes + values)
        plain = [(words[0].replace("_", " "), words[1].replace("_", " ")) for words in chosen]
        return cls(plain[:attributes], plain[attributes:])

    def sequences(self, count: int) -> list[Composite]:
        """Distinct (A; Z) pairs of `attribute~ = value~`, over all attributes and two fifths of the values."""
        values = self.values[: 2 * len(self.values) // 5]
        predicates = [Predicate(n, Operator.EQ, v, True, True) for n, _ in self.attributes for v, _ in values]
        chosen = random.Random(1).sample(predicates, 2 * count)
        return [
            pair(Profile((a,)), Profile((z,)), Consumption.UNIQUE)
            for a, z in zip(chosen[::2], chosen[1::2], strict=True)
        ]

    def readings(self, count: int, *, seed: int = 2) -> list[Event]:
        """Any attribute and any value, each as either of its words; patterns use two fifths of the values."""
        chance = random.Random(seed)
        tuples = [
            (chance.choice(chance.choice(self.attributes)), chance.choice(chance.choice(self.values)))
            for _ in range(count)
        ]
        return [Event(str(i), (pair,), (), 1000 * i, 1000 * i) for i, pair in enumerate(tuples)]


# one keyed pattern: A then B in the same room


def rooms(count: int, *, seed: int = 3) -> list[Event]:
    """Four types in a thousand rooms, 100 ms apart."""
    chance = random.Random(seed)
    kinds = [("type", kind) for kind in "ABCD"]
    places = [("room", f"room {number}") for number in range(1000)]
    return [
        Event(str(i), (chance.choice(kinds), chance.choice(places)), (), 100_000 * i, 100_000 * i) for i in range(count)
    ]


def same_room(*, first: bool) -> Composite:
    """A then B, same room, 30 minutes."""
    a, b = (Profile((Predicate("type", Operator.EQ, kind),)) for kind in "AB")
    where = (Binding(Field("a", "room"), Operator.EQ, Field("b", "room")),)
    keep, consumption = (FIRST, Consumption.UNIQUE) if first else (None, Consumption.ALL_PAIRS)
    return Composite(Then((Member(a, "a", keep), Member(b, "b")), 30 * MINUTE), where, consumption)
