"""The event model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.events import Event, to_datetime, to_instant

NOON = datetime(2010, 7, 11, 12, tzinfo=UTC)


def test_several_values_are_several_tuples_of_one_name() -> None:
    event = Event.of({"location": ["Johannesburg", "FNB Stadium"], "referee": "Howard Webb"})
    assert event.tuples == (
        ("location", "Johannesburg"),
        ("location", "FNB Stadium"),
        ("referee", "Howard Webb"),
    )
    assert event.attributes == {"location": ["Johannesburg", "FNB Stadium"], "referee": ["Howard Webb"]}


def test_instantaneous_event_ends_when_it_starts() -> None:
    event = Event.of({"a": 1}, time=NOON)
    assert event.span == (to_instant(NOON), to_instant(NOON))
    assert event.time == NOON


def test_interval_keeps_both_ends() -> None:
    event = Event.of({"a": 1}, time=NOON, end=NOON + timedelta(seconds=2))
    assert event.span == (to_instant(NOON), to_instant(NOON) + 2_000_000)


def test_end_before_start_is_refused() -> None:
    with pytest.raises(InputError, match="ends before it starts"):
        Event.of({"a": 1}, time=NOON, end=NOON - timedelta(seconds=1))


def test_unstamped_event_gets_the_time_it_is_given_once() -> None:
    event = Event.of({"a": 1}, id="e")
    with pytest.raises(InputError, match="event 'e' has no time"):
        _ = event.span
    assert event.stamped(5).span == (5, 5)
    assert event.stamped(5).stamped(6).span == (5, 5)


def test_a_theme_is_a_set() -> None:
    assert Event.of({"a": 1}, theme=["x", "y", "x"]).theme == ("x", "y")


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_and_moments_are_one_to_one(moment: datetime) -> None:
    assert to_datetime(to_instant(moment)) == moment


def test_zones_are_taken_into_account() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=2)))
    assert to_instant(there) == to_instant(NOON) == to_instant(NOON.replace(tzinfo=None))
