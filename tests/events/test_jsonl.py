"""JSON lines: what is accepted, what is refused and why."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.strategies import content, events

from likewise.errors import InputError, LikewiseError
from likewise.events import BadRecord, Event, decode_line, decode_lines, encode_line
from likewise.events.formats.jsonl import parse_json
from likewise.events.forms import EventForm


def attributes_of(line: str) -> dict[str, object]:
    return dict(decode_line(line.encode()).attributes)


def test_whole_event_is_read() -> None:
    line = b'{"id":"e1","time":"1970-01-01T00:00:01Z","end":2.5,"theme":["a","b","a"],"attributes":{"x":[1,"y"]}}'
    assert decode_line(line) == Event("e1", (("x", 1), ("x", "y")), ("a", "b"), 1_000_000, 2_500_000)


def test_values_keep_their_type() -> None:
    values = attributes_of('{"attributes":{"a":1,"b":1.0,"c":true,"d":"1","e":"2010-07-11T20:30:00Z"}}')
    assert values == {"a": [1], "b": [1.0], "c": [True], "d": ["1"], "e": [datetime(2010, 7, 11, 20, 30, tzinfo=UTC)]}
    assert [type(value) for (value,) in values.values()] == [int, float, bool, str, datetime]


@pytest.mark.parametrize(
    "text",
    [
        "2010-07-11",
        "20:30",
        "2010-07-11T20:30",
        "2010-07-11 20:30:00Z",
        "2010-13-11T20:30:00Z",
        "T" * 25,
        "0001-01-01T00:00:00+10:00",
        "2010-07-11T20:30:60Z",
        "2010-07-11T20:30:00Z!",
    ],
)
def test_text_that_is_no_whole_timestamp_stays_text(text: str) -> None:
    assert attributes_of(f'{{"attributes":{{"a":"{text}"}}}}') == {"a": [text]}


def test_timestamp_without_a_zone_is_utc() -> None:
    assert attributes_of('{"attributes":{"a":["2010-07-11T20:30:00"]}}') == {
        "a": [datetime(2010, 7, 11, 20, 30, tzinfo=UTC)]
    }


def test_timestamp_is_written_back_with_its_zone() -> None:
    line = b'{"id":"e","attributes":{"a":"2010-07-11T20:30:00+02:00"}}\n'
    assert encode_line(decode_line(line)) == line


def test_nested_objects_are_named_by_their_path() -> None:
    assert attributes_of('{"attributes":{"room":{"no":"101","bed":[{"size":1},{"size":2}]}}}') == {
        "room no": ["101"],
        "room bed size": [1, 2],
    }


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("0", 0),
        ("1.5", 1_500_000),
        ('"1970-01-01T01:00:00+01:00"', 0),
        ('"1970-01-02"', 86_400_000_000),
        ('"1970-01-01T00:00:00.000001"', 1),
        ("null", None),
        ("-1", -1_000_000),
    ],
)
def test_time_is_iso_text_or_seconds(time: str, expected: int | None) -> None:
    event = decode_line(f'{{"time":{time},"attributes":{{"a":1}}}}'.encode())
    assert (event.start, event.end) == (expected, expected)


def test_missing_id_is_made_of_file_and_line() -> None:
    lines = [b'{"attributes":{"a":1}}', b"", b'{"id":null,"attributes":{"a":2}}']
    assert [event.id for event in decode_lines(lines, source="/some/where/x.jsonl")] == ["x.jsonl:1", "x.jsonl:3"]


BAD = {
    b"{": "not valid JSON",
    b'{"attributes":{"a":1}} x': "not valid JSON",
    b'{"attributes":{"a":NaN}}': "not valid JSON",
    b'{"attributes":{"a":Infinity}}': "not valid JSON",
    b'{"attributes":{"a":1e999}}': "not valid JSON: Number out of range",
    b'{"attributes":{"a":"\xff"}}': "not valid UTF-8 at byte 21",
    b'{"attributes":{"a":"\\ud800"}}': "not valid JSON",
    b"\x00\x01": "not valid",
    b"[1]": "not an event but a JSON array",
    b"null": "not an event but a JSON null",
    b"7": "not an event but a JSON number",
    b"{}": "no attributes",
    b'{"attributes":{}}': "no attributes",
    b'{"attributes":{"a":[]}}': "no attributes",
    b'{"attributes":[1]}': "attributes is a JSON array",
    b'{"attributes":{"a":null}}': "no attributes",
    b'{"attributes":{"a":[[1]]}}': "list inside a list",
    b'{"attributes":{"":1}}': "empty name",
    b'{"attributes":{"a":9223372036854775808}}': "integer beyond 64 bits",
    b'{"attributes":{"a":' + b"9" * 5000 + b"}}": "",
    b'{"id":5,"attributes":{"a":1}}': "id is a JSON number",
    b'{"theme":"energy","attributes":{"a":1}}': "theme is not a list",
    b'{"theme":[""],"attributes":{"a":1}}': "theme is not a list",
    b'{"theme":[1],"attributes":{"a":1}}': "theme is not a list",
    b'{"themes":[],"attributes":{"a":1}}': "unknown field 'themes'",
    b'{"time":"soon","attributes":{"a":1}}': "time 'soon' is not an ISO 8601 time",
    b'{"time":true,"attributes":{"a":1}}': "time is of type bool",
    b'{"time":1e30,"attributes":{"a":1}}': "is out of range",
    b'{"time":1e300,"attributes":{"a":1}}': "out of range",
    b'{"time":2e302,"attributes":{"a":1}}': "out of range",
    b'{"time":"0001-01-01T00:00:00+10:00","attributes":{"a":1}}': "out of range",
    b'{"time":2,"end":1,"attributes":{"a":1}}': "ends before it starts",
    b'{"end":1,"attributes":{"a":1}}': "an end but no time",
    b'{"attributes":{"a":"' + b"x" * 1_000_000 + b'"}}': "a text of 1,000,000 characters",
    b'{"attributes":{"' + b"x" * 1_000_000 + b'":1}}': "a text of 1,000,000 characters",
    b'{"id":"' + b"x" * 1_000_000 + b'","attributes":{"a":1}}': "id has a text of 1,000,000 characters",
    b'{"attributes":' + b'{"a":' * 40 + b"1" + b"}" * 41: "nested deeper than 32",
    b'{"attributes":' + b'{"a":' * 100_000: "nested too deeply",
    b"[" * 100_000: "nested too deeply",
    b'"' + b"x" * (9 << 20) + b'"': "longer than 8 MiB",
}


@pytest.mark.parametrize(("line", "reason"), BAD.items(), ids=[line[:40].decode("latin-1") for line in BAD])
def test_bad_line_is_refused_with_file_line_and_reason(line: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=r"^x\.jsonl:7: ") as caught:
        decode_line(line, source="x.jsonl", number=7)
    assert reason in caught.value.message


def test_misspelt_field_is_recognised() -> None:
    with pytest.raises(InputError, match="did you mean 'attributes'"):
        decode_line(b'{"atributes":{"a":1}}')


def test_blank_line_alone_is_no_event() -> None:
    with pytest.raises(InputError, match="blank"):
        decode_line(b"  \n")


def test_good_records_go_on_after_bad_ones() -> None:
    bad: list[BadRecord] = []
    lines = [line for worst in BAD for line in (worst, b'{"attributes":{"a":1}}')]
    assert len(list(decode_lines(lines, source="x", on_error=bad.append))) == len(BAD)
    assert [record.line for record in bad] == list(range(1, 2 * len(BAD), 2))
    assert max(len(record.raw) for record in bad) == 16_384


def test_second_use_of_an_id_is_refused() -> None:
    lines = [b'{"id":"e","attributes":{"a":1}}', b'{"id":"e","attributes":{"a":2}}']
    with pytest.raises(InputError, match="id 'e' was used before"):
        list(decode_lines(lines, seen=set()))
    assert len(list(decode_lines(lines))) == 2


@given(events())
def test_event_survives_writing_and_reading(event: Event) -> None:
    assert content(decode_line(encode_line(event))) == content(event)


@given(events())
def test_second_writing_gives_the_same_bytes(event: Event) -> None:
    line = encode_line(event)
    assert encode_line(decode_line(line)) == line


@given(events(), st.booleans())
def test_the_fast_and_the_slow_look_agree(event: Event, zulu: bool) -> None:
    line = encode_line(event) if zulu else re.sub(rb'(\d)Z"', rb'\1"', encode_line(event))
    slow = EventForm().event(parse_json(line), default_id="x")
    assert content(decode_line(line)) == content(slow)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, "\ud800", "x" * 65_537])
def test_value_that_json_cannot_carry_is_refused_on_writing(value: float | str) -> None:
    with pytest.raises(InputError):
        encode_line(Event("e", (("a", value),)))


def test_event_without_attributes_is_refused_on_writing() -> None:
    with pytest.raises(InputError, match="no attributes"):
        encode_line(Event("e"))


def test_empty_name_is_refused_on_writing() -> None:
    with pytest.raises(InputError, match="empty name"):
        encode_line(Event("e", (("", 1),)))


def test_odd_zones_are_written_as_utc() -> None:
    moment = datetime(2020, 1, 1, tzinfo=timezone(timedelta(seconds=3661)))
    assert decode_line(encode_line(Event("e", (("a", moment),)))).tuples == (("a", moment),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "time", "end", "theme", "attributes", "x"), JSON))
GARBAGE = (
    st.binary(max_size=80) | NEARLY.map(msgspec.json.encode) | st.text(alphabet='{}[]":,1eabtN\\u').map(str.encode)
)


def check_only_own_errors(data: bytes) -> None:
    try:
        event = decode_line(data)
    except LikewiseError:
        return
    assert content(decode_line(encode_line(event))) == content(event)


@settings(max_examples=200)
@given(GARBAGE)
def test_nothing_but_own_errors_escapes(data: bytes) -> None:
    check_only_own_errors(data)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(GARBAGE)
def test_nothing_but_own_errors_escapes_at_length(data: bytes) -> None:
    check_only_own_errors(data)
