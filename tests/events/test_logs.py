"""Syslog, logfmt and Avro: records of log files through the same mapping as every other flat record."""

from __future__ import annotations

import io
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from likewise.errors import InputError, MissingError
from likewise.events import BadRecord, Event, RecordMapping, decode_lines, read_events
from likewise.events.formats.logs.logfmt import parse_logfmt
from likewise.events.formats.logs.syslog import parse_syslog

NINE = 1_772_355_600 * 1_000_000
"""2026-03-01T09:00:00Z"""
NOW = datetime(2026, 7, 1, tzinfo=UTC)


def read(text: str | bytes, **options: Any) -> tuple[list[Event], list[BadRecord]]:
    bad: list[BadRecord] = []
    data = text.encode() if isinstance(text, str) else text
    return list(read_events(io.BytesIO(data), name="x.log", on_error=bad.append, **options)), bad


def latest_march() -> int:
    """09:00 on the last first of March, as clocks are now."""
    now = datetime.now(UTC)
    year = now.year if now + timedelta(days=1) >= datetime(now.year, 3, 1, 9, tzinfo=UTC) else now.year - 1
    return int(datetime(year, 3, 1, 9, tzinfo=UTC).timestamp()) * 1_000_000


def test_logfmt_is_known_by_its_look_and_its_time_is_guessed() -> None:
    guessed: list[RecordMapping] = []
    [first, second], bad = read(
        'ts=2026-03-01T09:00:00Z level=warn msg="door open" temp=21.5 alarm\n'
        "\n"
        'level=info msg="no end\n'
        "=7\n"
        "only words here\n"
        "zeit=1772355600 room=007 tag=a tag=b note=\n",
        on_mapping=guessed.append,
    )
    assert (first.id, first.start) == ("x.log:1", NINE)
    assert first.tuples == (("level", "warn"), ("msg", "door open"), ("temp", 21.5), ("alarm", True))
    assert (second.start, second.tuples) == (NINE, (("room", "007"), ("tag", "a"), ("tag", "b")))
    assert [mapping.plain() for mapping in guessed] == [{"time": ["ts", "zeit"]}]
    assert [(letter.line, letter.reason) for letter in bad] == [
        (3, "this quoted text has no end"),
        (4, "a value without a key at '=7'"),
        (5, "the line has no key=value pair"),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r'a="x \"y\" \\ z"', {"a": 'x "y" \\ z'}),
        (r'a="tab\there"', {"a": "tab\there"}),
        (r'a="odd \q escape"', {"a": "odd q escape"}),
        ('a="" b=', {"a": None, "b": None}),
        ("a.b=1 c-d=x@y", {"a.b": 1, "c-d": "x@y"}),
        ("url=http://h/p?q=1", {"url": "http://h/p?q=1"}),
        ("größe=3 ort=Köln", {"größe": 3, "ort": "Köln"}),
        ('n="7"', {"n": "7"}),
    ],
)
def test_values_of_logfmt(line: str, expected: dict[str, object]) -> None:
    assert parse_logfmt(line.encode()) == expected


@pytest.mark.parametrize("line", ['a=b"c', 'a="b"c', '"a"=1', 'a="', "\xff", "   =  "])
def test_what_is_no_logfmt(line: str) -> None:
    with pytest.raises(InputError):
        parse_logfmt(line.encode("latin-1"))


def test_syslog_of_both_kinds_and_of_files() -> None:
    events, bad = read(
        '<165>1 2026-03-01T09:00:00.5Z bms boiler 42 ALARM [at@1 room="2.14" note="a \\"b\\" \\]"][x] too hot\n'
        "<34>Mar  1 09:00:00 gate su[7]: 'su root' failed\n"
        "Mar  1 09:00:00 gate kernel: eth0 down\n"
        "2026-03-01T10:00:00+01:00 gate app: all well\n"
        "<200>Mar  1 09:00:00 gate su: x\n"
        "<34>1 soon gate su - - - x\n"
        "<34>1 - - - - - [broken x\n"
        "nothing of the kind\n"
        "<13>1 - - - - - - \ufeffhello\n"
    )
    assert [event.start for event in events] == [NINE + 500_000, *[latest_march()] * 2, NINE, None]
    assert events[0].attributes == {
        "facility": ["local4"],
        "severity": ["notice"],
        "host": ["bms"],
        "app": ["boiler"],
        "pid": ["42"],
        "type": ["ALARM"],
        "data at@1 room": [2.14],
        "data at@1 note": ['a "b" ]'],
        "data x": [True],
        "message": ["too hot"],
    }
    assert events[1].attributes["app"] == ["su"]
    assert events[1].attributes["message"] == ["'su root' failed"]
    assert "severity" not in events[2].attributes
    assert events[4].attributes == {"facility": ["user"], "severity": ["notice"], "message": ["hello"]}
    assert [(letter.line, letter.reason) for letter in bad] == [
        (5, "the priority <200> is beyond 191"),
        (6, "timestamp 'soon' is not an ISO 8601 time"),
        (7, "the structured data is not valid"),
        (8, "not a syslog line"),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Jul  1 23:00:00 h a: x", "2026-07-01T23:00:00"),
        ("Jul  3 00:00:00 h a: x", "2025-07-03T00:00:00"),
        ("Dec 31 23:59:59 h a: x", "2025-12-31T23:59:59"),
        ("Feb 29 01:00:00 h a: x", "2024-02-29T01:00:00"),
    ],
)
def test_a_time_without_a_year_is_the_latest_that_is_not_in_the_future(line: str, expected: str) -> None:
    assert parse_syslog(line.encode(), now=NOW)["timestamp"] == expected
    with pytest.raises(InputError, match="is not a valid date"):
        parse_syslog(b"Feb 31 01:00:00 h a: x", now=NOW)


def test_lines_of_any_format_are_decoded_by_a_mapping() -> None:
    mapping = RecordMapping(time="at", kinds={"room": "text"}, zone="Europe/Berlin")
    [event] = decode_lines([b'at="2026-03-01 10:00" room=2.10 x=1'], mapping=mapping, format="logfmt")
    assert (event.start, event.tuples) == (NINE, (("room", "2.10"), ("x", 1)))
    [event], _ = read("<34>Mar  1 10:00:00 gate su: x\n", mapping=RecordMapping(time="timestamp", zone="+01:00"))
    assert event.start == latest_march()


RECORDS: list[dict[str, Any]] = [
    {
        "at": datetime(2026, 3, 1, 9, tzinfo=UTC),
        "cost": Decimal("1.50"),
        "place": {"no": "2.14"},
        "labels": ["a", "b"],
    },
    {"at": datetime(2026, 3, 1, 9, tzinfo=UTC), "picture": b"\x00"},
    {"at": None, "day": date(2026, 3, 1), "count": 3},
]


def test_avro_records_are_flat_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", SimpleNamespace(reader=lambda _: iter(RECORDS)))
    [first, last], [letter] = read(b"Obj\x01...")
    assert (first.id, first.start) == ("x.log:1", NINE)
    assert first.tuples == (("cost", 1.5), ("place no", "2.14"), ("labels", "a"), ("labels", "b"))
    assert last.tuples == (("day", "2026-03-01"), ("count", 3))
    assert (letter.line, letter.reason) == (2, "attribute 'picture' is of type bytes, not a number, boolean or text")


def test_avro_that_breaks_off_gives_what_stands_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> Any:
        yield from RECORDS[:1] * 1000
        raise EOFError("block")

    monkeypatch.setitem(sys.modules, "fastavro", SimpleNamespace(reader=broken))
    events = read_events(io.BytesIO(b"Obj\x01..."), unique_ids=False)
    assert next(events).start == NINE
    with pytest.raises(InputError, match="after 1,000 records: block"):
        list(events)


def test_without_the_library_avro_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(MissingError, match="needs fastavro"):
        read(b"Obj\x01...")


def avro(schema: Any, records: list[Any]) -> bytes:
    import fastavro

    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate")
    return out.getvalue()


READING = {
    "type": "record",
    "name": "reading",
    "fields": [{"name": "ts", "type": "long"}, {"name": "n", "type": "int"}],
}


def test_avro_as_fastavro_writes_it() -> None:
    """Logical types, a date and a clock, and bytes that the mapping leaves out."""
    kinds = {"at": {"type": "long", "logicalType": "timestamp-millis"}, "day": {"type": "int", "logicalType": "date"}}
    kinds |= {"clock": {"type": "int", "logicalType": "time-millis"}, "raw": "bytes", "n": ["null", "int"]}
    schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    at = RECORDS[0]["at"]
    data = avro(schema, [{"at": at, "day": at.date(), "clock": at.time(), "raw": b"x", "n": n} for n in (3, None)])
    [event], [letter] = read(data, mapping=RecordMapping(time="at", attributes=["n"]))
    assert (event.start, event.tuples, letter.reason) == (NINE, (("n", 3),), "the event has no attributes")
    [event], _ = read(data, mapping=RecordMapping(time="day+clock", attributes=["n"]))
    assert event.start == NINE
    _, letters = read(data)
    assert {letter.reason for letter in letters} == {"attribute 'raw' is of type bytes, not a number, boolean or text"}


def test_avro_that_is_broken_is_our_error() -> None:
    data = avro(READING, [{"ts": 1_700_000_000 + n, "n": n} for n in range(5000)])
    flipped = data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 255]) + data[len(data) // 2 + 1 :]
    broken = [data[: len(data) // 2], data[:-5], flipped]
    none = [
        data[:3],
        data[:60],
        data.replace(b'"long"', b'"lung"'),
        data.replace(b"deflate", b"deflats"),
        b"Obj\x01\xff",
    ]
    for bad in broken:
        with pytest.raises(InputError, match=r"cannot be read as Avro after [\d,]+ records: \w"):
            list(read_events(io.BytesIO(bad), format="avro"))
    for bad in none:
        with pytest.raises(InputError, match="not an Avro file: "):
            list(read_events(io.BytesIO(bad), format="avro"))
    for schema, record in (("int", 1), ({"type": "array", "items": "int"}, [1]), (["null", "int"], None)):
        with pytest.raises(InputError, match="the schema of the file is not a record"):
            list(read_events(io.BytesIO(avro(schema, [record]))))
    with pytest.raises(InputError, match="no events in it"):
        list(read_events(io.BytesIO(avro(READING, []))))
