"""`longest`, and the forms of paper 001 that its figures print."""

from __future__ import annotations

import pytest

from likewise.errors import ParseError
from likewise.language import Allen, Negation, Relation, Repetition, format_pattern, parse_pattern


@pytest.mark.parametrize(
    "text",
    [
        "longest 2 or more times a within 30 days",
        "longest at least 2 times a within 30 days",
        "(longest a times 2..) within 30 days",
    ],
)
def test_longest_is_said_of_a_repetition(text: str) -> None:
    pattern = parse_pattern(text)
    assert isinstance(pattern.root, Repetition)
    assert pattern.root.longest
    assert format_pattern(pattern) == "longest 2 or more times a within 30 days"
    assert parse_pattern(format_pattern(pattern)) == pattern


@pytest.mark.parametrize("text", ["longest a", "longest 3rd a", "longest longest 2 times a"])
def test_longest_of_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="longest"):
        parse_pattern(text)


def test_the_figures_of_001() -> None:
    assert parse_pattern("includes(E1/T1, E2/T2)") == parse_pattern("E1 contains E2")
    found = parse_pattern("[includes(E1/T1, E2/T2)]").root
    assert isinstance(found, Relation)
    assert found.relation is Allen.CONTAINS
    absent = parse_pattern("[and(E1/T1, not(E2/T2))]").root
    assert absent == parse_pattern("E1 and not E2").root
    assert isinstance(parse_pattern("not(E1/T1) for 5 s").root, Negation)
