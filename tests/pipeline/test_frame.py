"""Events become columns and come back the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.events import BadRecord, Event, value_of_text
from likewise.pipeline.events.frame import batch_of, events_of, written

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=10)
VALUES = st.one_of(
    TEXT,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),
)
EVENTS = st.builds(
    lambda key, pairs, theme, start, length: Event(
        key, tuple(pairs), tuple(dict.fromkeys(theme)), start, None if start is None else start + length
    ),
    TEXT,
    st.lists(st.tuples(TEXT, VALUES), min_size=1, max_size=4),
    st.lists(TEXT, max_size=3),
    st.one_of(st.none(), st.integers(0, 2**50)),
    st.integers(0, 1000),
)


@settings(deadline=None)
@given(st.lists(EVENTS, max_size=5))
def test_events_survive_the_way_through_columns(events: list[Event]) -> None:
    """Types, order of tuples, themes and times are the same on the other side."""
    back = list(events_of(batch_of(events)))
    assert back == events
    assert [[type(value) for _, value in event.tuples] for event in back] == [
        [type(value) for _, value in event.tuples] for event in events
    ]


@pytest.mark.parametrize("value", [0, -7, 1.0, -0.5, 1e300, True, False, "true", "12", ""])
def test_a_value_keeps_its_type(value: object) -> None:
    back = value_of_text(*written(value))
    assert back == value
    assert type(back) is type(value)


def test_what_does_not_read_as_its_kind_is_text() -> None:
    assert value_of_text("warm", "number") == "warm"
    assert value_of_text("tomorrow", "time") == "tomorrow"
    assert value_of_text("inf", "number") == "inf"


def test_flaws_follow_the_events_in_a_column_of_their_own() -> None:
    batch = batch_of([Event.of({"a": 1}, id="e1")], [BadRecord("f.jsonl", 3, "not JSON", b"\xff{")])
    assert batch.column("id").to_pylist() == ["e1", None]
    assert batch.column("flaw").to_pylist() == [
        None,
        {"source": "f.jsonl", "line": 3, "reason": "not JSON", "record": "\\xff{"},
    ]
    assert [event.id for event in events_of(batch)] == ["e1"]
