"""Tables of readings: a row of a CSV or TSV file is an event, its columns are attributes."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

from likewise.errors import BuildError, InputError
from likewise.events.event import Event, Instant, Value
from likewise.events.files import Source, line_batches, open_source, source_name
from likewise.events.formats.jsonl import default_id
from likewise.events.records import Intake, OnError
from likewise.events.values import MAX_INTEGER, MIN_INTEGER, check_span, check_text, parse_instant, parse_text

__all__ = ["read_csv"]

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_PADDED = re.compile(r"[-+]?0\d", re.ASCII)
_DIVIDERS = ",;\t|"


def read_csv(
    source: Source,
    *,
    id: str | None = None,
    time: str | None = None,
    end: str | None = None,
    theme: Sequence[str] = (),
    attributes: Sequence[str] | Mapping[str, str] | None = None,
    constants: Mapping[str, str] | None = None,
    divider: str | None = None,
    on_error: OnError | None = None,
    unique_ids: bool = True,
) -> Iterator[Event]:
    """The events of a table with a header, a row each; compressed files and standard input (`-`) too.

    `id`, `time` and `end` name columns. `attributes` are the columns to take, or a mapping from columns to the names
    that events give them; without it, all that have no other use. `constants` are attributes of every event, and
    `theme` its tags. A cell that reads as a number, a boolean or a timestamp is one; an empty cell says nothing; a
    number with leading zeros is a text. Bad rows go to `on_error`, as with `read_events`.

    >>> table = io.BytesIO(b"sensor,at,celsius\\nkitchen,2026-01-01T10:00:00Z,21.5\\n")
    >>> [event.tuples for event in read_csv(table, time="at", attributes={"sensor": "room", "celsius": "celsius"})]
    [(('room', 'kitchen'), ('celsius', 21.5))]
    """
    intake = Intake(source_name(source), on_error, set() if unique_ids else None)
    with open_source(source, name=intake.source) as stream:
        rows = _rows(stream, intake, divider)
        _, header, _ = next(rows, (1, [], b""))
        if not header:
            raise InputError("no table in it", source=intake.source, hint="the first line names the columns")
        spoken = {"id": id, "time": time, "end": end}
        taken = _taken(header, spoken, attributes, source=intake.source)
        fixed = tuple((constants or {}).items())
        for number, cells, raw in rows:
            try:
                if len(cells) != len(header):
                    raise InputError(f"the row has {len(cells)} cells, the header {len(header)}")
                row = dict(zip(header, cells, strict=True))
                said = (*_said(row, taken), *fixed)
                event = _event(row, spoken, said, theme=tuple(theme), default=default_id(intake.source, number))
            except InputError as flaw:
                intake.reject(flaw, line=number, raw=raw)
                continue
            if intake.is_new(event.id, line=number, raw=raw):
                yield event


def _said(row: dict[str, str], taken: dict[str, str]) -> list[tuple[str, Value]]:
    values = [(name, _value(name, row[column])) for column, name in taken.items() if row[column].strip()]
    if not values:
        raise InputError("the row says nothing", hint="all of its attribute cells are empty")
    return values


def _event(
    row: dict[str, str],
    spoken: dict[str, str | None],
    tuples: tuple[tuple[str, Value], ...],
    *,
    theme: tuple[str, ...],
    default: str,
) -> Event:
    start, end = _moment(row, spoken["time"]), _moment(row, spoken["end"])
    name = row[spoken["id"]].strip() if spoken["id"] else default
    if not name:
        raise InputError(f"{spoken['id']} is empty", hint="every event needs its own id")
    return Event(check_text("id", name), tuples, theme, start, check_span(start, end))


def _value(name: str, cell: str) -> Value:
    """What a cell says.

    >>> [_value("x", cell) for cell in ("7", " 1.5 ", "007", "True", "room 1", "nan")]
    [7, 1.5, '007', True, 'room 1', 'nan']
    """
    cell = cell.strip()
    if _NUMBER.fullmatch(cell) and not _PADDED.match(cell):
        if cell.lstrip("+-").isdigit() and MIN_INTEGER <= int(cell[:30]) <= MAX_INTEGER:
            return int(cell)
        number = float(cell)
        return number if math.isfinite(number) else cell
    if cell.lower() in {"true", "false"}:
        return cell.lower() == "true"
    return parse_text(check_text(f"attribute {name!r}", cell))


def _moment(row: dict[str, str], column: str | None) -> Instant | None:
    cell = row[column].strip() if column else ""
    if not cell:
        return None
    return parse_instant(str(column), float(cell) if _NUMBER.fullmatch(cell) else cell)


def _taken(
    header: list[str],
    spoken: dict[str, str | None],
    attributes: Sequence[str] | Mapping[str, str] | None,
    *,
    source: str,
) -> dict[str, str]:
    """Columns of attributes and what events call them, once it is sure that every column spoken of is there."""
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two columns are named {twice!r}", source=source, line=1, hint="rename one of them")
    used = [name for name in spoken.values() if name is not None]
    if isinstance(attributes, Mapping):
        taken = dict(attributes)
    else:
        taken = {name: name for name in (attributes or [name for name in header if name not in used])}
    for name in [*used, *taken]:
        if name not in header:
            raise BuildError(f"{source} has no column {name!r}", hint=f"it has {', '.join(header)}")
    if "" in taken:
        raise InputError("a column has no name", source=source, line=1, hint="name it in the first line")
    return taken


def _rows(stream: BinaryIO, intake: Intake, divider: str | None) -> Iterator[tuple[int, list[str], bytes]]:
    """Rows with their first line; a quoted cell may go on over several lines."""
    number, waiting = 0, b""
    for at, line in _lines(stream):
        number = number if waiting else at
        waiting += line + b"\n"
        # An odd number of quotes means that a quoted cell is still open.
        if waiting.count(b'"') % 2 and len(waiting) < 1 << 20:
            continue
        raw, waiting = waiting.rstrip(b"\r\n"), b""
        if not raw.strip():
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            flaw = InputError(f"not valid UTF-8 at byte {error.start + 1}", hint="write the file as UTF-8")
            intake.reject(flaw, line=number, raw=raw)
            continue
        divider = divider or max(_DIVIDERS, key=text.count)
        try:
            cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=divider), [])
        except csv.Error as error:
            intake.reject(InputError(f"not a row: {error}"), line=number, raw=raw)
            continue
        yield number, cells, raw
    if waiting.strip():
        intake.reject(InputError("this quoted text has no end", hint='close it with "'), line=number, raw=waiting)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for first, lines in line_batches(stream):
        yield from enumerate(lines, first)
