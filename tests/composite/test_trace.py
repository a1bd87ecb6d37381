"""A trace is the same on the compiled and the general path: events, roles, times and probabilities."""

from __future__ import annotations

import pytest

from likewise.composite import Detector
from likewise.events import Event
from likewise.language import parse
from likewise.matching import Matcher
from likewise.testing import TableMeasure

WORDS = {("smoke", "fumes"): 0.8, ("heat", "warmth"): 0.7, ("water", "sprinkler"): 0.6}
PATTERNS = (
    "p: {type~ = smoke~} as a then {type~ = heat~} as b within 10 s",
    "p: {type~ = smoke~} as a and {type~ = heat~} as b within 10 s",
    "p: {type~ = smoke~} as a then not {type~ = water~} as w then {type~ = heat~} as b within 10 s",
)


def detector(text: str, *, compiled: bool = True) -> Detector:
    return Detector(
        parse(text), matcher=Matcher(measure=TableMeasure(WORDS), approach="approximate"), compiled=compiled
    )


def stream() -> list[Event]:
    words = ("fumes", "sprinkler", "warmth")
    return [Event(word, (("type", word),), (), at * 1_000_000, at * 1_000_000) for at, word in enumerate(words, 1)]


@pytest.mark.parametrize("text", PATTERNS)
def test_members_have_their_own_probabilities_on_both_paths(text: str) -> None:
    (detection,), (general,) = (detector(text, compiled=way).publish_batch(stream()) for way in (True, False))
    assert detection.probability == pytest.approx(general.probability)
    assert detection.probability < 1
    for compiled, other in zip(detection.trace, general.trace, strict=True):
        assert replace_probability(compiled) == replace_probability(other)
        assert compiled.probability == pytest.approx(other.probability)
    probabilities = [line.probability for line in detection.trace if line.what == "event"]
    assert all(p is not None and detection.probability <= p < 1 for p in probabilities)


def replace_probability(line: object) -> object:
    import msgspec

    return msgspec.structs.replace(line, probability=None)


def test_a_trace_does_not_change_when_its_pattern_is_removed() -> None:
    made = detector(PATTERNS[0])
    (found,) = made.publish_batch(stream())
    before = found.trace
    made.remove("p")
    assert [line.event for line in found.trace] == ["fumes", "warmth"]
    assert found.trace == before


@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize("halves", ["batches", "a snapshot", "the general path"])
def test_members_keep_their_probabilities_while_they_wait(text: str, halves: str) -> None:
    """In later batches, after a snapshot, and if the pattern moves to the general path."""
    (whole,) = detector(text).publish_batch(stream())
    made = detector(text)
    made.publish_batch(stream()[:2])
    if halves != "batches":
        options = {"matcher": Matcher(measure=TableMeasure(WORDS), approach="approximate")}
        made = Detector.restore(made.snapshot(), **options, compiled=halves == "a snapshot")
    (found,) = made.publish_batch(stream()[2:])
    assert [line.probability for line in found.trace] == pytest.approx([line.probability for line in whole.trace])


def test_the_furthest_instance_has_the_probabilities_of_its_members() -> None:
    for way in (True, False):
        made = detector(PATTERNS[0], compiled=way)
        made.publish_batch(stream()[:1])
        made.advance(60_000_000)
        [state] = made.state()
        [line, *_] = state.partial
        (hit,) = detector(PATTERNS[0], compiled=way).publish_batch(stream())
        assert line.probability == pytest.approx(hit.trace[0].probability)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_time_beyond_the_calendar_is_told_by_its_number(compiled: bool) -> None:
    pattern = "p: {k = A} as a then {k = B} as b within 1 hour where a.v < b.v"
    far = 10**18
    detector = Detector(parse(pattern), compiled=compiled)
    for at, (kind, value) in enumerate((("A", 5), ("B", 1))):
        detector.publish(Event(kind, (("k", kind), ("v", value)), (), far + at, far + at))
    [state] = detector.state()
    assert state.furthest == f"had a = A, b = B; at b: a condition failed ({far + 1})"
