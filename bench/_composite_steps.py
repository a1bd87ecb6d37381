"""One step against two, and the three pool variants; `likewise evaluate composite` has 003's figures in full."""

from __future__ import annotations

import random
from collections.abc import Iterator

from _composite_world import Row, deploy, row, sequences, timed
from likewise.composite import Detector
from likewise.composite.two_step import TwoStepDetector
from likewise.evaluation._composite_clock import best, response
from likewise.evaluation.composite import METHODS, PatternWorld, grouped, measure, profile
from likewise.events import Event
from likewise.language import Consumption


def steps(_size: int, quick: bool) -> Iterator[Row]:
    """003 figures 6 and 7 at a few places of their axes, by processor time."""
    count = 200 if quick else 1_000
    for groups in (1, 10, 100):
        world = grouped(count, starts=count, groups=groups)
        yield _ratio(world, f"{count:,} unique sequences in {groups:,} groups", ">= 1, growing")
    spent = []
    for profiles in (count // 4, count):
        world = grouped(profiles, starts=count, groups=1)
        taken = best(lambda w=world: measure(w, "one step", unique=True))  # type: ignore[misc]
        spent.append(taken.total / len(world.numbers))
        yield row(f"one step, {profiles:,} profiles: an event", 1e6 * spent[-1], "µs")
    yield row("times the time for 4 times the profiles", spent[1] / spent[0], "x", "<= 4: linear or better")


def _ratio(world: PatternWorld, what: str, target: str) -> Row:
    taken = {
        method: best(lambda m=method: measure(world, m, unique=True)).total  # type: ignore[misc]
        for method in METHODS
    }
    each = ", ".join(f"{method} {1e6 * seconds / len(world.numbers):.0f}" for method, seconds in taken.items())
    return row(f"{what}: two steps / one step", taken["two steps"] / taken["one step"], "x", target) | {
        "note": f"µs an event: {each}"
    }


def responses(_size: int, quick: bool) -> Iterator[Row]:
    """Response time of the composite against that of its last primitive event alone."""
    count = 2_000 if quick else 20_000
    stream = [Event(str(i), (("value", -(i % 2)),), (), 1000 * i, 1000 * i) for i in range(count)]
    [composite] = PatternWorld([(0, -1)], []).patterns()
    made: dict[str, Detector] = {
        "the last event alone": Detector(compiled=False),
        "the composite, one step": Detector(compiled=False),
        "the composite, two steps": TwoStepDetector(),
        "the composite, compiled": Detector(),
    }
    for name, detector in made.items():
        alone = "alone" in name
        detector.add("p", profile(-1) if alone else composite)
        taken = response(detector, stream)
        yield row(f"response of {name}", 1e6 * taken, "µs", "" if alone else "as the last event alone")


def variants(_size: int, quick: bool) -> Iterator[Row]:
    """The three pool variants of 003 section 5.2."""
    patterns = sequences(200 if quick else 2_000, consumption=Consumption.UNIQUE)
    hot = [p.value for c in patterns for m in c.root.parts for p in m.profile.predicates]  # type: ignore[union-attr]
    chance = random.Random(9)
    stream = [
        Event(str(i), (("value", chance.choice(hot)),), (), 1000 * i, 1000 * i)
        for i in range(2_000 if quick else 20_000)
    ]
    for variant in ("insert", "mark", "reference"):
        runs = []
        for _ in range(2):
            detector = Detector(compiled=False, variant=variant)  # type: ignore[arg-type]
            deploy(detector, patterns)
            runs.append(timed(lambda d=detector: [d.publish(event) for event in stream])[0].cpu)  # type: ignore[misc]
        yield row(f"pool variant: {variant}", 1e6 * min(runs) / len(stream), "µs an event")
