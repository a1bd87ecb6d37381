"""Events from lines of CSV, made inside a worker, in columns: no row of Spark's and no Python object for an event.

What is decided of a cell (number, boolean, time or text) is decided once for each distinct text of a column. Rows
become what `events_from_columns` makes of the same table; tests hold both equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.pipeline.events.cells import BOOLEANS, INFINITE, MOMENT, NUMBER
from likewise.pipeline.events.csv_kernel import (
    GOOD,
    NOTHING,
    TORN,
    find_black,
    find_lines,
    gather_cells,
    name_texts,
    seen,
    split_cells,
    write_rows,
)
from likewise.pipeline.events.frame import ARROW_SCHEMA, KINDS, TEXTS
from likewise.pipeline.events.table import UNEVEN_ROW, TableMapping, reasons
from likewise.pipeline.events.timestamps import read_moments, zone_named

# The cells of some lines of CSV: where each is among the bytes, and the columns, records and names made of them.


Bytes = NDArray[np.uint8]
Places = NDArray[np.int32]

_SEED: Final = 42
"""That of Spark's `xxhash64`, so that a row has the same id whoever reads it."""
_WIDEST: Final = 6
"""The letters that a byte may take in JSON."""


class Lines(NamedTuple):
    """Lines that have more than blanks: their bounds in a text, and how many lines end before each, if known."""

    data: Bytes
    starts: Places
    ends: Places
    numbers: Places | None = None

    @classmethod
    def of_text(cls, text: bytes) -> tuple[Lines, int]:
        """The lines of a text, and how many lines end in it.

        >>> lines, ended = Lines.of_text(b"a\\r\\n\\r\\nb\\n")
        >>> [lines.text(row) for row in range(2)], lines.numbers.tolist(), ended
        (['a', 'b'], [0, 2], 3)
        """
        data = seen(valid(text), np.uint8)
        starts, ends, numbers = (np.empty(data.size // 2 + 1, np.int32) for _ in range(3))
        count, ended = find_lines(data, starts, ends, numbers)
        return cls(data, starts[:count], ends[:count], numbers[:count]), ended

    @classmethod
    def of_column(cls, column: pa.Array) -> tuple[Lines, NDArray[np.int64]]:
        """The lines of a column of bytes, and the row of each."""
        column = column.cast(pa.binary())
        _, offsets, content = column.buffers()
        data = seen(content, np.uint8)
        bounds = seen(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        text = bytes(data[bounds[0] : bounds[-1]])
        if valid(text) is not text:
            return cls.of_column(pa.array([valid(each or b"") for each in column.to_pylist()], pa.binary()))
        rows = np.empty(len(column), np.int64)
        rows = rows[: find_black(data, bounds[:-1], bounds[1:], rows)]
        return cls(data, bounds[:-1][rows], bounds[1:][rows]), rows

    def only(self, rows: NDArray[np.int64] | slice) -> Lines:
        """Some of the lines."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return Lines(self.data, self.starts[rows], self.ends[rows], numbers)

    def text(self, row: int) -> str:
        return bytes(self.data[self.starts[row] : self.ends[row]]).decode()


def valid(text: bytes) -> bytes:
    """The same bytes if they are UTF-8; otherwise with a mark for what is not, as Spark puts it."""
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="replace").encode()
    return text


@dataclass(slots=True)
class Cells:
    """The cells of lines, a row for each line; what `states` calls bad has none."""

    data: Bytes
    begins: Places
    sizes: Places
    marks: Bytes
    states: Bytes
    _texts: dict[int, pa.StringArray] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Lines, *, columns: int, separator: str = ",") -> Cells:
        """Cut lines into cells.

        >>> lines, _ = Lines.of_text(b'x,"say ""no"", or"\\n,y\\nz\\n')
        >>> cells = Cells.of(lines, columns=2)
        >>> cells.states.tolist(), cells.only(cells.good).column(1).to_pylist()
        ([0, 0, 1], ['say "no", or', 'y'])
        """
        count = len(lines.starts)
        begins, sizes = (np.zeros((columns, count), np.int32) for _ in range(2))
        marks = np.zeros((columns, count), np.uint8)
        states = split_cells(lines.data, lines.starts, lines.ends, ord(separator), begins, sizes, marks)
        return cls(lines.data, begins, sizes, marks, states)

    @property
    def good(self) -> NDArray[np.bool_]:
        """Which lines are rows."""
        return np.equal(self.states, GOOD)

    def __len__(self) -> int:
        return len(self.states)

    def only(self, rows: NDArray[np.bool_]) -> Cells:
        """Some of the rows."""
        if rows.all():
            return self
        # An index would lay them out in another order, for which kernels would have to be compiled again.
        begins: Places = np.compress(rows, self.begins, axis=1)
        sizes: Places = np.compress(rows, self.sizes, axis=1)
        marks: Bytes = np.compress(rows, self.marks, axis=1)
        return Cells(self.data, begins, sizes, marks, self.states[rows])

    def column(self, place: int) -> pa.StringArray:
        """The texts of a column."""
        if place not in self._texts:
            begins, sizes, marks = (part[place] for part in (self.begins, self.sizes, self.marks))
            offsets = np.empty(len(self) + 1, np.int32)
            out = np.empty(int(sizes.sum()), np.uint8)
            gather_cells(self.data, begins, sizes, marks, offsets, out)
            made = pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(out), _bits(marks))
            self._texts[place] = made
        return self._texts[place]

    def records(self, names: Sequence[str], rows: NDArray[np.int64]) -> tuple[Bytes, NDArray[np.int64]]:
        """Some rows as JSON, as Spark writes them: the bytes of all, and where each begins."""
        keys = [f"{json.dumps(name, ensure_ascii=False)}:".encode() for name in names]
        bounds = np.concatenate(([0], np.cumsum([len(key) for key in keys])))
        most = _WIDEST * int(self.sizes[:, rows].sum()) + len(rows) * int(bounds[-1] + 3 * len(keys) + 2)
        out = np.empty(most, np.uint8)
        told = seen(b"".join(keys), np.uint8)
        offsets: NDArray[np.int64] = write_rows(rows, self.data, self.begins, self.sizes, self.marks, told, bounds, out)
        return out, offsets

    def record_texts(self, names: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
        """Some rows as JSON texts."""
        out, offsets = self.records(names, rows)
        return [bytes(out[start:end]).decode() for start, end in pairwise(offsets)]

    def ids(self, names: Sequence[str]) -> pa.StringArray:
        """An id for each row, from what it says."""
        written, offsets = self.records(names, np.arange(len(self)))
        ends, out = np.zeros(len(self) + 1, np.int32), np.empty(16 * len(self), np.uint8)
        name_texts(written, offsets, _SEED, ends, out)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(ends), pa.py_buffer(out))


def _bits(marks: Bytes) -> pa.Buffer | None:
    there = marks != NOTHING
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


TORN_ROW: Final = "a quote is not closed, or closed before its cell ends"

_TAGS: Final = re.compile(r"\s*,\s*", re.ASCII)
_NAMES: Final = ARROW_SCHEMA.names
Codes = NDArray[np.int32]


class Place(NamedTuple):
    """Where lines come from: the name of the file, and what tells the number of the first line, if it can be known."""

    source: str
    first: Callable[[], int] | None = None


class Numbered(NamedTuple):
    """A column of attributes: the number of each row's text (-1 for none), the distinct texts, and the kind of each."""

    codes: Codes
    texts: pa.Array
    kinds: Codes


@dataclass(frozen=True)
class Table:
    """What a worker must know of a CSV table: its columns by place, what they are for, and the zone of bare times."""

    names: tuple[str, ...]
    columns: TableMapping
    zone: str = "UTC"
    separator: str = ","

    def events(self, lines: Lines, place: Place) -> Iterator[pa.RecordBatch]:
        """The events of lines, and after them those lines that are none.

        >>> table = Table(("id", "temp", "place"), TableMapping(id="id"))
        >>> lines, _ = Lines.of_text(b"e1,3.5,Galway\\ne2,,\\n")
        >>> good, bad = table.events(lines, Place("x.csv", lambda: 2))
        >>> [(each["name"], each["value"], each["kind"]) for each in good.column("attributes").to_pylist()[0]]
        [('temp', '3.5', 'number'), ('place', 'Galway', 'text')]
        >>> bad.column("flaw").to_pylist()
        [{'source': 'x.csv', 'line': 3, 'reason': 'the event has no attributes', 'record': '{"id":"e2"}'}]
        """
        cut = Cells.of(lines, columns=len(self.names), separator=self.separator)
        where = np.flatnonzero(cut.good)
        cells = cut.only(cut.good)
        made, flaws = self._made(cells)
        sound = flaws == 0
        if sound.any():
            yield made if sound.all() else made.filter(pa.array(sound))
        torn, bad = np.flatnonzero(~cut.good), np.flatnonzero(~sound)
        if len(torn) or len(bad):
            why = [TORN_ROW if cut.states[row] == TORN else UNEVEN_ROW for row in torn]
            why += [self._reasons[flaws[row] - 1] for row in bad]
            texts = [*map(lines.text, torn.tolist()), *cells.record_texts(self.names, bad)]
            rows = np.concatenate((torn, where[bad]))
            yield letters(lines, rows, place, reasons=why, texts=texts)

    @cached_property
    def _reasons(self) -> list[str]:
        return reasons(self.columns)

    def _column(self, cells: Cells, name: Any) -> pa.StringArray:
        return cells.column(self.names.index(name))

    def _made(self, cells: Cells) -> tuple[pa.RecordBatch, NDArray[np.int8]]:
        """All rows as events, and the number of what each lacks to be one, from 1."""
        columns, count = self.columns, len(cells)
        ids = cells.ids(self.names) if columns.id is None else self._column(cells, columns.id)
        time, unread = self._moments(cells, columns.time)
        end, endless = self._moments(cells, columns.end)
        attributes = self._attributes(cells)
        tests = [pc.equal(pc.list_value_length(attributes), 0)]
        if columns.id is not None:
            tests.append(pc.fill_null(pc.equal(ids, ""), True))
        tests += [test for test in (unread, endless) if test is not None]
        tests += [pc.fill_null(pc.less(end, time), False), self._infinite(cells)]
        flaws = np.zeros(count, np.int8)
        for number, test in reversed(list(enumerate(tests, 1))):
            flaws[test.to_numpy(zero_copy_only=False)] = number
        arrays = [ids, time, pc.coalesce(end, time), self._theme(cells), attributes]
        return pa.RecordBatch.from_arrays([*arrays, pa.nulls(count, ARROW_SCHEMA.field("flaw").type)], _NAMES), flaws

    def _moments(self, cells: Cells, name: Any) -> tuple[pa.Array, pa.Array | None]:
        """The times of a column, and which cells should be one and are not."""
        if name is None:
            return pa.nulls(len(cells), ARROW_SCHEMA.field("time").type), None
        zone = zone_named(self.zone)
        if zone is None:
            raise BuildError(f"there is no time zone {self.zone!r} here", hint="install tzdata")
        texts = self._column(cells, name)
        times = read_moments(texts, zone)
        return times, pc.and_(texts.is_valid(), times.is_null())

    def _theme(self, cells: Cells) -> pa.Array:
        kind = ARROW_SCHEMA.field("theme").type
        if not isinstance(self.columns.theme, str):
            tags: Any = self.columns.theme
            return pa.array([list(tags)], kind).take(pa.array(np.zeros(len(cells), np.int64)))
        numbered = pc.fill_null(self._column(cells, self.columns.theme), "").dictionary_encode()
        told = [[tag for tag in _TAGS.split(text.strip(" ")) if tag] for text in numbered.dictionary.to_pylist()]
        return pa.array(told, kind).take(numbered.indices)

    def _attributes(self, cells: Cells) -> pa.ListArray:
        meant = self.columns.renamed(self.names)
        made = [numbered(self._column(cells, name), self.columns.kinds.get(name)) for name in meant]
        text = np.zeros(1, np.int32)
        made += [Numbered(np.zeros(len(cells), np.int32), pa.array([each]), text) for each in self._constants.values()]
        return interleaved(made, [*meant.values(), *self._constants], len(cells))

    @property
    def _constants(self) -> dict[str, str]:
        return {name: text for name, text in self.columns.constants.items() if text}

    def _infinite(self, cells: Cells) -> pa.BooleanArray:
        """Which rows have an infinite number; a cell is one only where `kinds` calls its column a number."""
        found = pa.array(np.zeros(len(cells), np.bool_))
        for name in self.columns.renamed(self.names):
            if self.columns.kinds.get(name) == "number":
                texts = pc.utf8_trim(self._column(cells, name), " ")
                found = pc.or_(found, pc.is_in(texts, value_set=pa.array(INFINITE)))
        return found


def numbered(cells: pa.StringArray, kind: str | None) -> Numbered:
    """The cells of one attribute; those with nothing in them are no values, nor are numbers that are none.

    >>> codes, texts, kinds = numbered(pa.array([" 1 ", "x", "", None, "TRUE", "x"]), None)
    >>> codes.tolist(), [texts[code].as_py() for code in (0, 1)], [KINDS[each] for each in kinds]
    ([0, 1, -1, -1, 3, 1], ['1', 'x'], ['number', 'text', 'text', 'boolean'])
    """
    coded = cells.dictionary_encode()
    texts = coded.dictionary if kind == "text" else pc.utf8_trim(coded.dictionary, " ")
    codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    nothing = ["", "NaN"] if kind == "number" else [""]
    empty = pc.is_in(texts, value_set=pa.array(nothing)).to_numpy(zero_copy_only=False)
    if empty.any():
        codes = np.where(np.append(empty, True)[codes], np.int32(-1), codes)
    kinds = guessed(texts) if kind is None else np.full(len(texts), KINDS.index(kind), np.int32)
    return Numbered(codes, texts, kinds)


def guessed(texts: pa.Array) -> Codes:
    """What texts read as, by the place of the kind in `KINDS`."""
    tests = {
        "time": pc.match_substring_regex(texts, MOMENT),
        "boolean": pc.is_in(pc.ascii_lower(texts), value_set=pa.array(BOOLEANS)),
        "number": pc.match_substring_regex(texts, NUMBER),
    }
    out = np.zeros(len(texts), np.int32)
    for kind, test in tests.items():
        out[test.to_numpy(zero_copy_only=False)] = KINDS.index(kind)
    return out


def interleaved(parts: Sequence[Numbered], names: Sequence[str], count: int) -> pa.ListArray:
    """The attributes of rows from columns of values, in the order of columns; the texts stay numbers."""
    starts = np.cumsum([0, *(len(part.texts) for part in parts)])[:-1]
    codes = np.empty((count, len(parts)), np.int32)
    for place, part in enumerate(parts):
        codes[:, place] = np.where(part.codes < 0, np.int32(-1), part.codes + np.int32(starts[place]))
    there = codes >= 0
    offsets = np.concatenate(([0], np.cumsum(there.sum(axis=1)))).astype(np.int32)
    which = np.broadcast_to(np.arange(len(parts), dtype=np.int32), codes.shape)[there]
    flat = codes[there]
    texts = pa.concat_arrays([part.texts for part in parts]) if parts else pa.array([], pa.string())
    kinds = np.concatenate([part.kinds for part in parts]) if parts else flat
    columns = [(which, pa.array(names, pa.string())), (flat, texts), (kinds[flat], pa.array(KINDS))]
    made = [pa.DictionaryArray.from_arrays(pa.array(numbers), told) for numbers, told in columns]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(made, names=list(TEXTS)))


def letters(
    lines: Lines, rows: NDArray[np.int64], place: Place, *, reasons: Sequence[str], texts: Sequence[str]
) -> pa.RecordBatch:
    """Rows that have nothing but a flaw, in the order of the lines."""
    order = np.argsort(rows, kind="stable")
    told = None if lines.numbers is None or place.first is None else lines.numbers[rows] + place.first()
    flaws = [
        {
            "source": place.source,
            "line": None if told is None else int(told[at]),
            "reason": reasons[at],
            "record": texts[at],
        }
        for at in order.tolist()
    ]
    missing = [pa.nulls(len(flaws), each.type) for each in list(ARROW_SCHEMA)[:-1]]
    return pa.RecordBatch.from_arrays([*missing, pa.array(flaws, ARROW_SCHEMA.field("flaw").type)], schema=ARROW_SCHEMA)


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with texts for the numbers of them, as Spark wants it."""
    attributes = batch.column("attributes")
    if attributes.type == ARROW_SCHEMA.field("attributes").type:
        return batch
    parts = [part.dictionary_decode() for part in attributes.flatten().flatten()]
    kind = ARROW_SCHEMA.field("attributes").type
    tuples = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    sizes = pc.fill_null(pc.list_value_length(attributes), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    made = pa.ListArray.from_arrays(offsets, tuples, type=kind)
    return pa.RecordBatch.from_arrays(
        [made if name == "attributes" else batch.column(name) for name in _NAMES], schema=ARROW_SCHEMA
    )
