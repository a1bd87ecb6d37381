"""Impossible patterns are refused when they are built, with the reason and a hint."""

from __future__ import annotations

import pytest
from worlds import member

from likewise.composite import Detector, build_plan
from likewise.errors import BuildError
from likewise.language import (
    Composite,
    Duplicates,
    Keep,
    Member,
    Negation,
    Options,
    Repetition,
    Selection,
    Sequence,
    Subscription,
    TimeEvent,
    parse,
)

BASE = "a: {type= a}\nb: {type= b}\nc: {type= c}\n"


def build(text: str) -> Detector:
    return Detector(parse(BASE + text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p: a then q within 5 s\nq: p and b within 5 s", "refers to itself: p -> q -> p"),
        ("p: a then not b", "needs a window"),
        ("p: not a or b", "a negation needs a window"),
        ("p: a and not b", "needs a window"),
        ("p: a xor b", "`xor` needs a window"),
        ("p: a then last b", "`last` of the final part needs a window"),
        ("p: (a or last b) then c", "`last` cannot be decided here"),
        ("p: c then not last b within 5 s", "`last` cannot be decided here"),
        ("p: a before b within 0 s", "`before` cannot hold within a time of 0"),
        ("p: (at 17:00) meets b", "a time event cannot be on this side of `meets`"),
        ("p: a then (not b for 10 s) then c within 5 s", "the steps need at least"),
        ("p: at least 2 times a", "an unlimited repetition needs a window"),
        ("p: (a or b) where a.x = b.x", "different branches"),
        ("p: ((a then not b within 5 s) then c) where b.x = c.x", "inside a separate negation"),
        ("p: (a then not b then not c within 5 s) where b.x = c.x", "cannot be compared"),
        ("p: a then (not b for 5 s) then c where b.x = c.x", "only comes later"),
        ("p: not a then not b within 5 s", "must begin with a part that is not negated"),
        ("q: not a for 5 s\np: q as n then b where n.x = b.x", "has only negated parts"),
    ],
)
def test_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(BuildError) as refusal:
        build(text)
    assert why in refusal.value.message
    assert refusal.value.hint


@pytest.mark.parametrize(
    "root",
    [
        Selection(member("A"), 0),
        Repetition(member("A"), 0, 2),
        Repetition(member("A"), 3, 2),
        Negation(member("A"), 0),
        Sequence((member("A"), member("B")), -1),
        Sequence((Member(member("A").profile, "a", Duplicates(Keep.NTH, 0)), member("B"))),
        Sequence((member("A"), member("A"))),
        TimeEvent(),
        TimeEvent(at=90_000_000_000),
        TimeEvent(every=0),
    ],
    ids=lambda root: type(root).__name__,
)
def test_refused_values(root: object) -> None:
    with pytest.raises(BuildError):
        build_plan(Subscription("p", Composite(root)))  # type: ignore[arg-type]


def test_unbound_names_are_guessed() -> None:
    from likewise.language import Binding, Field, Operator

    where = (Binding(Field("window", "room"), Operator.EQ, Field("presense", "room")),)
    root = Sequence((member("A", "window"), member("B", "presence")))
    with pytest.raises(BuildError, match="did you mean 'presence'"):
        build_plan(Subscription("p", Composite(root, where)))


def test_unknown_references_are_guessed() -> None:
    with pytest.raises(BuildError, match="did you mean 'window'"):
        Detector(parse("window: {type= w}\np: windw then {type= x}"))


def test_a_condition_by_meaning_needs_a_measure() -> None:
    with pytest.raises(BuildError, match="needs a measure"):
        build("p: a then b where a.room ~ b.room")


def test_a_failed_pattern_leaves_nothing_behind() -> None:
    detector = build("p: a then b")
    with pytest.raises(BuildError):
        detector.add("q", Composite(Negation(member("A"))), Options())
    assert "q" not in detector.patterns


def test_a_reference_brings_its_conditions() -> None:
    plan = build_plan(
        parse("q: pair as x then {type= c} as y where x.room = y.room")[0],
        {
            subscription.name: subscription
            for subscription in parse("pair: {type= a} as l then {type= b} as r where l.room = r.room")
        },
    )
    assert sorted(plan.root.node.roles) == ["x.l", "x.r", "y"]
    assert len(plan.conditions) == 2


def test_a_name_may_be_used_twice() -> None:
    [pattern] = parse("p: smoke then not people then smoke within 5 s")
    known = {subscription.name: subscription for subscription in parse("smoke: {type= smoke}\npeople: {type= people}")}
    assert sorted(build_plan(pattern, known).root.node.visible) == ["smoke", "smoke 2"]
