"""Checks and converts input values: types, limits, and flattening of nested objects."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from likewise.errors import InputError
from likewise.events.event import Instant, Value, to_instant
from likewise.events.instants import FIRST, LAST

MAX_TEXT = 65_536
MAX_DEPTH = 32
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


def parse_text(text: str) -> str | datetime:
    """A datetime if the text is a full timestamp (RFC 3339; without a time zone: UTC), else the text.

    >>> parse_text("2010-07-11T20:30:00+02:00").isoformat(), parse_text("2010-07-11")
    ('2010-07-11T20:30:00+02:00', '2010-07-11')
    """
    if len(text) < 19 or text[10] != "T" or not _TIMESTAMP.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except ValueError:
        return text
    # A time zone can move the first or last moments out of the supported years.
    return aware if FIRST <= to_instant(aware) <= LAST else text


def parse_value(name: str, value: object) -> Value:
    """Check a scalar, keeping its type; raises InputError if it cannot be a value."""
    if isinstance(value, str):
        return parse_text(check_text(f"attribute {_shown(name)}", value))
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _within(name, value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"attribute {_shown(name)} is {value}", hint="numbers must be finite: omit the attribute")
        return value
    message = f"attribute {_shown(name)} is of type {type(value).__name__}, not a number, boolean or text"
    raise InputError(message, hint="omit it, or write it as text")


def check_text(name: str, text: str) -> str:
    """The text, if it is not too long."""
    if len(text) <= MAX_TEXT:
        return text
    raise InputError(f"{name} has a text of {len(text):,} characters", hint=f"at most {MAX_TEXT:,}")


def flatten(attributes: dict[str, object], *, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Value]]:
    """The tuples of attributes; members of nested objects are named by their path, null means absent.

    >>> list(flatten({"room": {"name": "101", "floor": [1, 2], "key": None}}))
    [('room name', '101'), ('room floor', 1), ('room floor', 2)]
    """
    if depth > MAX_DEPTH:
        raise InputError(f"attributes are nested deeper than {MAX_DEPTH} levels")
    for key, value in attributes.items():
        if not key:
            raise InputError("an attribute has an empty name")
        name = f"{prefix} {key}" if prefix else key
        check_text("an attribute's name", name)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, dict):
                yield from flatten(item, prefix=name, depth=depth + 1)
            elif isinstance(item, list):
                raise InputError(f"attribute {_shown(name)} has a list inside a list", hint="use one flat list")
            elif item is not None:
                yield name, parse_value(name, item)


def check_span(start: Instant | None, end: Instant | None) -> Instant | None:
    """The end of an event: the start if it is None."""
    if end is None:
        return start
    if start is None:
        raise InputError("the event has an end but no time", hint="give it a time too")
    if end < start:
        raise InputError("the event ends before it starts", hint="swap time and end")
    return end


def _within(name: str, value: int) -> int:
    if MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    raise InputError(f"attribute {_shown(name)} has an integer beyond 64 bits", hint="write it as text or as a float")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
