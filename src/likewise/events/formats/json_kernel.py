"""Scans JSON lines in one compiled loop over bytes, without creating objects.

Each distinct member of an object (`"room": "112"`) is interned by its bytes and decoded once, outside this loop. A line
of another shape than expected is left to the slower reader, which accepts more and explains errors, so this loop may
reject any line it does not support.
"""

# ruff: noqa: PLR1714, PLR0911, PLR0912, PLR0917  (compiled functions are not called by keyword)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from likewise.events.formats.byte_table import hash_bytes, intern_bytes
from likewise.events.formats.time_kernel import read_number, read_text
from likewise.events.instants import ODD_TIME

GOOD: Final = 0
ODD: Final = 1
"""Left to the slower reader."""
BLANK: Final = 2

ID, TIME, END, THEME, ATTRIBUTES, ENTRY = range(6)
LOCAL_START: Final = 1
LOCAL_END: Final = 2
_MEMBERS: Final = 256
"""The most members of an object; more are left to the slower reader."""
_NONE: Final = np.iinfo(np.int64).min


class LineArrays(NamedTuple):
    """The results for each line: its state and bounds, the position of its id, its times, theme and end of entries.

    `local` marks times without a time zone.
    """

    state: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    id_at: NDArray[np.int64]
    id_size: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    local: NDArray[np.uint8]
    theme: NDArray[np.int32]
    used: NDArray[np.int64]

    @classmethod
    def of_size(cls, lines: int) -> LineArrays:
        """Arrays for a number of lines."""
        kinds = (np.uint8, np.int64, np.int64, np.int64, np.int32, np.int64, np.int64, np.uint8, np.int32, np.int64)
        arrays: list[Any] = [np.zeros(lines, kind) for kind in kinds]
        return cls(*arrays)


@njit(cache=True, nogil=True)
def _skip(data: Any, at: int, end: int) -> int:
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 13):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _plain_text(data: Any, at: int, end: int) -> int:
    """The position of the closing quote of a text without escapes; -1 if it has any."""
    while at < end:
        byte = data[at]
        if byte == 34:
            return at
        if byte == 92 or byte < 32:
            return -1
        at += 1
    return -1


@njit(cache=True, nogil=True)
def _text_end(data: Any, at: int, end: int) -> int:
    """The position after a text that begins here, with or without escapes; -1 if it has no end."""
    at += 1
    while at < end:
        if data[at] == 34:
            return at + 1
        at += 2 if data[at] == 92 else 1
    return -1


@njit(cache=True, nogil=True)
def _value_end(data: Any, at: int, end: int) -> int:
    """The position after a value; -1 if there is none. The value is validated when it is decoded."""
    if at >= end:
        return -1
    byte = data[at]
    if byte == 34:
        return _text_end(data, at, end)
    if byte == 123 or byte == 91:
        depth = 0
        while at < end:
            byte = data[at]
            if byte == 34:
                at = _text_end(data, at, end)
                if at < 0:
                    return -1
                continue
            if byte == 123 or byte == 91:
                depth += 1
            elif byte == 125 or byte == 93:
                depth -= 1
                if depth == 0:
                    return at + 1
            at += 1
        return -1
    start = at
    while at < end and data[at] > 32 and data[at] != 44 and data[at] != 125 and data[at] != 93:
        at += 1
    return at if at > start else -1


@njit(cache=True, nogil=True)
def _role(data: Any, start: int, end: int, names: Any, bounds: Any, roles: Any, other: int) -> int:
    for at in range(roles.size):
        low, size = bounds[at], bounds[at + 1] - bounds[at]
        if size and size == end - start:
            same = True
            for place in range(size):
                if names[low + place] != data[start + place]:
                    same = False
                    break
            if same:
                return int(roles[at])
    return other


@njit(cache=True, nogil=True)
def _moment(data: Any, at: int, end: int) -> tuple[int, bool]:
    """A time, and whether it has no time zone."""
    if data[at] == 34:
        return read_text(data, at + 1, end - 1)
    return read_number(data, at, end), False


@njit(cache=True, nogil=True)
def _entries(data: Any, at: int, end: int, table: Any, codes: Any, used: int, hashes: Any) -> tuple[int, int]:
    """Intern the members of an object; returns the position after it (or -1) and the number of codes used."""
    count = 0
    at = _skip(data, at, end)
    while at < end and data[at] == 34:
        begin = at
        close = _plain_text(data, at + 1, end)
        if close <= at + 1 or count == hashes.size:
            return -1, used
        hashes[count] = hash_bytes(data, at + 1, close)
        for before in range(count):
            if hashes[before] == hashes[count]:
                return -1, used
        count += 1
        at = _skip(data, close + 1, end)
        if at >= end or data[at] != 58:
            return -1, used
        at = _value_end(data, _skip(data, at + 1, end), end)
        if at < 0:
            return -1, used
        codes[used] = intern_bytes(data, begin, at, table)
        used += 1
        at = _skip(data, at, end)
        if at < end and data[at] == 125:
            return at + 1, used
        if at >= end or data[at] != 44:
            return -1, used
        at = _skip(data, at + 1, end)
    return -1, used


@njit(cache=True, nogil=True)
def _line(
    data: Any,
    at: int,
    end: int,
    names: Any,
    bounds: Any,
    roles: Any,
    flat: bool,
    table: Any,
    themes: Any,
    codes: Any,
    used: int,
    hashes: Any,
    row: Any,
) -> int:
    """Scan one object from its brace on; returns the number of codes used, or -1 if it is unsupported."""
    seen, members = 0, 0
    first = used
    at = _skip(data, at + 1, end)
    while at < end and data[at] == 34:
        begin = at
        close = _plain_text(data, at + 1, end)
        if close <= at + 1:
            return -1
        role = _role(data, at + 1, close, names, bounds, roles, ENTRY)
        colon = _skip(data, close + 1, end)
        if colon >= end or data[colon] != 58:
            return -1
        at = _skip(data, colon + 1, end)
        if role == ATTRIBUTES:
            if at >= end or data[at] != 123:
                return -1
            at, used = _entries(data, at + 1, end, table, codes, used, hashes)
            if at < 0:
                return -1
        else:
            value = at
            at = _value_end(data, value, end)
            if at < 0:
                return -1
            if role == ENTRY:
                if not flat or members == hashes.size:
                    return -1
                hashes[members] = hash_bytes(data, begin + 1, close)
                for before in range(members):
                    if hashes[before] == hashes[members]:
                        return -1
                members += 1
                codes[used] = intern_bytes(data, begin, at, table)
                used += 1
            elif role == ID:
                if data[value] != 34 or _plain_text(data, value + 1, end) != at - 1 or at - value > 65536:
                    return -1
                row[0], row[1] = value + 1, at - value - 2
            elif role == THEME:
                row[5] = intern_bytes(data, value, at, themes) + 1
            else:
                moment, local = _moment(data, value, at)
                if moment == ODD_TIME:
                    return -1
                row[2 if role == TIME else 3] = moment
                if local:
                    row[4] |= LOCAL_START if role == TIME else LOCAL_END
        if role != ENTRY:
            if seen & (1 << role):
                return -1
            seen |= 1 << role
        at = _skip(data, at, end)
        if at < end and data[at] == 125:
            complete = _skip(data, at + 1, end) == end
            return used if complete and used > first else -1
        if at >= end or data[at] != 44:
            return -1
        at = _skip(data, at + 1, end)
    return -1


@njit(cache=True, nogil=True)
def scan_lines(
    data: Any, names: Any, bounds: Any, roles: Any, flat: bool, table: Any, themes: Any, codes: Any, out: Any
) -> int:
    """Scan all lines; returns their number.

    `names` has the concatenated member names, `roles` their meaning: id, time, end, theme or attributes. If `flat`, all
    other members are entries, too. A line with two members of the same role is left to the slower reader.
    """
    hashes = np.zeros(_MEMBERS, np.uint64)
    row = np.zeros(6, np.int64)
    line, at, used = 0, 0, 0
    while at < data.size:
        end = at
        while end < data.size and data[end] != 10:
            end += 1
        begin = _skip(data, at, end)
        out.begins[line], out.ends[line] = at, end
        if begin == end:
            out.state[line] = BLANK
        else:
            row[0], row[1], row[2], row[3], row[4], row[5] = 0, 0, _NONE, _NONE, 0, 0
            count = -1
            if data[begin] == 123 and end - at <= 65536:
                count = _line(data, begin, end, names, bounds, roles, flat, table, themes, codes, used, hashes, row)
            if count < 0:
                out.state[line] = ODD
            else:
                out.state[line] = GOOD
                used = count
                out.id_at[line], out.id_size[line] = row[0], row[1]
                out.start[line], out.end[line], out.local[line] = row[2], row[3], row[4]
                out.theme[line] = row[5]
        out.used[line] = used
        line += 1
        at = end + 1
    return line
