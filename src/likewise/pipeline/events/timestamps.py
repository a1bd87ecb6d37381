"""Times in cells, read as Spark's cast from text to timestamp reads them, or as seconds since 1970.

The common shape (`2026-01-31T10:00:00.5Z`, with a blank for the T, without fraction or zone) is read in a compiled
loop. Every other text is read once for all its cells, by the rules of that cast: parts may be missing at the end,
numbers may have one digit, a time of day alone is one of today, and a zone may be a name.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from likewise.pipeline.events.cells import EPOCH
from likewise.pipeline.events.csv_kernel import seen

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
_CYCLE: Final = 146_097 * DAY
"""The calendar repeats itself, days of the week included, after 400 years."""

NONE, INSTANT, LOCAL, ODD = range(4)
"""What a cell is: no time, a time with its zone, one without, or one for the slower way."""

_EPOCH: Final = re.compile(EPOCH.replace(r"\z", r"\Z"), re.ASCII)
_TRIMMED: Final = "".join(map(chr, range(33))) + "\x7f"
_REGULAR: Final = 65_000_000 * SECOND
"""Since 1972 an offset holds for whole minutes."""
_TEXT: Final = re.compile(
    r"(?:(?P<sign>[-+])?(?P<year>\d{4,6})(?:-(?P<month>\d\d?)(?:-(?P<day>\d\d?)(?:[ T](?P<time>\d.*))?)?)?"
    r"|(?P<today>T\d.*|\d\d?:.*))",
    re.ASCII | re.DOTALL,
)
_TIME: Final = re.compile(
    r"(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(?P<fraction>\d*))?(?P<zone>\D.*)?)?)?", re.ASCII | re.DOTALL
)
_OFFSET: Final = re.compile(r"([-+])(?:(\d\d?)|(\d\d)(:?)(\d\d)(?:\4(\d\d))?)", re.ASCII)
_REGION: Final = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
_FOREIGN: Final = ("posix", "right", "localtime", "Factory")
"""What Python takes for the name of a zone, and Spark does not."""
_SHORT: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Short names, which mean to Spark what they mean to Java."""

Numbers = NDArray[np.int64]


def read_moments(cells: pa.StringArray, zone: tzinfo) -> pa.TimestampArray:
    """The times of cells, null where a cell is none; those that name no zone are in this one.

    >>> cells = pa.array(["1970-01-01T00:00:01Z", "1970-1-1", "1970-01-01 01:00:01.5+01:00", "soon", None])
    >>> [each and each.timestamp() for each in read_moments(cells, UTC).to_pylist()]
    [1.0, 0.0, 1.5, None, None]
    """
    _, offsets, data = cells.buffers()
    bounds, text = seen(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1], seen(data, np.uint8)
    moments, sorts = np.zeros(len(cells), np.int64), np.zeros(len(cells), np.uint8)
    read_common(text, bounds, moments, sorts)
    local = np.flatnonzero(sorts == LOCAL)
    if len(local):
        moments[local] = from_local(moments[local], zone)
    odd = np.flatnonzero(sorts == ODD)
    if len(odd):
        numbered = cells.take(pa.array(odd)).dictionary_encode()
        known = [read_moment(each, zone) for each in numbered.dictionary.to_pylist()]
        codes = numbered.indices.to_numpy(zero_copy_only=False)
        moments[odd] = np.array([each or 0 for each in known], np.int64)[codes]
        sorts[odd] = np.array([NONE if each is None else INSTANT for each in known], np.uint8)[codes]
    return pa.array(moments, pa.int64(), mask=sorts == NONE).cast(pa.timestamp("us", tz="UTC"))


@njit(cache=True, nogil=True)
def _digits(data: Any, at: int, count: int) -> int:
    """The number that so many digits make; negative where they are none."""
    value = 0
    for place in range(at, at + count):
        digit = int(data[place]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@njit(cache=True, nogil=True)
def days_before(year: int, month: int, day: int) -> int:
    """Days from 1970 to a date; years begin in March here, so that the odd day of a leap year is the last."""
    years = year - 1 if month < 3 else year
    cycle = years // 400
    rest = years - cycle * 400
    ordinal = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return cycle * 146_097 + rest * 365 + rest // 4 - rest // 100 + ordinal - 719_468


@njit(cache=True, nogil=True)
def _offset(data: Any, at: int, end: int) -> int:
    """Microseconds of an offset such as +01:00; DAY if it is none."""
    sign = -1 if data[at] == 45 else 1
    if (data[at] != 43 and data[at] != 45) or end - at != 6 or data[at + 3] != 58:
        return DAY
    hours, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
    return sign * (hours * HOUR + minutes * MINUTE) if 0 <= hours < 18 and 0 <= minutes < 60 else DAY


@njit(cache=True, nogil=True)
def read_common(data: Any, bounds: Any, moments: Any, sorts: Any) -> None:
    """Read what has the common shape, YYYY-MM-DD, T or blank, hh:mm:ss, a fraction or none, Z or ±hh:mm or nothing."""
    lengths = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    for row in range(moments.size):
        at, end = bounds[row], bounds[row + 1]
        if at == end:
            continue
        sorts[row] = ODD
        if end - at < 19 or data[at + 4] != 45 or data[at + 7] != 45 or data[at + 13] != 58 or data[at + 16] != 58:
            continue
        if data[at + 10] != 84 and data[at + 10] != 32:
            continue
        year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
        hour, minute, second = _digits(data, at + 11, 2), _digits(data, at + 14, 2), _digits(data, at + 17, 2)
        if year < 0 or month < 1 or month > 12 or day < 1 or min(hour, minute, second) < 0:
            continue
        leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        if day > lengths[month - 1] + leap or hour > 23 or minute > 59 or second > 59:
            continue
        value = days_before(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second * SECOND
        at += 19
        if at < end and data[at] == 46:
            at += 1
            scale = SECOND
            while at < end and 48 <= data[at] <= 57:
                scale //= 10
                value += scale * (int(data[at]) - 48)
                at += 1
        if at == end:
            moments[row], sorts[row] = value, LOCAL
        elif end - at == 1 and data[at] == 90:
            moments[row], sorts[row] = value, INSTANT
        else:
            ahead = _offset(data, at, end)
            if ahead != DAY:
                moments[row], sorts[row] = value - ahead, INSTANT


def from_local(local: Numbers, zone: tzinfo) -> Numbers:
    """Instants from times on the clocks of a zone."""
    if isinstance(zone, timezone):
        return local - _microseconds(zone.utcoffset(None))
    step = MINUTE if local.min() > _REGULAR else 1
    distinct, back = np.unique(local // step, return_inverse=True)
    ahead = [offset_of(each * step, zone) for each in distinct.tolist()]
    return np.asarray(local - np.array(ahead, np.int64)[back])


def offset_of(local: int, zone: tzinfo) -> int:
    """How far the clocks of a zone are ahead when they show this time.

    What they show twice is the first of the two; what they leap over is counted on from before.
    """
    first, last = days_before(1, 1, 2) * DAY, days_before(9999, 1, 1) * DAY
    if local >= last:
        local -= ((local - last) // _CYCLE + 1) * _CYCLE
    clock = datetime(1970, 1, 1) + timedelta(microseconds=max(local, first))
    return _microseconds(zone.utcoffset(clock.replace(tzinfo=zone)))


def _microseconds(span: timedelta | None) -> int:
    assert span is not None
    return span // timedelta(microseconds=1)


def read_moment(text: str, zone: tzinfo) -> int | None:
    """The time of one text of any shape that Spark's cast takes, or of seconds since 1970.

    >>> read_moment("1970-1-1 1:0", UTC), read_moment("1970-01-01 00:00:00 Europe/Dublin", UTC), read_moment("1", UTC)
    (3600000000, -3600000000, None)
    """
    if _EPOCH.fullmatch(text):
        return int(Decimal(text).scaleb(6).to_integral_value(ROUND_HALF_UP))
    found = _TEXT.fullmatch(text.strip(_TRIMMED))
    if found is None:
        return None
    told = found["today"].removeprefix("T") if found["today"] else found["time"]
    time = _TIME.fullmatch(told or "0")
    if time is None:
        return None
    where = zone if time["zone"] is None else zone_named(time["zone"].strip(_TRIMMED[:33]))
    if where is None:
        return None
    hour, minute, second = (int(time[part] or 0) for part in (1, 2, 3))
    if found["today"]:
        now = datetime.now(where)
        date: tuple[int, int, int] = (now.year, now.month, now.day)
    else:
        year = int(found["year"]) * (-1 if found["sign"] == "-" else 1)
        date = (year, int(found["month"] or 1), int(found["day"] or 1))
    if not (1 <= date[1] <= 12 and 1 <= date[2] <= _length(*date[:2]) and hour < 24 and minute < 60 and second < 60):
        return None
    micros = int((time["fraction"] or "")[:6].ljust(6, "0"))
    local = days_before.py_func(*date) * DAY + hour * HOUR + minute * MINUTE + second * SECOND + micros
    moment: int = local - offset_of(local, where)
    return moment if -(1 << 63) <= moment < 1 << 63 else None


def _length(year: int, month: int) -> int:
    # Any year of the calendar's cycle will do: the library knows none before 1.
    return monthrange(year % 400 + 400, month)[1]


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo | None:
    """A zone by an offset, by the name of a region, or by both; None if there is none.

    >>> zone_named("+1:30"), zone_named("UTC+01"), zone_named("Europe/Dublin"), zone_named("Mars")
    (datetime.timezone(datetime.timedelta(seconds=5400)), datetime.timezone(datetime.timedelta(seconds=3600)), \
zoneinfo.ZoneInfo(key='Europe/Dublin'), None)
    """
    name = re.sub(r"([-+])(\d):", r"\g<1>0\2:", name, count=1)
    name = re.sub(r"([-+]\d\d):(\d)$", r"\1:0\2", name, count=1)
    name = _SHORT.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = name
    for prefix in ("UTC", "GMT", "UT"):
        if name.startswith((f"{prefix}+", f"{prefix}-")):
            offset = name.removeprefix(prefix)
    if offset.startswith(("+", "-")):
        return _fixed(offset)
    if not _REGION.fullmatch(name) or name.startswith(_FOREIGN):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _fixed(text: str) -> timezone | None:
    found = _OFFSET.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds = int(found[2] or found[3]), int(found[5] or 0), int(found[6] or 0)
    ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or ahead > timedelta(hours=18):
        return None
    return timezone(-ahead if found[1] == "-" else ahead)
