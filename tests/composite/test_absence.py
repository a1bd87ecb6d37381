"""Negated events are not forgotten at a limit: a limit may lose detections, but adds none."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_flat import EXAMPLES, Near
from worlds import KINDS, events, gappy, profile

from likewise.composite import Detector, Limits
from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    ExclusiveOr,
    Field,
    Member,
    Negation,
    Operator,
    Pattern,
    Predicate,
    Profile,
    Sequence,
    parse,
)
from likewise.matching import Matcher

POLICIES: tuple[Literal["drop oldest", "refuse"], ...] = ("drop oldest", "refuse")


@st.composite
def silences(draw: st.DrawFn) -> Composite:
    """Patterns with a negation, with or without a window, or an `xor`; all pairs."""
    size, near = draw(st.integers(1, 3)), draw(st.booleans())

    def part(name: str) -> Member:
        [kind] = profile(draw(st.sampled_from(KINDS))).predicates
        return Member(Profile((Predicate("kind", Operator.EQ, kind.value, value_approximate=near),)), name)

    names = "abc"[:size]
    parts: list[Pattern] = [part(name) for name in names]
    if size == 2 and draw(st.booleans()):
        return Composite(ExclusiveOr(tuple(parts), draw(st.sampled_from((2, 5)))))
    after = draw(st.integers(1, size))
    parts.insert(after, Negation(part("n")))
    within = draw(st.sampled_from((2, 5, 8) if after == size else (None, 2, 5, 8)))
    where = [Binding(Field(name, "room"), Operator.EQ, Field("n", "room")) for name in draw(st.sampled_from(("", "a")))]
    return Composite(Sequence(tuple(parts), within), tuple(where))


@EXAMPLES
@given(silences(), gappy(most=16), st.integers(1, 4), st.sampled_from(POLICIES), st.booleans())
def test_a_limit_makes_no_detection(
    composite: Composite, trace: list[Event], most: int, policy: Literal["drop oldest", "refuse"], compiled: bool
) -> None:
    """Detections with a limit are also detected without one, with at least the same probability."""

    def found(limits: Limits) -> list[object]:
        matcher = Matcher(Near(), approach="approximate", threshold=0.3)
        detector = Detector(matcher=matcher, limits=limits, compiled=compiled)
        detector.add("p", composite)
        return [detection.signature for detection in (*detector.publish_batch(trace), *detector.advance(100))]

    assert set(found(Limits(most, policy))) <= set(found(Limits()))


@pytest.mark.parametrize("compiled", [True, False])
def test_what_breaks_others_is_no_instance(compiled: bool) -> None:
    """A11 breaks C10, which is removed at the end of that moment; A11 itself never waits."""
    [pattern] = parse("p: {kind = C} as a then not {kind = A} as n then {kind = A} as b within 2 us")
    detector = Detector([pattern], limits=Limits(1), compiled=compiled)
    found = detector.publish_batch(events("C10 A11 A12"))
    assert [[e.id for e in detection.members] for detection in found] == [["C10", "A11"]]
    [state] = detector.state()
    assert (state.held, state.dropped, state.stops) == (0, 0, {})


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_broken_is_told_once(compiled: bool) -> None:
    """B11 broke A10: neither C12 nor D13 follow it."""
    c, d = "{kind = C} as c", "{kind = D} as d"
    [pattern] = parse(f"p: {{kind = A}} as a then not {{kind = B}} as b then {c} then {d} within 5 us")
    detector = Detector([pattern], limits=Limits(1), compiled=compiled)
    assert detector.publish_batch(events("A10 B11 C12 D13")) == []
    assert detector.state()[0].stops == {"at c: b happened": 1}


@pytest.mark.parametrize("policy", POLICIES)
def test_without_a_window_those_who_ask_for_most_of_it_go(policy: Literal["drop oldest", "refuse"]) -> None:
    """B6 is the fourth `b`: the older half is dropped, with A1 and A4, which need it."""
    [pattern] = parse("p: {kind = A} as a then not {kind = B} as b then {kind = C} as c where b.room = c.room")
    detector = Detector([pattern], limits=Limits(3, policy))
    assert detector.publish_batch(events("A1 B2 B3 A4 B5 B6", room=1)) == []
    assert detector.state()[0].stops == {"at c: the limit was reached": 2}
    found = detector.publish_batch(events("A7 B8 B9 A10 C11", room=1))
    assert [[e.id for e in detection.members] for detection in found] == [["A10", "C11"]]
    [state] = detector.state()
    assert (state.held, state.dropped, state.stops["b happened"]) == (2, 2, 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_keeps_others_from_being_alone_is_not_forgotten(policy: Literal["drop oldest", "refuse"]) -> None:
    """B1 is within 3 of A2, A3 and A4, whatever the limit; so none of them waits."""
    [pattern] = parse("p: {kind = A} as a xor {kind = B} as b within 3 us")
    detector = Detector([pattern], limits=Limits(1, policy))
    found = detector.publish_batch(events("B1 A2 A3 A4 A5")) + detector.advance(20)
    assert [[e.id for e in detection.members] for detection in found] == [["A5"]]
    assert (detector.state()[0].held, detector.state()[0].dropped) == (0, 0)
