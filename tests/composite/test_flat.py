"""The compiled path gives the same as the general path and the definition."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from itertools import pairwise
from typing import Literal

import numpy as np
from brute_force import Trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import KINDS, event, events, gappy, member, profile, traces

from likewise.composite import Detector, Limits, build_plan
from likewise.composite.compiled.shape import shape_of
from likewise.composite.encoding import TupleEncoder
from likewise.events import Event
from likewise.language import (
    Binding,
    Composite,
    Conjunction,
    Consumption,
    Duplicates,
    Field,
    Keep,
    Member,
    Operator,
    Options,
    Predicate,
    Profile,
    Sequence,
    Subscription,
    TimeEvent,
)
from likewise.matching import Matcher
from likewise.semantics import Measure

EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


KEEPS = (None, None, Duplicates(Keep.FIRST), Duplicates(Keep.LAST))


@st.composite
def plain_patterns(draw: st.DrawFn, *, one: bool = True) -> Composite:
    """One to four members, in sequence or together, each joined to the one before by none, one or two attributes."""
    size = draw(st.sampled_from((1, 2, 2, 2, 3, 3, 4) if one else (2, 2, 3, 4)))
    joint = size > 1 and draw(st.booleans())
    names = "abcd"[:size]
    parts = [draw(plain_members(name, joint=joint, place=k, size=size)) for k, name in enumerate(names)]
    within = draw(st.sampled_from((None, 3, 5, 8)))
    root = parts[0] if size == 1 else Conjunction(tuple(parts), within) if joint else Sequence(tuple(parts), within)
    attributes = draw(st.sampled_from(((), ("room",), ("room",), ("room", "level")))) if size > 1 else ()
    where = [
        Binding(Field(left, attribute), Operator.EQ, Field(right, attribute))
        for attribute in attributes
        for left, right in (draw(st.permutations(pair)) for pair in pairwise(names))
    ]
    return Composite(root, tuple(draw(st.permutations(where))), draw(st.sampled_from((None, Consumption.UNIQUE))))


@st.composite
def plain_members(draw: st.DrawFn, name: str, *, joint: bool, place: int, size: int) -> Member:
    keeps = KEEPS if joint or (place == 0 and size > 1) else KEEPS[:3] if size > 1 else KEEPS[:1]
    wanted = profile(draw(st.sampled_from(KINDS)))
    if draw(st.integers(0, 3)) == 0:
        # A profile of several predicates needs the matcher.
        wanted = Profile((*wanted.predicates, Predicate("level", Operator.LE, draw(st.integers(0, 2)))))
    return Member(wanted, name, draw(st.sampled_from(keeps)))


def exactly(wanted: Profile, happened: Event) -> float:
    kind = happened.attributes["kind"][0] == wanted.predicates[0].value
    level = all(happened.attributes["level"][0] <= p.value for p in wanted.predicates[1:])  # type: ignore[operator]
    return float(kind and level)


def signatures(found: list) -> list[object]:
    return [detection.signature for detection in found]


@EXAMPLES
@given(st.lists(plain_patterns(), min_size=1, max_size=3), traces(most=14), st.lists(st.integers(0, 14), max_size=3))
def test_compiled_is_general_is_the_definition(patterns: list[Composite], trace: list[Event], cuts: list[int]) -> None:
    """For any division into batches, with a snapshot between them."""
    compiled, general = Detector(), Detector(compiled=False)
    for number, composite in enumerate(patterns):
        compiled.add(f"p{number}", composite)
        general.add(f"p{number}", composite)
    assert compiled._compiled is not None
    assert len(compiled._compiled) == len(patterns)
    found = []
    edges = [0, *sorted(cuts), len(trace)]
    for low, high in pairwise(edges):
        found += signatures(compiled.publish_batch(trace[low:high]))
        compiled = Detector.restore(compiled.snapshot())
    one_by_one = [detection.signature for e in trace for detection in general.publish(e)]
    assert found == one_by_one
    horizon = trace[-1].end if trace else 0
    for number, composite in enumerate(patterns):
        defined = Trace(composite, trace, match=exactly, horizon=horizon or 0).detections()
        ids = [[f"p{number}", [e.id for _, _, e in f.roles]] for f in defined]
        assert ids == [[s[0], [role[1] for role in s[4]]] for s in found if s[0] == f"p{number}"]


@EXAMPLES
@given(plain_patterns(), traces(most=12), st.integers(0, 12))
def test_going_over_to_the_general_path_loses_nothing(composite: Composite, trace: list[Event], cut: int) -> None:
    """An event with two rooms moves a pattern that joins by room to the general path."""
    compiled, general = Detector(), Detector(compiled=False)
    for detector in (compiled, general):
        detector.add("p", composite)
        detector.add("t", Composite(TimeEvent(every=4, alias="t")))
    stream = list(trace)
    if cut < len(stream):
        first = stream[cut]
        stream[cut] = Event(first.id, (*first.tuples, ("room", "zz")), (), first.start, first.end)
    found = signatures(compiled.publish_batch(stream[:cut])) + signatures(compiled.publish_batch(stream[cut:]))
    assert found == [detection.signature for e in stream for detection in general.publish(e)]


@EXAMPLES
@given(st.lists(plain_patterns(), min_size=2, max_size=4), traces(most=12), st.integers(0, 3))
def test_patterns_come_and_go(patterns: list[Composite], trace: list[Event], gone: int) -> None:
    compiled, general = Detector(), Detector(compiled=False)
    out = []
    for detector in (compiled, general):
        for number, composite in enumerate(patterns):
            detector.add(f"p{number}", composite)
        found = signatures(detector.publish_batch(trace[:5]))
        detector.remove(f"p{gone % len(patterns)}")
        detector.add("new", patterns[0])
        found += signatures(detector.publish_batch(trace[5:9]))
        detector.replace("new", patterns[-1])
        out.append(found + signatures(detector.publish_batch(trace[9:])))
    assert out[0] == out[1]


def test_many_keys_and_little_room() -> None:
    """Tables grow, and ended instances make room."""
    where = (Binding(Field("a", "room"), Operator.EQ, Field("b", "room")),)
    compiled, general = Detector(), Detector(compiled=False)
    for detector in (compiled, general):
        detector.add("p", Composite(Sequence((member("A"), member("B")), 500), where))
    stream = [event("AB"[i % 7 == 0], i, id=str(i), room=i * i % 997) for i in range(6000)]
    assert signatures(compiled.publish_batch(stream)) == signatures(general.publish_batch(stream))
    assert compiled.state()[0].held == general.state()[0].held


def test_true_and_one_are_different_values() -> None:
    detector = Detector()
    member = Member(Profile((Predicate("on", Operator.EQ, 1),)), "a")
    true = Member(Profile((Predicate("on", Operator.EQ, True),)), "b")
    detector.add("p", Composite(Sequence((member, true))))
    stream = [Event(str(t), (("on", value),), (), t, t) for t, value in enumerate((True, 1, 1.0, True))]
    assert [[e.id for e in detection.members] for detection in detector.publish_batch(stream)] == [
        ["1", "3"],
        ["2", "3"],
    ]


def test_spellings_that_match_exactly_are_joined() -> None:
    detector = Detector()
    where = (Binding(Field("a", "Room"), Operator.EQ, Field("b", "room")),)
    detector.add("p", Composite(Sequence((member("A"), member("B"))), where))
    stream = [event("A", 1, rooms="Lab_7"), event("B", 2, room="lab 7")]
    assert len(detector.publish_batch(stream)) == 1


def test_the_trace_of_a_compiled_detection() -> None:
    detector = Detector()
    detector.add("p", Composite(Sequence((member("A"), member("B")), 10)))
    [found] = detector.publish_batch(events("A1 B5"))
    assert [(line.role, line.activated, line.terminated) for line in found.trace] == [("a", None, None), ("b", 1, 11)]


def test_what_is_not_plain_stays_general() -> None:
    a, b = member("A"), member("B")
    known: dict[str, Subscription] = {}

    def plain(composite: Composite, options: Options | None = None) -> bool:
        return shape_of(build_plan(Subscription("p", composite, options or Options()), known)) is not None

    assert plain(Composite(Sequence((a, b))))
    c, room = member("C"), Binding(Field("a", "room"), Operator.EQ, Field("b", "room"))
    assert plain(Composite(Sequence((a, b, c))))
    assert plain(Composite(Conjunction((a, b, c), 5), (room, replace(room, right=Field("c", "place")))))
    assert not plain(Composite(Sequence((a, b, c)), (room,)))
    assert not plain(Composite(Sequence((a, Member(b.profile, "b", Duplicates(Keep.LAST))), 5)))
    assert not plain(Composite(Sequence((Member(a.profile, "a", Duplicates(Keep.NTH, 2)), b))))
    assert not plain(Composite(Sequence((a, b)), (replace(room, operator=Operator.LT),)))
    assert not plain(Composite(Sequence((a, b)), (room, replace(room, left=Field("a", "floor")))))


def test_attributes_of_other_names_are_joined() -> None:
    detector, where = Detector(), (Binding(Field("a", "room"), Operator.EQ, Field("b", "place")),)
    detector.add("p", Composite(Sequence((member("A"), member("B"))), where))
    assert detector._compiled is not None
    assert "p" in detector._compiled
    stream = [event("A", 1, room="x"), event("B", 2, place="y"), event("B", 3, room="x"), event("B", 4, place="x")]
    assert [[e.id for e in detection.members] for detection in detector.publish_batch(stream)] == [["A1", "B4"]]


@EXAMPLES
@given(
    st.lists(plain_patterns(), min_size=1, max_size=2),
    gappy(most=16),
    st.integers(1, 3),
    st.sampled_from(("drop oldest", "refuse")),
)
def test_limits_and_what_is_told_are_the_same(
    patterns: list[Composite], trace: list[Event], most: int, policy: Literal["drop oldest", "refuse"]
) -> None:
    """Counts of drops and held instances, and the furthest instance, are those of the general path."""
    compiled = Detector(limits=Limits(most, policy))
    general = Detector(limits=Limits(most, policy), compiled=False)
    for detector in (compiled, general):
        for number, composite in enumerate(patterns):
            detector.add(f"p{number}", composite)
    found = [
        [detection.signature for e in trace for detection in detector.publish(e)] for detector in (compiled, general)
    ]
    assert found[0] == found[1]
    assert compiled.state() == general.state()


@EXAMPLES
@given(st.lists(plain_patterns(), min_size=1, max_size=2), traces(most=14), st.integers(0, 14))
def test_a_snapshot_goes_to_either_path(patterns: list[Composite], trace: list[Event], cut: int) -> None:
    compiled, general = Detector(), Detector(compiled=False)
    for detector in (compiled, general):
        for number, composite in enumerate(patterns):
            detector.add(f"p{number}", composite)
        detector.publish_batch(trace[:cut])
    over = Detector.restore(compiled.snapshot(), compiled=False)
    assert not over._compiled
    expected = signatures(general.publish_batch(trace[cut:]))
    assert signatures(over.publish_batch(trace[cut:])) == expected
    again = Detector.restore(compiled.snapshot())
    assert [detection.signature for e in trace[cut:] for detection in again.publish(e)] == expected


@EXAMPLES
@given(plain_patterns(), traces(most=12), st.randoms(use_true_random=False), st.integers(0, 12))
def test_late_events_are_put_in_order(composite: Composite, trace: list[Event], random: object, cut: int) -> None:
    shuffled = sorted(trace, key=lambda event: event.end + random.uniform(0, 6))  # type: ignore[attr-defined]
    compiled, general = Detector(lateness=6), Detector(compiled=False)
    for detector in (compiled, general):
        detector.add("p", composite)
    found = signatures(compiled.publish_batch(shuffled[:cut])) + signatures(compiled.publish_batch(shuffled[cut:]))
    assert found + signatures(compiled.flush()) == signatures(general.publish_batch(trace))


def test_tables_grow_in_the_middle_of_an_event() -> None:
    """Three hundred pairs wait, and one event follows each of them; then one completes all."""
    compiled, general = Detector(), Detector(compiled=False)
    parts = (member("A"), member("B"), Member(profile("B"), "c"), Member(profile("C"), "d"))
    stream = [event("A", t) for t in range(40)] + [event("B", t) for t in (50, 51, 52)] + [event("C", 60)]
    found = []
    for detector in (compiled, general):
        detector.add("p", Composite(Sequence(parts)))
        detector.add("q", Composite(Conjunction((*parts[:2], parts[3]), 30)))
        found.append(signatures(detector.publish_batch(stream)))
    assert len(found[0]) == 40 * 3 + 10 * 3
    assert found[0] == found[1]


class Near(Measure):
    """Kinds are half related to each other."""

    name = "near"
    symmetric = True

    def matrix(self, left: list[str], right: list[str], **_: object) -> np.ndarray:
        return np.array([[1.0 if x.lower() == y.lower() else 0.5 for y in right] for x in left], dtype=np.float32)


@EXAMPLES
@given(plain_patterns(one=False), traces(most=12), st.sampled_from((None, 0.2, 0.6)), st.booleans())
def test_approximate_profiles_are_compiled_too(
    composite: Composite, trace: list[Event], threshold: float | None, values: bool
) -> None:
    """`kind~ = A` or `kind = A~`: the matcher's probabilities go through the compiled path."""

    def soft(part: Member) -> Member:
        first, *rest = part.profile.predicates
        return replace(
            part, profile=Profile((replace(first, attribute_approximate=not values, value_approximate=values), *rest))
        )

    root = composite.root
    assert isinstance(root, Sequence | Conjunction)
    pattern = replace(composite, root=replace(root, parts=tuple(soft(part) for part in root.parts)))  # type: ignore[arg-type]
    stream = (
        trace if values else [Event(e.id, (("sort", e.tuples[0][1]), *e.tuples[1:]), (), e.start, e.end) for e in trace]
    )
    found = []
    for compiled in (True, False):
        detector = Detector(matcher=Matcher(Near(), approach="approximate", threshold=0.3), compiled=compiled)
        detector.add("p", pattern, Options(threshold=threshold))
        found.append(signatures(detector.publish_batch(stream)))
    assert found[0] == found[1]


def test_only_promising_events_are_given_to_the_matcher() -> None:
    matcher = Matcher(Near(), approach="approximate", threshold=0.3)
    detector = Detector(matcher=matcher)
    loose = [Member(Profile((Predicate("kind", Operator.EQ, k, True),)), k) for k in "AB"]
    detector.add("p", Composite(Sequence((loose[0], loose[1]))))
    given_to = []
    encode = matcher.encode
    matcher.encode = lambda some: given_to.extend(e.id for e in some) or encode(some)  # type: ignore[method-assign]
    stream = [Event(k + str(t), (("sort", k),), (), t, t) for t, k in enumerate("CACBC")]
    assert [[e.id for e in detection.members] for detection in detector.publish_batch(stream)] == [["A1", "B3"]]
    assert given_to == ["A1", "B3"]


_VALUES = st.one_of(
    st.sampled_from((0, 1, True, False, 1.0, 0.0, -0.0, "1", "true", "True", 5, "5", 2**53, 2**53 + 1, 1e300, "Lab_7")),
    st.sampled_from(("lab 7", "labs", "Lab", "http://x.org/v#Lab", "été", "ÉTÉ", "", " lab ", "LabRoom", "lab room")),
    st.datetimes(timezones=st.just(UTC)),
    st.integers(-3, 3),
    st.floats(-2, 2),
)


@EXAMPLES
@given(st.sampled_from(("room", "Rooms", "room_name")), _VALUES, st.sampled_from(("room", "ROOM", "roomName")), _VALUES)
def test_the_dictionary_agrees_with_the_matcher(asked: str, wanted: object, attribute: str, value: object) -> None:
    """A profile of one equality is looked up in a dictionary, with the same result as exact matching."""
    predicate = Predicate(asked, Operator.EQ, wanted)  # type: ignore[arg-type]
    matcher = Matcher()
    matcher.add(Profile((predicate,)))
    happened = Event("1", ((attribute, value),), (), 1, 1)  # type: ignore[arg-type]
    columns = TupleEncoder()
    number = columns.predicate(asked, wanted)  # type: ignore[arg-type]
    [found] = [columns.numbers[pair] for pair in happened.tuples]
    assert (columns.predicate_of[found] == number) == bool(matcher.match(happened))
