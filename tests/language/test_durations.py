"""Lengths of time."""

from __future__ import annotations

import pytest

from likewise.language import Sequence, parse_pattern
from likewise.language.durations import LONGEST, write_duration

SECOND = 1_000_000


def within(text: str) -> int | None:
    root = parse_pattern(f"a then b within {text}").root
    assert isinstance(root, Sequence)
    return root.within


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5us", 5),
        ("5 µs", 5),
        ("5ms", 5_000),
        ("5 s", 5 * SECOND),
        ("1.5 seconds", 1_500_000),
        ("30min", 30 * 60 * SECOND),
        ("30 minutes", 30 * 60 * SECOND),
        ("1 hour 30 minutes", 90 * 60 * SECOND),
        ("1h30min", 90 * 60 * SECOND),
        ("1 d", 86_400 * SECOND),
        ("2 weeks", 14 * 86_400 * SECOND),
        ("0 s", 0),
    ],
)
def test_units(text: str, microseconds: int) -> None:
    assert within(text) == microseconds


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 seconds"),
        (1, "1 microsecond"),
        (90 * SECOND, "1 minute 30 seconds"),
        (86_400 * SECOND + 2_000, "1 day 2 milliseconds"),
    ],
)
def test_written_in_words_from_days_down(microseconds: int, text: str) -> None:
    assert write_duration(microseconds) == text


def test_the_longest_is_read_back() -> None:
    assert within(write_duration(LONGEST)) == LONGEST
