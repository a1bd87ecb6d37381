"""Reading events from any source in any format, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from likewise.errors import InputError
from likewise.events.event import Event
from likewise.events.files import Source, head, line_batches, open_source, source_name
from likewise.events.formats.cloudevents import event_of_cloudevent, unique_key
from likewise.events.formats.jsonl import decode_batch, default_id, event_of_object, parse_json
from likewise.events.formats.ntriples import parse_statement, read_ntriples
from likewise.events.formats.turtle import read_turtle
from likewise.events.records import Intake, OnError

__all__ = ["FORMATS", "read_events"]

FORMATS = ("jsonl", "json", "cloudevents", "ntriples", "turtle")
"""`json` is one document, an event or an array of events; `cloudevents` is a document or lines."""

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".turtle": "turtle",
}
_TABLES = (".csv", ".tsv")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_decode_documents = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_events(
    source: Source,
    *,
    format: str = "auto",
    name: str | None = None,
    on_error: OnError | None = None,
    unique_ids: bool = True,
    allow_empty: bool = False,
) -> Iterator[Event]:
    """The events of a file, of standard input (`-`) or of an open stream, compressed or not.

    The first bad record raises an `InputError`, unless `on_error` takes bad records. `unique_ids` keeps every id in
    memory (about 100 bytes each): switch it off for a stream without end. A source without any record is an error
    unless `allow_empty`.

    >>> import io
    >>> [event.id for event in read_events(io.BytesIO(b'{"id": "e1", "attributes": {"type": "parking"}}'))]
    ['e1']
    """
    if format != "auto" and format not in FORMATS:
        raise InputError(f"unknown format {format!r}", hint=f"one of auto, {', '.join(FORMATS)}")
    return _read(
        source, format, Intake(source_name(source, name), on_error, set() if unique_ids else None), allow_empty
    )


def _read(source: Source, format: str, intake: Intake, allow_empty: bool) -> Iterator[Event]:
    with open_source(source, name=intake.source) as stream:
        chosen = format if format != "auto" else _guess(intake.source, head(stream))
        events = _READERS[chosen](stream, intake)
        for event in events:
            yield event
            yield from events
            return
    if not (intake.rejected or allow_empty):
        raise InputError("no events in it", source=intake.source, hint="the file is empty")


def _guess(name: str, start: bytes) -> str:
    """The format by the file's name, else by its first bytes."""
    given = name
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    if name.endswith(_TABLES):
        hint = f"make it events first: likewise convert {given} --time COLUMN --out events.jsonl"
        raise InputError("a table, not events", source=given, hint=hint)
    for suffix, known in _SUFFIXES.items():
        if name.endswith(suffix):
            return "cloudevents" if known == "jsonl" and _is_cloudevent(start) else known
    if name.endswith((".cloudevents.json", ".ce.json")):
        return "cloudevents"
    return _sniff(start.lstrip())


def _sniff(start: bytes) -> str:
    if start[:1] in (b"[", b"{"):
        if _is_cloudevent(start):
            return "cloudevents"
        return "json" if start[:1] == b"[" or not _is_whole(start) else "jsonl"
    statement = _first_statement(start)
    if not statement.startswith((b"<", b"_:", b"@", b"PREFIX", b"BASE", b"prefix", b"base")):
        return "jsonl"
    try:
        return "ntriples" if parse_statement(statement) else "turtle"
    except InputError:
        return "turtle"


def _first_statement(start: bytes) -> bytes:
    """The first line that is neither blank nor a comment."""
    return next((line for line in map(bytes.strip, start.split(b"\n")) if line and not line.startswith(b"#")), b"")


def _is_cloudevent(start: bytes) -> bool:
    return b'"specversion"' in start.lstrip().partition(b"}\n")[0]


def _is_whole(start: bytes) -> bool:
    """Whether lines are values of their own, or one value spreads over many lines."""
    line, _, rest = start.partition(b"\n")
    try:
        parse_json(line)
    except InputError:
        # A line file whose first line is broken goes on with an object at the margin; a document does not.
        return not rest or rest.startswith(b"{")
    return True


def _read_jsonl(stream: BinaryIO, intake: Intake) -> Iterator[Event]:
    for first, lines in line_batches(stream):
        yield from decode_batch(lines, first, intake)


def _read_json(stream: BinaryIO, intake: Intake, *, cloud: bool = False) -> Iterator[Event]:
    """One JSON document, held in memory: an event or an array of events."""
    data = stream.read().removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        return
    if data.lstrip()[:1] != b"[":
        yield from _admit(data, 1, intake, cloud=cloud)
        return
    try:
        documents = _decode_documents(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        intake.reject(InputError(f"not a JSON array: {error}"), line=1, raw=data)
        return
    for number, raw in _with_line_numbers(data, documents):
        yield from _admit(raw, number, intake, cloud=cloud)


def _with_line_numbers(data: bytes, documents: list[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    line, place = 1, 0
    for document in documents:
        raw = bytes(document)
        found = data.index(raw, place)
        line += data.count(b"\n", place, found)
        yield line, raw
        line += raw.count(b"\n")
        place = found + len(raw)


def _read_cloudevents(stream: BinaryIO, intake: Intake) -> Iterator[Event]:
    start = head(stream).lstrip()
    if start[:1] == b"[" or not _is_whole(start):
        yield from _read_json(stream, intake, cloud=True)
        return
    for first, lines in line_batches(stream):
        for number, line in enumerate(lines, first):
            if line.strip():
                yield from _admit(line, number, intake, cloud=True)


def _admit(raw: bytes, number: int, intake: Intake, *, cloud: bool) -> Iterator[Event]:
    """The event of a JSON object, which is a CloudEvent if it must be or says so."""
    try:
        value = parse_json(raw)
        if cloud or (isinstance(value, dict) and "specversion" in value):
            event = event_of_cloudevent(value)
            key = unique_key(event)
        else:
            event = event_of_object(value, default_id=default_id(intake.source, number))
            key = event.id
    except InputError as flaw:
        intake.reject(flaw, line=number, raw=raw)
        return
    if intake.is_new(key, line=number, raw=raw):
        yield event


_READERS: dict[str, Callable[[BinaryIO, Intake], Iterator[Event]]] = {
    "jsonl": _read_jsonl,
    "json": _read_json,
    "cloudevents": _read_cloudevents,
    "ntriples": read_ntriples,
    "turtle": read_turtle,
}
