"""Growth to a million subscriptions, new words, and change while running."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

import numpy as np

from _matching_world import Row, events_for, filled, rate, resident, seconds, subscriptions, words
from likewise.errors import LikewiseError
from likewise.evaluation.datasets.thematic import ThematicDataset
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher
from likewise.semantics import Esa, Evidence, Space

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
OTHERS = {"evidence": 1_000_000, "contrast": 100_000, "clustered": 100_000, "thematic": 10_000, "hybrid": 10_000}
"""The other approaches, and the largest number of subscriptions for each."""


def growth(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """One matcher from a hundred to a million approximate subscriptions in the words of EuroVoc and WordNet."""
    sizes = SIZES[:3] if quick else SIZES
    profiles = subscriptions(data, sizes[-1], quick=quick)
    gc.collect()
    # A million profiles would make every garbage collection long.
    gc.freeze()
    cost, size = {}, 0
    matcher = Matcher(Esa(space), approach="approximate", threshold=0.5)
    for last in sizes:
        _say(f"growth, {last:,}")
        new, before = profiles[size:last], resident()
        adding = seconds(lambda m=matcher, p=new: filled(m, p)) / len(new)
        size, memory = last, (resident() - before) / len(new)
        events = events_for(profiles[:size])
        found = matcher.score_batch(matcher.encode(events))
        cost[size] = 1 / rate(matcher, events)
        what = f"{size:,} approximate subscriptions, threshold 0.5"
        goals = ({"target": ">= 1,000"}, {"target": "<= 1024"}) if size == SIZES[-1] else ({}, {})
        note = f"{len(found.event) / len(events):.2f} matches an event"
        yield {"what": what, "value": 1 / cost[size], "unit": "events/s", **goals[0], "note": note}
        yield {"what": f"{what}: add", "value": 1e6 * adding, "unit": "µs"}
        if size >= 100_000:
            # The growth of the process; for fewer profiles other allocations hide it.
            yield {"what": f"{what}: memory", "value": memory, "unit": "B/subscription", **goals[1]}
    ratio = cost[max(cost)] / cost[min(cost)]
    what = f"cost per event, {max(cost):,} against {min(cost):,} subscriptions"
    yield {"what": what, "value": ratio, "unit": "x", "target": f"much less than {max(cost) // min(cost):,}"}
    del matcher
    yield from _others(space, profiles, quick)


def _others(space: Space, profiles: list[Profile], quick: bool) -> Iterator[Row]:
    """The other approaches, at their default thresholds."""
    for approach, most in OTHERS.items():
        cost = {}
        try:
            for size in (100, 2_000) if quick else (1_000, most):
                _say(f"growth of {approach}, {size:,}")
                matcher = filled(Matcher(spaces=[space], approach=approach), profiles[:size])
                events = events_for(profiles[:size], 200)
                matcher.score_batch(matcher.encode(events))
                cost[size] = 1 / rate(matcher, events)
                yield {"what": f"{size:,} subscriptions, {approach}", "value": 1 / cost[size], "unit": "events/s"}
        except LikewiseError as error:
            yield {"what": f"growth, {approach}", "value": None, "unit": "x", "note": f"skipped: {error.message}"}
            continue
        ratio = cost[max(cost)] / cost[min(cost)]
        what = f"cost per event, {approach}, {max(cost):,} against {min(cost):,} subscriptions"
        yield {"what": what, "value": ratio, "unit": "x"}


def new_words(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """Single events, each with one new value, matched with 1,000 and 10,000 subscription terms."""
    for size in (1_000,) if quick else (1_000, 10_000):
        yield from _first_sight(Matcher(Esa(space), approach="approximate"), data, size, target="< 5")
        yield from _first_sight(Matcher(Evidence([space])), data, size, target="< 25")


def _first_sight(matcher: Matcher, data: ThematicDataset, size: int, *, target: str) -> Iterator[Row]:
    values, names = words(data, 2 * size)
    for at, value in enumerate(values[:size]):
        matcher.add(Profile((Predicate(names[at % 20], Operator.EQ, value, True, True),)))
    matcher.match(Event.of({names[0]: "first", names[1]: "second"}))
    # Evidence encodes the words here for the first time, unless an earlier run left them in the cache.
    times = [seconds(lambda v=value: matcher.match(Event.of({names[0]: v}))) for value in values[size : size + 500]]
    approach = str(matcher.settings(Profile((Predicate("a", Operator.EQ, "b", True, True),))).approach)
    for share in (50, 99):
        goal = {"target": target} if share == 99 else {}
        what = f"a new term, {size:,} subscription terms, {approach}, p{share}"
        yield {"what": what, "value": 1e3 * float(np.percentile(times, share)), "unit": "ms", **goal}


def change(space: Space, data: ThematicDataset, quick: bool) -> Iterator[Row]:
    """Adding and removing subscriptions with new words while events come."""
    count = 200 if quick else 1000
    profiles = subscriptions(data, 2_000 if quick else 100_000, quick=quick)
    values, names = words(data, 40_000)
    events = events_for(profiles)
    matcher = filled(Matcher(Esa(space), approach="approximate"), profiles)
    matcher.match_batch(events)
    times: dict[str, list[float]] = {"add a subscription": [], "match the next event": [], "remove a subscription": []}
    for number, value in enumerate(values[-count:]):
        profile = Profile((Predicate(names[number % 200], Operator.EQ, value, True, True),))
        handles: list[int] = []
        times["add a subscription"].append(seconds(lambda p=profile, h=handles: h.append(matcher.add(p))))
        times["match the next event"].append(seconds(lambda n=number: matcher.match(events[n % len(events)])))
        times["remove a subscription"].append(seconds(lambda h=handles: matcher.remove(h[0])))
    for what, spent in times.items():
        goals = ({"target": "< 1"}, {"target": "< 50"}) if "subscription" in what else ({}, {"target": "< 50"})
        yield {"what": f"{what}, mean", "value": 1e3 * float(np.mean(spent)), "unit": "ms", **goals[0]}
        yield {"what": f"{what}, longest", "value": 1e3 * max(spent), "unit": "ms", **goals[1]}


class Collector:
    """Measures the time of Python's garbage collector, which is not the matcher's."""

    def __init__(self) -> None:
        self.spent = self.longest = self._begun = 0.0

    def __enter__(self) -> Collector:
        gc.callbacks.append(self._clock)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._clock)

    def _clock(self, phase: str, _: dict[str, int]) -> None:
        now = time.thread_time()
        if phase == "start":
            self._begun = now
        else:
            self.spent += now - self._begun
            self.longest = max(self.longest, now - self._begun)


def churn(space: Space, _: ThematicDataset, quick: bool) -> Iterator[Row]:
    """Subscriptions that come and go, each with new words: time and memory must not grow."""
    total, alive = (20_000, 1_000) if quick else (100_000, 5_000)
    matcher = Matcher(Esa(space), approach="approximate")
    event = Event.of({"device": "computer", "city": "Galway"})
    handles: list[int] = []
    longest, spent, early = 0.0, 0.0, 0.0
    with Collector() as collector:
        for number in range(total):
            profile = Profile((Predicate(f"name {number}", Operator.EQ, f"value {number}", True, True),))
            before = collector.spent
            took = seconds(lambda p=profile: handles.append(matcher.add(p)))
            if len(handles) > alive:
                took += seconds(lambda: matcher.remove(handles.pop(0)))
            if number % 1000 == 0:
                matcher.match(event)
            longest, spent = max(longest, took - (collector.spent - before)), spent + took
            early = resident() if number == total // 3 else early
    what = f"{total:,} subscriptions added and removed, {alive:,} at a time"
    yield {"what": f"{what}: mean", "value": 1e3 * spent / total, "unit": "ms", "target": "< 1"}
    yield {"what": f"{what}: longest", "value": 1e3 * longest, "unit": "ms", "target": "< 50"}
    note = "a full collection of all objects; gc.freeze() keeps it short"
    pause = {"what": "longest garbage collection", "value": 1e3 * collector.longest, "unit": "ms"}
    yield pause | {"note": note}
    grown = (resident() - early) / (total - total // 3)
    yield {"what": f"{what}: memory not freed", "value": grown, "unit": "B/subscription"}


def _say(message: str) -> None:
    print(f"matching: {message}", file=sys.stderr)
