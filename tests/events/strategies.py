"""Events that every format can carry, for round trips."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from likewise.events import Event
from likewise.events.values import parse_text

_ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda text: parse_text(text) == text)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
MOMENTS = st.datetimes(datetime(1900, 1, 2), datetime(2200, 1, 1), timezones=_ZONES)
VALUES = st.one_of(
    _TEXT,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    MOMENTS,
)
TAGS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def events(draw: st.DrawFn) -> Event:
    """An event with at least one tuple, stamped or not, instantaneous or not."""
    attributes = draw(st.dictionaries(NAMES, st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=5))
    start = draw(st.none() | MOMENTS)
    length = draw(st.timedeltas(timedelta(0), timedelta(days=400)))
    end = None if start is None else start.astimezone(UTC) + length
    theme = draw(st.lists(TAGS, max_size=3))
    return Event.of(attributes, id=draw(NAMES), theme=theme, time=start, end=end)


def content(event: Event) -> tuple[object, ...]:
    """What a round trip must keep: everything but the order of attributes; 1, 1.0 and True differ."""
    typed = {name: [(type(value), value) for value in values] for name, values in event.attributes.items()}
    return event.id, typed, event.theme, event.start, event.end
