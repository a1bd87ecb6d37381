"""Cases in which a detector once gave wrong answers, on every path."""

from __future__ import annotations

from typing import Literal

import pytest
from everywhere import everywhere, trace

from likewise.composite import Detector, Limits
from likewise.errors import BuildError
from likewise.language import parse

TRANSFERS = "p: {type = transfer} as a then {type = transfer} as b within 1 hour where a.to = b.from consume unique"


def test_unique_takes_an_event_wherever_it_waits() -> None:
    """The second transfer is in the first detection, so it cannot begin another one."""
    stream = "t1@0 type=transfer from=Ann to=Bob; t2@1 type=transfer from=Bob to=Cid; "
    stream += "t3@2 type=transfer from=Cid to=Dan; t4@3 type=transfer from=Dan to=Eve"
    assert everywhere(TRANSFERS, stream) == [("p", "t1", "t2"), ("p", "t3", "t4")]


@pytest.mark.parametrize("order", ["{k = A} as a and {k = A} as b", "{k = A} as a then first {k = A} as b"])
def test_unique_with_keys_of_different_attributes(order: str) -> None:
    stream = "a1@0 k=A x=1 y=2; a2@1 k=A x=2 y=3; a3@2 k=A x=3 y=4; a4@3 k=A x=4 y=1"
    found = everywhere(f"p: {order} within 9 s where a.y = b.x consume unique", stream)
    assert [set(row[1:]) for row in found] == [{"a1", "a2"}, {"a3", "a4"}]


def test_a_negated_member_joins_nothing() -> None:
    """A condition on a negated member only decides what breaks the negation."""
    where = "where a.r = n.r and n.r = c.r"
    between = f"p: {{k = A}} as a then not {{k = N}} as n then {{k = C}} as c within 1 hour {where}"
    stream = "a@0 k=A r=1; c@1 k=C r=2"
    assert everywhere(between, stream) == [("p", "a", "c")]
    after = f"p: {{k = A}} as a then {{k = C}} as c then not {{k = N}} as n within 1 hour {where}"
    assert everywhere(after, stream, until=4000) == [("p", "a", "c")]
    broken = "a@0 k=A r=1; n@1 k=N r=1; c@2 k=C r=1"
    assert everywhere(between, broken) == []
    assert everywhere(after, "a@0 k=A r=1; c@1 k=C r=1; n@2 k=N r=1", until=4000) == []


@pytest.mark.parametrize("sign", ["=", "<", "<=", "!="])
def test_every_event_of_a_repeated_member_must_satisfy_a_condition(sign: str) -> None:
    twice = f"p: (2 times {{k = B}} as x) then {{k = C}} as c within 9 s where x.r {sign} c.r"
    other = {"=": 1, "<": 5, "<=": 5, "!=": 5}[sign]
    assert everywhere(twice, f"b1@0 k=B r=1; b2@1 k=B; c@2 k=C r={other}") == []
    assert everywhere(twice, f"b1@0 k=B r=1; b2@1 k=B r=1; c@2 k=C r={other}") == [("p", "b1", "b2", "c")]
    by_name = f"q: {{k = A}} as a then {{k = B}} as b within 9 s\np: q as n then {{k = C}} as c where n.r {sign} c.r"
    stream = f"a@0 k=A r=1; b@1 k=B; c@2 k=C r={other}"
    assert [row for row in everywhere(by_name, stream) if row[0] == "p"] == []
    whole = f"a@0 k=A r=1; b@1 k=B r=1; c@2 k=C r={other}"
    assert [row for row in everywhere(by_name, whole) if row[0] == "p"] == [("p", "a", "b", "c")]


def test_or_keeps_every_way_to_read_the_same_events() -> None:
    either = "(({k = A} as a and {k = A} as b within 5 s) or {k = Z} as z)"
    stream = "a1@0 k=A r=1; a2@1 k=A r=2; c1@2 k=C r=1; c2@3 k=C r=2"
    found = everywhere(f"p: {either} then {{k = C}} as c where a.r = c.r", stream)
    assert found == [("p", "a1", "a2", "c1"), ("p", "a2", "a1", "c2")]


@pytest.mark.parametrize("either", ["({k = A} as a or {v > 0} as b)", "({v > 0} as b or {k = A} as a)"])
def test_or_does_not_depend_on_the_order_of_its_branches(either: str) -> None:
    """As `a` the event does not fit the room of `c`; as `b` it has no condition."""
    pattern = f"p: {either} then {{k = C}} as c where a.r = c.r"
    assert everywhere(pattern, "e@0 k=A v=1 r=1; c@1 k=C r=2") == [("p", "e", "c")]
    assert everywhere(pattern, "e@0 k=A v=1 r=1; c@1 k=C r=1") == [("p", "e", "c")]
    assert everywhere(pattern, "e@0 k=A v=0 r=1; c@1 k=C r=2") == []


def test_what_a_pattern_consumes_changes_nothing_in_the_names_it_uses() -> None:
    patterns = "q: first {k = C} as x or {k = Z} as z\np: q as n then {k = D} as d consume unique"
    found = everywhere(patterns, "c1@0 k=C; d1@1 k=D; c2@2 k=C; d2@3 k=D")
    assert found == [("q", "c1"), ("p", "c1", "d1")]


def test_duplicates_have_equal_values_of_what_equalities_ask() -> None:
    pattern = "p: first {k = A} as a then {k = B} as b within 9 s where b.v = a.v + 1"
    assert everywhere(pattern, "a1@0 k=A v=1; a2@1 k=A v=5; b@2 k=B v=6") == [("p", "a2", "b")]


def test_a_count_is_kept_for_each_of_several_values() -> None:
    assert everywhere("p: 2 times {k = C} as a within 3 s where a.r = a.r", "e1@1 k=C r=2 r=1; e2@2 k=C r=1") == [
        ("p", "e1", "e2")
    ]
    both = "e1@1 k=C r=2 r=1; e2@2 k=C r=1 r=2"
    assert everywhere("p: 2 times {k = C} as a within 3 s where a.r = a.r", both) == [("p", "e1", "e2")]
    assert everywhere("p: 1st {k = C} as a where a.r = a.r", both) == [("p", "e1")]


def test_what_is_consumed_has_happened() -> None:
    """The first pair contains a consumed event, but still is the first of three."""
    third = "p: (3rd ({k = A} as a then {k = B} as b within 9 s)) or {k = D} as d consume unique"
    stream = "a1@1 k=A k=D; a2@2 k=A; a3@3 k=A; b@4 k=B"
    assert everywhere(third, stream) == [("p", "a1"), ("p", "a3", "b")]
    either = "({k = A} as a xor ({k = B} as b then {k = C} as c within 4 s) within 2 s)"
    lone = f"p: {either} or {{k = D}} as d consume unique"
    assert everywhere(lone, "x@1 k=B k=D; y@2 k=C; z@3 k=A", until=9) == [("p", "x")]


# limits


def test_a_limit_does_not_count_anew() -> None:
    rooms = enumerate((1, 1, 1, 2, 3, 1, 1, 1), 1)
    stream = "; ".join(f"e{k}@{k} k=A r={room}" for k, room in rooms)
    assert everywhere("p: 3rd {k = A} as a where a.r = a.r", stream, limit=2) == [("p", "e3")]
    windows = "p: 3rd {k = A} as a within 6 s where a.r = a.r"
    allowed = everywhere(windows, stream)
    assert all(row in allowed for row in everywhere(windows, stream, limit=2))


PAIR = "{k = A} as a then {k = B} as b within 9 s"


@pytest.mark.parametrize("policy", ["drop oldest", "refuse"])
@pytest.mark.parametrize(
    ("chosen", "loose"),
    [
        ("first {k = A} as a or {k = Z} as z where a.r = a.r", "{k = A} as a or {k = Z} as z where a.r = a.r"),
        (f"first {PAIR} where a.r = b.r", f"{PAIR} where a.r = b.r"),
        (f"last {PAIR} where a.r = b.r", f"{PAIR} where a.r = b.r"),
        (f"{PAIR} consume unique", PAIR),
    ],
)
def test_where_a_pattern_chooses_a_limit_may_let_another_through(
    chosen: str, loose: str, policy: Literal["drop oldest", "refuse"]
) -> None:
    """The pattern that keeps all duplicates finds it, too."""
    kinds, rooms = "AABAABAABAAB", (1, 2, 1, 3, 2, 1) * 2
    stream = "; ".join(
        f"e{k:02}@{k} k={kind} r={room}" for k, (kind, room) in enumerate(zip(kinds, rooms, strict=True))
    )
    found = everywhere(f"p: {chosen}", stream, limit=2, policy=policy)
    assert found
    assert set(found) <= set(everywhere(f"p: {loose}", stream))


def test_the_paths_hold_the_same_under_a_limit() -> None:
    pattern = "p: {k = A} as a then {k = B} as b then {k = C} as c where a.r = c.r and b.r = c.r"
    everywhere(pattern, "a@0 k=A r=1; b1@1 k=B r=2; b2@2 k=B r=1; c@3 k=C r=1", limit=1)


def test_a_limit_holds_for_the_whole_pattern() -> None:
    [pattern] = parse("p: {k = A} as a then (20 times {k = B} as b) within 1 hour")
    stream = "; ".join([f"a{k:03}@{k} k=A" for k in range(100)] + [f"b{k:03}@{k} k=B" for k in range(100, 119)])
    for policy in ("drop oldest", "refuse"):
        detector = Detector([pattern], limits=Limits(100, policy))
        detector.publish_batch(trace(stream))
        [state] = detector.state()
        assert state.held <= 100
        assert state.dropped > 0


def test_a_limit_that_is_too_small_for_a_repetition_is_counted() -> None:
    detector = Detector(parse("p: 3 times {k = A} as a"), limits=Limits(1))
    assert detector.publish_batch(trace("a1@0 k=A; a2@1 k=A; a3@2 k=A")) == []
    assert detector.state()[0].dropped == 2
    assert everywhere("p: 2 times {k = A} as a", "a1@0 k=A; a2@1 k=A", limit=1) == [("p", "a1", "a2")]


# absences


def test_a_broken_absence_is_removed_at_once() -> None:
    """The door was shut, and then it stays open: that is an alert."""
    pattern = "p: first {k = A} as a then not {k = B} as b within 10 s"
    assert everywhere(pattern, "a1@0 k=A; b@1 k=B; a2@2 k=A", until=20) == [("p", "a2")]
    assert everywhere(pattern, "a1@0 k=A; a2@2 k=A; b@3 k=B; a3@4 k=A; a4@5 k=A", until=20) == [("p", "a3")]


def test_what_is_broken_keeps_nobody_out() -> None:
    pattern = "p: {k = A} as a then not {k = B} as b within 10 s"
    found = everywhere(pattern, "a1@0 k=A; b@1 k=B; a2@2 k=A", until=20, limit=1, policy="refuse")
    assert found == [("p", "a2")]


@pytest.mark.parametrize(
    "form",
    [
        "first {k = A} as a then not {k = B} as b then {k = C} as c within 10 s",
        "first {k = A} as a then not {k = B} as b for 3 s then {k = C} as c within 10 s",
    ],
)
def test_a_broken_absence_between_steps_is_removed_at_once(form: str) -> None:
    found = everywhere(f"p: {form}", "a1@0 k=A; b@1 k=B; a2@2 k=A; c@6 k=C")
    assert found == [("p", "a2", "c")]


def test_a_step_of_the_moment_that_breaks_is_still_in_time() -> None:
    pattern = "p: {k = A} as a then not {k = B} as b then {k = C} as c within 10 s"
    assert everywhere(pattern, "a@0 k=A; b@1 k=B; c@1 k=C; c2@2 k=C") == [("p", "a", "c")]


@pytest.mark.parametrize("where", ["", "where b.r = c.r", "where a.r = b.r and b.r = c.r"])
def test_a_forbidden_step_does_not_displace_the_last(where: str) -> None:
    pattern = f"p: {{k = A}} as a then not {{k = B}} as b then last {{k = C}} as c within 10 s {where}"
    stream = "a@0 k=A r=1; c1@1 k=C r=1; b@2 k=B r=1; c2@3 k=C r=1"
    assert everywhere(pattern, stream, until=20) == [("p", "a", "c1")]


def test_what_an_absence_forbids_is_no_duplicate() -> None:
    second = "p: not {v > 1} as b then 2nd duplicate {k = A} as a within 1 s"
    assert everywhere(second, "e0@1 k=B v=3; e1@2 k=A v=3; e2@4 k=A v=0") == []
    last = "p: not {k = B} as d then last {k = B} as b within 5 s"
    assert everywhere(last, "e2@4 k=B; e3@5 k=B", until=20) == [("p", "e2")]


def test_what_an_earlier_absence_forbids_is_no_duplicate() -> None:
    """Whether `d` breaks the absence is decided when `c` comes: the first `c` is excluded and not counted."""
    text = "p: not {k = D} as d then {k = B} as b then 2nd duplicate {k = C} as c within 9 s where d.v < c.v"
    assert everywhere(text, "d@0 k=D v=2; b@1 k=B; c1@2 k=C v=3; c2@3 k=C v=2") == []
    assert everywhere(text, "d@0 k=D v=2; b@1 k=B; c1@2 k=C v=2; c2@3 k=C v=1") == [("p", "b", "c2")]
    last = "p: {k = A} as a then not {k = D} as d then {k = B} as b then last {k = C} as c within 9 s where d.v < c.v"
    assert everywhere(last, "a@0 k=A; d@1 k=D v=2; b@2 k=B; c1@3 k=C v=2; c2@4 k=C v=3", until=9) == [
        ("p", "a", "b", "c1")
    ]


def test_a_broken_conjunction_is_removed_at_once() -> None:
    pattern = "p: first {k = A} as a and not {k = B} as b within 3 s"
    assert everywhere(pattern, "a1@0 k=A; b@1 k=B; a2@5 k=A; a3@6 k=A", until=20) == [("p", "a2")]
    stream = "a1@0 k=A; b@1 k=B; a2@5 k=A"
    assert everywhere(pattern, stream, until=20, limit=1, policy="refuse") == [("p", "a2")]


@pytest.mark.parametrize("next", ["({k = B} as b then {k = C} as c within 9 s)", "({k = B} as b and {k = C} as c)"])
def test_a_part_that_began_before_what_breaks_an_absence_stays(next: str) -> None:
    pattern = f"p: {{k = A}} as a then not {{k = D}} as d then {next} within 9 s"
    assert everywhere(pattern, "a@0 k=A; b@1 k=B; d@2 k=D; e@3 k=C") == [("p", "a", "b", "e")]
    assert everywhere(pattern, "a@0 k=A; d@1 k=D; e@2 k=B; f@3 k=C") == []


def test_two_ways_to_fill_a_conjunction_are_two() -> None:
    either = "({k = C} as a or {k = A} as b) and ({k = A} as c or {v = 2} as d) within 8 s"
    stream = "x@1 k=C r=1 s=2 v=2; y@2 k=A s=1 v=2"
    assert everywhere(f"p: {either} where b.r = c.s", stream) == [("p", "x", "y"), ("p", "y", "x")]


def test_unique_where_one_event_is_awaited_and_forbidden_under_different_keys() -> None:
    """The event is not excluded for this room, so it completes the pair and consumes the first event."""
    steps = "{v = 1} as a then not {k = B} as n then {k = C} as c within 9 s"
    text = f"p: {steps} where a.r = n.s and a.r = c.r consume unique"
    assert everywhere(text, "a@0 v=1 r=1; b@1 k=B k=C r=1 s=2; c@2 k=C r=1") == [("p", "a", "b")]


def test_duplicates_of_one_step_are_chosen_before_any_is_consumed() -> None:
    patterns = "q: {k = C} as a then not {k = A} as b within 8 s\np: first q as n consume unique"
    found = everywhere(patterns, "c@1 k=C; d@1 k=C", until=60)
    assert [row for row in found if row[0] == "p"] == [("p", "c")]


@pytest.mark.parametrize("either", ["({k = A} as a or {v > 0} as b)", "({v > 0} as b or {k = A} as a)"])
def test_what_may_be_read_in_two_ways_is_counted_for_each(either: str) -> None:
    """For any order of the branches: as `a` all are counted together, as `b` by room."""
    stream = "x@0 k=A v=1 r=1; y@1 v=1 r=1; z@2 k=A r=2; u@3 k=B v=1 r=2"
    assert everywhere(f"p: 2nd {either} where b.r = b.r", stream) == [("p", "y"), ("p", "z")]
    assert everywhere(f"p: 2 times {either} where b.r = b.r", stream) == [("p", "x", "y"), ("p", "x", "z")]


def test_what_is_known_at_another_time_is_another_instance() -> None:
    """Whether or not a condition keeps the branches apart."""
    either = "({k = A} as a or ({k = A} as b then not {k = B} as n within 2 s)) then {k = C} as c within 9 s"
    for text in (f"p: {either}", f"p: {either} where a.r = c.r"):
        assert everywhere(text, "x@0 k=A r=1; y@5 k=C r=1") == [("p", "x", "y")] * 2


def test_ways_to_read_one_part_meet_the_same_next_part() -> None:
    text = "p: ({v = 1} as a or {k = C} as b) then ({k = C} as c or {k = A} as e) within 2 s where a.r = c.r"
    assert everywhere(text, "x@0 k=C v=1 r=1; y@1 k=A") == [("p", "x", "y")]


def test_a_tick_is_no_event_by_which_ways_to_read_differ() -> None:
    either = "({k = A} as a and every 5 s as t within 5 s) or {k = A} as b"
    text = f"p: ({either}) then not {{v = 1}} as n within 5 s where n.r != b.r"
    assert everywhere(text, "s@5 k=S; x@8 k=A r=1", until=14) == [("p", "x", "")]


def test_an_absence_before_a_part_of_several_events_reaches_back_to_where_that_began() -> None:
    patterns = "q: {k = A} as a and {k = C} as c within 8 s\np: not {k = B} as b then q as n within 1 s"
    found = everywhere(patterns, "b1@3 k=B; a1@4 k=A; b2@11 k=B; c@12 k=C")
    assert [row for row in found if row[0] == "p"] == []
    found = everywhere(patterns, "b1@2 k=B; a1@4 k=A; b2@11 k=B; c@12 k=C")
    assert [row for row in found if row[0] == "p"] == [("p", "a1", "c")]


def test_what_must_not_come_before_a_silence_may_come_at_its_end() -> None:
    text = "p: {k = A} as a then not {k = B} as b then (not {k = C} as c for 2 s) within 9 s"
    assert everywhere(text, "x@0 k=A; y@2 k=B", until=30) == [("p", "x")]
    assert everywhere(text, "x@0 k=A; y@1 k=B", until=30) == []
    assert everywhere(text, "x@0 k=A; y@2 k=B k=C", until=30) == []


def test_the_last_before_a_silence_waits_for_that_alone() -> None:
    """Once the silence is over, another `a` begins a new one and replaces nothing."""
    text = "p: last {k = A} as a then not {k = B} as b for 2 s then {k = C} as c within 9 s"
    assert everywhere(text, "a1@0 k=A; a2@4 k=A; c@5 k=C") == [("p", "a1", "c")]
    assert everywhere(text, "a1@0 k=A; a2@4 k=A; c@7 k=C") == [("p", "a1", "c"), ("p", "a2", "c")]
    assert everywhere(text, "a1@0 k=A; a2@2 k=A; c@5 k=C") == [("p", "a1", "c"), ("p", "a2", "c")]
    assert everywhere(text, "a1@0 k=A; a2@1 k=A; c@4 k=C") == [("p", "a2", "c")]


def test_a_tick_may_stand_where_an_event_is_used_already() -> None:
    """One `a` cannot be both parts, but a tick may be the other."""
    text = "p: {k = B} as b and ({k = A} as c or every 2 s as t) and {k = A} as a within 3 s"
    assert everywhere(text, "x@1 k=A; y@3 k=B") == [("p", "y", "", "x")]


def test_several_values_of_duplicates_have_no_order() -> None:
    text = "p: 2nd duplicate {k = B} as a then {k = C} as c within 8 s where a.s = c.s"
    assert everywhere(text, "x@0 k=B s=1 s=2; y@1 k=B s=2 s=1; z@2 k=C s=1") == [("p", "y", "z")]


@pytest.mark.parametrize("branches", ["{k = A} as a or %s", "%s or {k = A} as a"])
def test_two_ways_to_read_the_same_events_have_one_span(branches: str) -> None:
    other = "((not {k = B} as n for 2 s) then {k = A} as b within 9 s)"
    [_, pattern] = parse("q: {k = Q} as q\np: " + branches % other)
    stream = trace("s@0 k=C; x@5 k=A")
    [detection] = Detector([pattern], compiled=False).publish_batch(stream)
    assert (detection.names, detection.start // 10**6, detection.end // 10**6) == (("a",), 0, 5)


def test_two_absences_cannot_be_compared() -> None:
    text = "p: not {k = B} as b then {k = B} as a then (not {k = A} as c for 1 s) within 5 s where b.s = c.s"
    with pytest.raises(BuildError, match="are both negated"):
        Detector(parse(text))


# growth


def test_the_longest_row_alone() -> None:
    """From the left: all in the window of the first, then continue with the next."""
    text = "p: longest 2 or more times {k = A} as a within 10 s"
    stream = "a1@0 k=A; a2@4 k=A; a3@10 k=A; a4@11 k=A; a5@30 k=A; a6@31 k=A"
    assert everywhere(text, stream, until=60) == [("p", "a1", "a2", "a3"), ("p", "a5", "a6")]
    assert everywhere(f"{text} where a.r = a.r", "a1@0 k=A r=1; b@1 k=A r=2; a2@2 k=A r=1", until=60) == [
        ("p", "a1", "a2")
    ]
    three = "p: longest 3 or more times {k = A} as a within 5 s"
    short = "a1@3 k=A; a2@5 k=A; a3@9 k=A; a4@10 k=A"
    assert everywhere(three, short, until=60) == [("p", "a2", "a3", "a4")]
    pairs = "p: longest 1 to 2 times {k = A} as a within 10 s"
    assert everywhere(pairs, "a1@0 k=A; a2@4 k=A; a3@5 k=A", until=60) == [("p", "a1", "a2"), ("p", "a3")]
    # A run that lost events to a limit is not the longest.
    assert everywhere(text, stream, until=60, limit=2) == [("p", "a5", "a6")]


def test_longest_needs_a_window() -> None:
    with pytest.raises(BuildError, match="window"):
        Detector(parse("p: longest 2 to 5 times {k = A} as a"))


def test_names_that_double_are_refused() -> None:
    names = [f"q{k}: q{k - 1} as x then q{k - 1} as y within 1 day" for k in range(1, 19)]
    with pytest.raises(BuildError, match="parts"):
        Detector(parse("\n".join(["q0: {k = A} as a then {k = B} as b", *names])))


def test_an_and_of_like_members_is_bounded() -> None:
    members = " and ".join(f"{{k = A}} as m{k}" for k in range(8))
    stream = trace("; ".join(f"e{k:02}@{k} k=A" for k in range(14)))
    found = []
    for compiled in (True, False):
        detector = Detector(parse(f"p: {members} within 1 hour"), limits=Limits(500), compiled=compiled)
        found.append([detection.signature for detection in detector.publish_batch(stream)])
        assert detector.state()[0].dropped > 0
    assert found[0] == found[1]
    assert len(found[0]) == 7 * 500


def test_old_timers_of_a_silence_go() -> None:
    detector = Detector(parse("p: not {k = A} as a for 30 days"))
    detector.publish_batch(trace("; ".join(f"e{k:05}@{k} k=A" for k in range(40_000))))
    assert len(detector._timers) < 20_000
