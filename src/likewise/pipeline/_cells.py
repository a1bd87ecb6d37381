"""The cells of some lines of CSV: where each is among the bytes, and the columns, records and names made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.pipeline._csv_kernel import (
    GOOD,
    NOTHING,
    find_black,
    find_lines,
    gather_cells,
    name_texts,
    seen,
    split_cells,
    write_rows,
)

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
