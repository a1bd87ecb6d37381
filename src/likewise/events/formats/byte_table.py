"""Interns byte strings as numbers, in arrays that compiled loops share: equal bytes have equal numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

_FIRST: Final = 1024
_OFFSET: Final = np.uint64(0xCBF29CE484222325)
_PRIME: Final = np.uint64(0x100000001B3)
_SHIFT: Final = np.uint64(29)


class ByteArrays(NamedTuple):
    """The arrays of a table for kernels: hash slots, the hash and bounds of each string, all strings, the count."""

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    bounds: NDArray[np.int64]
    arena: NDArray[np.uint8]
    size: NDArray[np.int64]


@njit(cache=True, nogil=True)
def hash_bytes(data: Any, start: int, end: int) -> Any:
    """FNV-1a hash, mixed so that its low bits are well distributed."""
    value = _OFFSET
    for at in range(start, end):
        value = (value ^ np.uint64(data[at])) * _PRIME
    return value ^ (value >> _SHIFT)


# ruff: noqa: SIM110  (compiled loops)
@njit(cache=True, nogil=True)
def _same(data: Any, start: int, end: int, table: Any, number: int) -> bool:
    begin = table.bounds[number]
    if table.bounds[number + 1] - begin != end - start:
        return False
    for place in range(end - start):
        if table.arena[begin + place] != data[start + place]:
            return False
    return True


@njit(cache=True, nogil=True)
def intern_bytes(data: Any, start: int, end: int, table: Any) -> Any:
    """The number of these bytes; new bytes are added. The table must have room."""
    value = hash_bytes(data, start, end)
    mask = np.uint64(table.slots.size - 1)
    slot = value & mask
    while True:
        number = table.slots[slot]
        if number < 0:
            break
        if table.hashes[number] == value and _same(data, start, end, table, number):
            return number
        slot = (slot + np.uint64(1)) & mask
    number = table.size[0]
    begin = table.bounds[number]
    for place in range(end - start):
        table.arena[begin + place] = data[start + place]
    table.bounds[number + 1] = begin + end - start
    table.hashes[number] = value
    table.slots[slot] = number
    table.size[0] = number + 1
    return number


@njit(cache=True, nogil=True)
def _fill_slots(slots: Any, hashes: Any, count: int) -> None:
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number


@njit(cache=True, nogil=True)
def _enter_all(data: Any, bounds: Any, table: Any, known: Any) -> None:
    for row in range(bounds.size - 1):
        before = table.size[0]
        known[row] = intern_bytes(data, bounds[row], bounds[row + 1], table) < before


class ByteTable:
    """An interning table that grows between kernel calls.

    >>> table = ByteTable()
    >>> data = np.frombuffer(b"abab", np.uint8)
    >>> table.reserve(2, 4)
    >>> [intern_bytes(data, at, at + 2, table.arrays) for at in (0, 2, 1)], table.texts(0)
    ([0, 0, 1], [b'ab', b'ba'])
    """

    def __init__(self) -> None:
        self.arrays = ByteArrays(
            np.full(2 * _FIRST, -1, np.int32),
            np.zeros(_FIRST, np.uint64),
            np.zeros(_FIRST + 1, np.int64),
            np.zeros(16 * _FIRST, np.uint8),
            np.zeros(1, np.int64),
        )

    def __len__(self) -> int:
        return int(self.arrays.size[0])

    def reserve(self, strings: int, size: int) -> None:
        """Reserve room for more strings of `size` bytes in total."""
        slots, hashes, bounds, arena, _ = self.arrays
        count = len(self)
        if count + strings > len(hashes):
            most = max(count + strings, 2 * len(hashes))
            hashes, bounds = _wider(hashes, most), _wider(bounds, most + 1)
        if 2 * (count + strings) > len(slots):
            slots = np.full(1 << (2 * len(hashes) - 1).bit_length(), -1, np.int32)
            _fill_slots(slots, hashes, count)
        used = int(bounds[count])
        if used + size > len(arena):
            arena = _wider(arena, max(used + size, 2 * len(arena)))
        self.arrays = ByteArrays(slots, hashes, bounds, arena, self.arrays.size)

    def texts(self, first: int) -> list[bytes]:
        """The strings from number `first` on."""
        bounds = self.arrays.bounds[first : len(self) + 1].tolist()
        data = self.arrays.arena[bounds[0] : bounds[-1]].tobytes()
        base = bounds[0]
        return [data[low - base : high - base] for low, high in pairwise(bounds)]

    def enter(self, texts: pa.StringArray) -> NDArray[np.bool_]:
        """Add texts; returns which of them were already there."""
        _, offsets, content = texts.buffers()
        bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
        for array in (bounds, data):
            # Read-only, so that kernels are compiled for one array type only.
            array.flags.writeable = False
        self.reserve(len(texts), int(bounds[-1] - bounds[0]))
        known = np.zeros(len(texts), np.bool_)
        _enter_all(data, bounds, self.arrays, known)
        return known


def _wider(array: NDArray[Any], size: int) -> NDArray[Any]:
    out = np.zeros(size, array.dtype)
    out[: len(array)] = array
    return out
