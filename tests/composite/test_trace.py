"""The trace of a detection: roles, what stayed away, and what was compared by meaning."""

from __future__ import annotations

from test_equality import Rooms
from worlds import SimpleMatcher, event, events

from likewise.composite import Detector, Line
from likewise.composite._report import detection_lines
from likewise.events import Event
from likewise.language import parse

BASE = "a: {kind = A}\nb: {kind = B}\nc: {kind = C}\n"


def traced(text: str, trace: list[Event], *, until: int = 50) -> list[Line]:
    made = Detector(parse(BASE + text), matcher=SimpleMatcher(), measure=Rooms(), relatedness=0.1)
    [found] = [one for e in trace for one in made.publish(e)] + made.advance(until)
    return found.trace


def test_a_join_by_meaning_has_its_own_line() -> None:
    """The rooms are half related: that is all the doubt there is."""
    trace = [event("A", 1, room="x"), event("B", 2, room="xx")]
    lines = traced("p: a then b where a.room ~ b.room", trace)
    assert [(line.role, line.what, line.probability) for line in lines] == [
        ("a", "event", 1.0),
        ("b", "event", 1.0),
        ("a.room ~ b.room", "condition", 0.5),
    ]


def test_what_stayed_away_has_its_own_line() -> None:
    """A near match of half a doubt: a quarter of it counts against the silence."""
    lines = traced("p: a then not b within 5 us", [event("A", 1, p=0.5), event("C", 2, near="B")])
    assert [(line.role, line.what, line.start, line.time, line.probability) for line in lines] == [
        ("a", "event", 1, 1, 0.5),
        ("b", "absence", 1, 6, 0.75),
    ]


def test_between_before_and_beside() -> None:
    spans = {
        "p: a then not b then c": ("A1 C4", (1, 4)),
        "p: not b then c within 3 us": ("A1 C4", (1, 4)),
        "p: a and c and not b within 9 us": ("A1 C4", (-5, 10)),
    }
    for text, (trace, span) in spans.items():
        [absent] = [line for line in traced(text, events(trace)) if line.what == "absence"]
        assert (absent.start, absent.time, absent.probability) == (*span, 1.0), text


def test_a_moment_is_called_by_its_time_of_day() -> None:
    made = Detector(parse("p: every 6 hours as tick"), matcher=SimpleMatcher())
    made.publish(event("A", 1))
    [found] = made.advance(6 * 3_600_000_000)
    assert list(detection_lines(found)) == ["1970-01-01 06:00:00  p  tick = 06:00:00"]
