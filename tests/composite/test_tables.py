"""Examples 2 and 3, and every row of tables 1 and 2 of paper 003."""

from __future__ import annotations

from collections.abc import Iterable

from worlds import Hit, SimpleMatcher, event, events, member

from likewise.composite import Detector
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import (
    Composite,
    Conjunction,
    Consumption,
    Disjunction,
    Duplicates,
    Keep,
    Member,
    Negation,
    Pattern,
    Selection,
    Sequence,
)

A, B, C = (member(kind) for kind in "ABC")
UNIQUE = Consumption.UNIQUE


def run(root: Pattern, trace: Iterable[Event], *, until: int = 100, consume: Consumption | None = None) -> list[str]:
    """Detections as `events@time`."""
    detector = Detector()
    detector.add("p", Composite(root, (), consume))
    found = [detection for e in trace for detection in detector.publish(e)] + detector.advance(until)
    return [" ".join(e.id for e in detection.members) + f"@{detection.time}" for detection in found]


def keep(profile: Member, how: Keep, nth: int | None = None) -> Member:
    return Member(profile.profile, profile.alias, Duplicates(how, nth))


class CountingMatcher(SimpleMatcher):
    """Counts how many profiles are awaited when an event comes."""

    detector: Detector
    asked = 0

    def match(self, happened: Event) -> Iterable[Hit]:
        self.asked += self.detector.active
        return super().match(happened)


class TestExamples:
    """The trace of examples 2 and 3; T is 4."""

    def test_example_2_only_the_last_two_events_match(self) -> None:
        # e3, e4, e6 are of E1, the others of E2; e5 comes later than T after e3 and e4.
        trace = events("B1 B2 A3 A4 B10 A11 B12")
        assert run(Sequence((A, B), 4), trace) == ["A11 B12@12"]

    def test_example_3_only_what_can_contribute_is_evaluated(self) -> None:
        # e1, e2, e5, e7 are of E1 and e3, e4, e6 of E2.
        trace = events("A1 A2 B8 B9 A10 B12 A13")
        asked = {}
        for kind in (Detector, TwoStepDetector):
            matcher = CountingMatcher()
            matcher.detector = detector = kind(matcher=matcher)
            detector.add("p", Composite(Sequence((A, B), 4)))
            found = [[e.id for e in detection.members] for e in trace for detection in detector.publish(e)]
            assert found == [["A10", "B12"]]
            asked[kind] = matcher.asked
        # Two steps ask both profiles for 7 events. One step asks E2 only while an e1 waits: not at e1, and
        # at e3, e4 and e5 no more, since the terminator was there before.
        assert asked == {Detector: 14 - 4, TwoStepDetector: 14}


class TestTable1:
    def test_sequence(self) -> None:
        assert run(Sequence((A, B), 5), events("B1 A2 B3")) == ["A2 B3@3"]

    def test_sequence_counts_a_distance_equal_to_t(self) -> None:
        assert run(Sequence((A, B), 5), events("A1 B6 B7")) == ["A1 B6@6"]

    def test_sequence_of_the_same_moment_is_in_no_order(self) -> None:
        assert run(Sequence((A, B), 5), events("A1 B1")) == []

    def test_nested_sequence_begins_after_what_it_follows(self) -> None:
        """`a then (b then c)` inserts b only after a."""
        assert run(Sequence((A, Sequence((B, C)))), events("B1 A2 C3 B4 C5")) == ["A2 B4 C5@5"]

    def test_conjunction_in_any_order(self) -> None:
        assert run(Conjunction((A, B), 5), events("B1 A2 B7 B8")) == ["A2 B1@2", "A2 B7@7"]

    def test_disjunction(self) -> None:
        assert run(Disjunction((A, B)), events("A1 C2 B3")) == ["A1@1", "B3@3"]

    def test_negation_each_event_starts_it_anew(self) -> None:
        # From the start at 0 no silence lasts 5 until the A at 3; then one ends at 8, once.
        assert run(Negation(A, 5), events("C0 A3"), until=30) == ["@8"]

    def test_negation_is_broken_by_an_event_at_its_very_end(self) -> None:
        assert run(Negation(A, 5), events("C0 A5"), until=9) == []

    def test_selection_of_the_ith(self) -> None:
        assert run(Selection(A, 3), events("A1 B2 A3 A4 A5")) == ["A4@4"]

    def test_selection_after_another_event_counts_from_there(self) -> None:
        assert run(Sequence((B, Selection(A, 2))), events("A1 B2 A3 A4")) == ["B2 A4@4"]


class TestTable2:
    TRACE = "A1 A2 B3 A4 B5"

    def test_all_duplicates_all_pairs(self) -> None:
        assert run(Sequence((A, B), 9), events(self.TRACE)) == ["A1 B3@3", "A2 B3@3", "A1 B5@5", "A2 B5@5", "A4 B5@5"]

    def test_first_duplicate_removes_the_profile_after_the_match(self) -> None:
        assert run(Sequence((keep(A, Keep.FIRST), B), 9), events(self.TRACE)) == ["A1 B3@3", "A1 B5@5"]

    def test_first_duplicate_is_sought_again_when_the_window_is_over(self) -> None:
        assert run(Sequence((keep(A, Keep.FIRST), B), 2), events("A1 A2 B3 A4 B5")) == ["A1 B3@3", "A4 B5@5"]

    def test_last_duplicate_keeps_updating(self) -> None:
        assert run(Sequence((keep(A, Keep.LAST), B), 9), events(self.TRACE)) == ["A2 B3@3", "A4 B5@5"]

    def test_last_duplicate_at_the_end_is_known_when_the_window_is_over(self) -> None:
        assert run(Sequence((A, keep(B, Keep.LAST)), 5), events("A1 B2 B4 B9")) == ["A1 B4@6"]

    def test_nth_duplicate(self) -> None:
        assert run(Sequence((keep(A, Keep.NTH, 2), B), 9), events(self.TRACE)) == ["A2 B3@3", "A2 B5@5"]

    def test_unique_pairs_remove_what_matched(self) -> None:
        assert run(Sequence((A, B), 9), events(self.TRACE), consume=UNIQUE) == ["A1 B3@3", "A2 B5@5"]

    def test_first_and_unique_give_first_pairs(self) -> None:
        """The security staff: a window, then the first presence, and again for the next window."""
        pattern = Sequence((keep(A, Keep.FIRST), B), 9)
        assert run(pattern, events("A1 A2 B3 B4 A5 B6"), consume=UNIQUE) == ["A1 B3@3", "A5 B6@6"]

    def test_one_notification_for_three_peaks_and_one_crossing(self) -> None:
        """The chemical technician: three temperature peaks, the humidity but once."""
        assert run(Conjunction((A, B), 30), events("A1 A2 A3 B4"), consume=UNIQUE) == ["A1 B4@4"]


class TestMoreNegation:
    def test_then_not_fires_when_the_window_is_over(self) -> None:
        assert run(Sequence((A, Negation(B)), 5), events("A1 C2"), until=6) == ["A1@6"]

    def test_then_not_is_stopped_by_an_event_at_the_limit(self) -> None:
        assert run(Sequence((A, Negation(B)), 5), events("A1 B6"), until=20) == []

    def test_not_in_between(self) -> None:
        pattern = Sequence((A, Negation(B), C), 9)
        assert run(pattern, events("A1 C2 B3 C4 A5 C6")) == ["A1 C2@2", "A5 C6@6"]

    def test_not_before(self) -> None:
        assert run(Sequence((Negation(B), C), 3), events("B1 C3 C4 C5")) == ["C5@5"]

    def test_near_matches_count_against_it(self) -> None:
        detector = Detector(matcher=SimpleMatcher())
        detector.add("p", Composite(Sequence((A, Negation(B)), 5)))
        detector.publish(event("A", 1, p=0.5))
        detector.publish(event("C", 2, near="B"))
        [found] = detector.advance(6)
        assert found.probability == 0.5 * (1 - 0.25)


def test_profiles_of_the_same_kind_share_one_place_in_the_pool() -> None:
    matcher = SimpleMatcher()
    detector = Detector(matcher=matcher)
    for name in "xyz":
        detector.add(name, Composite(Sequence((A, B), 5)))
    assert len(matcher.profiles) == 2
    detector.publish(event("C", 1))
    assert detector.active == 1
    detector.publish(event("A", 2))
    assert detector.active == 2
