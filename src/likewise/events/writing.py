"""Writes events to any target in any format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from likewise.errors import InputError
from likewise.events.event import Event
from likewise.events.files import open_target
from likewise.events.formats.cloudevents import encode_cloudevent
from likewise.events.formats.json_text import encode_line
from likewise.events.formats.ntriples import encode_ntriples
from likewise.events.formats.turtle import encode_turtle


def _cloudevent_line(event: Event) -> bytes:
    return encode_cloudevent(event) + b"\n"


_ENCODERS: dict[str, Callable[[Event], bytes]] = {
    "jsonl": encode_line,
    "json": lambda event: encode_line(event).rstrip(),
    "cloudevents": _cloudevent_line,
    "cloudevents-batch": encode_cloudevent,
    "ntriples": encode_ntriples,
    "turtle": encode_turtle,
}
_ARRAYS = ("json", "cloudevents-batch")


def write_events(events: Iterable[Event], target: Path | str | BinaryIO, *, format: str = "jsonl") -> int:
    """Write events to a file, to standard output (`-`) or to a stream; returns their number.

    `cloudevents` has one event per line; `cloudevents-batch` and `json` are one array.

    >>> import io
    >>> out = io.BytesIO()
    >>> write_events([Event.of({"type": "parking"}, id="e1")], out, format="cloudevents-batch")
    1
    >>> out.getvalue()[:48]
    b'[\\n{"specversion":"1.0","id":"e1","source":"likew'
    """
    encode = _ENCODERS.get(format)
    if encode is None:
        raise InputError(f"unknown format {format!r}", hint=f"one of {', '.join(_ENCODERS)}")
    count = 0
    with open_target(target) as file:
        for count, event in enumerate(events, 1):
            if format in _ARRAYS:
                file.write(b"[\n" if count == 1 else b",\n")
            file.write(encode(event))
        if format in _ARRAYS:
            file.write(b"\n]\n" if count else b"[]\n")
    return count
