"""Patterns of patterns by name: each keeps its own choice of duplicates, threshold and consumption."""

from __future__ import annotations

from brute_force import Trace
from hypothesis import assume, given
from hypothesis import strategies as st
from test_equality import EXAMPLES, Rooms, detected
from worlds import SimpleMatcher, event, events, families, match, pairs, relate, traces

from likewise.composite import Detector
from likewise.errors import BuildError
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import Composite, Subscription, parse

Family = tuple[Composite, list[Subscription]]
BASE = "a: {kind = A}\nb: {kind = B}\nc: {kind = C}\n"


def defined(family: Family, trace: list[Event], horizon: int) -> list[object]:
    composite, known = family
    named = {subscription.name: subscription for subscription in known}
    made = Trace(composite, trace, match=match, horizon=horizon, threshold=0.1, relate=relate, known=named)
    return [
        ("p", f.time, f.start, f.end, tuple((a, e.id, e.start, e.end) for a, _, e in f.roles), round(f.p, 9))
        for f in made.detections()
    ]


def detector(family: Family, kind: type[Detector] = Detector, **options: object) -> Detector:
    composite, known = family
    made = kind(**{"matcher": SimpleMatcher(), "measure": Rooms(), "relatedness": 0.1} | options)  # type: ignore[arg-type]
    for subscription in known:
        made.define(subscription)
    try:
        made.add("p", composite)
    except BuildError:
        assume(False)
    return made


def horizon_of(trace: list[Event]) -> int:
    return (trace[-1].end if trace else 10) + 9


@EXAMPLES
@given(families(meaning=True) | pairs(), traces(doubtful=True, most=12))
def test_single_step_is_the_definition(family: Family, trace: list[Event]) -> None:
    horizon = horizon_of(trace)
    assert detected(detector(family), trace, horizon) == defined(family, trace, horizon)


@EXAMPLES
@given(families() | pairs(), traces())
def test_two_steps_find_the_same(family: Family, trace: list[Event]) -> None:
    horizon = horizon_of(trace)
    assert detected(detector(family, TwoStepDetector), trace, horizon) == defined(family, trace, horizon)


@EXAMPLES
@given(families(meaning=True) | pairs(), traces(doubtful=True, most=12), st.integers(0, 9))
def test_a_restart_changes_nothing(family: Family, trace: list[Event], cut: int) -> None:
    horizon = horizon_of(trace)
    made = detector(family)
    before = [detection.signature for event in trace[:cut] for detection in made.publish(event)]
    again = Detector.restore(made.snapshot(), matcher=SimpleMatcher(), measure=Rooms())
    assert before + detected(again, trace[cut:], horizon) == defined(family, trace, horizon)


def found(text: str, trace: list[Event], *, until: int = 100) -> list[str]:
    """Detections of the pattern `p` as `events@time`, the same with both methods."""
    subscriptions = parse(BASE + text)
    results = []
    for kind in (Detector, TwoStepDetector):
        made = kind(subscriptions, matcher=SimpleMatcher())
        out = [detection for e in trace for detection in made.publish(e)] + made.advance(until)
        results.append(
            [
                " ".join(e.id for e in detection.members) + f"@{detection.time}"
                for detection in out
                if detection.pattern == "p"
            ]
        )
    assert results[0] == results[1]
    return results[0]


class TestNames:
    def test_a_name_has_its_own_consumption(self) -> None:
        trace = events("A1 A2 B3 C4")
        assert found("pair: a then b\np: pair then c", trace) == ["A1 B3 C4@4", "A2 B3 C4@4"]
        assert found("pair: a then b consume unique\np: pair then c", trace) == ["A1 B3 C4@4"]

    def test_conditions_of_a_name_do_not_tell_apart_what_it_finds(self) -> None:
        """`either` needs a room; for `p` the silence at 4, which has no room, is still a duplicate of A2."""
        either = "quiet: not a as x for 2 us\neither: quiet as q or {kind = A} as y where y.room = y.room\n"
        trace = events("A1 A2", room="x")
        assert found(either + "p: a then first either", trace) == ["A1 A2@2", "A2@4"]
        assert found(either + "p: a then either", trace) == ["A1 A2@2", "A1@4", "A2@4"]

    def test_what_a_name_consumes_is_free_elsewhere(self) -> None:
        """`pair` consumes A1 and B2; B2 may still be the `b` of the whole."""
        text = "pair: a then b consume unique\np: pair as x and b as y within 50 us"
        assert found(text, events("A1 B2 B3")) == ["A1 B2 B3@3"]
        assert found("pair: a then b consume unique\np: (pair as x then c) and b as y", events("A1 B2 C3 B4")) == [
            "A1 B2 C3 B4@4"
        ]

    def test_every_use_of_a_name_consumes_for_itself(self) -> None:
        """After each c a new `pair` begins, which may use events that another one consumed."""
        text = "pair: a then b consume unique\np: c then pair"
        assert found(text, events("C1 C2 A3 A4 B5")) == ["C1 A3 B5@5", "C2 A3 B5@5"]

    def test_a_name_consumes_even_where_it_must_not_happen(self) -> None:
        # Only the pair A2 B3.
        text = "pair: a then b within 20 us consume unique\np: c then not (2nd pair) within 10 us"
        assert found(text, events("C0 A1 A2 B3"), until=30) == ["C0@10"]
        loose = text.replace(" consume unique", "")
        assert found(loose, events("C0 A1 A2 B3"), until=30) == []

    def test_a_name_has_its_own_threshold(self) -> None:
        trace = [event("A", 1, p=0.5), event("B", 2), event("C", 3)]
        assert found("sure: a then b threshold 0.6\np: sure then c", trace) == []
        assert found("sure: a then b threshold 0.4\np: sure then c", trace) == ["A1 B2 C3@3"]

    def test_a_name_keeps_its_own_choice_of_a_lone_member(self) -> None:
        assert found("one: first a\np: one then b", events("A1 A2 B3")) == ["A1 B3@3"]

    def test_a_condition_on_a_name_is_asked_of_what_it_found(self) -> None:
        """The second a must be in room x; it is not the second a of room x."""
        text = "second: 2nd a\np: second as s then b where s.room = x"
        rooms = [event("A", 1, room="x"), event("A", 2, room="y"), event("A", 3, room="x"), event("B", 4)]
        assert found(text, rooms) == []
        assert found(text.replace("2nd", "3rd"), rooms) == ["A3 B4@4"]

    def test_names_nest(self) -> None:
        text = "pair: a then b consume unique\ntwice: 2 times pair consume unique\np: twice then c"
        # A1 B3 and A2 B4 overlap, so the row restarts with the second.
        assert found(text, events("A1 A2 B3 B4 A5 B6 C7")) == ["A2 B4 A5 B6 C7@7"]
        assert found(text, events("A1 B2 A3 A4 B5 C6")) == ["A1 B2 A3 B5 C6@6"]


class TestLoneDuplicates:
    """Instance selection is for each event [003 sec 2.2], also where no other part waits."""

    def test_first_in_or(self) -> None:
        assert found("p: first a or b", events("A1 A2 B3 B4")) == ["A1@1", "B3@3", "B4@4"]

    def test_first_in_or_is_sought_again_when_it_was_consumed(self) -> None:
        assert found("p: (first a or b) consume unique", events("A1 A2 B3")) == ["A1@1", "A2@2", "B3@3"]

    def test_nth_in_not(self) -> None:
        text = "p: c then not 2nd duplicate a within 10 us"
        assert found(text, events("C0 A1"), until=20) == ["C0@10"]
        assert found(text, events("C0 A1 A2"), until=20) == []

    def test_first_in_a_count_counts_each_kind_once(self) -> None:
        """Three rooms, not three events: duplicates are those of one room."""
        text = "p: c as c then (3 times first a as a) where a.floor = c.floor and a.room = c.room"
        places = [("x", 1), ("x", 1), ("y", 1), ("z", 1)]
        trace = [Event("C0", (("kind", "C"), ("floor", 1), *(("room", r) for r in "xyz")), (), 0, 0)]
        trace += [event("A", k, room=room, floor=floor) for k, (room, floor) in enumerate(places, start=1)]
        assert found(text, trace) == ["C0 A1 A3 A4@4"]

    def test_first_in_xor_is_sought_again_when_its_time_is_over(self) -> None:
        assert found("p: first a xor b within 5 us", events("A1 A2 A7"), until=50) == ["A1@6", "A7@12"]


def test_ticks_of_a_name_in_branches_are_counted_one_by_one() -> None:
    """A tick has no event, but ticks of different moments are different instances."""
    text = "tick: every 2 us as t\np: 1 to 2 times (tick as x or tick as y) within 2 us where x.room = x.room"
    detector = Detector(parse(text), compiled=False)
    detections = [*detector.publish(*events("A3")), *detector.advance(8)]
    spans = [(detection.start, detection.time) for detection in detections if detection.pattern == "p"]
    assert spans == [(4, 4), (4, 6), (6, 6), (6, 8), (8, 8)]
