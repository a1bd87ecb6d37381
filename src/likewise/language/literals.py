"""Literals: numbers, booleans and timestamps; everything else is text."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from likewise.errors import BuildError
from likewise.events import Value, parse_text

_LONGEST_NUMBER = 4_000  # Python refuses to read integers of more than 4,300 digits
_UNSIGNED = r"(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_NUMBER = re.compile(rf"-?{_UNSIGNED}")
_UNIT = r"(?:[°%µ]?[^\W\d_]{1,12}|[°%])(?:/[^\W\d_]{1,8})?[²³]?"
_QUANTITY = re.compile(rf"(-?{_UNSIGNED})\s?{_UNIT}")
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_TRUTH: dict[str, bool] = {"true": True, "false": False}
_NUMBER_STARTS = frozenset("-.0123456789")


def literal(text: str) -> Value:
    """The value of an unquoted term.

    A number with leading zeros is a code and a number with a unit is a description: both stay text.
    Timestamps are recognised as in events, so that both sides of a comparison agree.

    >>> [literal(text) for text in ("3", "-2.5", "true", "room 112", "007", "14:22:03")]
    [3, -2.5, True, 'room 112', '007', '14:22:03']
    >>> literal("2026-05-01T10:00:00Z")
    datetime.datetime(2026, 5, 1, 10, 0, tzinfo=datetime.timezone.utc)
    """
    if text[:1] in _NUMBER_STARTS:
        if _NUMBER.fullmatch(text):
            return _number(text)
        return parse_text(text)
    return _TRUTH.get(text, text)


def ordered_literal(text: str) -> Value:
    """The value for a comparison with `<`, `>` or a range: a unit after a number is dropped.

    >>> ordered_literal("10°C"), ordered_literal("35 km/h"), ordered_literal("monday")
    (10, 35, 'monday')
    """
    match = _QUANTITY.fullmatch(text)
    return _number(match[1]) if match else literal(text)


def beyond_numbers(text: str) -> bool:
    """Whether an unquoted term looks like a number but is not finite, so it cannot be compared.

    >>> [beyond_numbers(text) for text in ("NaN", "-inf", "1e999", "-1e999 km", "1e30", "infinite", "monday")]
    [True, True, True, True, False, False, False]
    """
    if _NO_NUMBER.fullmatch(text):
        return True
    match = _QUANTITY.fullmatch(text)
    number = match[1] if match else text
    return _NUMBER.fullmatch(number) is not None and isinstance(_number(number), str)


def write_literal(value: bool | int | float | datetime) -> str:
    """A value that is not text, as `literal` reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return aware.isoformat().replace("+00:00", "Z")
    if isinstance(value, int):
        if abs(value) >= 10**_LONGEST_NUMBER:
            raise BuildError("the number is too long to be written", hint=f"it has over {_LONGEST_NUMBER:,} digits")
    elif not math.isfinite(value):
        raise BuildError(f"{value!r} cannot be written", hint="the language has finite numbers only")
    return repr(value)


def _number(text: str) -> int | float | str:
    if len(text) > _LONGEST_NUMBER:
        return text
    if text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else text
