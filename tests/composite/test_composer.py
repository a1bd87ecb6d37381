"""A composer returns the same detections for hits as a detector for events, in whatever way the hits are given."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_flat import plain_patterns
from worlds import SimpleMatcher, composites, event, gappy, traces
from worlds import match as matches

from likewise.composite import Composer, Detection, Detector, Hit, HitColumns, MemberProfile
from likewise.engine import Engine
from likewise.errors import BuildError, InputError
from likewise.events import Event, EventColumns
from likewise.language import Composite, parse
from likewise.matching import Matcher

EXAMPLES = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def hits_of(composer: Composer, happened: Event) -> list[Hit]:
    """The hits of another matcher: that of these tests, profile by profile."""
    found = ((number, _sure(wanted, happened)) for number, wanted in composer.profiles.items())
    return [Hit(happened, number, sure) for number, sure in found if sure]


def _sure(wanted: MemberProfile, happened: Event) -> float:
    if len(wanted.profile.predicates) == 1:
        return matches(wanted.profile, happened)
    matcher = Matcher()
    matcher.add(wanted.profile, options=wanted.options)
    return float(bool(matcher.match(happened)))


def composed(composer: Composer, trace: list[Event], horizon: int) -> list[object]:
    out = []
    for happened in trace:
        hits = hits_of(composer, happened)
        out += composer.take(hits) if hits else composer.notice(happened.span[1])
    return [detection.signature for detection in out + composer.advance(horizon)]


@EXAMPLES
@given(composites(), gappy(), st.booleans(), st.sampled_from((0, 4)))
def test_hits_give_what_events_give(composite: Composite, trace: list[Event], compiled: bool, lateness: int) -> None:
    composer = Composer(compiled=compiled, lateness=lateness)
    detector = Detector(matcher=SimpleMatcher(), lateness=lateness)
    for runner in (composer, detector):
        try:
            runner.add("p", composite)
        except BuildError:
            return
    horizon = (trace[-1].end if trace else 10) + 9
    expected = [detection.signature for e in trace for detection in detector.publish(e)]
    expected += [detection.signature for detection in detector.advance(horizon)]
    assert composed(composer, trace, horizon) == expected


@EXAMPLES
@given(plain_patterns(), traces(most=12), st.integers(0, 12))
def test_hits_in_one_batch_through_a_snapshot(composite: Composite, trace: list[Event], cut: int) -> None:
    composer, detector = Composer(), Detector()
    for runner in (composer, detector):
        runner.add("p", composite)
    hits = [hit for happened in trace for hit in hits_of(composer, happened)]
    found = composer.take(hits[:cut])
    # Hits of one event come together.
    while cut < len(hits) and cut and hits[cut].event.id == hits[cut - 1].event.id:
        return
    composer = Composer.restore(composer.snapshot())
    found += composer.take(hits[cut:])
    assert [detection.signature for detection in found] == [
        detection.signature for detection in detector.publish_batch(trace)
    ]


def test_events_need_only_what_conditions_ask() -> None:
    """The shuffle may leave out all attributes that made an event a hit."""
    composer = Composer(parse("p: {k = A, v > 1} as a then {k = B} as b within 5 us where a.room = b.room"))
    assert composer.attributes == {"room"}
    assert (
        composer.take([Hit(Event("1", (("room", 7),), (), 1, 1), 0), Hit(Event("2", (("room", 8),), (), 2, 2), 1)])
        == []
    )
    assert len(composer.take([Hit(Event("3", (("room", 7),), (), 3, 3), 1)])) == 1


def test_a_hit_may_tell_what_other_words_stand_for() -> None:
    text = "p: {k = A} as a then {k = B} as b within 5 us where a.room = b.room and a.level < b.level"
    composer = Composer(parse(text))
    mapped = {"room": (("x", 1.0),)}
    first = Hit(Event("1", (("place", "x"), ("level", 1)), (), 1, 1), 0, 0.9, mapped)
    second = Hit(event("B", 2, room="x", level=2), 1)
    [found] = composer.take([first, second])
    assert found.probability == pytest.approx(0.9)


def test_equal_patterns_number_their_profiles_alike_and_each_once() -> None:
    text = "p: {k = A} as a then {k = B} as b\nq: {k = B} as b or {k = A} as a"
    first, second = Composer(parse(text)), Composer(parse(text))
    assert first.profiles == second.profiles
    assert len(first.profiles) == 2
    first.remove("p")
    assert len(first.profiles) == 2
    first.remove("q")
    assert not first.profiles


def test_the_engine_scores_once_for_single_events_and_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(threshold=0.5)
    engine.subscribe("one: {v > 1}\np: {v > 1, kind = A} as a then {kind = B} as b within 5 s where a.room = b.room")
    calls = []
    score = engine.matcher.score_batch
    monkeypatch.setattr(engine.matcher, "score_batch", lambda encoded: calls.append(1) or score(encoded))
    events = [event("A", 1, room=1, v=2), event("B", 2, room=1, v=0), event("B", 3, room=2, v=3)]
    notifications = engine.publish_batch(events)
    assert [(notification.subscription, *(e.id for e in notification.events)) for notification in notifications] == [
        ("one", "A1"),
        ("one", "B3"),
        ("p", "A1", "B2"),
    ]
    assert len(calls) == 1
    engine.unsubscribe("p")
    engine.unsubscribe("one")
    assert len(engine.matcher) == 0


def test_members_of_patterns_are_no_single_subscriptions() -> None:
    engine = Engine()
    engine.subscribe("p: {v > 1} as a then {v > 5} as b within 5 s")
    assert engine.profiles == []
    assert engine.publish(event("A", 1, v=2)) == []
    assert [notification.subscription for notification in engine.publish(event("A", 2, v=7))] == ["p"]


@EXAMPLES
@given(plain_patterns(), traces(most=14), st.integers(1, 14), st.sampled_from((0, 3)))
def test_batches_in_columns_give_what_events_give(
    composite: Composite, trace: list[Event], size: int, lateness: int
) -> None:
    composer, detector = Composer(lateness=lateness), Detector(lateness=lateness)
    for runner in (composer, detector):
        runner.add("p", composite)
    found, expected = list[Detection](), list[Detection]()
    for at in range(0, len(trace), size):
        batch = trace[at : at + size]
        hits = HitColumns.of([hits_of(composer, happened) for happened in batch])
        found += composer.take_columns(EventColumns.of_events(batch), hits)
        expected += detector.publish_batch(batch)
    found, expected = found + composer.flush(), expected + detector.flush()
    assert [detection.signature for detection in found] == [detection.signature for detection in expected]


def test_hits_find_their_profiles_after_a_pattern_changed_its_path() -> None:
    """An event with two rooms takes the pattern to the general path, and a snapshot brings it there too."""
    text = "p: {k = A} as a then not {k = N} as n then {k = B} as b within 9 us where a.r = n.r and a.r = b.r"
    composer = Composer(parse(text))
    numbers = {wanted.profile.predicates[0].value: number for number, wanted in composer.profiles.items()}
    assert numbers == {"A": 0, "N": 1, "B": 2}

    def hit(name: str, at: int, *rooms: str) -> Hit:
        return Hit(Event(f"{name}{at}", tuple(("r", room) for room in rooms), (), at, at), numbers[name])

    assert composer.take([hit("A", 1, "x"), hit("A", 2, "x", "y")]) == []
    for _ in range(2):
        composer = Composer.restore(composer.snapshot())
        assert {wanted.profile.predicates[0].value: number for number, wanted in composer.profiles.items()} == numbers
    found = composer.take([hit("B", 3, "y"), hit("N", 4, "y"), hit("B", 5, "x"), hit("B", 6, "y")])
    assert [[event.id for event in detection.members] for detection in found] == [["A2", "B3"], ["A1", "B5"]]


def test_with_lateness_too_the_engine_scores_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if names are matched by meaning; buffered events are scored again only after a pattern was added."""
    engine = Engine(lateness=2)
    engine.subscribe("one: {v > 1}\np: {v > 1, kind = A} as a then {kind = B, v < 9} as b within 5 s where a.r = b.r")
    calls = []
    score = engine.matcher.score_batch
    monkeypatch.setattr(engine.matcher, "score_batch", lambda encoded: calls.append(1) or score(encoded))
    notifications = engine.publish_batch([event("B", 3, r=1, v=0), event("A", 2, r=1, v=2)])
    notifications += engine.publish_batch([event("C", 9, r=1, v=0)])
    assert [(notification.subscription, *(e.id for e in notification.events)) for notification in notifications] == [
        ("one", "A2"),
        ("p", "A2", "B3"),
    ]
    assert len(calls) == 2
    engine.subscribe("late: {v < 1, kind = C} as c then {v < 1, kind = D} as d within 5 s")
    notifications = engine.publish_batch([event("D", 10, r=1, v=0)]) + engine.advance(20)
    assert [(notification.subscription, *(e.id for e in notification.events)) for notification in notifications] == [
        ("late", "C9", "D10")
    ]


def test_a_composer_refuses_what_a_detector_wrote() -> None:
    text = "p: {k = A} as a then {k = B} as b within 9 us"
    with pytest.raises(InputError, match="is of a detector, not of a composer"):
        Composer.restore(Detector(parse(text)).snapshot())
    assert Detector.restore(Composer(parse(text)).snapshot()).patterns == ("p",)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_trace_has_the_probabilities_of_the_given_hits(compiled: bool) -> None:
    composer = Composer(parse("p: {k = A} as a then {k = B} as b within 5 s"), compiled=compiled)
    first, second = (Event(name, (("k", "x"),), (), at, at) for at, name in enumerate("xy"))
    assert composer.take([Hit(first, 0, 0.5)]) == []
    [detection] = composer.take([Hit(second, 1, 0.8)])
    assert detection.probability == 0.5 * 0.8
    assert [line.probability for line in detection.trace] == [0.5, 0.8]
