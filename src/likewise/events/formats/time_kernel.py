"""Compiled parsing of times in the common shapes of `likewise.events.instants`; others are parsed one by one."""

# ruff: noqa: PLR0911  (compiled functions are not called by keyword)
from __future__ import annotations

from datetime import tzinfo
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from likewise.events.instants import NO_TIME, ODD_TIME, from_local

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_SECONDS, _MILLISECONDS, _MICROSECONDS = 10**11, 10**14, 10**17


@njit(cache=True, nogil=True)
def _digits(data: Any, at: int, count: int) -> int:
    """The number of `count` digits; -1 if there is another character."""
    value = 0
    for place in range(at, at + count):
        digit = int(data[place]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@njit(cache=True, nogil=True)
def _days_before(year: int, month: int, day: int) -> int:
    """Days from 1970 to a date; years begin in March here, so that the leap day is the last day."""
    years = year - 1 if month < 3 else year
    cycle = years // 400
    rest = years - cycle * 400
    ordinal = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return cycle * 146_097 + rest * 365 + rest // 4 - rest // 100 + ordinal - 719_468


@njit(cache=True, nogil=True)
def read_text(data: Any, at: int, end: int) -> tuple[int, bool]:
    """Parse YYYY-MM-DD, T or blank, hh:mm:ss, optional fraction, optional Z or ±hh:mm; True if it has no time zone."""
    if end - at < 19 or data[at + 4] != 45 or data[at + 7] != 45 or data[at + 13] != 58 or data[at + 16] != 58:
        return ODD_TIME, False
    if data[at + 10] != 84 and data[at + 10] != 32:
        return ODD_TIME, False
    year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
    hour, minute, second = _digits(data, at + 11, 2), _digits(data, at + 14, 2), _digits(data, at + 17, 2)
    if year < 2 or year > 9998 or month < 1 or month > 12 or day < 1 or min(hour, minute, second) < 0:
        return ODD_TIME, False
    length = 30 + (month + month // 8) % 2
    if month == 2:
        length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > length or hour > 23 or minute > 59 or second > 59:
        return ODD_TIME, False
    value = _days_before(year, month, day) * _DAY + hour * _HOUR + minute * _MINUTE + second * _SECOND
    at += 19
    if at < end and data[at] == 46:
        at += 1
        scale = _SECOND
        if at == end or data[at] < 48 or data[at] > 57:
            return ODD_TIME, False
        while at < end and 48 <= data[at] <= 57:
            scale //= 10
            value += scale * (int(data[at]) - 48)
            at += 1
    if at == end:
        return value, True
    if end - at == 1 and data[at] == 90:
        return value, False
    if end - at != 6 or data[at + 3] != 58 or (data[at] != 43 and data[at] != 45):
        return ODD_TIME, False
    hours, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return ODD_TIME, False
    ahead = hours * _HOUR + minutes * _MINUTE
    return value + (ahead if data[at] == 45 else -ahead), False


@njit(cache=True, nogil=True)
def read_number(data: Any, at: int, end: int) -> int:
    """Parse an integer since 1970, optionally with a fraction of up to six digits; its size determines the unit."""
    start = at
    value = 0
    while at < end and at - start < 18 and 48 <= data[at] <= 57:
        value = value * 10 + int(data[at]) - 48
        at += 1
    # Eight digits may be a date.
    if at == start or at - start == 8:
        return ODD_TIME
    fraction, scale = 0, 1_000_000
    if at < end and data[at] == 46:
        at += 1
        if at == end or end - at > 6:
            return ODD_TIME
        while at < end and 48 <= data[at] <= 57:
            scale //= 10
            fraction += scale * (int(data[at]) - 48)
            at += 1
    if at != end:
        return ODD_TIME
    if value < _SECONDS:
        return value * _SECOND + fraction
    if value < _MILLISECONDS and fraction % 1000 == 0:
        return value * 1000 + fraction // 1000
    if value < _MICROSECONDS and fraction == 0:
        return value
    return ODD_TIME


@njit(cache=True, nogil=True)
def _read_all(data: Any, bounds: Any, moments: Any, local: Any) -> None:
    for row in range(moments.size):
        at, end = bounds[row], bounds[row + 1]
        if at == end:
            moments[row] = NO_TIME
            continue
        moment, bare = read_text(data, at, end)
        if moment == ODD_TIME:
            moment = read_number(data, at, end)
        moments[row], local[row] = moment, bare


def read_column(cells: pa.StringArray, zone: tzinfo) -> NDArray[np.int64]:
    """The times of cells: `NO_TIME` where one is empty, `ODD_TIME` where its shape is not supported here."""
    moments, local = np.zeros(len(cells), np.int64), np.zeros(len(cells), np.bool_)
    _, offsets, content = cells.buffers()
    bounds = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1]
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    for array in (bounds, data):
        array.flags.writeable = False
    _read_all(data, bounds, moments, local)
    local_rows = np.flatnonzero(local)
    moments[local_rows] = from_local(moments[local_rows], zone)
    return moments
