"""Writes events as JSON, with checks that a written event can be read again."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import msgspec

from likewise.errors import InputError
from likewise.events.event import Event, Instant, Value, to_datetime
from likewise.events.values import MAX_INTEGER, MIN_INTEGER, check_text

_MINUTE = timedelta(minutes=1)
_encode = msgspec.json.Encoder().encode


def encode_line(event: Event) -> bytes:
    r"""The event as one JSON line, ending with a newline.

    >>> encode_line(Event.of({"slot": [1, 2]}, id="e1", theme=["city"]))
    b'{"id":"e1","theme":["city"],"attributes":{"slot":[1,2]}}\n'
    """
    record: dict[str, object] = {"id": event.id}
    if event.start is not None:
        record["time"] = written_instant(event.start)
        if event.end is not None and event.end != event.start:
            record["end"] = written_instant(event.end)
    if event.theme:
        record["theme"] = event.theme
    record["attributes"] = written_attributes(event)
    return to_json(event, record) + b"\n"


def to_json(event: Event, record: object) -> bytes:
    """Encode as JSON; raises InputError for text that is not valid Unicode."""
    try:
        return _encode(record)
    except UnicodeEncodeError:
        raise InputError(f"event {event.id!r} has text that is not valid Unicode") from None


def written_attributes(event: Event) -> dict[str, object]:
    """Attributes by name, with a list for several values."""
    if not event.tuples:
        raise InputError(f"event {event.id!r} has no attributes", hint="an event needs at least one attribute")
    grouped: dict[str, list[Value]] = {}
    for name, value in event.tuples:
        if not name:
            raise InputError(f"event {event.id!r} has an attribute with an empty name")
        grouped.setdefault(name, []).append(written_value(event, name, value))
    return {name: values[0] if len(values) == 1 else values for name, values in grouped.items()}


def written_value(event: Event, name: str, value: Value) -> Value:
    """The value if JSON can represent it; a datetime without a time zone becomes UTC."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"event {event.id!r}: attribute {name!r} is {value}", hint="numbers must be finite")
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        raise InputError(f"event {event.id!r}: attribute {name!r} has an integer beyond 64 bits")
    if isinstance(value, str):
        return check_text(f"attribute {name!r}", value)
    return written_moment(value) if isinstance(value, datetime) else value


def written_moment(moment: datetime) -> datetime:
    """The datetime with a UTC offset of whole minutes, as timestamps require."""
    offset = moment.utcoffset()
    if offset is None:
        return moment.replace(tzinfo=UTC)
    return moment if not offset % _MINUTE else moment.astimezone(UTC)


def written_instant(instant: Instant) -> datetime:
    """The datetime of a start or end; must be in the years 1 to 9999."""
    try:
        return to_datetime(instant)
    except OverflowError:
        raise InputError(f"the time {instant} is outside the years 1 to 9999") from None
