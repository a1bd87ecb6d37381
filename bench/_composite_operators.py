"""Absence, counts, alternatives, numbers and intervals, each keyed by the room, beside those who can say the same."""

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
"""What each row runs."""


def sensors(count: int, *, seed: int = 6) -> list[Event]:
    """Four types in a thousand rooms with a value, 100 ms apart, each some seconds long."""
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
    [one] = parse(f"p: {text}")
    assert isinstance(one.body, Composite)
    return one.body


def operators(size: int, quick: bool) -> Iterator[Row]:
    """One row per form over all events, and below it those who can say the same."""
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


# the same as keyed stateful dataflows: what the state of a room is, and what an event makes of it

State = list[Event]
Told = tuple[State, list[tuple[Event, ...]]]


def _triples(row: State | None, event: Event) -> Told:
    """Every three in a row."""
    row = [one for one in (row or ())[-2:] if event.end - one.end <= LONG]  # type: ignore[operator]
    row.append(event)
    return row, [tuple(row)] if len(row) == 3 else []


def _unbroken(waiting: State | None, event: Event) -> Told:
    """Every A with every C after it, as long as there is no B."""
    kind = event.tuples[0][1]
    if kind == "B":
        return [], []
    waiting = [one for one in waiting or () if event.end - one.end <= WINDOW]  # type: ignore[operator]
    if kind == "A":
        return [*waiting, event], []
    return waiting, [(one, event) for one in waiting]


BYTEWAX: dict[str, tuple[str, Callable[[State | None, Event], Told]]] = {
    "3 times": ("A", _triples),
    "absence in the middle": ("ABC", _unbroken),
}
"""Which types each needs, and its step. Bytewax tells time by events of the same key only, so it never says that
something did not happen by the end of a window."""


def _bytewax(name: str, stream: Sequence[Event]) -> Row:
    if importlib.util.find_spec("bytewax") is None:
        return {"what": f"peer: bytewax, {name}", "value": "skipped", "unit": "not installed"}
    kinds, step = BYTEWAX[name]
    dataflow(stream[:1000], kinds, step)
    taken, found = timed(lambda: dataflow(stream, kinds, step))
    return rate(f"peer: bytewax, {name} ({found:,})", len(stream), taken)
