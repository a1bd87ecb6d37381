"""Reads events from any source in any format, in batches of columns or one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from likewise.errors import BuildError, InputError
from likewise.events.columns import default_id
from likewise.events.event import Event
from likewise.events.files import Source, head, line_blocks, open_source, source_name
from likewise.events.formats.avro import MAGIC as AVRO
from likewise.events.formats.avro import plain_record, read_avro_records
from likewise.events.formats.cloudevents import event_of_cloudevent, unique_key
from likewise.events.formats.jsonl import ParseLine, decode_batch, parse_json, parser_of
from likewise.events.formats.logs.logfmt import looks_like_logfmt
from likewise.events.formats.logs.syslog import SYSLOG_MAPPING, looks_like_syslog
from likewise.events.formats.ntriples import parse_statement, read_ntriples
from likewise.events.formats.turtle import read_turtle
from likewise.events.forms import EventForm, FlatForm, RecordForm, form_of
from likewise.events.guessing import SAMPLE, settle_mapping
from likewise.events.mapping import RecordMapping, at_path
from likewise.events.records import IdSet, OnError, OnMapping, RecordIntake

FORMATS: Final = (
    *("jsonl", "json", "csv", "parquet", "avro", "logfmt", "syslog"),
    *("cloudevents", "ntriples", "turtle"),
)
"""`json` is a record or an array of records in one document, or lines. `cloudevents` is a document or lines. `csv`
includes TSV."""

MAPPED: Final = FORMATS[:7]
"""Formats of records that may be read by a mapping."""
SMALL: Final = 1 << 15
"""Smaller blocks are read without loading a kernel."""

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".avro": "avro",
    ".logfmt": "logfmt",
    ".syslog": "syslog",
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_BATCH: Final = 1000
_LOOKED_AT: Final = 200
_decode_documents = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_events(
    source: Source,
    *,
    format: str = "auto",
    mapping: RecordMapping | None = None,
    name: str | None = None,
    on_error: OnError | None = None,
    on_mapping: OnMapping | None = None,
    unique_ids: bool = True,
    allow_empty: bool = False,
    separator: str | None = None,
) -> Iterator[Event]:
    """Yield the events of a file, of standard input (`-`) or of an open stream, compressed or not.

    Flat records and tables are read by a `mapping`; without one it is guessed and passed to `on_mapping`. The first bad
    record raises `InputError`, unless `on_error` takes bad records. `unique_ids` keeps every id in memory: switch it
    off for endless streams. A source without records is an error unless `allow_empty`. `separator` separates the cells
    of a table; by default it is guessed from the header.

    >>> import io
    >>> [event.id for event in read_events(io.BytesIO(b'{"id": "e1", "attributes": {"type": "parking"}}'))]
    ['e1']
    >>> [event.tuples for event in read_events(io.BytesIO(b'{"ts": 1, "temp": 21.5}'))]
    [(('temp', 21.5),)]
    """
    batches = read_batches(
        source,
        format=format,
        mapping=mapping,
        name=name,
        on_error=on_error,
        on_mapping=on_mapping,
        unique_ids=unique_ids,
        allow_empty=allow_empty,
        separator=separator,
    )
    return (event for batch in batches for event in batch)


def read_batches(
    source: Source,
    *,
    format: str = "auto",
    mapping: RecordMapping | None = None,
    name: str | None = None,
    on_error: OnError | None = None,
    on_mapping: OnMapping | None = None,
    unique_ids: bool = True,
    allow_empty: bool = False,
    separator: str | None = None,
) -> Iterator[Sequence[Event]]:
    """Like `read_events`, in batches: columns for large sources; input from a pipe is passed on at once."""
    if format != "auto" and format not in FORMATS:
        raise InputError(f"unknown format {format!r}", hint=f"one of auto, {', '.join(FORMATS)}")
    if mapping is not None and format != "auto" and format not in MAPPED:
        raise BuildError(f"{format} events name their own attributes", hint="omit the mapping")
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n'):
        raise BuildError(f"{separator!r} cannot separate cells", hint="use one character, such as ; or a tab")
    intake = RecordIntake(source_name(source, name), on_error, IdSet() if unique_ids else None)
    reading = _Reading(intake, mapping, on_mapping, separator)
    return _read(source, format, reading, allow_empty)


class SourceLook(NamedTuple):
    """The format of a source, its mapping if it holds flat records, and the separator of a table."""

    format: str
    mapping: RecordMapping | None
    separator: str | None


def look_at(
    source: Path | str, *, format: str = "auto", mapping: RecordMapping | None = None, separator: str | None = None
) -> SourceLook:
    """Detect the format, mapping and separator of a file from its first records.

    >>> _ = Path("makers.logfmt").write_text("ts=1 level=warn")
    >>> look_at("makers.logfmt")  # doctest: +ELLIPSIS
    SourceLook(format='logfmt', mapping=RecordMapping(id=None, time='ts', ...), separator=None)
    """
    name = source_name(source)
    with open_source(source, name=name) as stream:
        start = head(stream)
    chosen = _guess(name, start) if format == "auto" else format
    if mapping is not None and mapping.complete:
        mappings = [mapping]
    else:
        mappings = []
        options: dict[str, Any] = {"mapping": mapping, "separator": separator, "on_mapping": mappings.append}
        next(read_batches(source, format=chosen, on_error=lambda _: None, allow_empty=True, **options), None)
    if chosen != "csv":
        return SourceLook(chosen, mappings[-1] if mappings else None, None)
    from likewise.events.formats.csv import header_of

    _, between = header_of(_first_statement(start), separator, source=name)
    return SourceLook(chosen, mappings[-1] if mappings else None, between)


@dataclass(slots=True)
class _Reading:
    """The state of reading one source."""

    intake: RecordIntake
    mapping: RecordMapping | None
    on_mapping: OnMapping | None
    separator: str | None

    def form(self, records: list[object]) -> RecordForm:
        """The form of records, given the first ones."""
        if self.mapping is not None:
            if records and not form_of(records).flat and not any(map(self._has_fields, records)):
                hint = "omit the mapping and the options that name fields"
                raise BuildError(f"{self.intake.source} already has events", hint=hint)
            return self.flat_form([record for record in records if isinstance(record, dict)])
        form = form_of(records, self.on_mapping)
        if isinstance(form, FlatForm) and self.on_mapping is not None:
            self.on_mapping(form.mapping)
        return form

    def flat_form(self, records: list[dict[str, object]]) -> FlatForm:
        """The form of flat records, given the first ones."""
        settled = settle_mapping(self.mapping, records)
        if settled != self.mapping and self.on_mapping is not None:
            self.on_mapping(settled)
        guessed = self.mapping is None or not (self.mapping.complete or self.mapping.time)
        return FlatForm(settled, records=records if guessed else None, on_growth=self.on_mapping)

    def _has_fields(self, record: object) -> bool:
        taken = self.mapping.taken if self.mapping is not None else ()
        return not isinstance(record, dict) or any(at_path(record, name) is not None for name in taken)


def _read(source: Source, format: str, reading: _Reading, allow_empty: bool) -> Iterator[Sequence[Event]]:
    intake = reading.intake
    any_events = False
    with open_source(source, name=intake.source) as stream:
        chosen = format if format != "auto" else _guess(intake.source, head(stream))
        if reading.mapping is not None and chosen not in MAPPED:
            raise BuildError(f"{chosen} events name their own attributes", hint="omit the mapping")
        place = source if isinstance(source, Path | str) and str(source) != "-" else None
        batches = _parquet(place, stream, reading) if chosen == "parquet" else _READERS[chosen](stream, reading)
        for batch in batches:
            any_events = any_events or len(batch) > 0
            yield batch
    if not (any_events or intake.rejected or allow_empty):
        raise InputError("no events in it", source=intake.source, hint="the file is empty")


def _guess(name: str, start: bytes) -> str:
    """Guess the format by the file's name, else by its first bytes."""
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    for suffix, known in _SUFFIXES.items():
        if name.endswith(suffix):
            return "cloudevents" if known == "jsonl" and _is_cloudevent(start) else known
    if name.endswith((".cloudevents.json", ".ce.json")):
        return "cloudevents"
    if start.startswith((b"PAR1", AVRO)):
        return "parquet" if start.startswith(b"PAR1") else "avro"
    return _sniff(start.lstrip())


def _sniff(start: bytes) -> str:
    if start[:1] in (b"[", b"{"):
        if _is_cloudevent(start):
            return "cloudevents"
        return "json" if start[:1] == b"[" or not _is_whole(start) else "jsonl"
    if looks_like_syslog(start[:_LOOKED_AT]):
        return "syslog"
    statement = _first_statement(start)
    if not statement.startswith((b"<", b"_:", b"@", b"PREFIX", b"BASE", b"prefix", b"base")):
        return "logfmt" if looks_like_logfmt(statement) else "csv" if _is_table(start) else "jsonl"
    return _rdf_of(statement)


def _rdf_of(statement: bytes) -> str:
    try:
        return "ntriples" if parse_statement(statement) else "turtle"
    except InputError:
        return "turtle"


def _is_table(start: bytes) -> bool:
    """Whether the first two lines have the same number of cells, more than one; a pipe may have one line so far."""
    header, row, *_ = *re.sub(rb'"[^"]*"', b'""', start).split(b"\n"), b"", b""
    return any(0 < header.count(mark) == (row or header).count(mark) for mark in (b",", b";", b"\t", b"|"))


def _first_statement(start: bytes) -> bytes:
    """The first line that is neither blank nor a comment."""
    return next((line for line in map(bytes.strip, start.split(b"\n")) if line and not line.startswith(b"#")), b"")


def _is_cloudevent(start: bytes) -> bool:
    return b'"specversion"' in start.lstrip().partition(b"}\n")[0]


def _is_whole(start: bytes) -> bool:
    """Whether each line is a JSON value; false if one value spans several lines."""
    line, _, rest = start.partition(b"\n")
    try:
        parse_json(line)
    except InputError:
        # In JSON lines, a broken first line is followed by an object at the line start; in a document it is not.
        return not rest or rest.startswith(b"{")
    return True


def _read_jsonl(stream: BinaryIO, reading: _Reading) -> Iterator[Sequence[Event]]:
    form = reading.form(_first_records(head(stream)))
    columns = None
    for first, block in line_blocks(stream):
        if form.fields is None or len(block) < SMALL:
            yield list(decode_batch(block.removesuffix(b"\n").split(b"\n"), first, reading.intake, form))
            continue
        if columns is None:
            from likewise.events.formats.json_columns import JsonColumns

            columns = JsonColumns(form, reading.intake)
        yield from columns.read(block, first)


def _first_records(start: bytes, parse: ParseLine = parse_json) -> list[object]:
    """Parse the first lines that are valid records."""
    records: list[object] = []
    for line in start.split(b"\n"):
        try:
            records += [parse(line)] if line.strip() else []
        except InputError:
            continue
        if len(records) == SAMPLE:
            break
    return records


def _read_json(stream: BinaryIO, reading: _Reading) -> Iterator[Sequence[Event]]:
    return _batches(_documents(stream, reading, cloud=False))


def _documents(stream: BinaryIO, reading: _Reading, *, cloud: bool) -> Iterator[Event]:
    """Yield the events of one JSON document, held in memory: a record or an array of records."""
    intake = reading.intake
    data = stream.read().removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        return
    if data.lstrip()[:1] != b"[":
        parts = _json_lines(data) or [(1, data)]
        form = EventForm() if cloud else reading.form(_values([raw for _, raw in parts[:SAMPLE]]))
        for number, raw in parts:
            yield from _admit(raw, number, intake, form, cloud=cloud)
        return
    try:
        documents = _decode_documents(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        intake.reject(InputError(f"not a JSON array: {error}"), line=1, raw=data)
        return
    form = EventForm() if cloud else reading.form(_values([bytes(raw) for raw in documents[:SAMPLE]]))
    for number, raw in _with_line_numbers(data, documents):
        yield from _admit(raw, number, intake, form, cloud=cloud)


def _json_lines(data: bytes) -> list[tuple[int, bytes]]:
    r"""The lines of a document with their numbers, if it is JSON lines after all, as Spark writes `.json`.

    >>> _json_lines(b'{"a": 1}\n{"a": 2}\n'), _json_lines(b'{"a":\n 1}'), _json_lines(b'{"a": 1}\n')
    ([(1, b'{"a": 1}'), (2, b'{"a": 2}')], [], [])
    """
    if not _are_json_lines(data):
        return []
    return [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]


def holds_json_lines(path: Path | str) -> bool:
    """Whether a file, compressed or not, begins with a line that is a record, no CloudEvent, and more lines follow."""
    with open_source(path, name=source_name(path)) as stream:
        start = head(stream)
    return _are_json_lines(start) and not _is_cloudevent(start)


def _are_json_lines(start: bytes) -> bool:
    end = start.find(b"\n")
    try:
        return end > 0 and not start[end:].isspace() and isinstance(parse_json(start[:end]), dict)
    except InputError:
        return False


def _values(documents: list[bytes]) -> list[object]:
    values = []
    for document in documents:
        try:
            values.append(parse_json(document))
        except InputError:
            continue
    return values


def _with_line_numbers(data: bytes, documents: list[msgspec.Raw]) -> Iterator[tuple[int, bytes]]:
    line, place = 1, 0
    for document in documents:
        raw = bytes(document)
        position = data.index(raw, place)
        line += data.count(b"\n", place, position)
        yield line, raw
        line += raw.count(b"\n")
        place = position + len(raw)


def _read_cloudevents(stream: BinaryIO, reading: _Reading) -> Iterator[Sequence[Event]]:
    start = head(stream).lstrip()
    if start[:1] == b"[" or not _is_whole(start):
        yield from _batches(_documents(stream, reading, cloud=True))
        return
    form = EventForm()
    for first, block in line_blocks(stream):
        lines = enumerate(block.removesuffix(b"\n").split(b"\n"), first)
        yield [
            event
            for number, line in lines
            if line.strip()
            for event in _admit(line, number, reading.intake, form, cloud=True)
        ]


def _admit(raw: bytes, number: int, intake: RecordIntake, form: RecordForm, *, cloud: bool) -> Iterator[Event]:
    """Yield the event of a JSON object if its id is new; a CloudEvent if `cloud` or if it has `specversion`."""
    try:
        value = parse_json(raw)
        if cloud or (not form.flat and isinstance(value, dict) and "specversion" in value):
            event = event_of_cloudevent(value)
            key = unique_key(event)
        else:
            event = form.event(value, default_id=default_id(intake.source, number))
            key = event.id
    except InputError as flaw:
        intake.reject(flaw, line=number, raw=raw)
        return
    if intake.is_new(key, line=number, raw=raw):
        yield event


def _batches(events: Iterator[Event]) -> Iterator[Sequence[Event]]:
    while batch := _some(events):
        yield batch


def _some(events: Iterator[Event]) -> list[Event]:
    return list(islice(events, _BATCH))


def _read_csv(stream: BinaryIO, reading: _Reading) -> Iterator[Sequence[Event]]:
    from likewise.events.formats.csv import read_csv_blocks

    return read_csv_blocks(
        stream,
        reading.intake,
        mapping=reading.mapping,
        separator=reading.separator,
        on_mapping=reading.on_mapping,
    )


def _parquet(place: Path | str | None, stream: BinaryIO, reading: _Reading) -> Iterator[Sequence[Event]]:
    """Read a file by its path; a stream is held in memory, since the Parquet index is at the end."""
    import pyarrow as pa

    from likewise.events.formats.parquet import read_parquet

    source = str(place) if place is not None else pa.BufferReader(stream.read())
    return read_parquet(source, reading.intake, mapping=reading.mapping, on_mapping=reading.on_mapping)


def _read_lines(stream: BinaryIO, reading: _Reading, format: str) -> Iterator[Sequence[Event]]:
    """Read lines of flat records that are not JSON."""
    if format == "syslog" and reading.mapping is None:
        reading.mapping = SYSLOG_MAPPING
    parse = parser_of(format, reading.mapping)
    form = reading.flat_form([record for record in _first_records(head(stream), parse) if isinstance(record, dict)])
    for first, block in line_blocks(stream):
        yield list(decode_batch(block.removesuffix(b"\n").split(b"\n"), first, reading.intake, form, parse))


def _read_avro(stream: BinaryIO, reading: _Reading) -> Iterator[Sequence[Event]]:
    records = read_avro_records(stream, source=reading.intake.source)
    first = list(islice(records, SAMPLE))
    form = reading.flat_form(first)
    return _batches(_events_of_records(chain(first, records), reading.intake, form))


def _events_of_records(records: Iterator[dict[str, Any]], intake: RecordIntake, form: RecordForm) -> Iterator[Event]:
    for number, record in enumerate(records, 1):
        try:
            event = form.event(plain_record(record), default_id=default_id(intake.source, number))
        except InputError as flaw:
            intake.reject(flaw, line=number, raw=str(record).encode())
            continue
        if intake.is_new(event.id, line=number, raw=str(record).encode()):
            yield event


_READERS: dict[str, Callable[[BinaryIO, _Reading], Iterator[Sequence[Event]]]] = {
    "jsonl": _read_jsonl,
    "json": _read_json,
    "csv": _read_csv,
    "avro": _read_avro,
    "logfmt": lambda stream, reading: _read_lines(stream, reading, "logfmt"),
    "syslog": lambda stream, reading: _read_lines(stream, reading, "syslog"),
    "cloudevents": _read_cloudevents,
    "ntriples": lambda stream, reading: _batches(read_ntriples(stream, reading.intake)),
    "turtle": lambda stream, reading: _batches(read_turtle(stream, reading.intake)),
}
