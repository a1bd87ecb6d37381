"""Counts, for each value of an attribute where a member is set equal to itself."""

from __future__ import annotations

import pytest
from brute_force import Trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_equality import Rooms
from worlds import SimpleMatcher, event, events, match, member, relate, traces

from likewise.composite import Detector, Limits
from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    Consumption,
    Field,
    Negation,
    Operator,
    Pattern,
    Repetition,
    Selection,
    Sequence,
    parse,
)

EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
SAME = Binding(Field("a", "room"), Operator.EQ, Field("a", "room"))


def found(text: str, trace: list[Event]) -> list[str]:
    detector = Detector(parse(f"p: {text}"))
    return [" ".join(e.id for e in detection.members) for e in trace for detection in detector.publish(e)]


@st.composite
def counted(draw: st.DrawFn) -> Composite:
    """A count by room, alone or as part of something."""
    inner: Pattern = member("A", "a")
    if draw(st.integers(0, 3)) == 0:
        inner = Sequence((inner, member("B", "x")), 5)
    within = draw(st.sampled_from((None, 2, 4, 8)))
    least = draw(st.integers(1, 3))
    count = draw(
        st.sampled_from(
            (Repetition(inner, least, least, within), Repetition(inner, least, least + 1, within),
             Selection(inner, least, within))
        )
    )  # fmt: skip
    outer = draw(
        st.sampled_from(
            (count, Sequence((count, member("C", "c"))), Sequence((member("C", "c"), count), 8),
             Sequence((member("C", "c"), Negation(count)), 4), Selection(count, 2))
        )
    )  # fmt: skip
    where = [SAME]
    if draw(st.booleans()):
        where.append(Binding(Field("a", "level"), Operator.EQ, Field("a", "level")))
    return Composite(outer, tuple(where), draw(st.sampled_from((None, Consumption.UNIQUE))))


@EXAMPLES
@given(counted(), traces(most=14, doubtful=True), st.integers(0, 14))
def test_a_count_for_each_value_is_as_defined(composite: Composite, trace: list[Event], cut: int) -> None:
    """With a restart in the middle."""
    horizon = (trace[-1].end if trace else 10) + 9
    made = Detector(matcher=SimpleMatcher(), measure=Rooms())
    made.add("p", composite)
    out = [detection for e in trace[:cut] for detection in made.publish(e)]
    made = Detector.restore(made.snapshot(), matcher=SimpleMatcher(), measure=Rooms())
    out += [detection for e in trace[cut:] for detection in made.publish(e)] + made.advance(horizon)
    defined = Trace(composite, trace, match=match, horizon=horizon, threshold=0.1, relate=relate).detections()
    assert [
        (detection.time, [e.id for e in detection.members], round(detection.probability, 9)) for detection in out
    ] == [(f.time, [e.id for _, _, e in f.roles], round(f.p, 9)) for f in defined]


def test_three_in_one_room_whatever_happens_in_others() -> None:
    trace = [event("A", time, id=f"{room}{time}", room=room) for time, room in enumerate("xyxyyzx", start=1)]
    text = "3 times {kind = A} as a within 10 us"
    assert found(text, trace) == ["x1 y2 x3", "y2 x3 y4", "x3 y4 y5", "y4 y5 z6", "y5 z6 x7"]
    assert found(f"{text} where a.room = a.room", trace) == ["y2 y4 y5", "x1 x3 x7"]


def test_the_third_in_each_room() -> None:
    trace = [event("A", time, id=f"{room}{time}", room=room) for time, room in enumerate("xyxyyxx", start=1)]
    assert found("3rd {kind = A} as a where a.room = a.room", trace) == ["y5", "x6"]
    # Windows open with an A of the room: x at 1, and again at 6.
    assert found("2nd {kind = A} as a within 2 us where a.room = a.room", trace) == ["x3", "y4", "x7"]


def test_an_event_without_the_attribute_is_not_counted() -> None:
    trace = [*events("A1 A2"), event("A", 3, room="x"), event("A", 4, room="x")]
    assert found("2 times {kind = A} as a where a.room = a.room", trace) == ["A3 A4"]


@pytest.mark.parametrize("text", ["3 times {kind = A} as a within 10 us", "3rd {kind = A} as a within 10 us"])
def test_rooms_that_are_quiet_cost_nothing(text: str) -> None:
    detector = Detector(parse(f"p: {text} where a.room = a.room"))
    detector.publish_batch([event("A", time, id=str(time), room=str(time)) for time in range(1000)])
    assert detector.state()[0].held <= 11
    assert len(detector.snapshot()) < 4000


def test_rooms_beyond_the_limit_are_dropped() -> None:
    detector = Detector(parse("p: 2 times {kind = A} as a where a.room = a.room"), limits=Limits(5))
    detector.publish_batch([event("A", time, id=str(time), room=str(time)) for time in range(9)])
    assert [detection.members[0].id for detection in detector.publish(event("A", 9, room="4"))] == ["4"]
    assert detector.publish(event("A", 10, room="3")) == []
    # Four of the nine rooms; one for room 3, which starts again.
    assert detector.state()[0].dropped == 4 + 1
