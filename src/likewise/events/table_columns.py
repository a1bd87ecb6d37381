"""Converts table columns to events by a mapping; each distinct cell of a column is converted once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.events.columns import EventColumns, TupleTable
from likewise.events.event import Value
from likewise.events.instants import NO_TIME, read_times
from likewise.events.mapping import COMMA, RecordMapping, lacks_part
from likewise.events.values import MAX_INTEGER, MIN_INTEGER, check_text, parse_text, parse_value

CAPACITY: Final = 200_000
"""The most distinct tuples; then the table starts anew, so that endless input cannot fill the memory."""

_NUMBER: Final = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
COMMA_NUMBER: Final = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+", re.ASCII)
_PADDED: Final = re.compile(r"[-+]?0\d", re.ASCII)
_EMPTY, _BAD = -1, -2
_Flaws = dict[int, InputError]


def value_of_cell(cell: str, kind: str | None = None) -> Value | None:
    """The value of a cell, typed by its look unless its kind is given; None if it is empty.

    >>> [value_of_cell(cell) for cell in ("7", " 1.5 ", "007", "True", "room 1", "nan", " ")]
    [7, 1.5, '007', True, 'room 1', 'nan', None]
    >>> value_of_cell("7", "text"), value_of_cell("007", "number"), value_of_cell("x", "number")
    ('7', 7, 'x')
    >>> [value_of_cell(cell, "decimal comma") for cell in ("23,5", "-1.234,5", "7", "1.5", "broken")]
    [23.5, -1234.5, 7, 1.5, 'broken']
    """
    if kind == "text":
        return cell or None
    cell = cell.strip()
    if kind == COMMA:
        cell, kind = cell.replace(".", "").replace(",", ".") if COMMA_NUMBER.fullmatch(cell) else cell, None
    if _NUMBER.fullmatch(cell) and (kind == "number" or (kind is None and not _PADDED.match(cell))):
        if cell.lstrip("+-").isdigit() and MIN_INTEGER <= int(cell[:30]) <= MAX_INTEGER:
            return int(cell)
        number = float(cell)
        return number if math.isfinite(number) else cell
    if kind in (None, "boolean") and cell.lower() in {"true", "false"}:
        return cell.lower() == "true"
    return parse_text(cell) if kind in (None, "time") and cell else cell or None


class _Numbers(dict[Any, int]):
    """Numbers of a column's distinct cells; a new cell is numbered on first access."""

    def __init__(self, look: Callable[[Any], int]) -> None:
        super().__init__()
        self._look = look

    def __missing__(self, cell: Any) -> int:
        number = self[cell] = self._look(cell)
        return number


class TableColumns:
    """Converts batches of one table to events.

    >>> table = TableColumns(RecordMapping(id="id", time="at"), ["id", "at", "temp"], source="x.csv")
    >>> cells = {"id": ["a", "b"], "at": ["1970-01-01T00:00:01Z", "soon"], "temp": ["21.5", "7"]}
    >>> events, flaws = table.read({name: pa.array(column) for name, column in cells.items()}, np.array([2, 3]))
    >>> events[0].tuples, events[0].start, flaws[1].message
    ((('temp', 21.5),), 1000000, "at 'soon' is not an ISO 8601 time")
    """

    def __init__(self, mapping: RecordMapping, names: Sequence[str], *, source: str) -> None:
        self._mapping = mapping = mapping.narrowed(names, source=source)
        self._source = source
        self.attribute_columns = mapping.renamed(names)
        """Attribute columns, and their names in events."""
        self._start_anew()

    @property
    def wanted(self) -> list[str]:
        """The columns that are needed."""
        return list(dict.fromkeys([*self._mapping.taken, *self.attribute_columns]))

    def _start_anew(self) -> None:
        self._table = TupleTable()
        self._numbers = {
            column: _Numbers(self._looking(column, name)) for column, name in self.attribute_columns.items()
        }
        self._themes = _Numbers(self._theme)
        constants = self._mapping.constants.items()
        self._constants = np.array([self._table.number(name, value) for name, value in constants], np.int32)

    def _looking(self, column: str, name: str) -> Callable[[Any], int]:
        kind = self._mapping.kinds.get(column)

        def look(cell: Any) -> int:
            try:
                value = value_of_cell(cell, kind) if isinstance(cell, str) else _typed(name, cell)
                if isinstance(value, str):
                    check_text(f"attribute {name!r}", value)
            except InputError:
                return _BAD
            return _EMPTY if value is None else self._table.number(name, value)

        return look

    def _theme(self, value: object) -> int:
        try:
            return self._table.theme_number(self._mapping.theme_of(value))
        except InputError:
            return _BAD

    def read(self, cells: dict[str, pa.Array], lines: NDArray[np.int64]) -> tuple[EventColumns, _Flaws]:
        """Convert all rows to events; also returns the errors by row."""
        if len(self._table.pairs) > CAPACITY:
            self._start_anew()
        count, flaws = len(lines), _Flaws()
        codes, offsets = self._tuples(cells, count, flaws)
        start, end = (self._times(cells, role, count, flaws) for role in ("time", "end"))
        for row in np.flatnonzero((end != NO_TIME) & (start == NO_TIME)).tolist():
            flaws.setdefault(row, InputError("the event has an end but no time", hint="give it a time too"))
        for row in np.flatnonzero((end != NO_TIME) & (end < start)).tolist():
            flaws.setdefault(row, InputError("the event ends before it starts", hint="swap time and end"))
        columns = EventColumns(
            self._table,
            codes,
            offsets,
            self._theme_codes(cells, count),
            self._ids(cells, count, flaws),
            start,
            np.where(end == NO_TIME, start, end),
            self._source,
            lines,
        )
        return columns, flaws

    def _tuples(
        self, cells: dict[str, pa.Array], count: int, flaws: _Flaws
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        several = any(pa.types.is_list(cells[column].type) for column in self.attribute_columns)
        parts = (self._listed if several else self._single)(cells, count)
        codes, offsets = parts
        if (codes == _BAD).any():
            for row in np.unique(np.searchsorted(offsets, np.flatnonzero(codes == _BAD), side="right") - 1).tolist():
                flaws[row] = InputError(
                    "a value is too long, not finite or of an unsupported type", hint="see the limits of values"
                )
        empty = np.flatnonzero(np.diff(offsets) == len(self._constants))
        for row in empty.tolist():
            flaws[row] = InputError("the row says nothing", hint="all of its attribute cells are empty")
        return codes, offsets

    def _single(self, cells: dict[str, pa.Array], count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        codes = np.empty((count, len(self.attribute_columns) + len(self._constants)), np.int32)
        for place, column in enumerate(self.attribute_columns):
            codes[:, place] = _coded(cells[column], self._numbers[column])
        codes[:, len(self.attribute_columns) :] = self._constants
        filled = codes != _EMPTY
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(filled.sum(axis=1), out=offsets[1:])
        return (codes.ravel() if filled.all() else codes[filled]), offsets

    def _listed(self, cells: dict[str, pa.Array], count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Like `_single`, where cells may hold lists of values."""
        rows, parts = [], []
        for column in self.attribute_columns:
            cell, row = cells[column], np.arange(count)
            if pa.types.is_list(cell.type):
                row = np.repeat(row, pc.fill_null(pc.list_value_length(cell), 0).to_numpy(zero_copy_only=False))
                cell = cell.flatten()
            rows.append(row)
            parts.append(_coded(cell, self._numbers[column]))
        rows += [np.repeat(np.arange(count), len(self._constants))]
        parts += [np.tile(self._constants, count)]
        row, codes = np.concatenate(rows), np.concatenate(parts).astype(np.int32)
        row, codes = row[codes != _EMPTY], codes[codes != _EMPTY]
        order = np.argsort(row, kind="stable")
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=count), out=offsets[1:])
        return codes[order], offsets

    def _times(self, cells: dict[str, pa.Array], role: str, count: int, flaws: _Flaws) -> NDArray[np.int64]:
        """The times of a role; of several columns, the first non-empty cell counts, even if it is not a time."""
        times, settled = np.full(count, NO_TIME, np.int64), np.zeros(count, np.bool_)
        for name in self._mapping.used.get(role, ()):
            moments, bad = self._moments(cells, name)
            for row, flaw in bad.items():
                if not settled[row]:
                    flaws.setdefault(row, flaw)
            times[~settled] = moments[~settled]
            settled |= moments != NO_TIME
            settled[list(bad)] = True
        return times

    def _moments(self, cells: dict[str, pa.Array], name: str) -> tuple[NDArray[np.int64], _Flaws]:
        parts = self._mapping.parts(name)
        if len(parts) > 1:
            joined, halves = _joined([cells[part] for part in parts], parts, name=name)
            moments, bad = read_times(joined, self._mapping.rule_of(name), field=name)
            return moments, bad | halves
        column = cells[name]
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            micros = column.cast(pa.timestamp("us")).cast(pa.int64())
            return np.asarray(pc.fill_null(micros, NO_TIME).to_numpy(zero_copy_only=False), np.int64), {}
        return read_times(_texts(column), self._mapping.rule_of(name), field=name)

    def _ids(self, cells: dict[str, pa.Array], count: int, flaws: _Flaws) -> pa.StringArray:
        names = self._mapping.used.get("id", ())
        if not names:
            return pa.nulls(count, pa.string())
        columns = [pc.utf8_trim_whitespace(_texts(cells[name])) for name in names]
        ids = pc.coalesce(*(pc.if_else(pc.equal(column, ""), None, column) for column in columns))
        empty = ids.is_null().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(empty).tolist():
            message = f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} empty"
            flaws.setdefault(row, InputError(message, hint="every event needs its own id"))
        return ids

    def _theme_codes(self, cells: dict[str, pa.Array], count: int) -> NDArray[np.int32]:
        if not isinstance(self._mapping.theme, str):
            return np.full(count, self._table.theme_number(self._mapping.tags), np.int32)
        column = cells[self._mapping.theme]
        if pa.types.is_list(column.type):
            column = pc.binary_join(pc.fill_null(column, []), ",")
        return np.maximum(_coded(column, self._themes), 0)


def _typed(name: str, cell: object) -> Value | None:
    """The value of a cell of a typed column."""
    if isinstance(cell, Decimal):
        cell = int(cell) if cell == cell.to_integral_value() else float(cell)
    if cell is None or isinstance(cell, datetime):
        return None if cell is None else cell if cell.tzinfo else parse_text(f"{cell.isoformat(timespec='seconds')}Z")
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return parse_value(name, cell if isinstance(cell, bool | int | float | bytes) else str(cell))


def _texts(column: pa.Array) -> pa.StringArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _joined(columns: Sequence[pa.Array], parts: Sequence[str], *, name: str) -> tuple[pa.StringArray, _Flaws]:
    """Join the texts of columns that form one time; also returns errors of rows that lack some."""
    days = [c.cast(pa.date32()) if pa.types.is_timestamp(c.type) else c for c in columns]
    texts = [pc.utf8_trim_whitespace(_texts(column)) for column in days]
    texts = [pc.if_else(pc.equal(text, ""), None, text) for text in texts]
    empty = np.array([text.is_null().to_numpy(zero_copy_only=False) for text in texts])
    halves = np.flatnonzero(empty.any(axis=0) & ~empty.all(axis=0))
    flaws = {row: lacks_part(name, parts[int(empty[:, row].argmax())]) for row in halves.tolist()}
    return pc.binary_join_element_wise(*texts, " "), flaws


def _coded(column: pa.Array, numbers: _Numbers) -> NDArray[np.int32]:
    """The number of each cell; `_EMPTY` for null."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    cells = encoded.dictionary.to_pylist()
    known = np.fromiter(map(numbers.__getitem__, cells), np.int32, count=len(cells))
    known = np.append(known, np.int32(_EMPTY))
    codes = encoded.indices
    if codes.null_count:
        codes = pc.fill_null(codes, len(cells))
    return np.asarray(known[codes.to_numpy(zero_copy_only=False)], np.int32)
