"""Parse request bodies into events: JSON, JSON lines, flat records and CloudEvents.

Invalid events are reported; the valid ones are still accepted.
"""

from __future__ import annotations

import base64
import io
import itertools
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from likewise.errors import InputError
from likewise.events import BadRecord, Event, RecordMapping, decode_lines, read_events

JSON: Final = "application/json"
LINES: Final = ("application/x-ndjson", "application/jsonl", "application/json-lines", "application/ndjson")
CLOUDEVENT: Final = "application/cloudevents+json"
CLOUDEVENTS: Final = "application/cloudevents-batch+json"
_START: Final = secrets.token_hex(6)
"""Random for each start of the broker, so that generated ids never repeat."""
_BATCHES = itertools.count(1)
_HEADER = re.compile(r"ce-([a-z0-9]+)", re.IGNORECASE)
_documents = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclass(slots=True)
class ParsedBody:
    """The valid events of a body, and the rejected records."""

    events: list[Event] = field(default_factory=list)
    rejected: list[BadRecord] = field(default_factory=list)


def parse_lines(lines: Iterable[bytes], *, first: int = 1, mapping: RecordMapping | None = None) -> ParsedBody:
    """Parse JSON lines; `first` is the number of the first line."""
    parsed = ParsedBody()
    reject = parsed.rejected.append
    parsed.events = list(decode_lines(lines, source=batch_name(), first=first, on_error=reject, mapping=mapping))
    return parsed


def parse_json(body: bytes, *, mapping: RecordMapping | None = None) -> ParsedBody:
    """Parse one JSON event or an array of events."""
    start = body.lstrip()[:1]
    if start != b"[":
        if not body.strip():
            raise InputError("the body is empty", hint='send an event such as {"attributes": {"type": "parking"}}')
        return parse_lines((_one_line(body),), mapping=mapping)
    try:
        documents = _documents(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not a JSON array: {error}", hint="send an object, an array or JSON lines") from None
    return parse_lines([bytes(document) for document in documents], mapping=mapping)


def parse_cloudevents(body: bytes) -> ParsedBody:
    """Parse CloudEvents in structured mode, one or a batch."""
    parsed = ParsedBody()
    events = read_events(
        io.BytesIO(body),
        format="cloudevents",
        name=batch_name(),
        on_error=parsed.rejected.append,
        unique_ids=False,
        allow_empty=True,
    )
    parsed.events = list(events)
    return parsed


def parse_binary_cloudevent(headers: Iterable[tuple[str, str]], body: bytes) -> ParsedBody:
    """Parse a CloudEvent in binary mode: attributes in the headers, data in the body."""
    fields: dict[str, Any] = {}
    for name, value in headers:
        if header := _HEADER.fullmatch(name):
            fields[header[1].lower()] = _unquoted(value)
        elif name.lower() == "content-type":
            fields["datacontenttype"] = value
    if body:
        if "json" in str(fields.get("datacontenttype", "json")):
            try:
                fields["data"] = msgspec.Raw(body) if msgspec.json.decode(body) is not None else None
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise InputError(f"the data is not valid JSON: {error}") from None
        elif str(fields["datacontenttype"]).startswith("text/"):
            fields["data"] = body.decode("utf-8", "replace")
        else:
            fields["data_base64"] = base64.b64encode(body).decode()
    return parse_cloudevents(msgspec.json.encode(fields))


def is_binary_cloudevent(headers: Mapping[str, str]) -> bool:
    """Whether the headers carry a CloudEvent in binary mode."""
    return "ce-specversion" in headers or "ce-id" in headers


def batch_name() -> str:
    """A unique name for a batch; events without an id get this name and their number as id."""
    return f"{_START}{next(_BATCHES):x}"


def rejections(records: Sequence[BadRecord]) -> list[dict[str, Any]]:
    """The rejected events for the response, at most 100 of them."""
    return [
        {"index": (record.line or 1) - 1, "reason": record.reason, **({"hint": record.hint} if record.hint else {})}
        for record in records[:100]
    ]


def _one_line(body: bytes) -> bytes:
    return body.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in body else body


def _unquoted(value: str) -> str:
    from urllib.parse import unquote

    return unquote(value)
