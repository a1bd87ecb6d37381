"""Patterns in words and in symbols."""

from __future__ import annotations

import pytest

from likewise.language import (
    Allen,
    Conjunction,
    Disjunction,
    Duplicates,
    ExclusiveOr,
    Keep,
    Member,
    Negation,
    Operator,
    Pattern,
    Predicate,
    Profile,
    Reference,
    Relation,
    Repetition,
    Selection,
    Sequence,
    TimeEvent,
    format_pattern,
    parse_pattern,
)

a, b, c = Reference("a"), Reference("b"), Reference("c")
MINUTE = 60 * 1_000_000
HOUR = 60 * MINUTE
window = Profile((Predicate("type", Operator.EQ, "window broken"),))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a then b within 30 minutes", Sequence((a, b), 30 * MINUTE)),
        ("(a; b)30min", Sequence((a, b), 30 * MINUTE)),
        ("(a; b) within 30 min", Sequence((a, b), 30 * MINUTE)),
        ("(a; b; c)1h30min", Sequence((a, b, c), 90 * MINUTE)),
        ("a and b within 1 hour", Conjunction((a, b), HOUR)),
        ("(a, b)1h", Conjunction((a, b), HOUR)),
        ("a or b", Disjunction((a, b))),
        ("(a|b)", Disjunction((a, b))),
        ("a xor b within 1 hour", ExclusiveOr((a, b), HOUR)),
        ("(a ^ b)1h", ExclusiveOr((a, b), HOUR)),
        ("not a for 30 minutes", Negation(a, 30 * MINUTE)),
        ("not a within 30 minutes", Negation(a, 30 * MINUTE)),
        ("(!a)30min", Negation(a, 30 * MINUTE)),
        ("3rd a", Selection(a, 3)),
        ("a[3]", Selection(a, 3)),
        ("(a[3])1h", Selection(a, 3, HOUR)),
        ("2 to 5 times a", Repetition(a, 2, 5)),
        ("a times 2..5", Repetition(a, 2, 5)),
        ("3 times a within 1 hour", Repetition(a, 3, 3, HOUR)),
        ("2 or more times a", Repetition(a, 2)),
        ("at least 2 times a", Repetition(a, 2)),
        ("a times 2..", Repetition(a, 2)),
        ("at 17:00", TimeEvent(at=17 * HOUR)),
        ("at 05:30:15.25 as t", TimeEvent(at=5 * HOUR + 30 * MINUTE + 15_250_000, alias="t")),
        ("every 30 minutes", TimeEvent(every=30 * MINUTE)),
        ("first a", Reference("a", None, Duplicates(Keep.FIRST))),
        ("last a", Reference("a", None, Duplicates(Keep.LAST))),
        ("all a", Reference("a", None, Duplicates(Keep.ALL))),
        ("2nd duplicate a", Reference("a", None, Duplicates(Keep.NTH, 2))),
        ("2nd duplicate of a as x", Reference("a", "x", Duplicates(Keep.NTH, 2))),
        ("3rd first a", Selection(Reference("a", None, Duplicates(Keep.FIRST)), 3)),
        ("w = {type: window broken} then b", Sequence((Member(window, "w"), b))),
        ("{type = window broken} as w then b", Sequence((Member(window, "w"), b))),
        ("w = first {type = window broken} then b", Sequence((Member(window, "w", Duplicates(Keep.FIRST)), b))),
        ('"then" then b', Sequence((Reference("then"), b))),
        ("[and(a/T1, [and(b/T1, c/T2)])]", Conjunction((a, Conjunction((b, c))))),
        ("or(a, b, c)", Disjunction((a, b, c))),
        ("before(a, b)", Relation(a, Allen.BEFORE, b)),
    ],
)
def test_one_operator(text: str, pattern: Pattern) -> None:
    assert parse_pattern(text).root == pattern


@pytest.mark.parametrize("relation", Allen)
def test_all_thirteen_relations(relation: Allen) -> None:
    assert parse_pattern(f"a {relation} b within 5 min").root == Relation(a, relation, b, 5 * MINUTE)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        # Loosest to tightest: or, xor, and, then, relation, not.
        ("a or b and c", Disjunction((a, Conjunction((b, c))))),
        ("a and b then c", Conjunction((a, Sequence((b, c))))),
        ("a then b and c", Conjunction((Sequence((a, b)), c))),
        ("a xor b or c", Disjunction((ExclusiveOr((a, b)), c))),
        ("a then b during c", Sequence((a, Relation(b, Allen.DURING, c)))),
        ("not a then b", Sequence((Negation(a), b))),
        ("a then (b then c)", Sequence((a, Sequence((b, c))))),
        # `within` belongs to the nearest chain on its left.
        ("a then not b within 10 minutes", Sequence((a, Negation(b)), 10 * MINUTE)),
        ("a and not b within 1 hour", Conjunction((a, Negation(b)), HOUR)),
        ("a or not b within 1 hour", Disjunction((a, Negation(b, HOUR)))),
        ("a and b then c within 1 hour", Conjunction((a, Sequence((b, c), HOUR)))),
        ("a then b within 1 min and c within 1 hour", Conjunction((Sequence((a, b), MINUTE), c), HOUR)),
        ("a then b within 1 min then c", Sequence((Sequence((a, b), MINUTE), c))),
        ("a then (b and c) within 1 min", Sequence((a, Conjunction((b, c))), MINUTE)),
        ("not a within 1 hour then b", Sequence((Negation(a, HOUR), b))),
        ("a then not b for 1 min then c within 1 hour", Sequence((a, Negation(b, MINUTE), c), HOUR)),
        ("((a; b)5min, (!c)2h)1h", Conjunction((Sequence((a, b), 5 * MINUTE), Negation(c, 2 * HOUR)), HOUR)),
        ("a\n  then b\n  within 1 hour", Sequence((a, b), HOUR)),
    ],
)
def test_precedence_and_the_reach_of_within(text: str, pattern: Pattern) -> None:
    assert parse_pattern(text).root == pattern


def test_the_canonical_form_is_in_words() -> None:
    assert format_pattern(parse_pattern("((E1; E2[3])5min | (!E3)2h)")) == (
        "(E1 then (3rd E2) within 5 minutes) or (not E3 for 2 hours)"
    )
