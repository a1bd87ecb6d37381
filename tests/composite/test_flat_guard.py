"""Absences on the compiled path give the same as on the general path and in the definition."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from brute_force import Trace
from hypothesis import given
from hypothesis import strategies as st
from test_flat import EXAMPLES, Near, exactly, plain_members, signatures
from worlds import KINDS, event, events, gappy, member, profile, traces

from likewise.composite import Detector, Limits, build_plan
from likewise.composite.compiled.shape import shape_of
from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    Consumption,
    Duplicates,
    Field,
    Keep,
    Member,
    Negation,
    Operator,
    Options,
    Pattern,
    Sequence,
    TimeEvent,
    parse,
)
from likewise.matching import Matcher


@st.composite
def guarded(draw: st.DrawFn) -> Composite:
    """One to three members, and a negated profile after one of them, joined by none, one or two attributes."""
    size = draw(st.sampled_from((1, 1, 2, 2, 3)))
    after = draw(st.integers(1, size))
    members = [draw(plain_members(name, joint=False, place=k, size=2)) for k, name in enumerate("abc"[:size])]
    if size == 1:
        members[0] = Member(members[0].profile, "a", draw(st.sampled_from((None, Duplicates(Keep.FIRST)))))
    parts: list[Pattern] = [*members]
    parts.insert(after, Negation(Member(profile(draw(st.sampled_from(KINDS))), "n")))
    unique = Consumption.UNIQUE if after < size or size == 1 else None
    attributes = draw(st.sampled_from(((), ("room",), ("room",), ("room", "level"))))
    where = [
        Binding(Field(left, attribute), Operator.EQ, Field(right, attribute))
        for attribute in attributes
        for left, right in (draw(st.permutations(pair)) for pair in (*pairwise("abc"[:size]), "an"))
    ]
    within = draw(st.sampled_from((2, 3, 5, 8)))
    return Composite(Sequence(tuple(parts), within), tuple(where), draw(st.sampled_from((None, unique))))


def made(patterns: list[Composite], **options: object) -> Detector:
    detector = Detector(**options)  # type: ignore[arg-type]
    for number, composite in enumerate(patterns):
        detector.add(f"p{number}", composite)
    return detector


@EXAMPLES
@given(st.lists(guarded(), min_size=1, max_size=3), gappy(most=14), st.lists(st.integers(0, 14), max_size=3))
def test_compiled_is_general_is_the_definition(patterns: list[Composite], trace: list[Event], cuts: list[int]) -> None:
    """For any division into batches, with a snapshot between them, and with another pattern on the general path."""
    trace = [e for e in trace if "level" in e.attributes]
    clock = Composite(TimeEvent(every=3, alias="t"))
    compiled, general = made([*patterns, clock]), made([*patterns, clock], compiled=False)
    assert compiled._compiled is not None
    assert len(compiled._compiled) == len(patterns)
    horizon = (trace[-1].end if trace else 10) + 9
    found, edges = [], [0, *sorted(cuts), len(trace)]
    for low, high in pairwise(edges):
        found += signatures(compiled.publish_batch(trace[low:high]))
        compiled = Detector.restore(compiled.snapshot())
    found += signatures(compiled.advance(horizon))
    assert found == [detection.signature for e in trace for detection in general.publish(e)] + signatures(
        general.advance(horizon)
    )
    for number, composite in enumerate(patterns):
        defined = Trace(composite, trace, match=exactly, horizon=horizon).detections()
        expected_rows = [(f.time, f.start, f.end, [e.id for _, _, e in f.roles]) for f in defined]
        mine = [(s[1], s[2], s[3], [role[1] for role in s[4]]) for s in found if s[0] == f"p{number}"]
        assert mine == expected_rows


@EXAMPLES
@given(
    st.lists(guarded(), min_size=1, max_size=2),
    gappy(most=16),
    st.sampled_from((1, 2, 3, 100)),
    st.sampled_from(("drop oldest", "refuse")),
)
def test_limits_and_what_is_told_are_the_same(
    patterns: list[Composite], trace: list[Event], most: int, policy: Literal["drop oldest", "refuse"]
) -> None:
    """Counts of drops and held instances, and the furthest instance, are those of the general path."""
    both = [made(patterns, limits=Limits(most, policy), compiled=compiled) for compiled in (True, False)]
    found = [[detection.signature for e in trace for detection in detector.publish(e)] for detector in both]
    assert found[0] == found[1]
    assert both[0].state() == both[1].state()


@EXAMPLES
@given(guarded(), traces(most=12), st.integers(0, 12), st.booleans())
def test_going_over_to_the_general_path_loses_nothing(
    composite: Composite, trace: list[Event], cut: int, snapshot: bool
) -> None:
    """Through an event with two rooms, or a snapshot that is restored without the compiled path."""
    stream = list(trace)
    if cut < len(stream) and not snapshot:
        first = stream[cut]
        stream[cut] = Event(first.id, (*first.tuples, ("room", "zz")), (), first.start, first.end)
    compiled, general = made([composite]), made([composite], compiled=False)
    horizon = (trace[-1].end if trace else 10) + 9
    found = signatures(compiled.publish_batch(stream[:cut]))
    if snapshot:
        compiled = Detector.restore(compiled.snapshot(), compiled=False)
    found += signatures(compiled.publish_batch(stream[cut:])) + signatures(compiled.advance(horizon))
    assert found == signatures(general.publish_batch(stream)) + signatures(general.advance(horizon))


def test_what_was_decided_stays_so_on_the_general_path() -> None:
    """B2 broke A1, which is gone; nothing is kept of any B, since each breaks all that it may."""
    c, d = "{kind = C} as c", "{kind = D} as d"
    [pattern] = parse(f"p: {{kind = A}} as a then not {{kind = B}} as b then {c} then {d} within 20 us")
    compiled = Detector([pattern])
    assert compiled.publish_batch(events("A1 B2 C3 B4 B5 B6")) == []
    assert compiled._compiled is not None
    assert compiled._compiled.waiting("p") == []
    general = Detector.restore(compiled.snapshot(), compiled=False)
    again = Detector.restore(general.snapshot(), compiled=False)
    for detector in (compiled, general, again):
        assert detector.publish_batch(events("D7")) == []


def test_what_is_sure_is_not_kept() -> None:
    [pattern] = parse("p: {kind = A} as a then not {kind = B} as b within 50 us")
    detector = Detector([pattern])
    flood = [event("B", 2, id=f"b{i}") for i in range(100)]
    assert detector.publish_batch([event("A", 1), *flood]) == []
    assert detector._compiled is not None
    assert [row.events[0].id for row in detector._compiled.waiting("p")] == ["A1"]
    assert detector.advance(100) == []


@EXAMPLES
@given(guarded(), traces(most=12), st.randoms(use_true_random=False), st.integers(0, 12))
def test_late_events_are_put_in_order(composite: Composite, trace: list[Event], random: object, cut: int) -> None:
    shuffled = sorted(trace, key=lambda event: event.end + random.uniform(0, 6))  # type: ignore[attr-defined]
    compiled, general = made([composite], lateness=6), made([composite], compiled=False)
    found = signatures(compiled.publish_batch(shuffled[:cut]))
    found += [detection.signature for e in shuffled[cut:] for detection in compiled.publish(e)]
    assert found + signatures(compiled.flush()) == signatures(general.publish_batch(trace)) + signatures(
        general.advance(trace[-1].end if trace else 0)
    )


@EXAMPLES
@given(guarded(), traces(most=12), st.sampled_from((None, 0.0, 0.2, 0.6)))
def test_near_matches_make_a_silence_doubtful(
    composite: Composite, trace: list[Event], threshold: float | None
) -> None:
    """`kind = A~`: near matches of the negated profile reduce the probability, as on the general path."""

    def soft(part: Pattern) -> Pattern:
        if isinstance(part, Negation):
            return Negation(soft(part.part))
        assert isinstance(part, Member)
        first, *rest = part.profile.predicates
        loose = type(first)(first.attribute, first.operator, first.value, value_approximate=True)
        return Member(type(part.profile)((loose, *rest)), part.alias, part.duplicates)

    assert isinstance(composite.root, Sequence)
    pattern = Composite(
        Sequence(tuple(map(soft, composite.root.parts)), composite.root.within), composite.where, composite.consumption
    )
    found = []
    for compiled in (True, False):
        detector = Detector(matcher=Matcher(Near(), approach="approximate", threshold=0.3), compiled=compiled)
        detector.add("p", pattern, Options(threshold=threshold))
        found.append(signatures(detector.publish_batch(trace)) + signatures(detector.advance(100)))
    assert found[0] == found[1]


def test_a_door_that_stays_open() -> None:
    """Decided when time has passed, by an event or by `advance`; a close exactly at the end counts."""
    [pattern] = parse("p: {kind = A} as a then not {kind = B} as b within 5 us where a.room = b.room")
    detector = Detector([pattern])
    assert detector._compiled is not None
    assert "p" in detector._compiled
    x, y = {"room": "x"}, {"room": "y"}
    assert detector.publish_batch([event("A", 1, **x), event("A", 2, **y), event("B", 6, **x)]) == []
    assert detector.due == 6
    assert detector.advance(6) == []
    [found] = detector.advance(7)
    assert (found.time, found.start, found.end, [e.id for e in found.members]) == (7, 2, 2, ["A2"])
    assert [(line.role, line.what, line.start, line.time) for line in found.trace] == [
        ("a", "event", 2, 2),
        ("b", "absence", 2, 7),
    ]
    assert detector.state()[0].stops == {"b happened": 1}
    assert detector.state()[0].held == 0


def test_many_that_end_at_once_find_room() -> None:
    [pattern] = parse("p: {kind = A} as a then not {kind = B} as b within 500 us")
    compiled, general = Detector([pattern]), Detector([pattern], compiled=False)
    stream = [event("A", i // 50, id=f"{i:05}") for i in range(3000)]
    found = [signatures(detector.publish_batch(stream) + detector.advance(2000)) for detector in (compiled, general)]
    assert found[0] == found[1]
    assert len(found[0]) == 3000


def test_a_flood_of_what_must_not_happen_is_not_kept() -> None:
    [pattern] = parse("p: {kind = A} as a then not {kind = B} as b within 5000 us where a.room = b.room")
    compiled = Detector([pattern])
    rest = [event("B", time, id=str(time), room="x") for time in range(2, 2000)]
    assert compiled.publish_batch([event("A", 1, room="x"), *rest, event("A", 2000, room="x")]) == []
    assert compiled._compiled is not None
    assert [row.events[0].id for row in compiled._compiled.waiting("p")] == ["A2000"]
    assert [e.id for detection in compiled.advance(9000) for e in detection.members] == ["A2000"]


def test_what_is_compiled_and_what_is_not() -> None:
    def plain(text: str) -> bool:
        [subscription] = parse(f"p: {text}")
        return shape_of(build_plan(subscription)) is not None

    a, b, c = (f"{{kind = {kind}}} as {kind.lower()}" for kind in "ABC")
    assert plain(f"{a} then not {b} within 5 s")
    assert plain(f"{a} then not {b} then {c} within 5 s consume unique")
    assert plain(f"{a} then {c} then not {b} within 5 s")
    # Consumption at the end of a window; two negations; one with its own time, at the start, or without a window.
    assert not plain(f"{a} then {c} then not {b} within 5 s consume unique")
    assert not plain(f"{a} then not {b} then not {c} within 5 s")
    assert not plain(f"{a} then not {b} for 1 s then {c} within 5 s")
    assert not plain(f"not {b} then {c} within 5 s")
    assert not plain(f"{a} then not {b} then {c}")
    assert not plain(f"last {a} then not {b} within 5 s")
    assert not plain(f"{a} then not first {b} within 5 s")
    assert not plain(f"{a} then not {b} then {c} within 5 s where a.room = c.room")


def test_a_pattern_leaves_nothing_behind() -> None:
    detector = made([Composite(Sequence((member("A"), Negation(member("B"))), 50))])
    detector.publish_batch(events("A1 B2 A3 B4"))
    detector.remove("p0")
    assert detector._compiled is not None
    assert detector._compiled.due is None
    detector.add("p0", Composite(Sequence((member("A"), Negation(member("C"))), 5)))
    assert [e.id for detection in detector.publish_batch(events("A5 B6 A20")) for e in detection.members] == ["A5"]
