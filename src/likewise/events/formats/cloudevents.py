"""CloudEvents 1.0 in structured JSON: conversion to and from events.

`type`, `source`, `subject`, every extension and every member of `data` become tuples. The extension `theme` holds the
tags, separated by commas; the extension `endtime` holds the end. Fields that describe the encoding (`specversion`,
`datacontenttype`, `dataschema`) are not part of the event.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from likewise.errors import InputError
from likewise.events.event import Event, Value
from likewise.events.formats.json_text import to_json, written_attributes, written_instant
from likewise.events.formats.jsonl import parse_json
from likewise.events.instants import parse_instant
from likewise.events.values import check_span, check_text, flatten, parse_value

TYPE, SOURCE = "likewise.event", "likewise"
"""Defaults for events without a type or source: added on writing, dropped on reading."""

_CONTEXT = ("type", "source", "subject")
_ENCODING = frozenset(("specversion", "id", "time", "datacontenttype", "dataschema", "data", "data_base64"))
_SPECIAL = frozenset((*_CONTEXT, *_ENCODING, "theme", "endtime"))


def event_of_cloudevent(value: object) -> Event:
    """Convert a decoded CloudEvent to an event.

    >>> event_of_cloudevent({"specversion": "1.0", "id": "1", "source": "/car", "type": "parked", "data": {"slot": 4}})
    Event(id='1', tuples=(('type', 'parked'), ('source', '/car'), ('slot', 4)), theme=(), start=None, end=None)
    """
    if not isinstance(value, dict):
        raise InputError("not a CloudEvent: not a JSON object")
    # A null context attribute is the same as an absent one [CloudEvents JSON format, section 2.2].
    fields = {name: field for name, field in value.items() if field is not None or name == "data"}
    _check_required(fields)
    start, end = (parse_instant(f, fields[f]) if f in fields else None for f in ("time", "endtime"))
    return Event(fields["id"], tuple(_tuples(fields)), _theme(fields.get("theme")), start, check_span(start, end))


def unique_key(event: Event) -> str:
    """The key by which CloudEvents are unique: source and id together."""
    source = next((value for name, value in event.tuples if name == "source"), "")
    return f"{source} {event.id}" if source else event.id


def encode_cloudevent(event: Event) -> bytes:
    """The event as one structured CloudEvent on one line, without the newline."""
    record: dict[str, object] = {"specversion": "1.0", "id": _written_id(event), "source": SOURCE, "type": TYPE}
    data = written_attributes(event)
    for name, reserved in (("type", TYPE), ("source", SOURCE), ("subject", None)):
        value = data.get(name)
        if isinstance(value, str) and value and value != reserved:
            record[name] = data.pop(name)
    if event.start is not None:
        record["time"] = written_instant(event.start)
        if event.end is not None and event.end != event.start:
            record["endtime"] = written_instant(event.end)
    if event.theme:
        record["theme"] = ",".join(map(_quoted, event.theme))
    return to_json(event, record | {"datacontenttype": "application/json", "data": data})


def _check_required(fields: dict[str, Any]) -> None:
    if fields.get("specversion") != "1.0":
        raise InputError(f"specversion is {str(fields.get('specversion'))[:20]!r}, not '1.0'")
    for name in ("id", *_CONTEXT[:2]):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise InputError(f"{name} is missing or not text", hint="CloudEvents need id, source and type")
        check_text(name, fields[name])
    if not isinstance(fields.get("subject", ""), str):
        raise InputError("subject is not text")


def _tuples(fields: dict[str, Any]) -> Iterator[tuple[str, Value]]:
    for name in _CONTEXT:
        if name in fields and fields[name] != {"type": TYPE, "source": SOURCE}.get(name):
            yield name, check_text(name, fields[name])
    for name, value in fields.items():
        if name not in _SPECIAL:
            yield name, parse_value(name, value)
    data = _data(fields)
    if data is not None:
        yield from flatten(data if isinstance(data, dict) else {"data": data})


def _data(fields: dict[str, Any]) -> object:
    """The payload as a value; binary content that is not JSON is ignored."""
    kind = fields.get("datacontenttype", "application/json")
    encoded = fields.get("data_base64")
    if encoded is None:
        return fields.get("data")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise InputError("data_base64 is not base64") from None
    return parse_json(raw) if isinstance(kind, str) and "json" in kind else None


def _theme(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, str):
        raise InputError("theme is not text", hint="separate tags by commas")
    tags = (check_text("theme", tag.strip()).replace("%2C", ",").replace("%25", "%") for tag in value.split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _quoted(tag: str) -> str:
    return tag.replace("%", "%25").replace(",", "%2C")


def _written_id(event: Event) -> str:
    if not event.id:
        raise InputError("an event without an id cannot be a CloudEvent", hint="set its id")
    return event.id
