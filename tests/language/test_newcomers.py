"""Habits from other languages: the error points at them and shows the right form."""

from __future__ import annotations

import pytest

from likewise.errors import ParseError
from likewise.language import parse


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("alert {type = x}", 7, "a name ends with a colon"),
        ("p: {a=1} {b=1}", 10, "join members by `then`"),
        ("p: {a=1} -> {b=1}", 10, "write `then`"),
        ("p: {a=1} followed by {b=1}", 10, "write `then`"),
        ("p: {a=1} then {b=1} in 5 minutes", 21, "write `within`"),
        ("p: a & b", 6, "write `and`"),
        ("p: {a=1} AND {b=1} within 5 min", 10, "did you mean `and`"),
        ("a: {x = 1 and y = 2}", 17, "separate predicates by commas"),
    ],
)
def test_other_spellings_are_understood_and_corrected(text: str, column: int, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.column == column
    assert hint in str(caught.value.hint)


def test_the_caret_stands_under_the_name_that_is_wrong() -> None:
    with pytest.raises(ParseError) as caught:
        parse("p: {a=1} as x then {b=1} as y where x.room = z.room")
    assert caught.value.excerpt[caught.value.column - 1 :] == "z.room"
