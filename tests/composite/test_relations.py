"""Allen's thirteen relations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import event, member

from likewise.composite import Detector, relation_of
from likewise.composite.plan.conditions import INVERSE, NEEDS_DISTANCE, NEEDS_LENGTH_LEFT, NEEDS_LENGTH_RIGHT
from likewise.language import Allen, Composite, Relation

intervals = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda pair: (min(pair), max(pair)))

CASES = {
    Allen.BEFORE: ((1, 2), (3, 4)),
    Allen.AFTER: ((3, 4), (1, 2)),
    Allen.MEETS: ((1, 2), (2, 4)),
    Allen.MET_BY: ((2, 4), (1, 2)),
    Allen.OVERLAPS: ((1, 3), (2, 4)),
    Allen.OVERLAPPED_BY: ((2, 4), (1, 3)),
    Allen.STARTS: ((1, 2), (1, 4)),
    Allen.STARTED_BY: ((1, 4), (1, 2)),
    Allen.DURING: ((2, 3), (1, 4)),
    Allen.CONTAINS: ((1, 4), (2, 3)),
    Allen.FINISHES: ((3, 4), (1, 4)),
    Allen.FINISHED_BY: ((1, 4), (3, 4)),
    Allen.EQUALS: ((1, 4), (1, 4)),
}


@pytest.mark.parametrize("relation", list(Allen))
def test_each_relation_has_its_example(relation: Allen) -> None:
    assert relation_of(*CASES[relation]) is relation


@given(intervals, intervals)
def test_swapping_the_sides_inverts(left: tuple[int, int], right: tuple[int, int]) -> None:
    assert relation_of(right, left) is INVERSE[relation_of(left, right)]


@given(intervals, intervals)
def test_what_is_called_impossible_is(left: tuple[int, int], right: tuple[int, int]) -> None:
    relation = relation_of(left, right)
    assert left[1] != right[1] or relation not in NEEDS_DISTANCE
    assert left[0] < left[1] or relation not in NEEDS_LENGTH_LEFT
    assert right[0] < right[1] or relation not in NEEDS_LENGTH_RIGHT


@pytest.mark.parametrize("relation", list(Allen))
def test_the_detector_finds_exactly_the_relation(relation: Allen) -> None:
    detector = Detector()
    for wanted in Allen:
        detector.add(wanted.value, Composite(Relation(member("A"), wanted, member("B"))))
    left, right = CASES[relation]
    both = [event("A", left[1], start=left[0]), event("B", right[1], start=right[0])]
    found = detector.publish_batch(sorted(both, key=lambda e: e.end))
    assert [detection.pattern for detection in found] == [relation.value]
