"""Many growable lists in one flat pool that compiled kernels can read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALLEST = 2


def grown(array: NDArray[Any], size: int, *, fill: float = 0) -> NDArray[Any]:
    """The array with room for `size` rows, at least doubled so that growth is amortised.

    >>> grown(np.array([7], dtype=np.int32), 2, fill=-1).tolist()
    [7, -1]
    """
    if len(array) >= size:
        return array
    out = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, dtype=array.dtype)
    out[: len(array)] = array
    return out


class Lists:
    """Lists of records, numbered from 0; every record has one field per given dtype.

    A list that outgrows its block moves to a block of twice the size, and its old block is reused. So adding never
    rebuilds the pool, and less than half of the pool is unused.

    >>> lists = Lists(np.int32)
    >>> for item in (5, 6, 7):
    ...     lists.append(1, item)
    >>> lists.discard(1, 6)
    True
    >>> lists[1].tolist(), lists[0].tolist()
    ([5, 7], [])
    """

    def __init__(self, *dtypes: Any) -> None:
        self.start = np.zeros(8, dtype=np.int64)
        self.length = np.zeros(8, dtype=np.int32)
        self._capacity = np.zeros(8, dtype=np.int32)
        self.fields: list[NDArray[Any]] = [np.zeros(16, dtype=dtype) for dtype in dtypes]
        self._top = 0
        self._free: dict[int, list[int]] = {}

    def __getitem__(self, number: int) -> NDArray[Any]:
        """The first field of one list."""
        if number >= len(self.length):
            return self.fields[0][:0]
        begin = int(self.start[number])
        return self.fields[0][begin : begin + int(self.length[number])]

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        heads = self.start.nbytes + self.length.nbytes + self._capacity.nbytes
        return heads + sum(field.nbytes for field in self.fields)

    def reserve(self, count: int) -> None:
        """Reserve room for `count` lists."""
        if count > len(self.start):
            self.start = grown(self.start, count)
            self.length = grown(self.length, count)
            self._capacity = grown(self._capacity, count)

    def append(self, number: int, *record: float) -> None:
        """Add one record at the end of a list."""
        self.reserve(number + 1)
        at = int(self.length[number])
        self._make_room(number, at + 1)
        place = int(self.start[number]) + at
        for field, value in zip(self.fields, record, strict=True):
            field[place] = value
        self.length[number] = at + 1

    def insert_sorted(self, number: int, *record: float) -> None:
        """Insert one record so that the first field stays in ascending order."""
        self.reserve(number + 1)
        at = int(self.length[number])
        self._make_room(number, at + 1)
        begin = int(self.start[number])
        place = begin + int(np.searchsorted(self.fields[0][begin : begin + at], record[0]))
        for field, value in zip(self.fields, record, strict=True):
            field[place + 1 : begin + at + 1] = field[place : begin + at]
            field[place] = value
        self.length[number] = at + 1

    def set(self, number: int, *columns: Any) -> None:
        """Replace one list by these columns."""
        self.reserve(number + 1)
        size = len(columns[0])
        self.length[number] = 0
        self._make_room(number, size)
        begin = int(self.start[number])
        for field, column in zip(self.fields, columns, strict=True):
            field[begin : begin + size] = column
        self.length[number] = size

    def discard(self, number: int, value: float, *, field: int = 0, ordered: bool = False) -> bool:
        """Remove the first record whose field has the value; False if there is none."""
        if number >= len(self.length):
            return False
        begin, size = int(self.start[number]), int(self.length[number])
        found = np.flatnonzero(self.fields[field][begin : begin + size] == value)
        if not len(found):
            return False
        place, last = begin + int(found[0]), begin + size - 1
        for column in self.fields:
            if ordered:
                column[place:last] = column[place + 1 : last + 1]
            else:
                column[place] = column[last]
        self.length[number] = size - 1
        return True

    def clear(self, number: int) -> None:
        """Empty one list and free its block."""
        if number < len(self.length) and self._capacity[number]:
            self._release(number)
            self._capacity[number] = 0
            self.length[number] = 0

    def rename(self, number: int, other: int) -> None:
        """Swap the numbers of two lists."""
        self.reserve(max(number, other) + 1)
        for heads in (self.start, self.length, self._capacity):
            heads[[number, other]] = heads[[other, number]]

    def _make_room(self, number: int, size: int) -> None:
        if size <= self._capacity[number]:
            return
        block = max(_SMALLEST, 1 << (size - 1).bit_length())
        begin = self._allocate(block)
        old, length = int(self.start[number]), int(self.length[number])
        for field in self.fields:
            field[begin : begin + length] = field[old : old + length]
        if self._capacity[number]:
            self._release(number)
        self.start[number] = begin
        self._capacity[number] = block

    def _allocate(self, block: int) -> int:
        free = self._free.get(block)
        if free:
            return free.pop()
        begin = self._top
        self._top += block
        self.fields = [grown(field, self._top) for field in self.fields]
        return begin

    def _release(self, number: int) -> None:
        self._free.setdefault(int(self._capacity[number]), []).append(int(self.start[number]))
