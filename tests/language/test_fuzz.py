"""Any text gives a result or a LikewiseError, and a result can be written and read again."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import LikewiseError
from likewise.language import format_event, format_file, parse, parse_event, parse_lenient, parse_pattern

PIECES = [
    *("a", "b", "x: ", "{", "}", "(", ")", "[", "]", ",", ";", "|", "!", "~", "=", ":", "<", "<=", ">", "!="),
    *(".", "..", " ", "\n", "\n\n", "\t", "\r", "\x00", '"', "“", "”", "‘", "’", "'", "\\", "#", "# c\n"),
    *("\\u12", "\ud800", "°", "{a= b}", "{t, u} ", "{a~= b~, c > 2}", "{x in [1, 2)}", "{1 <= x < 2}", '"q w"'),
    *('event type "T"\n', "profile(", "event(", " then ", " and ", " or ", " xor ", " not ", " within 5 min"),
    *(" for 1 h", "first ", "3rd ", "2 to 3 times ", " as x", " during ", " met by ", "at 17:00", "every 5 s"),
    *(" where a.x = b.x", " ~ ", " consume unique", " threshold 0.5", " top 2", " approach thematic"),
    *(" within", " where ", "30min", "1e999", "-", "+ 5", "999999999999999999999999999999"),
    *("2026-05-01T10:00:00Z", "/T1", "and("),
]
garbage = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=25).map("".join),
)


def _survives(text: str) -> None:
    good, errors = parse_lenient(text)
    assert all(str(error) and 1 <= error.column <= len(text) + 1 for error in errors)
    assert parse(format_file(good)) == good
    try:
        assert parse(text) == good
        assert not errors
    except LikewiseError:
        assert errors
    for reader in (parse_pattern, lambda text: parse_event(format_event(parse_event(text)))):
        with suppress(LikewiseError):
            reader(text)


@given(garbage)
@settings(deadline=None, max_examples=300)
def test_only_our_own_errors_come_out(text: str) -> None:
    _survives(text)


@pytest.mark.slow
@given(garbage)
@settings(deadline=None, max_examples=15_000)
def test_only_our_own_errors_come_out_of_many_texts(text: str) -> None:
    _survives(text)


@pytest.mark.parametrize(
    "sign", ['"', "“", "{", "(", "[", "\\", "#", "~", "'", "\n", " ", "not ", "{a= ", "a: ", '"\\', "{a} ", "3rd "]
)
def test_long_runs_of_one_sign_end_soon(sign: str) -> None:
    """Each of these would take minutes if parsing were quadratic."""
    _survives(sign * (20_000 // len(sign)))
