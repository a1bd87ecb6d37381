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


@pytest.mark.parametrize(
    "text",
    [
        *("- a", "tme: ts", "time: [1]", "time: {a: b}", "attributes: 7", "{", "zone: Mars"),
        *("constants: {a: [1]}", "{time: a, zone: {b: UTC}}"),
    ],
)
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


MAKERS = [
    {"deviceId": "n1", "ts": 1_772_355_600_000, "temp": 21.5},
    {"geraet": "s1", "zeitpunkt": "2026-03-01T09:01:00Z", "wert": 3},
    {"sensor": "w1", "_time": 1_772_355_720, "level": 7},
    {"meldung": "x", "kopf": {"zeitstempel": "2026-03-01 09:03"}},
]


def test_each_maker_may_have_a_time_of_its_own() -> None:
    mapping = guess_mapping(MAKERS)
    assert mapping.plain() == {"time": ["_time", "ts", "zeitpunkt", "kopf.zeitstempel"]}
    assert str(mapping).startswith("time = _time or ts or zeitpunkt or kopf.zeitstempel, ")
    starts = [mapping.event(record, default_id="-").start for record in MAKERS]
    assert starts == [(1_772_355_600 + 60 * minute) * SECOND for minute in range(4)]
    assert mapping.event(MAKERS[3], default_id="-").tuples == (("meldung", "x"),)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        # Fields besides the time are attributes, also in a record without a time.
        ([{"ts": 1, "serviced": "2020-01-01T00:00:00Z"}, {"ts": None, "serviced": "2020-01-01T00:00:00Z"}], "ts"),
        ([{"ts": 1, "x": 1}, {"x": 1}], "ts"),
        ([{"ts": 1, "created": 5}, {"created": 5, "x": 1}], ["ts", "created"]),
        ([{"ts": 1, "x": 1}, {"gesehen": "2026-03-01T09:01:00Z"}], ["ts", "gesehen"]),
    ],
)
def test_times_are_looked_for_until_every_record_has_one(records: list[dict[str, object]], expected: object) -> None:
    assert guess_mapping(records).plain()["time"] == expected


def test_ids_of_several_makers_must_differ_among_themselves() -> None:
    assert guess_mapping([{"id": "a", "x": 1}, {"uuid": "b", "x": 1}]).plain() == {"id": ["id", "uuid"]}
    assert guess_mapping([{"id": "a", "x": 1}, {"uuid": "a", "x": 1}]).plain() == {"id": "id"}


def test_the_first_field_that_says_something_counts() -> None:
    mapping = RecordMapping(id=["a", "b"], time=["t", "u"])
    event = mapping.event({"a": "", "b": 7, "t": None, "u": 2, "x": 1}, default_id="-")
    assert (event.id, event.start, event.tuples) == ("7", 2 * SECOND, (("x", 1),))
    with pytest.raises(InputError, match="t 'soon' is not"):
        mapping.event({"t": "soon", "u": 2, "x": 1}, default_id="-")


def test_every_maker_may_have_a_clock_of_its_own(tmp_path: Path) -> None:
    mapping = RecordMapping(
        time=["ts", "zeit", "at"], zone={"zeit": "Europe/Berlin", "*": "+03:00"}, time_format={"zeit": "%d.%m.%Y %H:%M"}
    )
    mapping.save(tmp_path / "m.yaml")
    again = RecordMapping.load(tmp_path / "m.yaml")
    assert again.plain() == mapping.plain()
    lines = b'{"zeit": "01.03.2026 10:00", "x": 1}\n{"at": "2026-03-01 12:00", "x": 1}\n{"ts": 1772355600, "x": 1}\n'
    nine = 1_772_355_600 * SECOND
    assert [event.start for event in read_events(io.BytesIO(lines), mapping=again)] == [nine, nine, nine]
    table = b"x,zeit,at,ts\n1,01.03.2026 10:00,,\n1,,2026-03-01 12:00,\n1,,,1772355600\n"
    assert [event.start for event in read_events(io.BytesIO(table), format="csv", mapping=again)] == [nine, nine, nine]


def test_a_table_needs_one_of_several_columns() -> None:
    mapping = RecordMapping(id=["no", "nr"], time=["ts", "zeit"], zone={"zeit": "Europe/Berlin"})
    [event] = read_events(io.BytesIO(b"nr,zeit,x\n7,1970-01-01 02:00,1\n"), format="csv", mapping=mapping)
    assert (event.id, event.start, event.tuples) == ("7", 3600 * SECOND, (("x", 1),))
    with pytest.raises(BuildError, match="no column 'ts' or 'zeit'"):
        list(read_events(io.BytesIO(b"nr,x\n7,1\n"), format="csv", mapping=mapping))
    with pytest.raises(InputError, match="no and nr are empty"):
        list(read_events(io.BytesIO(b"no,nr,ts,x\n,,1,1\n"), format="csv", mapping=mapping))
    with pytest.raises(InputError, match="ts 'soon' is not"):
        list(read_events(io.BytesIO(b"no,ts,zeit,x\n1,soon,2026-03-01,1\n"), format="csv", mapping=mapping))


@pytest.mark.parametrize("many", [3, 3000])
def test_a_guess_grows_with_the_feed(many: int) -> None:
    """A maker whose records come later is recognised, in small blocks and in the compiled reader."""
    north = [f'{{"ts": {1_772_355_600 + at}, "temp": {at % 7}}}' for at in range(many)]
    south = [f'{{"zeitpunkt": "2026-03-01T09:00:{at % 60:02}Z", "wert": {at % 7}}}' for at in range(many)]
    west = [f'{{"kopf": {{"zeit": {1_772_355_600 + at}}}, "wert": {at % 7}}}' for at in range(many)]
    lines = "\n".join([*north, '{"temp": 3}', *south, *west, *north])
    guessed: list[RecordMapping] = []
    stream = _Slow(lines.encode(), 80 if many < 10 else 40_000)
    events = list(read_events(stream, format="jsonl", on_mapping=guessed.append))  # type: ignore[arg-type]
    assert len(events) == 4 * many + 1
    assert [at for at, event in enumerate(events) if event.start is None] == [many]
    times = [mapping.plain()["time"] for mapping in guessed]
    assert times == ["ts", ["ts", "zeitpunkt"], ["ts", "zeitpunkt", "kopf.zeit"]]
    assert {name for event in events for name, _ in event.tuples} == {"temp", "wert"}


class _Slow(io.BytesIO):
    """Returns a few bytes at a time, like a pipe."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or -1, self._size))


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (["16.11.2026 08:00", "17.11.2026 09:30"], "%d.%m.%Y %H:%M"),
        (["16.11.2026, 08:00:01"], "%d.%m.%Y, %H:%M:%S"),
        (["11/16/2026 8:05 AM", "1/2/2026 1:15 PM"], "%m/%d/%Y %I:%M %p"),
        (["03/04/2026 08:00", "16/11/2026 08:00"], "%d/%m/%Y %H:%M"),
        (["10/Oct/2000:13:55:36 -0700"], "%d/%b/%Y:%H:%M:%S %z"),
        (["Mon, 16 Nov 2026 08:00:00 +0100"], "%a, %d %b %Y %H:%M:%S %z"),
        (["2026/11/16 08:00:00"], "%Y/%m/%d %H:%M:%S"),
        (["03/04/2026 08:00", "05/06/2026 08:00"], None),
        (["2026-11-16 08:00", "2026-11-16T09:00Z"], None),
        (["soon", "later"], None),
    ],
)
def test_local_times_are_read_where_there_is_no_doubt(written: list[str], form: str | None) -> None:
    mapping = guess_mapping([{"time": text, "temp": 1} for text in written])
    assert mapping.plain().get("time_format") == form
    if form is not None:
        assert all(mapping.event({"time": text, "temp": 1}, default_id="e").start is not None for text in written)


def test_makers_with_clocks_of_their_own_are_guessed_together() -> None:
    mapping = guess_mapping([{"ts": 1700000000, "t": 1}, {"zeit": "16.11.2026 08:00", "t": 2}])
    assert mapping.plain() == {"time": ["ts", "zeit"], "time_format": {"zeit": "%d.%m.%Y %H:%M"}}


def test_a_table_with_semicolons_may_have_decimal_commas(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "Zeit;Feuchte;Notiz\n16.11.2026 08:00;23,5;ok\n16.11.2026 08:10;1.234,5;1,2 mm\n16.11.2026 08:20;7;\n"
    )
    seen: list[RecordMapping] = []
    events = list(read_events(table, on_mapping=seen.append))
    assert [event.attributes["Feuchte"] for event in events] == [[23.5], [1234.5], [7]]
    assert events[1].attributes["Notiz"] == ["1,2 mm"]
    saved = tmp_path / "m.yaml"
    seen[-1].save(saved)
    assert [event.tuples for event in read_events(table, mapping=RecordMapping.load(saved))] == [
        e.tuples for e in events
    ]


@pytest.mark.parametrize("form", ["%Q", "%d.%m.%Y %", "%H:%M", "%Y-%Y", "noon"])
def test_a_time_format_without_a_year_or_sense_is_refused_when_built(form: str) -> None:
    with pytest.raises(BuildError):
        RecordMapping(time="t", time_format=form)


def test_a_unit_of_time_is_named_as_such() -> None:
    assert RecordMapping(time="at", time_unit="ms") == RecordMapping(time="at", time_format="ms")
    with pytest.raises(BuildError, match="no unit 'minutes'"):
        RecordMapping(time="at", time_unit="minutes")
    with pytest.raises(BuildError, match="two names of one thing"):
        RecordMapping(time="at", time_unit="s", time_format="ms")


def test_a_format_of_another_language_is_told_apart() -> None:
    with pytest.raises(BuildError, match="no year") as error:
        RecordMapping(time="at", time_format="dd.MM.yyyy")
    assert "codes begin with %" in str(error.value)


def test_names_that_end_as_times_do_are_times() -> None:
    assert guess_mapping([{"effectiveDateTime": 1_700_000_000, "x": 1}]).plain() == {"time": "effectiveDateTime"}
    both = [{"reading_timestamp": "2026-11-16 08:00", "ts": 1, "x": 1}]
    assert guess_mapping(both).plain() == {"time": "ts"}


HALVES = [
    ({"date": "2026-11-16", "time": "08:00"}, "date+time", None),
    ({"Datum": "16.11.2026", "Uhrzeit": "08:00:00"}, "Datum+Uhrzeit", "%d.%m.%Y %H:%M:%S"),
    ({"day": "16/11/2026", "clock": "8:00"}, "day+clock", "%d/%m/%Y %H:%M"),
    ({"Date": "11/16/2026", "Time": "8:00 AM"}, "Date+Time", "%m/%d/%Y %I:%M %p"),
    ({"Messdatum": "16.11.2026", "Messzeit": "08:00"}, "Messdatum+Messzeit", "%d.%m.%Y %H:%M"),
    ({"visit": {"date": "2026-11-16", "time": "09:00+01:00"}}, "visit.date+visit.time", None),
    ({"date": "2026-11-16", "from": "08:00", "to": "06:00"}, "date+from", None),
    ({"date": "2026-11-16", "time": "08:00", "timeout": "00:30", "born_date": "1980-01-01"}, "date+time", None),
    ({"date": "16-Nov-2026", "time": "08.00"}, "date+time", "%d-%b-%Y %H.%M"),
]


@pytest.mark.parametrize(("halves", "time", "form"), HALVES)
def test_a_date_and_a_time_of_day_are_one_time(halves: dict[str, object], time: str, form: str | None) -> None:
    """In JSON and in a table; fields with other names stay attributes."""
    mapping = guess_mapping([{**halves, "t": 1}])
    settings = mapping.plain()
    assert (settings["time"], settings.get("time_format"), settings.get("end")) == (time, form, None)
    event = mapping.event({**halves, "t": 1}, default_id="-")
    assert event.start == 1_794_816_000 * SECOND
    others = {name for name in halves if name not in time.replace("visit.", "").split("+") and name != "visit"}
    assert {name for name, _ in event.tuples} == {*others, "t"}
    if "visit" not in halves:
        table = f"{';'.join(halves)};t\n{';'.join(map(str, halves.values()))};1\n"
        [row] = read_events(io.BytesIO(table.encode()), format="csv")
        assert (row.start, {name for name, _ in row.tuples}) == (event.start, {*others, "t"})


@pytest.mark.parametrize(
    "record",
    [
        {"date": "2026-11-16", "opens": "08:00"},  # a date alone would be midnight
        {"date": "03/04/2026", "time": "18:05"},  # March or April
        {"birthdate": "1980-11-16", "visit_time": "08:00"},
        {"time": "08:00", "x": 1},
    ],
)
def test_where_names_or_order_leave_a_doubt_no_time_is_guessed(record: dict[str, object]) -> None:
    assert "time" not in guess_mapping([record]).plain()


def test_starts_and_ends_may_have_halves_and_whole_times_come_first() -> None:
    halves = {"Start Date": "2026-11-16", "Start Time": "08:00", "End Date": "2026-11-17", "End Time": "01:00"}
    expected = {"time": "Start Date+Start Time", "end": "End Date+End Time"}
    assert guess_mapping([{**halves, "Subject": "x"}]).plain() == expected
    assert guess_mapping([{"ts": 1, "date": "2026-11-16", "time": "08:00"}]).plain() == {"time": "ts"}
    makers = guess_mapping([{"ts": 1, "t": 2}, {"datum": "16.11.2026", "uhrzeit": "08:00", "t": 1}])
    assert makers.plain() == {"time": ["ts", "datum+uhrzeit"], "time_format": {"datum+uhrzeit": "%d.%m.%Y %H:%M"}}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_halves_of_a_time_are_joined_as_the_mapping_says(form: str, tmp_path: Path) -> None:
    """In the zone of the mapping, with daylight saving; with one half the record is bad, with none it has no time."""
    mapping = RecordMapping(time=["d+c", "ts"], time_format={"d+c": "%d.%m.%Y %H:%M"}, zone={"d+c": "Europe/Berlin"})
    mapping.save(tmp_path / "m.yaml")
    mapping = RecordMapping.load(tmp_path / "m.yaml")
    rows = [("25.10.2026", "01:30", ""), ("25.10.2026", "03:30", ""), ("25.10.2026", " ", "1"), ("", "03:30", "1")]
    rows += [("", "", "7"), ("", "", ""), ("25.10.2026", "noon", "1"), ("16.11.2026", "09:00", "1")]
    if form == "csv":
        data = "d;c;ts;x\n" + "".join(f"{d};{c};{ts};1\n" for d, c, ts in rows)
    else:
        data = "".join(f'{{"d": "{d}", "c": "{c}", "ts": "{ts}", "x": 1}}\n' for d, c, ts in rows)
    bad: list[str] = []
    events = list(
        read_events(io.BytesIO(data.encode()), format=form, mapping=mapping, on_error=lambda r: bad.append(r.reason))
    )
    night = 1_792_886_400 * SECOND - 30 * 60 * SECOND  # 01:30 is two hours ahead of UTC, 03:30 one
    assert [event.start for event in events] == [
        night, night + 3 * 3600 * SECOND, 7 * SECOND, None, 1_794_816_000 * SECOND
    ]  # fmt: skip
    assert bad == [
        "c is missing, so d+c is no time",
        "d is missing, so d+c is no time",
        "d+c '25.10.2026 noon' is not of the time format",
    ]
    assert {event.tuples for event in events} == {(("x", 1),)}


def test_a_name_with_a_plus_may_be_that_of_one_field() -> None:
    record = {"Datum+Uhrzeit": "2026-11-16 08:00", "Datum": "x", "t": 1}
    for mapping in (guess_mapping([record]), RecordMapping(time="Datum+Uhrzeit")):
        assert mapping.event(record, default_id="-").start == 1_794_816_000 * SECOND
    table = b"Datum+Uhrzeit,Datum\n2026-11-16 08:00,x\n"
    [event] = read_events(io.BytesIO(table), format="csv", mapping=RecordMapping(time="Datum+Uhrzeit"))
    assert (event.start, event.tuples) == (1_794_816_000 * SECOND, (("Datum", "x"),))
    with pytest.raises(BuildError, match="no column 'time'"):
        list(read_events(io.BytesIO(table), format="csv", mapping=RecordMapping(time="Datum+time")))
    with pytest.raises(InputError, match="d is of type list, not a part of a time"):
        RecordMapping(time="d+t").event({"d": [1], "t": "08:00", "x": 1}, default_id="-")


def test_typed_columns_of_parquet_are_joined(tmp_path: Path) -> None:
    import datetime as dt

    import pyarrow as pa
    import pyarrow.parquet as pq

    day, clock = dt.date(2026, 11, 16), dt.time(8, 0)
    for at, date in enumerate((day, dt.datetime(2026, 11, 16))):
        pq.write_table(pa.table({"date": [date, date], "time": [clock, None], "x": [1, 2]}), tmp_path / f"{at}.parquet")
        bad: list[str] = []
        mapping = RecordMapping(time="date+time")
        [event] = read_events(
            tmp_path / f"{at}.parquet", mapping=mapping, on_error=lambda r, bad=bad: bad.append(r.reason)
        )
        assert (event.start, bad) == (1_794_816_000 * SECOND, ["time is missing, so date+time is no time"])


def test_the_only_field_of_local_timestamps_is_the_time_whatever_its_name() -> None:
    records = [{"Zeitpunkt der Messung": f"01.03.2026 10:0{minute}", "bp": 120 + minute} for minute in range(3)]
    guess = guess_mapping(records)
    assert guess.plain() == {"time": "Zeitpunkt der Messung", "time_format": "%d.%m.%Y %H:%M"}


def test_a_field_of_dates_with_an_unknown_name_is_an_attribute() -> None:
    assert guess_mapping([{"born": "01.03.1960", "ward": "A"}]).plain() == {}
