"""The event: an id, a time span, a theme, and attributes in the producer's own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from likewise.errors import InputError

Value: TypeAlias = str | bool | int | float | datetime
"""An attribute's value; text is a term, other types are kept as they are."""

Instant: TypeAlias = int
"""A point in event time: microseconds since 1970-01-01 UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_instant(moment: datetime) -> Instant:
    """Microseconds since the epoch; a datetime without a time zone is UTC.

    >>> to_instant(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = aware - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_datetime(instant: Instant) -> datetime:
    """The datetime of an instant, in UTC.

    >>> to_datetime(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return _EPOCH + timedelta(microseconds=instant)


def clock_text(instant: Instant) -> str:
    """An instant as readable text in UTC; as a number if it is outside the calendar.

    >>> clock_text(1_500_000), clock_text(10**18)
    ('1970-01-01 00:00:01.5', '1000000000000000000')
    """
    try:
        return to_datetime(instant).strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    except (OverflowError, ValueError):
        return str(instant)


def iso_text(instant: Instant) -> str:
    """An instant as ISO 8601 text; as a number if it is outside the calendar.

    >>> iso_text(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    try:
        return to_datetime(instant).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError):
        return str(instant)


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event; an attribute with several values has several tuples of the same name.

    `start` and `end` are equal for an instantaneous event and None until the event is stamped.

    >>> event = Event.of({"type": "parking", "slot": [1, 2]}, id="e1")
    >>> event.tuples
    (('type', 'parking'), ('slot', 1), ('slot', 2))
    >>> event.attributes
    {'type': ['parking'], 'slot': [1, 2]}
    """

    id: str
    tuples: tuple[tuple[str, Value], ...] = ()
    theme: tuple[str, ...] = ()
    start: Instant | None = None
    end: Instant | None = None

    @classmethod
    def of(
        cls,
        attributes: Mapping[str, Any],
        *,
        id: str = "",
        theme: Iterable[str] | str = (),
        time: datetime | str | float | None = None,
        end: datetime | timedelta | str | float | None = None,
    ) -> Event:
        """Build an event from ordinary Python values, or from the documented JSON form.

        Values may be text, numbers (also decimal ones and those of NumPy), booleans, datetimes, durations (in seconds)
        and lists of them; None means absent. Times may be datetimes, ISO 8601 text or numbers since 1970; `end` may be
        a duration.

        >>> Event.of({"id": "e1", "time": "1970-01-01T00:00:01Z", "attributes": {"slot": 1}}, end=timedelta(seconds=2))
        Event(id='e1', tuples=(('slot', 1),), theme=(), start=1000000, end=3000000)
        """
        from likewise.events.building import event_of

        return event_of(attributes, id=id, theme=theme, time=time, end=end)

    @property
    def attributes(self) -> dict[str, list[Value]]:
        """Values by attribute, in order of first appearance."""
        grouped: dict[str, list[Value]] = {}
        for name, value in self.tuples:
            grouped.setdefault(name, []).append(value)
        return grouped

    @property
    def time(self) -> datetime | None:
        """The start as a datetime; None if the event is not stamped."""
        return None if self.start is None else to_datetime(self.start)

    @property
    def span(self) -> tuple[Instant, Instant]:
        """Start and end of a stamped event."""
        if self.start is None:
            raise InputError(f"event {self.id!r} has no time", hint="give it a time, or publish it through an engine")
        return self.start, self.start if self.end is None else self.end

    def stamped(self, now: Instant) -> Event:
        """This event, with `now` as its time if it has none."""
        if self.start is not None:
            return self
        return Event(self.id, self.tuples, self.theme, now, now)
