"""Small traces with answers derived by hand from 003 section 2 and tables 1 and 2, on every path.

`A3` is an A at 3, `A1-5` one from 1 to 5 (its time is 5), `A3'` another A at 3, `A3:7` one of value 7.
"""

from __future__ import annotations

import re

import pytest

from likewise.composite import Detector
from likewise.evaluation.two_step import TwoStepDetector
from likewise.events import Event
from likewise.language import parse

A, B, C = (f"{{kind = {kind}}} as {kind.lower()}" for kind in "ABC")

CASES = {
    # sequence: times strictly rise, and a distance equal to the window counts
    "equal times are in no order": (f"{A} then {B} within 1 us", "A5 A5' B5 B6", ["A5 B6@6", "A5' B6@6"]),
    "an interval's time is its end": (f"{A} then {B} within 2 us", "B2-5 A1-10 B3-12", ["A1-10 B3-12@12"]),
    "the window is that of the whole": (f"{A} then {B} then {C} within 4 us", "A1 B3 C5 C6", ["A1 B3 C5@5"]),
    # absence at the end: after a, up to and including the end of the window
    "a b of a's own time does not break it": (f"{A} then not {B} within 3 us", "A1 B1", ["A1@4"]),
    "a b at the very end breaks it": (f"{A} then not {B} within 3 us", "A1 B4", []),
    "a b after the end is too late": (f"{A} then not {B} within 3 us", "A1 B5", ["A1@4"]),
    "a b that began before a and ends after it": (f"{A} then not {B} within 3 us", "A1 B0-2", []),
    "each a has its own window": (f"{A} then not {B} within 3 us", "A1 A3 B5", ["A1@4"]),
    "the first of duplicates holds its place": (f"first {A} then not {B} within 3 us", "A1 A2 A4 A5", ["A1@4", "A5@8"]),
    "the second silence frees it too": (
        f"first {A} then (not {A[:-1]}x for 5 us) then (not {B} for 5 us)",
        "A1 B7 A8",
        ["A8@18"],
    ),
    "what comes after the silence does not free it": (
        f"first {A} then not {B} then (not {C} for 1 us) within 8 us",
        "A1 B4 A5 A10",
        ["A1@2", "A10@11"],
    ),
    "no window at all": (f"{A} then not {B} within 0 us", "A1 B1 B2", ["A1@1"]),
    "after two": (f"{A} then {C} then not {B} within 5 us", "A1 C2 C3 B7", ["A1 C2@6", "A1 C3@6"]),
    "after two, broken for one": (f"{A} then {C} then not {B} within 5 us", "A1 C2 B3 C4", ["A1 C4@6"]),
    "after two, unique": (f"{A} then {C} then not {B} within 5 us consume unique", "A1 C2 C3", ["A1 C2@6"]),
    # absence in the middle: strictly between the two times
    "a b of c's own time does not break it": (f"{A} then not {B} then {C} within 5 us", "A1 B3 C3 C4", ["A1 C3@3"]),
    "nor one of a's": (f"{A} then not {B} then {C} within 5 us", "A1 B1 C2", ["A1 C2@2"]),
    "an a after the b is not broken": (f"{A} then not {B} then {C} within 5 us", "A1 B2 A3 C4", ["A3 C4@4"]),
    "by its end, whenever it began": (f"{A} then not {B} then {C} within 9 us", "A1 B0-3 C2-5 C6", []),
    "unique, then broken": (
        f"{A} then not {B} then {C} within 5 us consume unique", "A1 A2 C3 B4 C5", ["A1 C3@3"],
    ),
    # the other absences
    "a silence begins with the first event": (f"not {A} for 3 us", "C1 C9", ["@4"]),
    "and anew with every a, also at its end": (f"not {A} for 3 us", "C1 A2 A5", ["@8"]),
    "silent for a time of its own": (f"{A} then not {B} for 2 us then {C} within 5 us", "A1 C2 C3 C4", ["A1 C4@4"]),
    "which a b at its end breaks": (f"{A} then not {B} for 2 us then {C} within 5 us", "A1 B3 C4", []),
    "before c, not at it, and up to t before": (f"not {B} then {C} within 3 us", "B1 C4 C5 B6 C6", ["C5@5", "C6@6"]),
    "beside, on either side": (f"{A} and not {B} within 2 us", "A3 B5 A8 B11 A13", ["A8@10"]),
    # and, or, xor
    "together at the same time": (f"{A} and {B} within 2 us", "B1 A3 A4 B4", ["A3 B1@3", "A3 B4@4", "A4 B4@4"]),
    "either, then c": (f"({A} or {B}) then {C}", "A1 B1 C1 C2", ["A1 C2@2", "B1 C2@2"]),
    "alone": (f"{A} xor {B} within 2 us", "A1 B4 A6", ["A1@3"]),
    # counts
    "runs of two and three": (
        f"2 to 3 times {A} within 2 us", "A1 A2 A3 A5", ["A1 A2@2", "A1 A2 A3@3", "A2 A3@3", "A3 A5@5"],
    ),
    "two of the same time are not in a row": (f"2 times {A} within 5 us", "A1 A1' A2", ["A1' A2@2"]),
    "a window opens with an a, and includes its end": (f"2nd {A} within 2 us", "A1 A3 A4 A5 A6", ["A3@3", "A5@5"]),
    "the third since the start": (f"3rd {A}", "A1 A2 A2' A3", ["A2'@2"]),
    # numbers
    "more by more than five": (
        f"{A} then {B} within 9 us where b.v > a.v + 5", "A1:1 B2:6 B3:7 B4:6.5", ["A1:1 B3:7@3", "A1:1 B4:6.5@4"],
    ),
    # Allen
    "overlaps": (f"{A} overlaps {B}", "A1-3 A1-5 B3-8 B5-9", ["A1-5 B3-8@8"]),
    "a point at the edge starts it": (f"{A} starts {B}", "A3 A2-4 B3-8", ["A3 B3-8@8"]),
    "during, known when the longer one ends": (
        f"{A} during {B} within 3 us", "A2-3 A4-6 B1-8 B1-9", ["A4-6 B1-8@8", "A4-6 B1-9@9"],
    ),
    "equal": (f"{A} equals {B}", "B2-4 A2-4 A3-4", ["A2-4 B2-4@4"]),
}  # fmt: skip


def trace(text: str) -> list[Event]:
    out = []
    for word in text.split():
        kind, start, end, value = re.fullmatch(r"(\w)(\d+)(?:-(\d+))?'?(?::([\d.]+))?", word).groups()  # type: ignore[union-attr]
        extra = (("v", float(value)),) if value else ()
        out.append(Event(word, (("kind", kind), *extra), (), int(start), int(end or start)))
    return out


def detected(detector: Detector, stream: list[Event], how: str) -> list[str]:
    if how == "batch":
        # Others of the first moment, so that there are enough for a batch.
        moment = stream[0].end
        noise = [Event(f"d{number}", (("kind", "D"),), (), moment, moment) for number in range(9)]
        found = detector.publish_batch([*noise, *stream])
    else:
        found = [detection for e in stream for detection in detector.publish(e)]
    found += [detection for moment in range(stream[-1].end or 0, 20) for detection in detector.advance(moment)]
    return [" ".join(e.id for e in detection.members) + f"@{detection.time}" for detection in found]


@pytest.mark.parametrize("how", ["batch", "compiled", "general", "two steps", "by day"])
@pytest.mark.parametrize(("text", "events", "expected"), CASES.values(), ids=CASES)
def test_by_hand(text: str, events: str, expected: list[str], how: str) -> None:
    """`by day` moves all by a day and 17 microseconds: only distances count."""
    pattern, stream, shift = parse(f"p: {text}"), trace(events), 0
    if how == "by day":
        shift = 86_400_000_017
        stream = [Event(e.id, e.tuples, (), (e.start or 0) + shift, (e.end or 0) + shift) for e in stream]
        detector = Detector(pattern)
        found = detector.publish_batch(stream) + detector.advance(shift + 20)
        assert [
            " ".join(e.id for e in detection.members) + f"@{detection.time - shift}" for detection in found
        ] == expected
        return
    detector = TwoStepDetector(pattern) if how == "two steps" else Detector(pattern, compiled=how != "general")
    assert detected(detector, stream, how) == expected


@pytest.mark.parametrize("compiled", [True, False])
def test_when_only_advance_moves_time(compiled: bool) -> None:
    detector = Detector(parse(f"p: {A} then not {B} within 3 us"), compiled=compiled)
    assert detector.publish(*trace("A1")) == []
    assert detector.due == 4
    assert detector.advance(3) == []
    [found] = detector.advance(4)
    assert (found.time, found.start, found.end, found.probability) == (4, 1, 1, 1.0)
    # An event at 4 is late now: all events up to 4 were declared complete.
    assert detector.publish(*trace("B4")) == []
    assert detector.late == 1
    assert detector.advance(100) == []
