"""One step compared with two; `likewise evaluate composite` reproduces all figures of 003."""

from __future__ import annotations

from collections.abc import Iterator

from _composite_world import Row, row
from likewise.composite import Detector
from likewise.evaluation.experiments.composite import METHODS, PatternWorld, grouped, measure, profile
from likewise.evaluation.experiments.composite_clock import best, response
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event


def steps(_size: int, quick: bool) -> Iterator[Row]:
    """A few points of 003 figures 6 and 7, in processor time."""
    count = 200 if quick else 1_000
    for groups in (1, 10, 100):
        world = grouped(count, starts=count, groups=groups)
        yield _ratio(world, f"{count:,} unique sequences in {groups:,} groups", ">= 1, growing")
    spent = []
    for profiles in (count // 4, count):
        world = grouped(profiles, starts=count, groups=1)
        taken = best(lambda w=world: measure(w, "one step", unique=True))  # type: ignore[misc]
        spent.append(taken.total / len(world.numbers))
        yield row(f"one step, {profiles:,} profiles: time per event", 1e6 * spent[-1], "µs")
    yield row("growth of the time with 4 times the profiles", spent[1] / spent[0], "x", "<= 4: linear or better")


def _ratio(world: PatternWorld, what: str, target: str) -> Row:
    taken = {
        method: best(lambda m=method: measure(world, m, unique=True)).total  # type: ignore[misc]
        for method in METHODS
    }
    times = ", ".join(f"{method} {1e6 * seconds / len(world.numbers):.0f}" for method, seconds in taken.items())
    return row(f"{what}: two steps / one step", taken["two steps"] / taken["one step"], "x", target) | {
        "note": f"µs per event: {times}"
    }


def responses(_size: int, quick: bool) -> Iterator[Row]:
    """Response time of the composite, compared with that of its last primitive event alone."""
    count = 2_000 if quick else 20_000
    stream = [Event(str(i), (("value", -(i % 2)),), (), 1000 * i, 1000 * i) for i in range(count)]
    [composite] = PatternWorld([(0, -1)], []).patterns()
    detectors: dict[str, Detector] = {
        "the last event alone": Detector(compiled=False),
        "the composite, one step": Detector(compiled=False),
        "the composite, two steps": TwoStepDetector(),
        "the composite, compiled": Detector(),
    }
    for name, detector in detectors.items():
        alone = "alone" in name
        detector.add("p", profile(-1) if alone else composite)
        taken = response(detector, stream)
        yield row(f"response of {name}", 1e6 * taken, "µs", "" if alone else "as the last event alone")
