"""Reads and writes tables in CSV, JSON lines and Parquet; bad rows are skipped and reported."""

from __future__ import annotations

import csv
import io
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.cli.output import counted
from likewise.cli.reading.input import Rejects
from likewise.errors import BuildError, InputError
from likewise.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
OPEN, CLOSE = "this quoted text has no end", 'close it with "'
_HINT = "a table is .csv or .tsv with a header, .jsonl with an object a line, or .parquet"


def kind_of(source: str) -> str:
    """The format of a table by its path; a folder is Parquet, as Spark writes it.

    >>> kind_of("a/b.csv"), kind_of("-")
    ('csv', 'jsonl')
    """
    if source == "-":
        return "jsonl"
    kind = "parquet" if Path(source).is_dir() else KINDS.get(Path(source).suffix.lower())
    if kind is None:
        raise BuildError(f"the format of {source} is not known", hint=_HINT)
    return kind


def read_table(source: str, rejects: Rejects) -> pa.Table:
    """The valid rows of a table; cells of CSV are text, empty ones null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = kind_of(source)
    try:
        if kind == "parquet":
            return pq.read_table(source)
        text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        if kind == "csv":
            return _csv_table(text, source, rejects)
        rows = list(_json_rows(text, source, rejects))
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source, hint="check the path") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InputError(f"a column holds several types, or huge numbers: {error}", source=source, hint=_HINT) from None


def column_names(header: Sequence[str], source: str) -> list[str]:
    """The column names of a CSV header; a column without a name is named after its position.

    >>> column_names(["", "name"], "x.csv")
    ['_c0', 'name']
    """
    if not header:
        raise InputError("it has no header", source=source, hint=_HINT)
    names = [name or f"_c{at}" for at, name in enumerate(header)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two columns are named {name!r}", source=source, hint="rename one of them")
    return names


def uneven(cells: int, width: int) -> str:
    """What is wrong with a row of CSV that is shorter or longer than the header.

    >>> uneven(1, 3)
    '1 cell where the header has 3'
    """
    return f"{counted(cells, 'cell')} where the header has {width:,}"


def is_open(record: bytes, separator: str = ",") -> bool:
    """Whether a CSV record has a quoted cell that is not closed, and so contains the lines after it.

    >>> is_open(b'a,"b\\nc,d'), is_open(b'5" pipe,"b"')
    (True, False)
    """
    if b'"' not in record:
        return False
    text = io.StringIO(record.decode("utf-8", errors="replace"), newline="")
    try:
        for _ in csv.reader(text, delimiter=separator, strict=True):
            pass
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def json_object(line: bytes) -> dict[str, Any]:
    """Decode a line as a JSON object, or raise an `InputError`."""
    import msgspec

    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a JSON object: {error}") from None


def _csv_table(text: bytes, source: str, rejects: Rejects) -> pa.Table:
    import pyarrow as pa

    from likewise.events import BadRecord, separator_of

    decoded = text.decode("utf-8-sig", errors="replace")
    separator = separator_of(decoded.lstrip().partition("\n")[0])
    lines = _RecordedLines(io.StringIO(decoded, newline=""))
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))  # the default limit would fail on a long cell
    reader = csv.reader(lines, delimiter=separator)
    header = column_names(next(reader, []), source)
    rows: list[list[str | None]] = []
    lines.take()
    first = reader.line_num + 1
    for cells in reader:
        record, line, first = lines.take(), first, reader.line_num + 1
        if is_open(record, separator):
            rejects(BadRecord(source, line, OPEN, record, hint=CLOSE))
        elif len(cells) == len(header):
            # As Spark reads them, so that both see the same term.
            rows.append([cell.replace("\r\n", "\n") or None for cell in cells])
        elif cells:
            rejects(BadRecord(source, reader.line_num, uneven(len(cells), len(header)), record))
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in zip(header, columns, strict=True)})


class _RecordedLines:
    """Lines for a CSV reader; remembers those of the last row, as a cell may contain line breaks."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._taken.append(next(self._lines))
        return self._taken[-1]

    def take(self) -> bytes:
        """Return the text of the lines read since the last call."""
        text = "".join(self._taken).rstrip("\r\n")
        self._taken.clear()
        return text.encode()


def _json_rows(text: bytes, source: str, rejects: Rejects) -> Iterator[dict[str, Any]]:
    from likewise.events import BadRecord

    for number, line in enumerate(text.removeprefix(BOM_UTF8).splitlines(), 1):
        if line.strip():
            try:
                row = json_object(line)
            except InputError as error:
                rejects(BadRecord(source, number, error.message, line))
            else:
                yield row


def write_rows(rows: list[dict[str, Any]], out: str, *, nested: tuple[str, ...] = ()) -> None:
    """Write rows of plain values as a table; the nested columns are left out of CSV."""
    import pyarrow as pa

    flat = kind_of(out) == "csv"
    kept = [{name: row[name] for name in row if name not in nested} for row in rows] if flat else rows
    write_table(pa.Table.from_pylist([_textual(row) for row in kept]), out)


def _textual(row: dict[str, Any]) -> dict[str, Any]:
    """The row with event values as text, since a column can have one type only."""
    for mapping in row.get("mappings", ()):
        for pair in mapping["correspondences"]:
            pair["value"] = str(pair["value"])
    return row


def write_table(table: pa.Table, out: str) -> None:
    """Write a table in the format that the path's suffix names."""
    import msgspec
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    kind = kind_of(out)
    if kind == "csv" and "why" in table.schema.names:
        raise BuildError("CSV cannot hold the reasons of --explain", hint="write .jsonl or .parquet")
    with whole_file(out) as file:
        if kind == "parquet":
            pq.write_table(table, file)
        elif kind == "csv":
            between = "\t" if out.lower().endswith(".tsv") else ","
            pa_csv.write_csv(table, file, pa_csv.WriteOptions(delimiter=between))
        else:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in table.to_pylist())
