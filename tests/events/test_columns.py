"""Columns have the same events as the reader of single lines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.strategies import events as any_events

from likewise.errors import BuildError, InputError
from likewise.events import (
    BadRecord,
    Event,
    EventColumns,
    RecordMapping,
    decode_lines,
    encode_line,
    parquet_batches,
    read_batches,
    read_events,
)
from likewise.events.formats.json_columns import JsonColumns
from likewise.events.forms import EventForm, FlatForm, RecordForm
from likewise.events.records import IdSet, RecordIntake

LINES = [
    b'{"id": "a", "time": "2026-01-01T00:00:00Z", "attributes": {"type": "parking", "slot": [1, 2]}}',
    b'{"id":"b","time":1767225600.5,"end":"2026-01-01T02:00:01+01:00","attributes":{"x":1,"x":2}}',
    b"",
    b'{"id":"c","time":1767225600,"theme":["a","b","a"],"attributes":{"room":{"no":"101","floor":[1,null]}}}',
    b'{"attributes":{"a":true,"b":1,"c":1.0,"d":"1","e":null,"f":"2010-07-11T20:30:00+02:00"}}  ',
    b'{"id":"d","time":"2026-01-01","attributes":{"caf\xc3\xa9":"\\u00e9 \\" x","n\\u0061me":1}}',
    b'{"id":"a","attributes":{"again":1}}',
    b'{"id":"e","attributes":{"x":nul}}',
    b'{"id":"f","attributes":{"x":null}}',
    b'{"id":"g","attributes":{}}',
    b'{"id":"h","time":2,"end":1,"attributes":{"x":1}}',
    b'{"id":"i","theme":"x","attributes":{"x":1}}',
    b'{"id":"j","tme":1,"attributes":{"x":1}}',
    b'{"id":"k","attributes":{"x":9223372036854775808}}',
    b'{"id":"l","attributes":{"x":1}} x',
    b'{"id":"m","attributes":{"x":-0.0,"y":1e3,"z":"T"}}\r',
    b'{"attributes": {"\\"": ":,}]", "deep": [[1]]}}',
]


def both(lines: list[bytes], form: RecordForm | None = None) -> tuple[list[Any], list[Any]]:
    """Events and bad records of the compiled reader and of the reader of single lines."""
    form = form or EventForm()
    out = []
    for reader in (_compiled, _by_line):
        bad: list[BadRecord] = []
        out.append(([*map(_exact, reader(lines, form, RecordIntake("x.jsonl", bad.append, IdSet())))], bad))
    return out[0], out[1]  # type: ignore[return-value]


def _exact(event: Event) -> tuple[object, ...]:
    """With the types of values, which Python's equality ignores."""
    return (event.id, event.theme, event.start, event.end, [(name, type(v), v) for name, v in event.tuples])


def _compiled(lines: list[bytes], form: RecordForm, intake: RecordIntake) -> list[Event]:
    return [event for columns in JsonColumns(form, intake).read(b"\n".join(lines), 1) for event in columns]


def _by_line(lines: list[bytes], form: RecordForm, intake: RecordIntake) -> list[Event]:
    from likewise.events.formats.jsonl import decode_batch

    return list(decode_batch(lines, 1, intake, form))


def test_compiled_reader_agrees_with_the_reader_of_single_lines() -> None:
    fast, slow = both(LINES)
    assert fast == slow
    assert len(slow[0]) == 6
    assert [flaw.line for flaw in slow[1]] == [7, 8, 9, 10, 11, 12, 13, 14, 15, 17]


@settings(max_examples=30, deadline=None)
@given(st.lists(any_events(), min_size=1, max_size=8))
def test_any_events_are_read_alike(events: list[Event]) -> None:
    fast, slow = both([encode_line(event).rstrip() for event in events if event.tuples])
    assert fast == slow


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([line for line in LINES if line]), min_size=1, max_size=3), st.data())
def test_damaged_lines_are_refused_alike(lines: list[bytes], data: st.DataObject) -> None:
    blob = bytearray(b"\n".join(lines))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(blob) - 1))
        blob[at] = data.draw(st.sampled_from(b'{}[]",:\\ 0e-tn\x01\xff'))
    fast, slow = both(bytes(blob).split(b"\n"))
    assert fast == slow


FLAT = [
    b'{"deviceId": "t1", "ts": 1700000000000, "temp": 21.5, "meta": {"room": "112", "fw": null}}',
    b'{"deviceId": "t2", "ts": "2023-11-14T22:13:20", "temp": [20, 21], "tags": "a, b", "off": null}',
    b'{"deviceId": "t3", "ts": "10:30", "temp": 1}',
    b'{"deviceId": null, "temp": null}',
    b"[1]",
]


@pytest.mark.parametrize(
    "mapping",
    [
        RecordMapping(time="ts"),
        RecordMapping(id="deviceId", time="ts", theme="tags", zone="Europe/Dublin"),
        RecordMapping(
            time="ts", attributes={"meta.room": "room", "temp": "temperature"}, constants={"kind": "reading"}
        ),
        RecordMapping(theme=["energy"], attributes=["temp"]),
    ],
    ids=str,
)
def test_flat_records_are_read_alike(mapping: RecordMapping) -> None:
    fast, slow = both(FLAT, FlatForm(mapping))
    assert fast == slow
    assert slow[0]


def test_a_file_in_columns_equals_its_events(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"e{n}", "time": n, "attributes": {"n": n % 7, "x": f"r {n % 50}"}}) for n in range(3000)
    ]
    path = tmp_path / "e.jsonl"
    path.write_text("\n".join(lines) + "\n")
    batches = list(read_batches(path))
    assert isinstance(batches[-1], EventColumns)
    assert [event for batch in batches for event in batch] == list(decode_lines(map(str.encode, lines)))


def test_what_stands_before_a_bad_line_is_still_read() -> None:
    line = b'{"id": "e%d", "attributes": {"text": "' + b"x" * 1000 + b'"}}'
    lines = [line % number for number in range(60)]
    events = read_events(io.BytesIO(b"\n".join([*lines[:50], b"{", *lines[50:]])), format="jsonl")
    found = []
    with pytest.raises(InputError, match=":51: not valid JSON"):
        found.extend(events)
    assert [event.id for event in found] == [f"e{number}" for number in range(50)]


@pytest.fixture
def columns() -> EventColumns:
    return EventColumns.of_events(
        [
            Event.of({"a": [1, True], "b": "x"}, id="1", theme=["t"]),
            Event("2", (), (), 5, 5),
            Event("3", (("a", 1),), (), 6, 7),
        ]
    )


def test_columns_are_a_sequence_of_events(columns: EventColumns) -> None:
    assert [columns[at] for at in range(3)] == list(columns)
    assert list(columns[1:]) == list(columns)[1:]
    assert list(columns.take(np.array([2, 0]))) == [columns[2], columns[0]]
    assert columns[-1].id == "3"
    assert [type(value) for _, value in columns[0].tuples] == [int, bool, str]
    with pytest.raises(IndexError):
        columns[3]


def test_only_events_without_a_time_are_stamped(columns: EventColumns) -> None:
    assert [(event.start, event.end) for event in columns.stamped(lambda: 9)] == [(9, 9), (5, 5), (6, 7)]


def test_a_parquet_table_is_read_by_its_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": ["a", "b", "c"],
            "ts": pa.array([0, 1_000_000, None], pa.timestamp("us")),
            "room": pa.array([{"no": "101"}, {"no": "102"}, None]),
            "temp": [21.5, None, None],
            "slots": [[1, 2], [], None],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    bad: list[BadRecord] = []
    found = list(read_events(tmp_path / "t.parquet", on_error=bad.append))
    assert [(event.id, event.start, event.tuples) for event in found] == [
        ("a", 0, (("room.no", 101), ("temp", 21.5), ("slots", 1), ("slots", 2))),
        ("b", 1_000_000, (("room.no", 102),)),
    ]
    assert [(flaw.line, flaw.reason) for flaw in bad] == [(3, "the row says nothing")]


@pytest.mark.parametrize("limit", [1_000, 1_000_000])
def test_events_in_parquet_are_read_whether_their_texts_are_numbered_or_not(tmp_path: Path, limit: int) -> None:
    """With the low limit, a row group begins with a dictionary and continues with plain texts."""
    attributes = [[{"name": "room", "value": f"room {row}", "kind": "text"}] for row in range(3_000)]
    table = pa.table({"id": [f"e{row}" for row in range(3_000)], "attributes": attributes})
    path = tmp_path / "e.parquet"
    pq.write_table(table, path, row_group_size=2_000, dictionary_pagesize_limit=limit, data_page_size=1_000)
    for source in (path, io.BytesIO(path.read_bytes())):
        found = [(event.id, event.tuples) for event in read_events(source)]
        assert found == [(f"e{row}", (("room", f"room {row}"),)) for row in range(3_000)]


def test_texts_stay_numbered_across_row_groups(tmp_path: Path) -> None:
    """No batch spans two row groups, because Arrow would then read all texts without their dictionaries."""
    attributes = [[{"name": "room", "value": f"room {row % 5}", "kind": "text"}] for row in range(3_000)]
    table = pa.table({"id": [f"e{row}" for row in range(3_000)], "attributes": attributes})
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=1_250)
    batches = list(parquet_batches(tmp_path / "e.parquet", rows=1_000))
    assert [batch.num_rows for batch in batches] == [1_000, 250, 1_000, 250, 500]
    tuple_types = [batch.schema.field("attributes").type.value_type for batch in batches]
    assert all(pa.types.is_dictionary(kind.field("value").type) for kind in tuple_types)


def test_a_broken_parquet_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(read_events(tmp_path / "t.parquet"))


def test_a_mapping_is_for_records_only() -> None:
    with pytest.raises(BuildError, match="name their own attributes"):
        list(read_events(io.BytesIO(b"<a> <b> <c> ."), format="ntriples", mapping=RecordMapping(time="ts")))
