"""Durations: `30min`, `30 minutes`, `1 hour 30 minutes`, `1h30min`."""

from __future__ import annotations

import re
from decimal import Decimal

from likewise.errors import BuildError
from likewise.language.model import Duration

LONGEST: Duration = 2**62
"""About 146,000 years; longer ones would overflow when added to an instant."""

_SIZES: tuple[tuple[str, Duration], ...] = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)
_SHORT = {
    "week": ("w", "wk"),
    "day": ("d",),
    "hour": ("h", "hr"),
    "minute": ("min", "m"),
    "second": ("s", "sec"),
    "millisecond": ("ms", "msec"),
    "microsecond": ("us", "µs", "μs"),
}
UNITS: dict[str, Duration] = {
    spelling: size
    for name, size in (("week", 7 * 86_400_000_000), *_SIZES)
    for spelling in (name, name + "s", *_SHORT[name], *(short + "s" for short in _SHORT[name] if len(short) > 1))
}

PART = re.compile(r"[^\S\n]*+([0-9]++(?:\.[0-9]++)?)[^\S\n]*+([^\W\d_]++)")


def length(number: str, unit: str) -> Duration:
    """One part of a duration in microseconds; very long ones become `LONGEST + 1`.

    >>> length("1.5", "h")
    5400000000
    """
    return LONGEST + 1 if len(number) > 30 else round(Decimal(number) * UNITS[unit])


def parse_duration(text: str) -> Duration:
    """Parse a duration as written in patterns.

    >>> parse_duration("1 hour 30 minutes")
    5400000000
    """
    total = at = 0
    while (match := PART.match(text, at)) is not None and match[2] in UNITS:
        total, at = total + length(match[1], match[2]), match.end()
    if not at or text[at:].strip() or total > LONGEST:
        raise BuildError(f"{text!r} is not a length of time", hint="write it like `30 s`, `5 minutes` or `1 hour`")
    return total


def write_duration(duration: Duration) -> str:
    """A duration in words, from days to microseconds.

    >>> write_duration(5_400_000_000)
    '1 hour 30 minutes'
    """
    if not 0 <= duration <= LONGEST:
        raise BuildError(f"a duration of {duration} microseconds cannot be written")
    words = []
    for name, size in _SIZES:
        count, duration = divmod(duration, size)
        if count:
            words.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " ".join(words) or "0 seconds"
