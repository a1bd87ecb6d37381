"""Composite events: rates of the compiled path, one step against two, pool variants, peers in the same run."""

from __future__ import annotations

import gc
import importlib.util
import random
import runpy
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from likewise.composite import Detector
from likewise.composite.two_step import TwoStepDetector
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


def run(*, quick: bool = False) -> list[Row]:
    """Rows for the table."""
    rows: list[Row] = []
    size = 100_000 if quick else 1_000_000
    for part in (_many_patterns, _keyed, _restart, _steps, _variants):
        _say(part.__name__.strip("_").replace("_", " "))
        rows += part(size, quick)
    return rows


def _say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


class Spent(NamedTuple):
    """Seconds by the clock on the wall, and of the processor; the latter does not mind a busy machine."""

    wall: float
    cpu: float


def _row(what: str, value: float, unit: str, target: str = "") -> Row:
    row: Row = {"what": what, "value": round(value, 3) if value < 100 else round(value), "unit": unit}
    return row | ({"target": target} if target else {})


def _rate(what: str, count: int, spent: Spent, target: str = "") -> Row:
    row = _row(what, count / spent.wall, "events/s", target)
    return row | {"by processor time": round(count / spent.cpu)}


def _timed(work: Callable[[], Any]) -> tuple[Spent, Any]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu), result


def _best(make: Callable[[], Detector], work: Callable[[Detector], Any], times: int = 3) -> tuple[Spent, Any]:
    """The best of several runs, each with a fresh detector, since a busy machine only ever adds time."""
    runs = []
    for _ in range(times):
        detector = make()
        runs.append(_timed(lambda d=detector: work(d)))  # type: ignore[misc]
    return Spent(min(run[0].wall for run in runs), min(run[0].cpu for run in runs)), runs[0][1]


# 003 section 5.1: sequences over one integer attribute


def _value(number: int, *, meaning: bool = False) -> Profile:
    return Profile((Predicate("value", Operator.EQ, number, meaning),))


def sequences(count: int, *, consumption: Consumption, meaning: bool = False, seed: int = 1) -> list[Composite]:
    """Distinct (A; Z) pairs, first of the duplicates."""
    numbers = random.Random(seed).sample(range(-SPAN, SPAN + 1), 2 * count)
    profiles = [_value(number, meaning=meaning) for number in numbers]
    return [
        Composite(Then((Member(a, "a", FIRST), Member(z, "z"))), (), consumption)
        for a, z in zip(profiles[::2], profiles[1::2], strict=True)
    ]


def readings(count: int, *, name: str = "value", seed: int = 2) -> list[Event]:
    """Events of one attribute, a millisecond apart."""
    chance = random.Random(seed)
    return [Event(str(i), ((name, chance.randint(-SPAN, SPAN)),), (), 1000 * i, 1000 * i) for i in range(count)]


def _deploy(detector: Detector, patterns: Sequence[Composite]) -> None:
    for number, pattern in enumerate(patterns):
        detector.add(f"p{number}", pattern)


def _many_patterns(size: int, quick: bool) -> list[Row]:
    rows = []
    count = 1_000 if quick else 10_000
    stream = readings(size)
    for consumption in (Consumption.UNIQUE, Consumption.ALL_PAIRS):
        patterns = sequences(count, consumption=consumption)
        spent, _ = _best(Detector, lambda d, p=patterns: _deploy(d, p))  # type: ignore[misc]
        rate, found = _best(lambda p=patterns: _ready(p, stream), lambda d: d.publish_batch(stream[100:]))  # type: ignore[misc]
        what = f"{count:,} sequences, {consumption.value}"
        deployed = _row(f"{what}: deployed in", spent.wall, "s", "< 1 (Esper 31-51)")
        rows.append(deployed | {"by processor time": round(spent.cpu, 3)})
        rows.append(_rate(f"{what}: {size:,} events, {len(found):,} detections", size, rate, ">= 400,000"))
    rows.append(_row(f"{count:,} sequences: memory", _memory(count), "bytes a pattern", "< 2,048"))
    return rows + _by_meaning(count, size)


def _ready(patterns: Sequence[Composite], stream: Sequence[Event], **options: Any) -> Detector:
    """A detector that has its patterns and is warm."""
    detector = Detector(**options)
    _deploy(detector, patterns)
    detector.publish_batch(stream[:100])
    return detector


def _memory(count: int) -> float:
    patterns = sequences(count, consumption=Consumption.UNIQUE)
    gc.collect()
    tracemalloc.start()
    detector = Detector()
    _deploy(detector, patterns)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / count


def _by_meaning(count: int, size: int) -> list[Row]:
    """The same patterns as `value~ = n`, on events that say `reading`."""
    from likewise.matching import Matcher

    patterns = sequences(count, consumption=Consumption.UNIQUE, meaning=True)
    stream = readings(size, name="reading")
    what = f"{count:,} sequences of approximate profiles"

    def make() -> Detector:
        return Detector(matcher=Matcher(Synonyms(), approach="approximate", threshold=0.5))

    detector = make()
    deployed, _ = _timed(lambda: _deploy(detector, patterns))
    detector.publish_batch(stream[:100])
    cold, found = _timed(lambda: detector.publish_batch(stream[100:]))
    return [
        _row(f"{what}: deployed in", deployed.wall, "s"),
        _rate(f"{what}: {size:,} events, {len(found):,} detections", size, cold, ">= 100,000"),
    ]


class Synonyms:
    """A measure that costs next to nothing, so that the rate is that of matching and detecting."""

    name = "synonyms"
    symmetric = True

    def matrix(self, subscription_terms: Sequence[str], event_terms: Sequence[str], **_: object) -> Any:
        import numpy as np

        return np.array([[1.0 if x == y else 0.8 for y in event_terms] for x in subscription_terms], dtype=np.float32)

    def reason(self, *_: object, **__: object) -> list[Any]:
        return []


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


def _keyed(size: int, _quick: bool) -> list[Row]:
    stream = rooms(size)
    rows = []
    for first, target in ((True, ">= 500,000"), (False, ">= 300,000")):
        pattern = [same_room(first=first)]
        rate, found = _best(lambda p=pattern: _ready(p, stream), lambda d: d.publish_batch(stream[100:]))  # type: ignore[misc]
        what = "first pairs" if first else "all pairs"
        rows.append(_rate(f"keyed, {what}: {size:,} events, {len(found):,} detections", size, rate, target))
    general = Detector(compiled=False)
    general.add("p", same_room(first=True))
    some = stream[: size // 10]
    rate, _ = _timed(lambda: general.publish_batch(some))
    rows.append(_rate("keyed, first pairs, general path", len(some), rate))
    return rows + _peers(stream)


def _peers(stream: list[Event]) -> list[Row]:
    rate, found = _timed(lambda: sum(1 for _ in plain_python(stream)))
    rows = [_rate(f"peer: plain Python dict, first pairs ({found:,})", len(stream), rate)]
    if importlib.util.find_spec("bytewax") is None:
        rows.append({"what": "peer: bytewax", "value": "skipped", "unit": "not installed"})
    else:
        some = stream[: max(100_000, len(stream) // 4)]
        rate, found = _timed(lambda: with_bytewax(some))
        rows.append(_rate(f"peer: bytewax, first pairs ({found:,})", len(some), rate))
    return [*rows, runpy.run_path(str(Path(__file__).with_name("_flink.py")))["keyed_row"](stream)]


def plain_python(stream: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """What one would write by hand for this very pattern."""
    waiting: dict[Any, Event] = {}
    for event in stream:
        (_, kind), (_, room) = event.tuples
        if kind == "A":
            held = waiting.get(room)
            if held is None or event.end - held.end > 30 * MINUTE:  # type: ignore[operator]
                waiting[room] = event
        elif kind == "B":
            held = waiting.get(room)
            if held is not None and 0 < event.end - held.end <= 30 * MINUTE:  # type: ignore[operator]
                del waiting[room]
                yield held, event


def with_bytewax(stream: Sequence[Event]) -> int:
    """The same as a keyed stateful dataflow."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    def step(held: Event | None, event: Event) -> tuple[Event | None, list[tuple[Event, Event]]]:
        kind = event.tuples[0][1]
        over = held is not None and event.end - held.end > 30 * MINUTE  # type: ignore[operator]
        if kind == "A":
            return (event if held is None or over else held), []
        if held is None or over:
            return None, []
        return None, [(held, event)]

    found: list[Any] = []
    flow = Dataflow("rooms")
    source = op.input("in", flow, TestingSource(stream, batch_size=1000))
    wanted = op.filter("kinds", source, lambda event: event.tuples[0][1] in ("A", "B"))
    keyed = op.key_on("room", wanted, lambda event: event.tuples[1][1])
    pairs = op.stateful_flat_map("pair", keyed, step)
    op.output("out", pairs, TestingSink(found))
    run_main(flow)
    return len(found)


# restart in the middle


def _restart(size: int, _quick: bool) -> list[Row]:
    stream = rooms(size, seed=5)
    whole = Detector()
    whole.add("p", same_room(first=True))
    expected = [found.signature for found in whole.publish_batch(stream)]
    half = Detector()
    half.add("p", same_room(first=True))
    before = half.publish_batch(stream[: size // 2])
    spent, data = _timed(half.snapshot)
    again, detector = _timed(lambda: Detector.restore(data))
    after = detector.publish_batch(stream[size // 2 :])
    same = [found.signature for found in (*before, *after)] == expected
    return [
        {
            "what": f"restart in the middle of {size:,} events gives the same",
            "value": same,
            "unit": "",
            "target": "True",
        },
        _row(f"snapshot of {len(data):,} bytes written in", spent.wall, "s"),
        _row("and read in", again.wall, "s"),
    ]


# 003 figures 6 to 8: one step against two


def grouped(count: int, groups: int) -> tuple[list[Composite], list[Event]]:
    """Patterns (A_i; Z): in each of g groups come count / g A-events and then one Z [003 sec 5.1]."""
    last = Member(_value(-1), "z")
    firsts = [Member(_value(number), "a", FIRST) for number in range(count)]
    patterns = [Composite(Then((first, last)), (), Consumption.ALL_PAIRS) for first in firsts]
    stream: list[Event] = []
    size = count // groups
    for group in range(groups):
        for number in (*range(group * size, (group + 1) * size), -1):
            at = 1000 * len(stream)
            stream.append(Event(str(len(stream)), (("value", number),), (), at, at))
    return patterns, stream


def _steps(_size: int, quick: bool) -> list[Row]:
    rows = []
    count = 200 if quick else 1_000
    for groups in (1, 10, 50) if quick else (1, 10, 100):
        patterns, stream = grouped(count, groups)
        spent: dict[str, float] = {}
        for name, make in _METHODS.items():
            detector = make()
            _deploy(detector, patterns)
            taken, found = _timed(lambda d=detector, s=stream: [one for e in s for one in d.publish(e)])  # type: ignore[misc]
            spent[name] = taken.cpu
        per_event = {name: 1e6 * value / len(stream) for name, value in spent.items()}
        label = f"{count:,} sequences in {groups:,} groups, {len(found):,} detections"
        for name, value in per_event.items():
            rows.append(_row(f"{label}: {name}", value, "µs an event"))
        ratio = per_event["two steps"] / per_event["one step"]
        rows.append(_row(f"{label}: two steps / one step", ratio, "x", ">= 1, growing"))
    return rows + _response(quick)


_METHODS: dict[str, Callable[[], Detector]] = {
    "one step": lambda: Detector(compiled=False),
    "two steps": TwoStepDetector,
    "compiled": Detector,
}


def _response(quick: bool) -> list[Row]:
    """Response time of the composite against that of its last primitive event alone, both without compiling."""
    last = Profile((Predicate("type", Operator.EQ, "B"),))
    stream = rooms(2_000 if quick else 20_000, seed=7)
    made = {"the last event alone": Detector(compiled=False), "the composite": Detector(compiled=False)}
    made["the composite, compiled"] = Detector()
    for name, detector in made.items():
        detector.add("p", last if "alone" in name else same_room(first=True))
    rows = []
    for name, detector in made.items():
        spent = 0.0
        for event in stream:
            begin = time.process_time()
            if detector.publish(event):
                spent += time.process_time() - begin
        cost = 1e6 * spent / max(1, detector.state()[0].detected)
        rows.append(_row(f"response of {name}", cost, "µs", "" if "alone" in name else "as the last event alone"))
    return rows


def _variants(_size: int, quick: bool) -> list[Row]:
    """The three pool variants of 003 section 5.2."""
    rows = []
    patterns = sequences(200 if quick else 2_000, consumption=Consumption.UNIQUE)
    hot = [p.value for c in patterns for m in c.root.parts for p in m.profile.predicates]  # type: ignore[union-attr]
    chance = random.Random(9)
    stream = [
        Event(str(i), (("value", chance.choice(hot)),), (), 1000 * i, 1000 * i)
        for i in range(2_000 if quick else 20_000)
    ]
    for variant in ("insert", "mark", "reference"):
        detector = Detector(compiled=False, variant=variant)  # type: ignore[arg-type]
        _deploy(detector, patterns)
        spent, _ = _timed(lambda d=detector: [d.publish(event) for event in stream])  # type: ignore[misc]
        rows.append(_row(f"pool variant: {variant}", 1e6 * spent.cpu / len(stream), "µs an event"))
    return rows


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line)
