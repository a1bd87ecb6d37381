"""JSON lines: one event per line, `{"id", "time", "end"?, "theme": [], "attributes": {name: value | [values]}}`.

A line of the usual shape is decoded directly into typed fields. Any other line is parsed again by a slower reader,
which either accepts it (a date without a time of day, nested objects) or explains precisely what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

import msgspec

from likewise.errors import InputError
from likewise.events.columns import default_id
from likewise.events.event import Event, Instant, Value, to_instant
from likewise.events.files import MAX_LINE
from likewise.events.formats.logs.logfmt import parse_logfmt
from likewise.events.formats.logs.syslog import parse_syslog
from likewise.events.forms import EventForm, FlatForm, RecordForm
from likewise.events.instants import FIRST, LAST, parse_instant
from likewise.events.mapping import RecordMapping
from likewise.events.records import IdSet, OnError, RecordIntake
from likewise.events.values import MAX_INTEGER, MAX_TEXT, MIN_INTEGER, check_span, parse_text

ParseLine = Callable[[bytes], object]
"""Parses a line into a record."""
_PARSERS: Final = {"logfmt": parse_logfmt, "syslog": parse_syslog}


_Integer = Annotated[int, msgspec.Meta(ge=MIN_INTEGER, le=MAX_INTEGER)]
_Scalar = str | bool | _Integer | float
_Moment = datetime | int | float | None


class _Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    attributes: dict[str, _Scalar | list[_Scalar]]
    id: str = ""
    theme: tuple[str, ...] = ()
    time: _Moment = None
    end: _Moment = None


_decode = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder(Any).decode
# Errors of msgspec for unexpected input; ValueError covers text encoding and huge integers.
_UNUSUAL = (msgspec.MsgspecError, ValueError, RecursionError)
_EVENTS = EventForm()
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(?:NaN|Infinity|inf)\b")


def decode_line(line: bytes, *, source: str = "<line>", number: int = 1) -> Event:
    """Decode the event on one line; a missing id becomes `source:number`.

    >>> event = decode_line(b'{"id": "e1", "time": 0, "theme": ["city"], "attributes": {"slot": [1, 2]}}')
    >>> event.tuples, event.theme, event.span
    ((('slot', 1), ('slot', 2)), ('city',), (0, 0))
    """
    for event in decode_lines((line,), source=source, first=number):
        return event
    raise InputError("the line is blank", source=source, line=number)


def decode_lines(
    lines: Iterable[bytes],
    *,
    source: str = "<lines>",
    first: int = 1,
    on_error: OnError | None = None,
    seen: set[str] | None = None,
    mapping: RecordMapping | None = None,
    format: str = "jsonl",
) -> Iterator[Event]:
    """Decode the events on many lines; blank lines are skipped.

    `first` is the number of the first line. Ids are checked against `seen`, if given, and added to it. With a mapping,
    the lines are flat records, in JSON or in another format of lines.

    >>> [event] = decode_lines([b"ts=1 level=warn"], mapping=RecordMapping(time="ts"), format="logfmt")
    >>> event.tuples
    (('level', 'warn'),)
    """
    intake = RecordIntake(source, on_error, None if seen is None else IdSet(seen))
    form = None if mapping is None else FlatForm(mapping)
    return decode_batch(lines, first, intake, form, parser_of(format, mapping))


def decode_batch(
    lines: Iterable[bytes],
    first: int,
    intake: RecordIntake,
    form: RecordForm | None = None,
    parse: ParseLine | None = None,
) -> Iterator[Event]:
    """Decode the events on some lines of a source, from line number `first` on."""
    form = _EVENTS if form is None else form
    seen = intake.seen
    for number, line in enumerate(lines, first):
        try:
            event = decode_one(line, number, intake.source, form, parse)
            if event is None:
                continue
        except InputError as flaw:
            intake.reject(flaw, line=number, raw=line)
            continue
        if seen is not None and not intake.is_new(event.id, line=number, raw=line):
            continue
        yield event


def decode_one(line: bytes, number: int, source: str, form: RecordForm, parse: ParseLine | None = None) -> Event | None:
    """Decode the event on a line; None if it is blank."""
    try:
        if len(line) > MAX_TEXT or form.flat:
            raise ValueError  # only the slow reader checks the length of each text
        record = _decode(line)
        return _event(record) if record.id else _named(record, default_id(source, number))
    except _UNUSUAL:
        if not line.strip():
            return None
        return form.event((parse or parse_json)(line), default_id=default_id(source, number))


def _event(record: _Line) -> Event:
    """The event of a line of the usual shape; a ValueError requests the slow reader."""
    tuples: list[tuple[str, Value]] = []
    for name, value in record.attributes.items():
        if isinstance(value, list):
            tuples.extend([(name, parse_text(item) if isinstance(item, str) else item) for item in value])
        elif isinstance(value, str) and len(value) > 18 and value[10] == "T":
            tuples.append((name, parse_text(value)))
        else:
            tuples.append((name, value))
    theme = record.theme
    if not tuples or "" in record.attributes or "" in theme:
        raise ValueError
    if len(theme) > 1 and len({*theme}) < len(theme):
        theme = tuple(dict.fromkeys(theme))
    start = end = None
    if record.time is not None:
        start = end = _instant("time", record.time)
    if record.end is not None:
        end = check_span(start, _instant("end", record.end))
    return Event(record.id, tuple(tuples), theme, start, end)


def _named(record: _Line, id: str) -> Event:
    record.id = id
    return _event(record)


def _instant(field: str, moment: datetime | float) -> Instant:
    if not isinstance(moment, datetime):
        return parse_instant(field, moment)
    instant = to_instant(moment)
    if not FIRST <= instant <= LAST:
        raise ValueError  # the time zone moves it out of the years 1 to 9999
    return instant


def parser_of(format: str, mapping: RecordMapping | None) -> ParseLine:
    """The line parser of a format."""
    kinds = None if mapping is None else mapping.kinds
    return partial(_PARSERS[format], kinds=kinds) if format in _PARSERS else parse_json


def parse_json(data: bytes) -> object:
    """Parse any JSON value; raises InputError with the reason if it is not valid."""
    if len(data) > MAX_LINE:
        raise InputError(f"the record is longer than {MAX_LINE >> 20} MiB")
    try:
        data.decode("utf-8")
        return _decode_any(data)
    except UnicodeDecodeError as error:
        raise InputError(f"not valid UTF-8 at byte {error.start + 1}", hint="write the file as UTF-8") from None
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise _broken(data, str(error)) from None


def _broken(data: bytes, reason: str) -> InputError:
    hint = "JSON has no such numbers: omit the attribute" if _NO_NUMBER.search(data) else None
    return InputError(f"not valid JSON: {reason.removeprefix('JSON is malformed: ')}", hint=hint)
