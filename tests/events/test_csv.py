"""Tables as events."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import BuildError, InputError
from likewise.events import BadRecord, Event, RecordMapping, read_events


def read_csv(source: Any, *, divider: str | None = None, on_error: Any = None, **fields: Any) -> Iterator[Event]:
    mapping = RecordMapping(**fields)
    return read_events(source, format="csv", mapping=mapping, separator=divider, on_error=on_error, allow_empty=True)


def read(text: str | bytes, **options: Any) -> list[Event]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_csv(io.BytesIO(data), **options))


def test_the_divider_is_seen_in_the_header() -> None:
    for divider in ",;\t|":
        [event] = read(f"a{divider}b\n1{divider}x\n")
        assert event.tuples == (("a", 1), ("b", "x"))


def test_cells_keep_their_types_and_quoted_ones_their_line_ends() -> None:
    [event] = read('a,b,c,d\n"two\nlines, ""so""",1e3,2026-05-01T10:00:00Z,007\n')
    assert dict(event.tuples) == {
        "a": 'two\nlines, "so"',
        "b": 1000.0,
        "c": datetime(2026, 5, 1, 10, tzinfo=UTC),
        "d": "007",
    }


def test_seconds_since_1970_are_a_time() -> None:
    [event] = read("at,x\n1.5,1\n", time="at")
    assert event.start == 1_500_000


def test_the_mark_of_utf8_and_compression_are_seen(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfa\r\n1\r\n"))
    [event] = read_csv(tmp_path / "t.csv.gz")
    assert event.tuples == (("a", 1),)
    assert event.id == "t.csv.gz:2"


def test_bad_rows_name_their_line() -> None:
    bad: list[BadRecord] = []
    rows = b'id,x\n1,\n2,y\n2,z\n,y\n3,\xff\n4,y,y\n5,"open\n'
    assert [event.id for event in read(rows, id="id", on_error=bad.append)] == ["2"]
    assert [(record.line, record.reason) for record in bad] == [
        (2, "the row says nothing"),
        (4, "id '2' was used before"),
        (5, "id is empty"),
        (6, "not valid UTF-8 at byte 3"),
        (7, "the row has 3 cells, the header 2"),
        (8, "this quoted text has no end"),
    ]


def test_tables_that_cannot_be_read_at_all() -> None:
    with pytest.raises(InputError, match="no table"):
        read("")
    with pytest.raises(InputError, match="two columns are named 'a'"):
        read("a,a\n1,2\n")
    with pytest.raises(BuildError, match="no column 'b'"):
        read("a\n1\n", time="b")


@given(st.binary(max_size=300))
def test_whatever_it_is_it_is_read_or_refused(data: bytes) -> None:
    bad: list[BadRecord] = []
    try:
        events = read(data, on_error=bad.append)
    except InputError:
        return
    assert all(event.tuples for event in events)


class _Pieces(io.RawIOBase):
    """Returns one piece at a time, like a pipe."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._pieces.pop(0) if self._pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)


def test_a_table_without_a_name_is_known_by_its_look() -> None:
    [event] = read_events(io.BytesIO(b'what;note\nlift;"stuck; twice"\n'))
    assert event.tuples == (("what", "lift"), ("note", "stuck; twice"))


def test_a_header_that_comes_alone_is_that_of_a_table_and_nothing_is_guessed_before_the_first_row() -> None:
    pipe = io.BufferedReader(_Pieces(b"Datum;Uhrzeit;Temp\n", b"16.11.2026;08:00;21,5\n", b"16.11.2026;08:10;7\n"))
    seen: list[RecordMapping] = []
    events = list(read_events(pipe, on_mapping=seen.append))
    assert [event.tuples for event in events] == [(("Temp", 21.5),), (("Temp", 7),)]
    assert [mapping.plain()["time"] for mapping in seen] == ["Datum+Uhrzeit"]
