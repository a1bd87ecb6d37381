"""Reads CSV and TSV tables into columns: Arrow's reader for blocks of valid rows, Python's for the others."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from likewise.errors import BuildError, InputError
from likewise.events.columns import EventColumns
from likewise.events.files import MAX_LINE, line_blocks
from likewise.events.guessing import SAMPLE, settle_mapping
from likewise.events.mapping import COMMA, RecordMapping
from likewise.events.records import Flaw, OnMapping, RecordIntake
from likewise.events.table_columns import COMMA_NUMBER, TableColumns, value_of_cell

_SEPARATORS: Final = ",;\t|"
_LONGEST: Final = 1 << 20
"""The most bytes of a quoted cell; a longer one counts as unterminated."""


class _Cells(NamedTuple):
    """The columns of a block, the line of each row, the flaws of bad rows, and the raw text of a row by line."""

    columns: dict[str, pa.Array]
    lines: NDArray[np.int64]
    flaws: list[Flaw]
    raw: Callable[[int], bytes]


class CsvColumns:
    """Reads blocks of whole rows of one table.

    >>> reader = CsvColumns(["id", "room"], RecordMapping(id="id"), RecordIntake("x.csv"))
    >>> [columns] = reader.read(b'a,kitchen\\nb,"hall, upper"\\n', 2)
    >>> [(event.id, event.tuples) for event in columns]
    [('a', (('room', 'kitchen'),)), ('b', (('room', 'hall, upper'),))]
    """

    def __init__(
        self,
        names: Sequence[str],
        mapping: RecordMapping,
        intake: RecordIntake,
        *,
        separator: str = ",",
        multiline: bool = True,
    ) -> None:
        """Without `multiline`, each line is a row, even inside quotes."""
        self._names = list(names)
        self._multiline = multiline
        self._intake = intake
        self._separator = separator
        self._table = TableColumns(mapping, names, source=intake.source)
        texts = {*mapping.taken}
        kinds = {
            name: pa.string() if name in texts else pa.dictionary(pa.int32(), pa.string())
            for name in self._table.wanted
        }
        self._parse = arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=multiline)
        self._convert = arrow_csv.ConvertOptions(
            column_types=kinds, include_columns=self._table.wanted, null_values=[""], strings_can_be_null=True
        )

    def read(self, block: bytes, first: int) -> Iterator[EventColumns]:
        """Yield the events of complete rows; the first is on line `first`."""
        cells, lines, flaws, raw = self._cells(block, first)
        columns, bad = self._table.read(cells, lines)
        if bad:
            flaws += [Flaw(int(lines[row]), reason, raw(int(lines[row]))) for row, reason in bad.items()]
            columns = columns.take(np.delete(np.arange(len(columns)), list(bad)))
        yield from self._intake.admit(columns, flaws, raw)

    def _cells(self, block: bytes, first: int) -> _Cells:
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        read = arrow_csv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(block) + 1)
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(block), read_options=read, parse_options=self._parse, convert_options=self._convert
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError):
            return self._by_hand(block, first)
        if table.num_rows != count or not _well_quoted(block, self._separator):
            # Blank lines, multi-line cells or misplaced quotes need the other reader.
            return self._by_hand(block, first)
        cells = {name: _one_chunk(table.column(name)) for name in table.column_names}
        lines = np.arange(first, first + count, dtype=np.int64)
        return _Cells(cells, lines, [], lambda line: block.split(b"\n", line - first + 1)[line - first].rstrip(b"\r"))

    def _by_hand(self, block: bytes, first: int) -> _Cells:
        """Read row by row: slower, but it finds what is wrong with a row, and on which line."""
        rows: list[list[str]] = []
        lines: list[int] = []
        raws: dict[int, bytes] = {}
        flaws: list[Flaw] = []
        for number, raw in _records(block, first, multiline=self._multiline):
            try:
                rows.append(self._row(raw))
            except InputError as flaw:
                flaws.append(Flaw(number, flaw, raw))
                continue
            lines.append(number)
            raws[number] = raw
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._names)
        arrays = {name: pa.array(column, pa.string()) for name, column in zip(self._names, columns, strict=True)}
        cells = {name: arrays[name] for name in self._table.wanted}
        return _Cells(cells, np.array(lines, np.int64), flaws, raws.__getitem__)

    def _row(self, raw: bytes) -> list[str]:
        cells = cells_of(raw, self._separator)
        if len(cells) != len(self._names):
            raise InputError(f"the row has {len(cells)} cells, the header {len(self._names)}")
        return cells


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def cells_of(raw: bytes, separator: str) -> list[str]:
    """The cells of one row; raises InputError if it is not valid."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not valid UTF-8 at byte {error.start + 1}", hint="write the file as UTF-8") from None
    if raw.count(b'"') % 2:
        raise InputError("this quoted text has no end", hint='close it with "')
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise InputError(f"not a row: {error}") from None


def _well_quoted(block: bytes, separator: str) -> bool:
    """Whether every quote begins or ends a cell, or is doubled inside a quoted cell.

    >>> [_well_quoted(row, ",") for row in (b'a,"b, c"', b'a,"b ""c"" d"', b'"a,""b",""', b'a""b')]
    [True, True, True, True]
    >>> [_well_quoted(row, ",") for row in (b'a,"b"c', b'a,"b', b'a"b,c"', b'a,""b', b'"a" ,b')]
    [False, False, False, False, False]
    """
    if b'"' not in block:
        return True
    data = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    begins = np.flatnonzero(np.diff(quotes, prepend=-1) != 1)  # index of the first quote of each run
    lengths = np.diff(begins, append=len(quotes))
    first, after = quotes[begins], quotes[begins] + lengths
    outside, odd = begins % 2 == 0, lengths % 2 == 1
    edges = np.array([ord(separator), *b"\r\n"], np.uint8)
    begin_cell, end_cell = np.isin(data[first - 1], edges), np.isin(data[after], edges)
    # Outside a quoted cell, an odd run opens one, and an even run is an empty cell or stands within unquoted text;
    # inside, an odd run closes the cell.
    good = np.where(outside, np.where(odd, begin_cell, end_cell | ~begin_cell), ~odd | end_cell)
    return not len(quotes) % 2 and bool(good.all())


def _records(block: bytes, first: int, *, multiline: bool = True) -> Iterator[tuple[int, bytes]]:
    """Rows with the line on which each begins; a quoted cell may span several lines."""
    begun, pending = first, b""
    for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
        begun = begun if pending else number
        pending += line + b"\n"
        # An odd number of quotes means that a quoted cell is still open.
        if multiline and pending.count(b'"') % 2 and len(pending) < _LONGEST:
            continue
        raw, pending = pending.rstrip(b"\r\n"), b""
        if raw.strip():
            yield begun, raw
    if pending.strip():
        yield begun, pending.rstrip(b"\r\n")


def row_blocks(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Blocks of complete rows, with the number of their first line."""
    number, rest = 1, b""
    for first, lines in line_blocks(stream):
        number = number if rest else first
        block, rest = rest + lines, b""
        if block.count(b'"') % 2:
            cut = _last_row(block)
            if cut <= 0 and len(block) < MAX_LINE:
                rest = block
                continue
            block, rest = (block[:cut], block[cut:]) if cut > 0 else (block, b"")
        yield number, block
        number += block.count(b"\n")
    if rest:
        yield number, rest


def _last_row(block: bytes) -> int:
    """The end of the last complete row: the last line end after an even number of quotes."""
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == 10)
    before = np.cumsum(data == 34)[ends]
    even = ends[before % 2 == 0]
    return int(even[-1]) + 1 if len(even) else 0


def separator_of(header: str) -> str:
    """The character that separates the names of a header, outside of quotes.

    >>> separator_of('"name, first";born'), separator_of("name"), separator_of("a|b")
    (';', ',', '|')
    """
    return max(_SEPARATORS, key=re.sub(r'"[^"]*"', "", header).count)


def header_of(raw: bytes, separator: str | None, *, source: str) -> tuple[list[str], str]:
    """The column names and the separator of a header line."""
    text = raw.decode("utf-8", errors="replace")
    if not text.strip():
        raise InputError("the file has no table", source=source, hint="the first line names the columns")
    chosen = separator or separator_of(text)
    try:
        names = [name.strip() for name in cells_of(raw, chosen)]
    except InputError as flaw:
        raise InputError(flaw.message, source=source, line=1, hint=flaw.hint) from None
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two columns are named {twice!r}", source=source, line=1, hint="rename one of them")
    if "" in names:
        raise InputError("a column has no name", source=source, line=1, hint="name it in the first line")
    return names, chosen


def read_csv_blocks(
    stream: BinaryIO,
    intake: RecordIntake,
    *,
    mapping: RecordMapping | None = None,
    separator: str | None = None,
    on_mapping: OnMapping | None = None,
) -> Iterator[EventColumns]:
    """Yield the events of a table with a header; on a pipe, guessing waits for the first row."""
    header: tuple[list[str], str] | None = None
    reader: CsvColumns | None = None

    def new_reader(block: bytes) -> CsvColumns:
        assert header is not None
        settled = _settled(mapping, *header, block, source=intake.source)
        if settled != mapping and on_mapping is not None:
            on_mapping(settled)
        return CsvColumns(header[0], settled, intake, separator=header[1])

    for first, rows in row_blocks(stream):
        number, block = first, rows
        if header is None:
            number, raw = next(_records(block, first), (first, b""))
            header = header_of(raw, separator, source=intake.source)
            block = block[block.find(raw) + len(raw) :].partition(b"\n")[2]
            number += raw.count(b"\n") + 1
        if block.strip():
            reader = reader or new_reader(block)
            yield from reader.read(block, number)
    if header is None:
        raise InputError("the file has no table", source=intake.source, hint="the first line names the columns")
    if reader is None:
        new_reader(b"")  # reports a mapping that does not fit


def _settled(
    mapping: RecordMapping | None, names: list[str], separator: str, block: bytes, *, source: str
) -> RecordMapping:
    if mapping is not None and mapping.complete:
        return mapping
    _check_kinds(mapping, names, source=source)
    sample = _sample(names, block, separator)
    return _with_commas(settle_mapping(mapping, sample), sample, separator=separator)


def _check_kinds(mapping: RecordMapping | None, names: list[str], *, source: str) -> None:
    """Refuse kinds of columns that do not exist, which are likely typos."""
    lost = [name for name in mapping.kinds if name not in names] if mapping is not None else []
    if lost:
        raise BuildError(f"{source} has no column {lost[0]!r}", hint=f"it has {', '.join(names)}")


def _with_commas(mapping: RecordMapping, sample: list[dict[str, Any]], *, separator: str) -> RecordMapping:
    """Add the columns of numbers with a decimal comma, in tables that do not separate cells by commas.

    >>> rows = [{"t": "4,1", "n": 3, "s": "ok"}, {"t": 5, "n": 4, "s": "1,2"}]
    >>> _with_commas(RecordMapping(), rows, separator=";").kinds
    {'t': 'decimal comma'}
    """
    if separator == ",":
        return mapping

    def has_commas(name: str) -> bool:
        texts = [row[name] for row in sample if isinstance(row.get(name), str)]
        return bool(texts) and all(map(COMMA_NUMBER.fullmatch, texts))

    kinds = {name: COMMA for name in sample[0] if name not in (*mapping.taken, *mapping.kinds) and has_commas(name)}
    return replace(mapping, kinds={**mapping.kinds, **kinds}) if kinds else mapping


def _sample(names: list[str], block: bytes, separator: str) -> list[dict[str, Any]]:
    """The first rows as records, for guessing."""
    records: list[dict[str, Any]] = []
    for _, raw in _records(block[: 1 << 16], 1):
        try:
            cells = cells_of(raw, separator)
        except InputError:
            continue
        if len(cells) == len(names):
            records.append({name: value_of_cell(cell) for name, cell in zip(names, cells, strict=True)})
        if len(records) == SAMPLE:
            break
    return records or [dict.fromkeys(names)]
