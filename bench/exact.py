"""Exact matching: rate, growth with the number of subscriptions, memory."""

from __future__ import annotations

import random
import sys
import time
import tracemalloc

from likewise.events import Event
from likewise.language import Operator, Predicate, Profile, Range
from likewise.matching import Matcher

NAMES, TEXTS, SIZE, WIDTH = 40, 30, 1000, 10
"""All attributes, textual attributes, values of each attribute, tuples of an event."""


def profiles(count: int, *, anchored: bool, seed: int = 1) -> list[Profile]:
    """Distinct profiles of two to four predicates; anchored ones have at least one equality."""
    chance = random.Random(seed)
    found: dict[Profile, None] = {}
    while len(found) < count:
        names = chance.sample(range(NAMES), chance.randint(2, 4))
        if anchored and min(names) >= TEXTS:
            continue
        found[Profile(tuple(_predicate(name, chance) for name in names))] = None
    return list(found)


def _predicate(name: int, chance: random.Random) -> Predicate:
    if name < TEXTS:
        return Predicate(f"attribute {name}", Operator.EQ, f"value {chance.randrange(SIZE)}")
    low = chance.randrange(SIZE)
    if chance.random() < 0.5:
        return Predicate(f"attribute {name}", chance.choice([Operator.GT, Operator.LT]), low)
    return Predicate(f"attribute {name}", Operator.IN, Range(low, low + chance.randrange(1, 100)))


def events(count: int, *, seed: int = 2) -> list[Event]:
    """Events of ten tuples over the same words."""
    chance = random.Random(seed)
    return [Event(str(number), tuple(_tuples(chance))) for number in range(count)]


def _tuples(chance: random.Random) -> list[tuple[str, str | int]]:
    names = chance.sample(range(NAMES), WIDTH)
    return [
        (f"attribute {name}", f"value {chance.randrange(SIZE)}" if name < TEXTS else chance.randrange(SIZE))
        for name in names
    ]


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table."""
    rows: list[dict[str, object]] = []
    stream = events(5_000 if quick else 20_000)
    for anchored, load in ((True, "an equality in each"), (False, "2 % with ranges only")):
        cost: dict[int, float] = {}
        for size in (1_000, 10_000) if quick else (1_000, 10_000, 100_000):
            cost[size] = _measure(rows, size, stream, anchored=anchored, load=load)
        growth = cost[max(cost)] / cost[min(cost)]
        goal = {"target": "< 2"} if anchored else {}
        rows.append({"what": f"growth of cost to {max(cost):,} ({load})", "value": growth, "unit": "x", **goal})
    return rows


def _measure(rows: list[dict[str, object]], size: int, stream: list[Event], *, anchored: bool, load: str) -> float:
    print(f"exact: {size:,} subscriptions, {load}", file=sys.stderr)
    interests = profiles(size, anchored=anchored)
    tracemalloc.start()
    matcher = Matcher()
    start = time.perf_counter()
    for interest in interests:
        matcher.add(interest)
    adding = (time.perf_counter() - start) / size
    memory = tracemalloc.get_traced_memory()[0] / size
    tracemalloc.stop()
    cost = min(_seconds(matcher, stream) for _ in range(5)) / len(stream)
    hits = len(matcher.score_batch(matcher.encode(stream)).event) / len(stream)
    what = f"{size:,} subscriptions ({load})"
    goal = {"target": ">= 100,000"} if anchored else {}
    rows += [
        {"what": what, "value": 1 / cost, "unit": "events/s", **goal},
        {"what": f"{what}: matches", "value": hits, "unit": "per event"},
        {"what": f"{what}: memory", "value": memory, "unit": "B/subscription", "target": "< 2048"},
        {"what": f"{what}: add (while memory is traced)", "value": 1e6 * adding, "unit": "µs"},
    ]
    return cost


def _seconds(matcher: Matcher, stream: list[Event]) -> float:
    # The time of this thread, so that other work on the machine does not count.
    start = time.thread_time()
    matcher.score_batch(matcher.encode(stream))
    return time.thread_time() - start


if __name__ == "__main__":
    for row in run(quick="--quick" in sys.argv):
        print(row)
