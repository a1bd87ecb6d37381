"""Lines of CSV cut into cells, in compiled loops over bytes: no object for a line or a cell.

Cells are read as RFC 4180 has them: a cell in quotes may hold separators, and a quote written twice is one. A line is
a row; a cell does not go on over the end of a line. Lines of nothing but blanks are none.
"""

# ruff: noqa: PLR0917, PLR1714, SIM109  (compiled functions are not called by keyword, and compare byte by byte)
from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

LF: Final = 10
CR: Final = 13
BLANK: Final = 32
QUOTE: Final = 34
BACKSLASH: Final = 92

NOTHING: Final = 0
"""A cell without a letter in it, in quotes or not: it is null."""
PLAIN: Final = 1
ESCAPED: Final = 2
"""In quotes, with quotes in it that are written twice."""

GOOD: Final = 0
UNEVEN: Final = 1
"""The line has another number of cells."""
TORN: Final = 2
"""A quote is not closed, or closed before the cell ends."""

_U64 = np.uint64
_PRIMES: Final = (
    _U64(0x9E3779B185EBCA87),
    _U64(0xC2B2AE3D27D4EB4F),
    _U64(0x165667B19E3779F9),
    _U64(0x85EBCA77C2B2AE63),
    _U64(0x27D4EB2F165667C5),
)
_P1, _P2, _P3, _P4, _P5 = _PRIMES


def seen(buffer: Any, kind: Any) -> Any:
    """The numbers in a buffer, not to be changed: kernels are compiled once for such arrays, and not for others too."""
    array = np.frombuffer(buffer, kind) if buffer is not None else np.zeros(0, kind)
    array.flags.writeable = False
    return array


@njit(cache=True, nogil=True)
def find_lines(data: Any, starts: Any, ends: Any, numbers: Any) -> tuple[int, int]:
    """Bounds of the lines of a text, and how many lines end before each; gives how many there are, and how many ended.

    A line ends with LF, with CR and LF, or with CR alone.
    """
    found, ended, start = 0, 0, 0
    black = False
    for at in range(data.size):
        byte = data[at]
        if byte == LF or byte == CR:
            if black:
                starts[found], ends[found], numbers[found] = start, at, ended
                found += 1
            if byte == LF and at > 0 and data[at - 1] == CR:
                ended -= 1
            ended += 1
            start, black = at + 1, False
        elif byte > BLANK:
            black = True
    if black:
        starts[found], ends[found], numbers[found] = start, data.size, ended
        found += 1
    return found, ended


@njit(cache=True, nogil=True)
def find_black(data: Any, starts: Any, ends: Any, kept: Any) -> int:
    """Which lines have more than blanks; gives how many."""
    found = 0
    for row in range(starts.size):
        for at in range(starts[row], ends[row]):
            if data[at] > BLANK:
                kept[found] = row
                found += 1
                break
    return found


@njit(cache=True, nogil=True)
def _close(data: Any, at: int, end: int) -> tuple[int, bool]:
    """The place of the quote that closes the cell whose text begins here, or the end; whether quotes are in between."""
    doubled = False
    while at < end:
        if data[at] == QUOTE:
            if at + 1 == end or data[at + 1] != QUOTE:
                break
            doubled = True
            at += 1
        at += 1
    return at, doubled


@njit(cache=True, nogil=True)
def split_cells(data: Any, starts: Any, ends: Any, separator: int, begins: Any, sizes: Any, marks: Any) -> Any:
    """Where the cells of lines are, a row of `begins`, `sizes` and `marks` for each column; gives the state of each."""
    columns = begins.shape[0]
    states = np.zeros(starts.size, np.uint8)
    for row in range(starts.size):
        at, end, column = starts[row], ends[row], 0
        while True:
            begin, mark = at, PLAIN
            if at < end and data[at] == QUOTE:
                begin += 1
                stop, doubled = _close(data, begin, end)
                at = stop + 1
                # Blanks between a quote and the end of the cell belong to nothing.
                while at < end and data[at] <= BLANK and data[at] != separator:
                    at += 1
                if stop >= end or (at < end and data[at] != separator):
                    states[row] = TORN
                    break
                if doubled:
                    mark = ESCAPED
            else:
                while at < end and data[at] != separator:
                    at += 1
                stop = at
            if stop == begin:
                mark = NOTHING
            if column < columns:
                begins[column, row], sizes[column, row], marks[column, row] = begin, stop - begin, mark
            column += 1
            if at >= end:
                break
            at += 1
        if states[row] == GOOD and column != columns:
            states[row] = UNEVEN
    return states


@njit(cache=True, nogil=True)
def gather_cells(data: Any, begins: Any, sizes: Any, marks: Any, offsets: Any, out: Any) -> None:
    """The texts of a column, one after the other, and where each begins."""
    place = 0
    for row in range(begins.size):
        offsets[row] = place
        at, end, mark = begins[row], begins[row] + sizes[row], marks[row]
        while at < end and mark != NOTHING:
            out[place] = data[at]
            if mark == ESCAPED and data[at] == QUOTE:
                at += 1
            at += 1
            place += 1
    offsets[begins.size] = place


@njit(cache=True, nogil=True)
def _escaped(byte: int, out: Any, place: int) -> int:
    """A byte as JSON has it."""
    letter = 0
    if byte == QUOTE or byte == BACKSLASH:
        letter = byte
    elif byte < BLANK:
        letter = (0, 0, 0, 0, 0, 0, 0, 0, 98, 116, 110, 0, 102, 114)[byte] if byte < 14 else 0
        if letter == 0:
            out[place], out[place + 1], out[place + 2], out[place + 3] = BACKSLASH, 117, 48, 48
            low = byte % 16
            out[place + 4] = 48 + byte // 16
            out[place + 5] = 48 + low if low < 10 else 55 + low
            return place + 6
    if letter:
        out[place], out[place + 1] = BACKSLASH, letter
        return place + 2
    out[place] = byte
    return place + 1


@njit(cache=True, nogil=True)
def write_rows(rows: Any, data: Any, begins: Any, sizes: Any, marks: Any, keys: Any, bounds: Any, out: Any) -> Any:
    """Some rows as JSON objects, without the cells that are null; gives where each begins.

    `keys` has the JSON names of all columns one after the other, with colons; `bounds` tells where each begins.
    """
    offsets = np.zeros(rows.size + 1, np.int64)
    place = 0
    for number in range(rows.size):
        row, first = rows[number], True
        out[place] = 123
        place += 1
        for column in range(begins.shape[0]):
            if marks[column, row] == NOTHING:
                continue
            if not first:
                out[place] = 44
                place += 1
            first = False
            for at in range(bounds[column], bounds[column + 1]):
                out[place] = keys[at]
                place += 1
            out[place] = QUOTE
            place += 1
            at, end = begins[column, row], begins[column, row] + sizes[column, row]
            while at < end:
                place = _escaped(data[at], out, place)
                if marks[column, row] == ESCAPED and data[at] == QUOTE:
                    at += 1
                at += 1
            out[place] = QUOTE
            place += 1
        out[place] = 125
        place += 1
        offsets[number + 1] = place
    return offsets


@njit(cache=True, nogil=True)
def _turned(value: Any, bits: int) -> Any:
    return (value << _U64(bits)) | (value >> _U64(64 - bits))


@njit(cache=True, nogil=True)
def _word(data: Any, at: int, size: int) -> Any:
    value = _U64(0)
    for place in range(size):
        value |= _U64(data[at + place]) << _U64(8 * place)
    return value


@njit(cache=True, nogil=True)
def _mixed(total: Any, word: Any) -> Any:
    return _turned(total + word * _P2, 31) * _P1


@njit(cache=True, nogil=True)
def hash_text(data: Any, start: int, end: int, seed: int) -> Any:
    """The 64 bits of xxHash, as Spark's function `xxhash64` gives them."""
    at, size = start, end - start
    if size >= 32:
        a, b, c, d = _U64(seed) + _P1 + _P2, _U64(seed) + _P2, _U64(seed), _U64(seed) - _P1
        while at + 32 <= end:
            a, b = _mixed(a, _word(data, at, 8)), _mixed(b, _word(data, at + 8, 8))
            c, d = _mixed(c, _word(data, at + 16, 8)), _mixed(d, _word(data, at + 24, 8))
            at += 32
        value = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
        for each in (a, b, c, d):
            value = (value ^ _mixed(_U64(0), each)) * _P1 + _P4
    else:
        value = _U64(seed) + _P5
    value += _U64(size)
    while at + 8 <= end:
        value = _turned(value ^ _mixed(_U64(0), _word(data, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        value = _turned(value ^ (_word(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        value = _turned(value ^ (_U64(data[at]) * _P5), 11) * _P1
        at += 1
    value = (value ^ (value >> _U64(33))) * _P2
    value = (value ^ (value >> _U64(29))) * _P3
    return value ^ (value >> _U64(32))


@njit(cache=True, nogil=True)
def name_texts(data: Any, offsets: Any, seed: int, ends: Any, out: Any) -> None:
    """The hash of each text in lower-case hexadecimal digits, without leading zeros."""
    place = 0
    for row in range(offsets.size - 1):
        value = hash_text(data, offsets[row], offsets[row + 1], seed)
        started = False
        for shift in range(60, -4, -4):
            digit = int((value >> _U64(shift)) & _U64(15))
            if digit or started or shift == 0:
                started = True
                out[place] = 48 + digit if digit < 10 else 87 + digit
                place += 1
        ends[row + 1] = place
