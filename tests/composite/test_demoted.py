"""A compiled pattern that gets an event with several keys moves to the general path with all its instances."""

from __future__ import annotations

from random import Random

import pytest

from likewise.composite import Detector
from likewise.composite.compiled import resume
from likewise.events import Event
from likewise.language import parse
from likewise.matching import Matcher
from likewise.testing import TableMeasure

PATTERNS = {
    "what must not happen is decided": (
        "{kind = a} as x then not {kind~ = b~} as n then {kind = c} as y then {kind = d} as z within 60 s"
        " where x.room = n.room and x.room = y.room and x.room = z.room",
        {"_blocker", "_past_the_guard"},
    ),
    "nobody waits with what came first": (
        "{kind = a} as x then first {kind = c} as y within 60 s where x.room = y.room",
        {"_stand_in"},
    ),
}
SECOND = 1_000_000


def trace(seed: int) -> list[Event]:
    """Events in two rooms; one in the middle is in both."""
    draw = Random(seed)
    events = []
    for at in range(40):
        rooms = ("r", "s") if at == 20 else (draw.choice("rs"),)
        kind = draw.choice(["a", "a", "bee", "c", "c", "d"])
        tuples = (("kind", kind), *(("room", room) for room in rooms))
        events.append(Event(f"e{at}", tuples, (), at * SECOND, at * SECOND))
    return events


def found(pattern: str, events: list[Event], *, compiled: bool) -> list[object]:
    matcher = Matcher(TableMeasure({("b", "bee"): 0.6}), approach="approximate", threshold=0.3)
    detector = Detector(parse(f"p: {pattern}"), matcher=matcher, compiled=compiled)
    made = [detection for event in events for detection in detector.publish(event)]
    return [detection.signature for detection in made + detector.advance(events[-1].span[1] + 100 * SECOND)]


@pytest.mark.parametrize("name", PATTERNS)
def test_what_waits_goes_over_to_the_general_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, ways = PATTERNS[name]
    taken = set()
    for way in ways:
        inner = getattr(resume._Resumed, way)

        def noted(self: object, *given: object, way: str = way, inner: object = inner) -> object:
            taken.add(way)
            return inner(self, *given)

        monkeypatch.setattr(resume._Resumed, way, noted)
    both = [[found(pattern, trace(seed), compiled=compiled) for seed in range(20)] for compiled in (True, False)]
    assert both[0] == both[1]
    assert sum(map(len, both[0])) > 20
    assert taken == ways
