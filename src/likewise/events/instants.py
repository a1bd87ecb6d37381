"""Parses times: one rule for every format and every reader.

A time is ISO 8601 text (a date alone is its midnight) or a number since 1970: seconds or, if it is too large for them,
milliseconds, microseconds or nanoseconds. A time without a time zone is in the reader's zone, by default UTC.
A time of day without a date is refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.errors import BuildError, InputError
from likewise.events.event import Instant, to_instant

FIRST, LAST = to_instant(datetime.min), to_instant(datetime.max)
"""The years 1 to 9999."""
NO_TIME: Final = int(np.iinfo(np.int64).min)
"""The start and end of an event without a time."""
ODD_TIME: Final = NO_TIME + 1
"""Not a time, or a time that compiled loops do not support."""
FEW: Final = 2000
"""Up to this many texts are read without loading a kernel."""
UNITS: Final = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))
"""Upper limits of numbers for each unit, and its microseconds; larger numbers are nanoseconds."""
TIME_UNITS: Final = {"s": Decimal(10**6), "ms": Decimal(10**3), "us": Decimal(1), "ns": Decimal("0.001")}
"""Microseconds of each unit that a time format can name instead of guessing by size."""

_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?", re.ASCII)
_OFFSET: Final = re.compile(r"([-+])(\d\d?)(?::?(\d\d))?", re.ASCII)
_MINUTE: Final = 60_000_000
_REGULAR: Final = 65_000_000_000_000
"""Since 1972, UTC offsets change only at whole minutes."""


class TimeRule:
    """The time format and zone of a source; by default ISO 8601 in UTC, or numbers.

    The format is that of `strptime`, or the unit of numbers since 1970: `s`, `ms`, `us` or `ns`.

    >>> TimeRule("%d/%m/%Y %H:%M", "Europe/Dublin").instant("time", "01/07/1970 01:00")
    15638400000000
    >>> TimeRule("ms").instant("time", 5000), TimeRule("s").instant("time", "5000"), TimeRule("us").instant("time", 7)
    (5000000, 5000000000, 7)
    """

    def __init__(self, format: str | None = None, zone: str | tzinfo | None = None) -> None:
        self.format = format
        if format is not None and format not in TIME_UNITS:
            _check_format(format)
        self.zone: tzinfo = UTC if zone is None else zone_of(zone) if isinstance(zone, str) else zone

    @property
    def usual(self) -> bool:
        """Whether times are ISO 8601 text or numbers."""
        return self.format is None

    def instant(self, field: str, value: object) -> Instant:
        """The instant of a value; raises InputError if it is not a time."""
        scale = TIME_UNITS.get(self.format or "")
        if self.format is None or scale is not None or not isinstance(value, str):
            return parse_instant(field, value, zone=self.zone, scale=scale)
        try:
            moment = datetime.strptime(value.strip(), self.format)
        except ValueError:
            hint = f"the format is {self.format!r}"
            raise InputError(f"{field} {_shown(value)} is not of the time format", hint=hint) from None
        return _checked(field, value, _instant_of(moment, self.zone))


def _check_format(format: str) -> None:
    """Refuse a format that `strptime` does not know, or that has no year."""
    try:
        datetime.strptime("", format)
    except ValueError as error:
        if "bad directive" in str(error) or "stray %" in str(error):
            hint = "such as %d/%m/%Y %H:%M, or s, ms, us or ns"
            raise BuildError(f"{format!r} is not a time format: {error}", hint=hint) from None
    except re.error:
        raise BuildError(f"{format!r} names a part of the time twice", hint="such as %d/%m/%Y %H:%M") from None
    if not any(f"%{letter}" in format for letter in "YyGcx"):
        codes = "codes begin with %, such as %d.%m.%Y %H:%M" if "%" not in format else ""
        hint = codes or "date+clock joins a date and a time of day"
        raise BuildError(f"the time format {format!r} has no year", hint=hint)


def parse_instant(field: str, value: object, *, zone: tzinfo = UTC, scale: Decimal | None = None) -> Instant:
    """Parse ISO 8601 text or a number since 1970; without `scale`, its size determines the unit.

    >>> parse_instant("time", 1.5), parse_instant("time", "1970-01-02"), parse_instant("time", 1_700_000_000_000)
    (1500000, 86400000000, 1700000000000000)
    """
    if isinstance(value, datetime):
        return _checked(field, value.isoformat(), _instant_of(value, zone))
    if isinstance(value, str):
        return _instant_of_text(field, value, zone, scale)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InputError(f"{field} is of type {type(value).__name__}, not a timestamp or a number of seconds")
    return instant_of_number(field, value, scale)


def instant_of_number(field: str, value: float | Decimal, scale: Decimal | None = None) -> Instant:
    """The instant of a number; `scale` is its unit in microseconds, by default determined by its size.

    >>> [instant_of_number("time", 3 * 10**power) for power in (9, 12, 15, 18)]
    [3000000000000000, 3000000000000000, 3000000000000000, 3000000000000000]
    """
    hint = "seconds, milliseconds, microseconds or nanoseconds since 1970, in the years 1 to 9999"
    if not FIRST <= value <= LAST * 1000:  # also false for NaN and infinities
        raise InputError(f"{field} {value} is out of range", hint=hint)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if scale is None:
        scale = next((Decimal(unit) for limit, unit in UNITS if abs(exact) < limit), TIME_UNITS["ns"])
    instant = int((exact * scale).to_integral_value(ROUND_HALF_EVEN))
    if not FIRST <= instant <= LAST:
        raise InputError(f"{field} {value} is out of range", hint=hint)
    return instant


def _instant_of_text(field: str, text: str, zone: tzinfo, scale: Decimal | None) -> Instant:
    text = text.strip()
    # Eight digits are a date; any other digits are a number, even if ISO 8601 would accept them.
    if _NUMBER.fullmatch(text) and (scale is not None or not (len(text) == 8 and text.isdigit())):
        return instant_of_number(field, Decimal(text), scale)
    try:
        instant = _instant_of(datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError):
        hint = "such as 2010-07-11T20:30:00Z, or seconds since 1970; any other needs a time format"
        raise InputError(f"{field} {_shown(text)} is not an ISO 8601 time", hint=hint) from None
    return _checked(field, text, instant)


def _instant_of(moment: datetime, zone: tzinfo) -> Instant:
    return to_instant(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))


def _checked(field: str, text: str, instant: Instant) -> Instant:
    if FIRST <= instant <= LAST:
        return instant
    raise InputError(f"{field} {_shown(text)} is out of range", hint="the years 1 to 9999")


def read_times(cells: pa.StringArray, rule: TimeRule, *, field: str) -> tuple[NDArray[np.int64], dict[int, InputError]]:
    """The times of cells (`NO_TIME` if empty or null), and the errors by row.

    >>> cells = pa.array(["1970-01-01T00:00:01Z", "1", "1970-01-02", None, "10:30"])
    >>> moments, bad = read_times(cells, TimeRule(), field="at")
    >>> moments.tolist()[:3], int(moments[3]) == NO_TIME, bad[4].message
    ([1000000, 1000000, 86400000000], True, "at '10:30' is not an ISO 8601 time")
    """
    moments = np.full(len(cells), ODD_TIME, np.int64)
    if rule.usual and len(cells) > FEW:
        from likewise.events.formats.time_kernel import read_column

        moments = read_column(cells, rule.zone)
    moments[cells.is_null().to_numpy(zero_copy_only=False)] = NO_TIME
    odd = np.flatnonzero(moments == ODD_TIME)
    bad: dict[int, InputError] = {}
    parsed: dict[str, int | InputError] = {}
    for row, text in zip(odd.tolist(), cells.take(pa.array(odd)).to_pylist(), strict=True):
        if text not in parsed:
            try:
                parsed[text] = rule.instant(field, text) if text.strip() else NO_TIME
            except InputError as flaw:
                parsed[text] = flaw
        instant = parsed[text]
        if isinstance(instant, InputError):
            bad[row] = instant
        moments[row] = NO_TIME if isinstance(instant, InputError) else instant
    return moments, bad


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """A time zone by its region name or UTC offset.

    >>> zone_of("+01:30"), zone_of("Europe/Dublin"), zone_of("UTC")
    (datetime.timezone(datetime.timedelta(seconds=5400)), zoneinfo.ZoneInfo(key='Europe/Dublin'), datetime.timezone.utc)
    """
    if name in {"Z", "UTC", "GMT", "Etc/UTC"}:
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if ahead < timedelta(days=1) and int(offset[3] or 0) < 60:
            return timezone(-ahead if offset[1] == "-" else ahead)
    else:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise BuildError(f"there is no time zone {name!r}", hint="such as Europe/Dublin, UTC or +01:00")


def from_local(local: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Convert local times of a zone to instants; an ambiguous time is the earlier one."""
    if isinstance(zone, timezone):
        return np.asarray(local - _microseconds(zone.utcoffset(None)))
    if not len(local):
        return local
    step = _MINUTE if local.min() > _REGULAR else 1
    distinct, back = np.unique(local // step, return_inverse=True)
    ahead = [_offset(minute * step, zone) for minute in distinct.tolist()]
    return np.asarray(local - np.array(ahead, np.int64)[back])


def _offset(local: int, zone: tzinfo) -> int:
    clock = datetime(1970, 1, 1) + timedelta(microseconds=local)
    return _microseconds(zone.utcoffset(clock.replace(tzinfo=zone)))


def _microseconds(span: timedelta | None) -> int:
    assert span is not None
    return span // timedelta(microseconds=1)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
