"""Tests of the reference itself: answers derived by hand, and round trips."""

from __future__ import annotations

from random import Random

import pytest
from guard_check import by_definition
from guard_relations import INVERSE, allen
from guard_shrink import smaller_cases
from guard_worlds import make, read_case

from likewise.language import Allen

CASES = {
    "unique, joined on different attributes": (
        "p: {type = transfer} as a then {type = transfer} as b within 1 hour where a.to = b.from consume unique",
        "t1@0: type=transfer from=Ann to=Bob; t2@1: type=transfer from=Bob to=Cid; t3@2: type=transfer from=Cid to=Dan",
        ["a=t1 b=t2@1"],
    ),
    "joined only through a negated member": (
        "p: {k=A} as a then not {k=N} as n then {k=C} as c within 1 hour where a.r = n.r and n.r = c.r",
        "a@0: k=A r=1; c@1: k=C r=2",
        ["a=a c=c@1"],
    ),
    "an absence joined with both is broken by what both agree with": (
        "p: {k=A} as a then not {k=N} as n then {k=C} as c within 1 hour where a.r = n.r and n.r = c.r",
        "a@0: k=A r=1; n@1: k=N r=1; c@2: k=C r=1; d@3: k=C r=2",
        ["a=a c=d@3"],
    ),
    "every event of a repeated member is asked": (
        "p: (2 times {k=B} as x) then {k=C} as c where x.r = c.r",
        "b1@0: k=B r=1; b2@1: k=B; c1@2: k=C r=1; b3@3: k=B r=1; b4@4: k=B r=1; c2@5: k=C r=1",
        ["c=c2 x=b3,b4@5"],
    ),
    "several instances of the same events inside an or": (
        "p: (({k=A} as a and {k=A} as b within 5 s) or {k=Z} as z) then {k=C} as c where a.r = c.r",
        "a1@0: k=A r=1; a2@1: k=A r=2; c1@2: k=C r=1; c2@3: k=C r=2",
        ["a=a1 b=a2 c=c1@2", "a=a2 b=a1 c=c2@3"],
    ),
    "an event that is both may be read either way": (
        "p: ({k=A} as a or {v>0} as b) then {k=C} as c where a.r = c.r",
        "x@0: k=A v=1 r=1; c@1: k=C r=2",
        ["b=x c=c@1"],
    ),
    "and so with the branches swapped": (
        "p: ({v>0} as b or {k=A} as a) then {k=C} as c where a.r = c.r",
        "x@0: k=A v=1 r=1; c@1: k=C r=2",
        ["b=x c=c@1"],
    ),
    "what a pattern consumes does not change what a name finds": (
        "q: first {k=C} as x or {k=Z} as z\np: q as n then {k=D} as d consume unique",
        "c1@0: k=C; d1@1: k=D; c2@2: k=C; d2@3: k=D",
        ["x=c1@0", "d=d1 n.x=c1@1"],
    ),
    "a key may be part of a sum": (
        "p: first {k=A} as a then {k=B} as b within 9 s where b.v = a.v + 1",
        "a1@0: k=A v=1; a2@1: k=A v=5; b@2: k=B v=6",
        ["a=a2 b=b@2"],
    ),
    "a broken absence holds no place": (
        "p: first {k=A} as a then not {k=B} as b within 10 s",
        "a1@0: k=A; b@1: k=B; a2@2: k=A",
        ["a=a2@12"],
    ),
    "what is forbidden displaces nothing": (
        "p: {k=A} as a then not {k=B} as b then last {k=C} as c within 10 s",
        "a@0: k=A; c1@1: k=C; b@2: k=B; c2@3: k=C",
        ["a=a c=c1@10"],
    ),
    "several values of what is counted": (
        "p: 2 times {k=A} as a within 3 s where a.r = a.r",
        "a1@0: k=A r=1 r=2; a2@1: k=A r=3; a3@2: k=A r=2",
        ["a=a1,a3@2"],
    ),
    "equality is not transitive where there are several values": (
        "p: {k=A} as a then {k=B} as b then {k=C} as c within 9 s where c.r = a.r and c.r = b.r",
        "a@0: k=A r=1; b@1: k=B r=2; c@2: k=C r=1 r=2",
        ["a=a b=b c=c@2"],
    ),
    "a consumed event still counts": (
        "p: (3rd ({k=A} as a then {k=B} as b within 9 s)) or {k=D} as d consume unique",
        "x@1: k=A k=D; a1@2: k=A; a2@3: k=A; b@4: k=B",
        ["d=x@1", "a=a2 b=b@4"],
    ),
    "types do not mix": (
        "p: {k=A} as a then {k=B} as b where a.r = b.r",
        "a1@0: k=A r=1; a2@1: k=A r='1'; a3@2: k=A r=True; b1@3: k=B r=1.0; b2@4: k=B r='1'",
        ["a=a1 b=b1@3", "a=a2 b=b2@4"],
    ),
    "a silence, anew from every event": ("p: not {k=A} as a for 3 s", "c@1: k=C; a1@2: k=A; a2@5: k=A", ["@8"]),
    "no window overlaps another": (
        "p: 2nd {k=A} as a within 2 s",
        "a1@1: k=A; a2@3: k=A; a3@4: k=A; a4@5: k=A; a5@6: k=A",
        ["a=a2@3", "a=a4@5"],
    ),
    "the last before each": (
        "p: last {k=A} as a then {k=B} as b",
        "a1@0: k=A; b1@1: k=B; a2@2: k=A; a3@3: k=A; b2@3: k=B; b3@4: k=B",
        ["a=a1 b=b1@1", "a=a2 b=b2@3", "a=a3 b=b3@4"],
    ),
    "alone": ("p: {k=A} as a xor {k=B} as b within 2 s", "a1@1: k=A; b@4: k=B; a2@6: k=A", ["a=a1@3"]),
    "during": ("p: {k=A} as a during {k=B} as b within 3 s", "a@2-3: k=A; c@4-6: k=A; b@1-8: k=B", ["a=c b=b@8"]),
    "the time before": (
        "p: not {k=B} as b then {k=C} as c within 3 s",
        "b1@1: k=B; c1@4: k=C; c2@5: k=C; b2@6: k=B; c3@6: k=C",
        ["c=c2@5", "c=c3@6"],
    ),
    "beside": ("p: {k=A} as a and not {k=B} as b within 2 s", "a1@3: k=A; b@5: k=B; a2@8: k=A", ["a=a2@10"]),
    "every": ("p: every 5 s as t then {k=A} as a within 3 s", "a1@5: k=A; a2@6: k=A; a3@7: k=B", ["a=a2 t=@6"]),
}  # fmt: skip


@pytest.mark.parametrize(("patterns", "events", "expected"), CASES.values(), ids=CASES)
def test_the_reference_gives_what_was_worked_out_by_hand(patterns: str, events: str, expected: list[str]) -> None:
    case = read_case("\n".join([patterns, *events.split(";"), "advance to 20 s"]))
    found = sorted(by_definition(case), key=lambda row: row[1])
    texts = [" ".join(f"{role}={','.join(ids)}" for role, ids in row[4]) + f"@{row[1] / 1e6:g}" for row in found]
    assert texts == expected


def test_a_case_is_read_back_from_its_text() -> None:
    for seed in range(300):
        case = make(seed)
        assert read_case(case.text(), seed=seed) == case


def test_a_smaller_case_is_smaller() -> None:
    """Shrinking ends: every step takes something away."""
    for seed in range(100):
        case = make(seed)
        assert all(len(less.text()) < len(case.text()) for less in smaller_cases(case))


def test_exactly_one_relation_holds_and_its_inverse_the_other_way_round() -> None:
    random, seen = Random(0), set()
    back = INVERSE | {inverse: relation for relation, inverse in INVERSE.items()} | {Allen.EQUALS: Allen.EQUALS}
    for _ in range(2_000):
        left, right = (tuple(sorted(random.choices(range(5), k=2))) for _ in "lr")
        seen.add(allen(left, right))  # type: ignore[arg-type]
        assert allen(right, left) is back[allen(left, right)]  # type: ignore[arg-type]
    assert seen == set(Allen)
