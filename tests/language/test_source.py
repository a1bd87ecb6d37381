"""Lines, columns and comments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from likewise.errors import ParseError, Position
from likewise.language.reading.source import Source


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [("", 0, 1, 1), ("ab", 2, 1, 3), ("a\nb", 2, 2, 1), ("a\r\nb", 3, 2, 1), ("a\n", 2, 2, 1), ("a\u2028b", 2, 2, 1)],
)
def test_positions_agree_with_splitlines(text: str, offset: int, line: int, column: int) -> None:
    assert Source(text).position(offset) == Position(line, column)


def test_comments_are_blanked_at_the_same_offsets() -> None:
    source = Source('a # b\n"# c" C#')
    assert source.code == 'a    \n"# c" C#'


def test_an_error_shows_its_line_only() -> None:
    error = Source("one\ntwo\nthree", "f.lw").error(5, "no", expected=("x",))
    assert str(error) == "f.lw:2:2: no\n  two\n   ^\n  expected: x"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ParseError, match="lone surrogate"):
        Source("ab\ud800").check()


def test_no_expression_has_a_possessive_group() -> None:
    """Python before 3.11.4 (Debian 12 has 3.11.2) takes half of such a group: `2.` of `2..5`."""
    folder = Path(__file__).parents[2] / "src" / "likewise"
    found = [path.name for path in folder.rglob("*.py") if re.search(r"\)[?*+]\+[^+]", path.read_text("utf-8"))]
    assert not found
