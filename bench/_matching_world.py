"""Subscriptions, events and a clock for the benchmark of matching."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Sequence

import numpy as np

from likewise.errors import LikewiseError
from likewise.evaluation.datasets.thematic import ThematicDataset
from likewise.events import Event, normalise
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher
from likewise.semantics import WordNet

Row = dict[str, object]

TUPLES = 8


def words(data: ThematicDataset, count: int) -> tuple[list[str], list[str]]:
    """Values and two hundred attributes from EuroVoc's and WordNet's labels."""
    chance = random.Random(5)
    labels = sorted({normalise(str(v)) for event in data.events for _, v in event.tuples if isinstance(v, str)})
    try:
        lemmas = [lemma.replace("_", " ") for lemma in WordNet.load().lemmas()]
    except LikewiseError:
        lemmas = [f"{a} {b}" for a in labels for b in labels]
    extra = chance.sample(lemmas, count)
    return labels + extra, extra[:200]


def subscriptions(data: ThematicDataset, size: int, *, quick: bool) -> list[Profile]:
    """Approximate profiles of two to four predicates."""
    values, names = words(data, 4_000 if quick else 17_000)
    chance = np.random.default_rng(5)
    lengths = chance.integers(2, 5, size)
    ends = np.cumsum(lengths).tolist()
    name = [names[at] for at in chance.integers(0, len(names), ends[-1]).tolist()]
    value = [values[at] for at in chance.integers(0, len(values), ends[-1]).tolist()]
    every = [Predicate(n, Operator.EQ, v, True, True) for n, v in zip(name, value, strict=True)]
    return [Profile(tuple(every[begin:end])) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def events_for(profiles: Sequence[Profile], count: int = 1000) -> list[Event]:
    """Events of eight tuples; every second one matches some profile exactly."""
    chance = random.Random(6)
    predicates = [predicate for profile in chance.choices(profiles, k=700) for predicate in profile.predicates]
    out = []
    for number in range(count):
        asked = list(chance.choice(profiles).predicates) if number % 2 else []
        asked += [chance.choice(predicates) for _ in range(TUPLES - len(asked))]
        pairs = [(p.attribute, str(p.value)) for p in asked]
        if not number % 2:
            # Names and values of different predicates: the subscribers' words, but rarely a match.
            rest = [chance.choice(predicates).attribute for _ in pairs]
            pairs = [(name, value) for name, (_, value) in zip(rest, pairs, strict=True)]
        out.append(Event(str(number), tuple(pairs)))
    return out


def filled(matcher: Matcher, profiles: Sequence[Profile]) -> Matcher:
    """The matcher with these profiles added."""
    for profile in profiles:
        matcher.add(profile)
    return matcher


def rate(matcher: Matcher, events: Sequence[Event], *, runs: int = 3) -> float:
    """Events per second of the best of some runs, encoding included."""
    return len(events) / min(seconds(lambda: matcher.score_batch(matcher.encode(events))) for _ in range(runs))


def resident() -> float:
    """The current memory of the process, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def seconds(work: Callable[[], object]) -> float:
    """The time of this thread, so that other work on the machine does not count."""
    start = time.thread_time()
    work()
    return time.thread_time() - start
