"""How the fields of a CloudEvent become tuples, and back."""

from __future__ import annotations

import base64
import io
import json

import pytest

from likewise.errors import InputError
from likewise.events import Event, read_events, write_events

BASE = {"specversion": "1.0", "id": "1", "source": "/lot/7", "type": "org.example.parked"}


def read(**fields: object) -> Event:
    (event,) = read_events(io.BytesIO(json.dumps(BASE | fields).encode()), format="cloudevents")
    return event


def test_context_extensions_and_data_are_tuples() -> None:
    event = read(
        subject="slot 4",
        time="1970-01-01T00:00:01Z",
        traceparent="00-ab",
        priority=3,
        theme="transport, city%2C parking,",
        datacontenttype="application/json",
        dataschema="urn:schema",
        data={"free": True, "lot": {"name": "North"}, "slots": [1, 2], "note": None, "more": [{"x": None}]},
    )
    assert event == Event(
        "1",
        (
            ("type", "org.example.parked"),
            ("source", "/lot/7"),
            ("subject", "slot 4"),
            ("traceparent", "00-ab"),
            ("priority", 3),
            ("free", True),
            ("lot name", "North"),
            ("slots", 1),
            ("slots", 2),
        ),
        ("transport", "city, parking"),
        1_000_000,
        1_000_000,
    )


def test_end_time_is_an_extension() -> None:
    assert read(time="1970-01-01T00:00:01Z", endtime="1970-01-01T00:00:03Z").span == (1_000_000, 3_000_000)


@pytest.mark.parametrize("data", ["free", 5, True])
def test_data_that_is_no_object_is_one_tuple(data: object) -> None:
    assert read(data=data).attributes["data"] == [data]


def test_json_in_base64_is_read_and_other_binary_left_out() -> None:
    encoded = base64.b64encode(b'{"free":3}').decode()
    assert read(data_base64=encoded).attributes["free"] == [3]
    assert set(read(data_base64=encoded, datacontenttype="image/png").attributes) == {"type", "source"}


def test_null_context_attribute_is_absent() -> None:
    assert set(read(subject=None, time=None, data=None).attributes) == {"type", "source"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"specversion": "0.3"}, "specversion is '0.3'"),
        ({"specversion": None}, "specversion is 'None'"),
        ({"id": ""}, "id is missing"),
        ({"id": 5}, "id is missing or not text"),
        ({"source": None}, "source is missing"),
        ({"type": ["a"]}, "type is missing"),
        ({"subject": 5}, "subject is not text"),
        ({"time": "noon"}, "time 'noon' is not"),
        ({"theme": ["a"]}, "theme is not text"),
        ({"extension": {"a": 1}}, "attribute 'extension' is of type dict"),
        ({"data_base64": "*"}, "data_base64 is not base64"),
        ({"data_base64": 5}, "data_base64 is not base64"),
        ({"data_base64": "eA=="}, "not valid JSON"),
        ({"data": {"a": [[1]]}}, "list inside a list"),
        ({"data": {"a": "x" * 1_000_000}}, "1,000,000 characters"),
        ({"id": "x" * 70_000}, "id has a text of 70,000 characters"),
        ({"theme": "x" * 70_000}, "theme has a text of 70,000 characters"),
        ({"endtime": "1970-01-01T00:00:01Z"}, "an end but no time"),
    ],
)
def test_bad_cloudevent_is_refused_with_its_reason(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read(**fields)
    assert reason in caught.value.message
    assert caught.value.line == 1


def test_plain_event_is_refused_where_cloudevents_are_asked_for() -> None:
    with pytest.raises(InputError, match="specversion"):
        list(read_events(io.BytesIO(b'{"id":"a","attributes":{"x":1}}'), format="cloudevents"))


def test_same_id_from_two_sources_is_two_events() -> None:
    lines = [json.dumps(BASE | {"source": source}).encode() for source in ("/a", "/b", "/a")]
    assert len(list(read_events(io.BytesIO(b"\n".join(lines[:2]))))) == 2
    with pytest.raises(InputError, match="used before"):
        list(read_events(io.BytesIO(b"\n".join(lines))))


def test_written_event_has_what_cloudevents_require() -> None:
    out = io.BytesIO()
    write_events(
        [Event.of({"slot": 4}, id="1"), Event.of({"type": "parked", "source": "/s"}, id="2")], out, format="cloudevents"
    )
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first == {
        "specversion": "1.0",
        "id": "1",
        "source": "likewise",
        "type": "likewise.event",
        "datacontenttype": "application/json",
        "data": {"slot": 4},
    }
    assert (second["type"], second["source"], second["data"]) == ("parked", "/s", {})


def test_event_without_an_id_is_refused_on_writing() -> None:
    with pytest.raises(InputError, match="without an id"):
        write_events([Event.of({"a": 1})], io.BytesIO(), format="cloudevents")
