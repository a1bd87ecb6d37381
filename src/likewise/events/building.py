"""Builds events from Python values: numbers and times of any common type, or the documented JSON form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from likewise.errors import InputError
from likewise.events.event import Event, Instant, Value
from likewise.events.forms import FIELDS
from likewise.events.instants import parse_instant
from likewise.events.values import check_span, check_text, parse_value


def event_of(
    attributes: Mapping[str, Any],
    *,
    id: str = "",
    theme: Iterable[str] | str = (),
    time: object = None,
    end: object = None,
) -> Event:
    """Build an event from a mapping of attributes to values, or from the JSON form; see `Event.of`."""
    if not isinstance(attributes, Mapping):
        raise InputError(
            f"an event is built from a mapping, not from {type(attributes).__name__}", hint='such as {"device": "lift"}'
        )
    if isinstance(attributes.get("attributes"), Mapping) and attributes.keys() <= {*FIELDS}:
        form = attributes
        theme = theme or form.get("theme") or ()
        time, end = form.get("time") if time is None else time, form.get("end") if end is None else end
        return event_of(form["attributes"], id=id or form.get("id") or "", theme=theme, time=time, end=end)
    if not isinstance(id, str):
        raise InputError(f"the id of an event is text, not {type(id).__name__}", hint="put it in quotes")
    tuples = tuple(_tuples(attributes))
    if not tuples:
        raise InputError(f"event {id!r} has no attributes", hint="give it at least one")
    start = None if time is None else _instant("time", time)
    stop = _end(start, end)
    return Event(check_text("id", id), tuples, _tags(theme), start, check_span(start, stop))


def _tuples(attributes: Mapping[Any, Any]) -> Iterator[tuple[str, Value]]:
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"an attribute has the name {name!r}", hint="names are text that is not empty")
        if isinstance(value, np.ndarray):
            value = value.tolist()  # noqa: PLW2901 - converts NumPy numbers to Python's
        if isinstance(value, Mapping):
            raise InputError(f"attribute {name!r} is a nested object", hint="use a separate attribute for each member")
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | np.generic)
        for item in value if several else (value,):
            if item is not None:
                yield check_text("an attribute's name", name), _value(name, item)


def _value(name: str, value: object) -> Value:
    if isinstance(value, np.datetime64):
        value = _moment(value)
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = _number(value)
    if isinstance(value, timedelta):
        return value / timedelta(seconds=1)
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return check_text(f"attribute {name!r}", value)
    return parse_value(name, value)


def _number(value: Decimal) -> int | float:
    if value.is_finite() and value == value.to_integral_value() and abs(value) < 2**63:
        return int(value)
    return float(value) if not value.is_nan() else math.nan


def _moment(value: np.datetime64) -> datetime | None:
    moment = value.astype("datetime64[us]").item()
    return moment if isinstance(moment, datetime) else None


def _instant(field: str, value: object) -> Instant:
    if isinstance(value, np.datetime64):
        value = _moment(value)
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    return parse_instant(field, value)


def _end(start: Instant | None, end: object) -> Instant | None:
    if end is None:
        return None
    if isinstance(end, np.timedelta64):
        end = timedelta(microseconds=int(end.astype("timedelta64[us]").astype(np.int64)))
    if isinstance(end, timedelta):
        if start is None:
            raise InputError("the event has an end but no time", hint="give it a time too")
        return start + end // timedelta(microseconds=1)
    return _instant("end", end)


def _tags(theme: object) -> tuple[str, ...]:
    tags: tuple[Any, ...] = (theme,) if isinstance(theme, str) or not isinstance(theme, Iterable) else tuple(theme)
    if not all(isinstance(tag, str) and tag for tag in tags):
        raise InputError("a theme is a list of tags", hint='such as ["transport", "energy"]')
    return tuple(dict.fromkeys(tags))
