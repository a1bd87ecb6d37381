"""Mappings of flat records: given, guessed, saved; and the one rule for times."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from likewise.errors import BuildError, InputError
from likewise.events import RecordMapping, TimeRule, guess_mapping, parse_instant, read_events

SECOND = 1_000_000


def test_flat_json_is_read_with_a_guessed_mapping() -> None:
    guessed: list[RecordMapping] = []
    lines = b'{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5, "note": null}\n'
    [event] = read_events(io.BytesIO(lines), name="x.jsonl", on_mapping=guessed.append)
    assert event.tuples == (("deviceId", "t1"), ("temp", 21.5))
    assert (event.id, event.start) == ("x.jsonl:1", 1_700_000_000 * SECOND)
    assert [mapping.plain() for mapping in guessed] == [{"time": "ts"}]


def test_events_in_their_own_form_need_no_mapping() -> None:
    guessed: list[RecordMapping] = []
    assert list(read_events(io.BytesIO(b'{"id":"a","attributes":{"x":1}}'), on_mapping=guessed.append))
    assert not guessed
    with pytest.raises(InputError, match="unknown field 'atributes'"):
        list(read_events(io.BytesIO(b'{"id":"a","atributes":{"x":1}}')))


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([{"@timestamp": "2026-01-01T00:00:00Z", "msg": "x"}], {"time": "@timestamp"}),
        ([{"event_id": 1, "x": 1}, {"event_id": 2, "x": 1}], {"id": "event_id"}),
        ([{"id": 1, "x": 1}, {"id": 1, "x": 2}], {}),
        ([{"start": 1, "end": 2, "x": 1}], {"time": "start", "end": "end"}),
        ([{"time": "noon", "x": 1}], {}),
        ([{"seen": "2026-01-01T00:00:00Z", "x": 1}], {"time": "seen"}),
        ([{"ts": 1, "tags": ["a"], "x": 1}], {"time": "ts", "theme": "tags"}),
    ],
)
def test_names_and_values_suggest_a_mapping(records: list[dict[str, object]], expected: dict[str, object]) -> None:
    assert guess_mapping(records).plain() == expected


def test_nested_fields_are_named_by_their_path() -> None:
    mapping = RecordMapping(id="meta.key", time="meta.at", attributes={"device.room": "room", "v": "value"})
    record = {"meta": {"key": 7, "at": 2}, "device": {"room": ["a", "b"], "x": 1}, "v": 3}
    event = mapping.event(record, default_id="-")
    assert (event.id, event.start) == ("7", 2 * SECOND)
    assert event.tuples == (("room", "a"), ("room", "b"), ("value", 3))
    rest = RecordMapping(id="meta.key", time="meta.at").event(record, default_id="-")
    assert rest.tuples == (("device room", "a"), ("device room", "b"), ("device x", 1), ("v", 3))


def test_a_saved_mapping_is_loaded_again(tmp_path: Path) -> None:
    mapping = RecordMapping(
        id="a", time="b", theme=["x"], attributes={"c": "see"}, constants={"k": "v"}, zone="UTC", time_format="%Y"
    )
    mapping.save(tmp_path / "m.yaml")
    assert RecordMapping.load(tmp_path / "m.yaml").plain() == mapping.plain()


@pytest.mark.parametrize("text", ["- a", "tme: ts", "time: [a]", "attributes: 7", "{", "zone: Mars"])
def test_a_bad_mapping_file_is_our_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises((InputError, BuildError)):
        RecordMapping.load(tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600 * SECOND),
        ("2026-01-01 01:00:00+01:00", 1_767_225_600 * SECOND),
        ("20260101", 1_767_225_600 * SECOND),
        ("2026-01-01", 1_767_225_600 * SECOND),
        ("1767225600", 1_767_225_600 * SECOND),
        (1_767_225_600_000, 1_767_225_600 * SECOND),
        (" 1767225600.5 ", 1_767_225_600 * SECOND + 500_000),
        ("1512123111230", 1_512_123_111_230_000),
        (1_767_225_600_000_000, 1_767_225_600 * SECOND),
        (1_767_225_600_000_000_000, 1_767_225_600 * SECOND),
        (20_260_101, 20_260_101 * SECOND),
        (-1.5, -1_500_000),
    ],
)
def test_one_rule_for_times(value: object, expected: int) -> None:
    assert parse_instant("time", value) == expected


@pytest.mark.parametrize("value", ["10:30", "T10:30", "noon", "", True, None, float("nan"), 1e40, "2026-13-01", "EST"])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(InputError):
        parse_instant("time", value)


def test_a_format_and_a_zone_of_its_own() -> None:
    rule = TimeRule("%d.%m.%Y %H:%M", "Europe/Dublin")
    assert rule.instant("t", "01.07.2026 01:00") == parse_instant("t", "2026-07-01T00:00:00Z")
    assert TimeRule(zone="+02:00").instant("t", "1970-01-01T02:00:00") == 0
    with pytest.raises(InputError, match="not of the time format"):
        rule.instant("t", "2026-07-01")
    with pytest.raises(BuildError, match="no time zone"):
        TimeRule(zone="Mars/Olympus")
