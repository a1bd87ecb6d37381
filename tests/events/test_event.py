"""The event model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
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


def test_numbers_and_times_of_other_libraries_are_plain_values() -> None:
    event = Event.of(
        {
            "a": np.float32(0.5),
            "b": np.int64(3),
            "c": Decimal("2.50"),
            "d": Decimal(7),
            "e": np.array([1, 2]),
            "f": timedelta(minutes=1),
            "g": np.bool_(True),
            "h": [None, "x"],
            "i": None,
        },
        time="2010-07-11T12:00:00Z",
        end=timedelta(seconds=1),
    )
    assert event.tuples == (
        ("a", 0.5),
        ("b", 3),
        ("c", 2.5),
        ("d", 7),
        ("e", 1),
        ("e", 2),
        ("f", 60.0),
        ("g", True),
        ("h", "x"),
    )
    assert [type(value) for _, value in event.tuples[:4]] == [float, int, float, int]
    assert event.span == (to_instant(NOON), to_instant(NOON) + 1_000_000)
    assert Event.of({"a": 1}, time=np.datetime64("2010-07-11T12:00")).start == to_instant(NOON)


def test_the_documented_form_is_taken() -> None:
    record = {"id": "e1", "time": 2, "end": "1970-01-01T00:00:03Z", "theme": ["x"], "attributes": {"slot": [1, 2]}}
    assert Event.of(record) == Event("e1", (("slot", 1), ("slot", 2)), ("x",), 2_000_000, 3_000_000)
    assert Event.of({"a": 1}, theme="energy policy").theme == ("energy policy",)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"a": None},
        {"a": []},
        {"a": float("nan")},
        {"a": np.float64("inf")},
        {"a": Decimal("NaN")},
        {"a": b"x"},
        {"a": {"b": 1}},
        {"a": [[1]]},
        {"a": object()},
        {"a": 2**70},
        {1: "x"},
        {"": "x"},
        "text",
        None,
        {"attributes": {}},
        {"id": 5, "attributes": {"a": 1}},
        {"time": "noon", "attributes": {"a": 1}},
        {"end": 1, "attributes": {"a": 1}},
    ],
    ids=repr,
)
def test_what_is_no_event_is_refused_with_our_error(attributes: Any) -> None:
    with pytest.raises(InputError):
        Event.of(attributes)
