"""The detector: event time, refusals, limits, live changes, and its state."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import event, events, member

from likewise.composite import Detector, Limits, ranked
from likewise.composite.snapshot import VERSION
from likewise.errors import BuildError, InputError
from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    Consumption,
    Field,
    Negation,
    Operator,
    Options,
    Repetition,
    Sequence,
    Subscription,
    TimeEvent,
    parse,
)
from likewise.matching import Matcher
from likewise.semantics import Measure

A, B, C = (member(kind) for kind in "ABC")
PAIR = Composite(Sequence((A, B), 10))
SAME_ROOM = (Binding(Field("a", "room"), Operator.EQ, Field("b", "room")),)


def ids(found: list) -> list[str]:
    return ["".join(e.id for e in detection.members) for detection in found]


class TestEventTime:
    def test_events_wait_for_late_ones(self) -> None:
        detector = Detector(lateness=3)
        detector.add("p", PAIR)
        assert detector.publish(event("B", 5)) == []
        assert detector.publish(event("A", 4)) == []
        assert ids(detector.publish(event("C", 9))) == ["A4B5"]

    def test_later_ones_are_refused_with_the_reason(self) -> None:
        detector = Detector(lateness=3)
        detector.publish(event("A", 10))
        detector.publish(event("A", 7))
        detector.publish(event("A", 6))
        assert [(refusal.event.id, refusal.reason) for refusal in detector.refused] == [("A6", "it is too late")]
        assert detector.late == 1

    def test_timers_ring_by_event_time(self) -> None:
        detector = Detector()
        detector.add("p", Composite(Sequence((A, Negation(B)), 5)))
        detector.publish(event("A", 1))
        assert detector.publish(event("C", 6)) == []
        assert ids(detector.publish(event("C", 7))) == ["A1"]

    def test_advance_rings_timers_up_to_and_at_the_moment(self) -> None:
        detector = Detector()
        detector.add("p", Composite(Sequence((A, Negation(B)), 5)))
        detector.publish(event("A", 1))
        assert detector.advance(5) == []
        assert ids(detector.advance(6)) == ["A1"]

    def test_what_an_advance_has_passed_is_late(self) -> None:
        detector = Detector()
        detector.advance(5)
        detector.publish(event("A", 5))
        assert detector.late == 1

    def test_flush_takes_what_is_buffered(self) -> None:
        detector = Detector(lateness=100)
        detector.add("p", PAIR)
        detector.publish_batch(events("A1 B2"))
        assert ids(detector.flush()) == ["A1B2"]

    def test_the_next_moment_that_is_due(self) -> None:
        """A timer or a buffered event is due; ended items are not."""
        detector = Detector(lateness=3)
        detector.add("p", Composite(Sequence((A, Negation(B)), 5)))
        assert detector.due is None
        detector.publish(event("A", 10))
        assert detector.due == 10
        detector.advance(10)
        assert detector.due == 10 + 5
        detector.advance(15)
        assert detector.due is None

    def test_windows_of_compiled_patterns_are_due_too(self) -> None:
        detector = Detector()
        detector.add("p", Composite(Sequence((A, B), 10), (), Consumption.UNIQUE))
        detector.publish(event("A", 1))
        assert detector.due == 1 + 10
        detector.publish(event("B", 2))
        assert detector.due is None
        detector.publish(event("A", 3))
        detector.advance(13)
        assert detector.due is None

    def test_time_events(self) -> None:
        detector = Detector()
        detector.add("p", Composite(TimeEvent(every=10, alias="t")))
        detector.publish(event("A", 5))
        assert [detection.time for detection in detector.advance(30)] == [10, 20, 30]

    @pytest.mark.parametrize(
        ("bad", "why"),
        [
            (Event("x"), "it has no time"),
            (Event("x", (), (), 5, 4), "it ends before it starts"),
            (Event("x", (), (), 10**18, 10**18), "its clock jumps too far ahead"),
        ],
    )
    def test_bad_times_are_refused(self, bad: Event, why: str) -> None:
        refused: list = []
        detector = Detector(refuse=refused.append)
        detector.publish(event("A", 1))
        assert detector.publish(bad) == []
        assert [(refusal.event, refusal.reason) for refusal in refused] == [(bad, why)]


class TestBoundedState:
    @pytest.mark.parametrize("compiled", [True, False])
    def test_windows_expire(self, compiled: bool) -> None:
        detector = Detector(compiled=compiled)
        detector.add("p", PAIR)
        detector.publish_batch(events("A1 A2 A3"))
        assert detector.state()[0].held == 3
        detector.publish(event("C", 50))
        assert detector.state()[0].held == 0

    def test_a_profile_is_in_the_pool_only_while_it_can_contribute(self) -> None:
        detector = Detector(compiled=False)
        detector.add("p", PAIR)
        active = []
        for happened in events("C1 A2 C50"):
            detector.publish(happened)
            active.append(detector.active)
        assert active == [1, 2, 1]

    @pytest.mark.parametrize("compiled", [True, False])
    def test_at_the_limit_the_oldest_goes(self, compiled: bool) -> None:
        detector = Detector(limits=Limits(2), compiled=compiled)
        detector.add("p", Composite(Sequence((A, B))))
        assert ids(detector.publish_batch(events("A1 A2 A3 B4"))) == ["A2B4", "A3B4"]
        assert detector.state()[0].dropped == 1

    @pytest.mark.parametrize("compiled", [True, False])
    def test_at_the_limit_the_newest_is_refused(self, compiled: bool) -> None:
        detector = Detector(limits=Limits(2, "refuse"), compiled=compiled)
        detector.add("p", Composite(Sequence((A, B))))
        assert ids(detector.publish_batch(events("A1 A2 A3 B4"))) == ["A1B4", "A2B4"]
        assert detector.state()[0].dropped == 1

    def test_timers_of_what_is_gone_do_not_pile_up(self) -> None:
        detector = Detector(compiled=False)
        detector.add("p", Composite(Sequence((A, B), 10**9), (), Consumption.UNIQUE))
        detector.publish_batch([event("AB"[t % 2], t) for t in range(40_000)])
        assert len(detector._timers) < 20_000

    def test_unique_pairs_without_a_window_free_what_matched(self) -> None:
        detector = Detector()
        detector.add("p", Composite(Sequence((A, B)), (), Consumption.UNIQUE))
        detector.publish_batch(events("A1 B2 A3 B4"))
        assert detector.state()[0].held == 0


class TestValues:
    @pytest.mark.parametrize("compiled", [True, False])
    @pytest.mark.parametrize("batch", [True, False])
    def test_true_and_one_are_different_profiles(self, compiled: bool, batch: bool) -> None:
        """They are equal in Python, but a pattern must distinguish them."""
        [one, true] = parse("one: {x= 1} as a then {y= 1} as b\ntrue: {x= true} as a then {y= true} as b")
        detector = Detector([one, true], compiled=compiled)
        stream = [
            Event(str(t), ((name, value),), (), t, t)
            for t, (name, value) in enumerate((("x", True), ("y", 1), ("y", True), ("x", 1), ("y", True), ("y", 1)))
        ]
        found = (
            detector.publish_batch(stream)
            if batch
            else [detection for e in stream for detection in detector.publish(e)]
        )
        assert [(f.pattern, *(e.id for e in f.members)) for f in found] == [
            ("true", "0", "2"),
            ("true", "0", "4"),
            ("one", "3", "5"),
        ]


class TestLiveChanges:
    def test_a_new_pattern_sees_what_comes_after(self) -> None:
        detector = Detector()
        detector.publish(event("A", 1))
        detector.add("p", PAIR)
        assert detector.publish(event("B", 2)) == []
        assert ids(detector.publish_batch(events("A3 B4"))) == ["A3B4"]

    def test_a_silence_is_counted_from_when_the_pattern_came(self) -> None:
        detector = Detector()
        detector.publish(event("A", 10))
        detector.add("p", Composite(Negation(B, 5)))
        assert [detection.time for detection in detector.advance(100)] == [15]

    def test_a_removed_pattern_is_silent(self) -> None:
        detector = Detector()
        detector.add("p", PAIR)
        detector.publish(event("A", 1))
        detector.remove("p")
        assert detector.publish(event("B", 2)) == []
        with pytest.raises(BuildError, match="no pattern named 'p'"):
            detector.remove("p")

    def test_a_bad_replacement_leaves_the_old_one(self) -> None:
        detector = Detector()
        detector.add("p", PAIR)
        detector.publish(event("A", 1))
        with pytest.raises(BuildError):
            detector.replace("p", Composite(Negation(A)))
        assert ids(detector.publish(event("B", 2))) == ["A1B2"]

    def test_a_name_runs_once(self) -> None:
        detector = Detector()
        detector.add("p", PAIR)
        with pytest.raises(BuildError, match="already running"):
            detector.add("p", PAIR)


class TestSnapshots:
    @pytest.mark.parametrize("pattern", ["p: a then b within 10 s", "p: a then b then a"])
    def test_a_pattern_keeps_what_it_was_built_from(self, pattern: str) -> None:
        """Removed or changed names affect neither running patterns nor snapshots."""
        detector = Detector(parse(f"a: {{kind= A}}\nb: {{kind= B}}\n{pattern}"))
        detector.define(Subscription("a", parse("a: {kind= C}")[0].body))
        detector = Detector.restore(detector.snapshot())
        found = detector.publish_batch(events("C1 A2 B3 A4"))
        assert [e.id for e in found[0].members][:2] == ["A2", "B3"]
        assert found[0].trace[0].role == "a"

    @pytest.mark.parametrize("data", [b"", b"\x81\xa1a\x01", b"not a snapshot"])
    def test_foreign_bytes_are_refused(self, data: bytes) -> None:
        with pytest.raises(InputError, match="not a snapshot"):
            Detector.restore(data)

    def test_another_version_is_refused(self) -> None:
        data = Detector().snapshot().replace(b"\xa7version" + bytes([VERSION]), b"\xa7version\x7f")
        with pytest.raises(InputError, match="version 127"):
            Detector.restore(data)

    def test_names_and_settings_come_back(self) -> None:
        detector = Detector(parse("a: {kind= A}\np: a then {kind= B} within 10 s threshold 0.4"), lateness=7)
        again = Detector.restore(detector.snapshot())
        assert again.patterns == ("p",)
        assert again.lateness == 7
        again.add("q", parse("q: p then {kind= C}")[0].body)


class TestProbability:
    def test_members_multiply_and_the_threshold_decides(self) -> None:
        from worlds import SimpleMatcher

        detector = Detector(matcher=SimpleMatcher())
        detector.add("weak", PAIR, Options(threshold=0.3))
        detector.add("strong", PAIR, Options(threshold=0.5))
        detector.publish(event("A", 1, p=0.75))
        [found] = detector.publish(event("B", 2, p=0.5))
        assert (found.pattern, found.probability) == ("weak", 0.75 * 0.5)

    def test_mapped_names_are_used_by_conditions(self) -> None:
        """An event with `zone` instead of `room` can still be joined on `room`."""
        from likewise.composite.instance import FilledRole, RoleToken
        from likewise.composite.plan.conditions import values_of

        token = RoleToken(Event("1", (("zone", "kitchen"),), (), 1, 1), 0, 1)
        filled = FilledRole("a", token, 0.9, {"room": (("kitchen", 1.0), ("hall", 0.4))})
        assert values_of(filled, "room") == [("kitchen", 1.0), ("hall", 0.4)]
        assert values_of(filled, "zone") == [("kitchen", 1.0)]


class Rooms(Measure):
    """`zone` is close to `room`, and nothing else is related."""

    name = "rooms"
    symmetric = True

    def matrix(self, left: list[str], right: list[str], **_: object) -> np.ndarray:
        close = {frozenset(("room", "zone")): 0.8}
        return np.array(
            [[1.0 if x == y else close.get(frozenset((x, y)), 0.0) for y in right] for x in left], dtype=np.float32
        )


class TestByMeaning:
    PATTERN = """p: {type= window, room~= kitchen} as w then {type= presence, room~= kitchen} as p within 1 minute
                where w.room = p.room threshold 0.1"""

    @pytest.mark.parametrize("batch", [True, False])
    def test_members_are_joined_by_what_was_mapped(self, batch: bool) -> None:
        """One event has `zone`, the other `room`: the condition refers to the subscriber's `room`."""
        [pattern] = parse(self.PATTERN)
        matcher = Matcher(Rooms(), approach="approximate", threshold=0.1)
        detector = Detector([pattern], matcher=matcher)
        stream = [
            Event("w", (("type", "window"), ("zone", "kitchen")), (), 1, 1),
            Event("p", (("type", "presence"), ("room", "kitchen")), (), 2, 2),
        ]
        found = (
            detector.publish_batch(stream)
            if batch
            else [detection for e in stream for detection in detector.publish(e)]
        )
        assert [[e.id for e in detection.members] for detection in found] == [["w", "p"]]
        assert found[0].probability < 1

    def test_a_join_by_meaning_multiplies_its_relatedness(self) -> None:
        where = (Binding(Field("a", "place"), Operator.EQ, Field("b", "place"), approximate=True),)
        detector = Detector(measure=Rooms(), relatedness=0.5)
        detector.add("p", Composite(Sequence((A, B), 10), where))
        detector.publish(event("A", 1, place="room"))
        assert detector.publish(event("B", 2, place="garden")) == []
        [found] = detector.publish(event("B", 3, place="zone"))
        assert found.probability == pytest.approx(0.8)

    def test_the_surest_come_first(self) -> None:
        from worlds import SimpleMatcher

        detector = Detector(matcher=SimpleMatcher())
        detector.add("p", PAIR)
        found = detector.publish_batch([event("A", 1), event("B", 2, p=0.5), event("B", 3, p=0.75)])
        assert [detection.probability for detection in ranked(found)] == [0.75, 0.5]


class TestExplain:
    def test_the_trace_says_when_each_profile_was_active(self) -> None:
        detector = Detector()
        detector.add("p", PAIR)
        detector.publish(event("A", 1))
        [found] = detector.publish(event("B", 5))
        first, second = found.trace
        assert (first.role, first.event, first.time, first.activated) == ("a", "A1", 1, None)
        assert (second.role, second.event, second.activated, second.terminated) == ("b", "B5", 1, 1 + 10)

    def test_an_absence_has_its_line(self) -> None:
        detector = Detector()
        detector.add("p", Composite(Negation(A, 5)))
        detector.publish(event("B", 1))
        [found] = detector.advance(9)
        [line] = found.trace
        assert (line.what, line.role, line.start, line.time) == ("absence", "a", 1, 6)

    def test_a_repeated_member_has_several_events(self) -> None:
        detector = Detector()
        detector.add("p", Composite(Repetition(A, 2, 2)))
        [found] = detector.publish_batch(events("A1 A2"))
        assert [e.id for e in found.events["a"]] == ["A1", "A2"]
        assert [line.event for line in found.trace] == ["A1", "A2"]

    def test_how_far_it_came_and_why_it_stopped(self) -> None:
        detector = Detector(compiled=False)
        detector.add("p", Composite(Sequence((A, B), 10), SAME_ROOM))
        detector.publish(event("A", 1, room="hall"))
        detector.publish(event("C", 50))
        [state] = detector.state()
        assert state.stops == {"at b: the window was over": 1}
        assert state.furthest.startswith("had a = A1; at b: the window was over")

    def test_a_failed_condition_is_told(self) -> None:
        detector = Detector()
        where = (Binding(Field("b", "level"), Operator.GT, Field("a", "level", 5.0)),)
        detector.add("p", Composite(Sequence((A, B), 10), where))
        detector.publish(event("A", 1, level=4))
        assert detector.publish(event("B", 2, level=9)) == []
        assert ids(detector.publish(event("B", 3, level=10))) == ["A1B3"]
        assert detector.state()[0].stops == {"at b: a condition failed": 1}
