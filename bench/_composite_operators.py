"""Absence, counts, alternatives, numbers and intervals, each keyed by room, compared with peers that support them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from _composite_keyed import FLINK, dataflow
from _composite_world import MINUTE, Row, best, rate, ready, timed
from _flink import triples_row
from likewise.composite import Detector
from likewise.events import Event
from likewise.language import Composite, parse

WINDOW = 5 * MINUTE
LONG = 20 * MINUTE

FORMS = {
    "absence at the end": "{type = A} as a then not {type = B} as b within 5 minutes where a.room = b.room",
    "absence in the middle": """{type = A} as a then not {type = B} as b then {type = C} as c within 5 minutes
        where a.room = b.room and a.room = c.room""",
    "3 times": "3 times {type = A} as a within 20 minutes where a.room = a.room",
    "3rd duplicate": "3rd duplicate {type = A} as a then {type = B} as b within 20 minutes where a.room = b.room",
    "a or b, then c": """({type = A} as a or {type = B} as b) then {type = C} as c within 5 minutes
        where a.room = c.room and b.room = c.room""",
    "a number that rises": """{type = A} as a then {type = B} as b within 5 minutes
        where a.room = b.room and a.value < b.value""",
    "overlaps": "{type = A} as a overlaps {type = B} as b within 5 minutes where a.room = b.room",
}
"""The pattern of each row."""


def sensors(count: int, *, seed: int = 6) -> list[Event]:
    """Events of four types in a thousand rooms with a value, 100 ms apart, each lasting up to two minutes."""
    chance = random.Random(seed)
    kinds = [("type", kind) for kind in "ABCD"]
    places = [("room", f"room {number}") for number in range(1000)]
    values = [("value", number) for number in range(100)]
    out = []
    for i in range(count):
        end = 100_000 * i
        tuples = (chance.choice(kinds), chance.choice(places), chance.choice(values))
        out.append(Event(str(i), tuples, (), end - 1_000_000 * chance.randrange(120), end))
    return out


def pattern(text: str) -> Composite:
    """The body of a pattern."""
    [subscription] = parse(f"p: {text}")
    assert isinstance(subscription.body, Composite)
    return subscription.body


def operators(size: int, quick: bool) -> Iterator[Row]:
    """One row per form over all events, followed by peers that support it."""
    stream = sensors(size)
    for name, text in FORMS.items():
        make, work = _ready(text, stream), _rest(stream)
        taken, found = best(make, work, 1 if quick else 2)
        yield rate(f"{name}, same room: {size:,} events, {len(found):,} detections", size, taken)
        if name in BYTEWAX:
            yield _bytewax(name, stream)
        if name == "3 times":
            yield triples_row(stream[:FLINK])


def _ready(text: str, stream: Sequence[Event]) -> Callable[[], Detector]:
    body = pattern(text)
    return lambda: ready([body], stream)


def _rest(stream: Sequence[Event]) -> Callable[[Detector], list[Any]]:
    rest = stream[100:]
    return lambda detector: detector.publish_batch(rest)


# the same as keyed stateful dataflows: a step takes the state of a room and an event

State = list[Event]
Step = tuple[State, list[tuple[Event, ...]]]
"""The new state, and the results."""


def _triples(row: State | None, event: Event) -> Step:
    """Every three in a row."""
    row = [earlier for earlier in (row or ())[-2:] if event.end - earlier.end <= LONG]  # type: ignore[operator]
    row.append(event)
    return row, [tuple(row)] if len(row) == 3 else []


def _unbroken(waiting: State | None, event: Event) -> Step:
    """Every A with every C after it, without a B in between."""
    kind = event.tuples[0][1]
    if kind == "B":
        return [], []
    waiting = [earlier for earlier in waiting or () if event.end - earlier.end <= WINDOW]  # type: ignore[operator]
    if kind == "A":
        return [*waiting, event], []
    return waiting, [(earlier, event) for earlier in waiting]


BYTEWAX: dict[str, tuple[str, Callable[[State | None, Event], Step]]] = {
    "3 times": ("A", _triples),
    "absence in the middle": ("ABC", _unbroken),
}
"""The event types that each form needs, and its step. In bytewax, time advances with events of the same key only, so it
cannot detect an absence at the end of a window."""


def _bytewax(name: str, stream: Sequence[Event]) -> Row:
    if importlib.util.find_spec("bytewax") is None:
        return {"what": f"peer: bytewax, {name}", "value": "skipped", "unit": "not installed"}
    kinds, step = BYTEWAX[name]
    dataflow(stream[:1000], kinds, step)
    taken, found = timed(lambda: dataflow(stream, kinds, step))
    return rate(f"peer: bytewax, {name} ({found:,})", len(stream), taken)
