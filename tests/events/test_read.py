"""Reading from any source: formats, compression, duplicates, dead letters."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.strategies import content, events

from likewise.errors import InputError, LikewiseError
from likewise.events import BadRecord, DeadLetters, Event, Value, read_events, write_events
from likewise.events.files import line_batches

GOOD = b'{"id":"a","attributes":{"x":1}}\n{"id":"b","attributes":{"x":2}}\n'
CLOUD = '{"specversion":"1.0","id":"%s","source":"/s","type":"parked","data":{"slot":4}}'
NT = b'<urn:e1> <urn:v#type> "parked" .\n'


def ids(data: bytes, **options: object) -> list[str]:
    return [event.id for event in read_events(io.BytesIO(data), **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (GOOD, ["a", "b"]),
        (b"\xef\xbb\xbf" + GOOD, ["a", "b"]),
        (b"\n\n  \n" + GOOD.replace(b"\n", b"\r\n"), ["a", "b"]),
        (GOOD.rstrip(), ["a", "b"]),
        (b'[{"id":"a","attributes":{"x":1}},\n{"id":"b","attributes":{"x":1}}]', ["a", "b"]),
        (b'{\n  "id": "a",\n  "attributes": {"x": 1}\n}', ["a"]),
        ((CLOUD % "a" + "\n" + CLOUD % "b").encode(), ["a", "b"]),
        (f"[{CLOUD % 'a'},\n{CLOUD % 'b'}]".encode(), ["a", "b"]),
        (json.dumps(json.loads(CLOUD % "a"), indent=2).encode(), ["a"]),
        (NT, ["urn:e1"]),
        (b"# a comment\n\n" + NT, ["urn:e1"]),
        (b"@prefix v: <urn:v#> .\n<urn:e1> v:type 'parked' .", ["urn:e1"]),
        (b"# a comment\n<urn:e1>\n  <urn:v#type> 'parked' .", ["urn:e1"]),
    ],
)
def test_format_is_recognised_by_its_first_bytes(data: bytes, expected: list[str]) -> None:
    assert ids(data) == expected


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        ("jsonl", GOOD),
        ("jsonl.gz", gzip.compress(GOOD)),
        ("jsonl.bz2", bz2.compress(GOOD)),
        ("jsonl.xz", lzma.compress(GOOD)),
        ("ndjson", (CLOUD % "a" + "\n" + CLOUD % "b").encode()),
        ("cloudevents.json", f"[{CLOUD % 'a'}, {CLOUD % 'b'}]".encode()),
        ("nt", b'<urn:a> <urn:v#x> "1" .\n<urn:b> <urn:v#x> "1" .'),
        ("ttl", b"<urn:a> <urn:v#x> 1 . <urn:b> <urn:v#x> 1 ."),
    ],
)
def test_file_is_read_by_its_name(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"events.{suffix}"
    path.write_bytes(data)
    assert [event.id.removeprefix("urn:") for event in read_events(path)] == ["a", "b"]
    assert [event.id.removeprefix("urn:") for event in read_events(str(path))] == ["a", "b"]


def test_zstandard_is_read_where_installed(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "events.jsonl.zst"
    path.write_bytes(zstandard.compress(GOOD))
    assert [event.id for event in read_events(path)] == ["a", "b"]
    path.write_bytes(zstandard.compress(GOOD[:32]) + zstandard.compress(GOOD[32:]))
    assert [event.id for event in read_events(path)] == ["a", "b"]
    path.write_bytes(zstandard.compress(GOOD * 1000)[:-9])
    with pytest.raises(InputError, match="cannot be read: the compressed file is truncated"):
        list(read_events(path))


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    assert [event.id for event in read_events("-")] == ["a", "b"]


def test_missing_id_names_the_source() -> None:
    assert ids(b'{"attributes":{"x":1}}', name="pipe") == ["pipe:1"]


def test_stream_that_was_given_stays_open() -> None:
    stream = io.BytesIO(GOOD)
    assert len(list(read_events(stream))) == 2
    assert not stream.closed


def test_event_on_a_pipe_arrives_before_the_pipe_ends() -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb") as reading, os.fdopen(into, "wb", buffering=0) as writing:
        writing.write(GOOD)
        reader = read_events(reading)
        watchdog = threading.Timer(20, writing.close)
        watchdog.start()
        assert [next(reader).id, next(reader).id] == ["a", "b"]
        assert not writing.closed
        watchdog.cancel()


@pytest.mark.parametrize("format", ["auto", "jsonl", "json", "cloudevents", "ntriples", "turtle"])
@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_empty_source_is_an_error_unless_allowed(format: str, data: bytes) -> None:
    with pytest.raises(InputError, match="<stream>: no events in it"):
        ids(data, format=format)
    assert ids(data, format=format, allow_empty=True) == []


def test_unknown_format_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="unknown format 'xml'"):
        read_events(io.BytesIO(GOOD), format="xml")
    with pytest.raises(InputError, match="unknown format 'xml'"):
        write_events([], io.BytesIO(), format="xml")


def test_file_that_is_not_there_or_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.jsonl: no such file"):
        list(read_events(tmp_path / "nothing.jsonl"))
    with pytest.raises(InputError, match="Is a directory"):
        list(read_events(tmp_path))
    with pytest.raises(InputError, match="cannot be written"):
        write_events([], tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_truncated_compressed_file_is_an_error(pack: object) -> None:
    data = b"".join(b'{"id":"%d","attributes":{"x":%d}}\n' % (n, n * n) for n in range(3000))
    with pytest.raises(InputError, match="cannot be read"):
        ids(pack(data)[:-30])  # type: ignore[operator]


def test_bad_record_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(GOOD + b"{broken\n")
    with pytest.raises(InputError, match=r"events\.jsonl:3: not valid JSON"):
        list(read_events(path))


def test_first_line_broken_does_not_spoil_the_rest() -> None:
    bad: list[BadRecord] = []
    assert ids(b'{"id":\n' + GOOD, on_error=bad.append) == ["a", "b"]
    assert [record.line for record in bad] == [1]


def test_duplicate_ids_are_refused_unless_wanted() -> None:
    with pytest.raises(InputError, match="<stream>:3: id 'a' was used before"):
        ids(GOOD + GOOD)
    assert ids(GOOD + GOOD, unique_ids=False) == ["a", "b", "a", "b"]


def test_line_of_a_bad_event_in_an_array_is_counted() -> None:
    bad: list[BadRecord] = []
    data = b'[\n{"id":"a","attributes":{"x":1}},\n\n{"id":"b",\n"attributes":{}},\n7]'
    assert ids(data, on_error=bad.append) == ["a"]
    assert [(record.line, record.reason) for record in bad] == [
        (4, "the event has no attributes"),
        (6, "not an event but a JSON number"),
    ]


@pytest.mark.parametrize("data", [b"[1,", b"[" * 100_000, b"[\xff]"])
def test_broken_array_is_one_bad_record(data: bytes) -> None:
    bad: list[BadRecord] = []
    assert ids(data, on_error=bad.append) == []
    assert len(bad) == 1


def test_dead_letters_hold_what_was_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    with DeadLetters(path) as letters:
        assert ids(GOOD + b'{"x":1}\n\xff\n', on_error=letters, name="in.jsonl") == ["a", "b"]
    assert letters.count == 2
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"source": "in.jsonl", "line": 3, "reason": "unknown field 'x'", "record": '{"x":1}'}
    assert second["record"] == "\\xff"


def test_no_dead_letter_means_no_file(tmp_path: Path) -> None:
    with DeadLetters(tmp_path / "bad.jsonl") as letters:
        assert len(ids(GOOD, on_error=letters)) == 2
    assert not (tmp_path / "bad.jsonl").exists()


def test_dead_letters_that_cannot_be_written_are_an_own_error(tmp_path: Path) -> None:
    with DeadLetters(tmp_path) as letters, pytest.raises(InputError, match="cannot be written"):
        ids(b"{\n", on_error=letters)


def test_endless_line_is_cut_and_refused_without_filling_memory() -> None:
    class Endless(io.RawIOBase):
        left = 40 << 20

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            size = min(len(buffer), self.left)
            buffer[:size] = b"x" * size
            self.left -= size
            return size

    stream = io.BufferedReader(Endless())
    longest = max(len(line) for _, lines in line_batches(stream) for line in lines)
    assert longest == (8 << 20) + 1
    with pytest.raises(InputError, match="longer than 8 MiB"):
        list(read_events(io.BytesIO(b"x" * (9 << 20)), format="jsonl"))


@given(st.binary(max_size=200), st.integers(1, 7))
def test_lines_are_the_same_however_they_arrive(data: bytes, size: int) -> None:
    class Slow(io.BytesIO):
        def read1(self, _limit: int | None = -1) -> bytes:
            return self.read(size)

    found = [(first + n, line) for first, lines in line_batches(Slow(data)) for n, line in enumerate(lines)]
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if size >= 3 else data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert found == list(enumerate(expected, 1))


def unrepeated(event: Event) -> tuple[tuple[str, Value], ...]:
    found: dict[object, tuple[str, Value]] = {}
    for name, value in event.tuples:
        found.setdefault((name, type(value), value), (name, value))
    return tuple(found.values())


FORMATS_OUT = ["jsonl", "json", "cloudevents", "cloudevents-batch", "ntriples", "turtle"]


@pytest.mark.parametrize("format", FORMATS_OUT)
@settings(max_examples=100, deadline=None)
@given(many=st.lists(events(), min_size=1, max_size=4, unique_by=lambda event: event.id))
def test_events_survive_every_format(format: str, many: list[Event]) -> None:
    if format in ("ntriples", "turtle"):
        # A graph is a set of statements, so a repeated statement counts once.
        many = [msgspec.structs.replace(e, tuples=unrepeated(e)) for e in many]
    out = io.BytesIO()
    assert write_events(many, out, format=format) == len(many)
    again = list(read_events(io.BytesIO(out.getvalue()), format=format.removesuffix("-batch")))
    assert [content(event) for event in again] == [content(event) for event in many]


@pytest.mark.parametrize("format", FORMATS_OUT)
def test_written_file_is_recognised_on_reading(tmp_path: Path, format: str) -> None:
    path = tmp_path / "events"
    write_events([Event.of({"type": "parked", "slot": [1, 2]}, id="e 1", theme=["city, parking"])], path, format=format)
    (event,) = read_events(path)
    assert (event.id, event.attributes, event.theme) == (
        "e 1",
        {"type": ["parked"], "slot": [1, 2]},
        ("city, parking",),
    )


@pytest.mark.parametrize("format", ["json", "cloudevents-batch"])
def test_no_events_are_an_empty_array(format: str) -> None:
    out = io.BytesIO()
    assert write_events([], out, format=format) == 0
    assert json.loads(out.getvalue()) == []


TOKENS = (
    rb"""<urn:a> |_:b |"x"|^^<http://www.w3.org/2001/XMLSchema#integer>|@en| . | ; |[|]|@prefix a: <urn:a> .|a:b |{|}"""
    rb"""|"specversion":"1.0"|"id":|"data":|,|\u|1|"source":"s"|"type":"t"|# |(|)|'''|true|null|"time":"""
).split(b"|")
PIECES = st.lists(st.sampled_from([*TOKENS, b"\n", b"\xff"]), max_size=14).map(b"".join)


def check_only_own_errors(data: bytes, format: str) -> None:
    bad: list[BadRecord] = []
    try:
        found = list(read_events(io.BytesIO(data), format=format, on_error=bad.append))
    except LikewiseError:
        return
    assert found or bad


ANY_FORMAT = st.sampled_from(["auto", "jsonl", "json", "cloudevents", "ntriples", "turtle"])


@settings(max_examples=200, deadline=None)
@given(PIECES | st.binary(max_size=60), ANY_FORMAT)
def test_nothing_but_own_errors_escapes(data: bytes, format: str) -> None:
    check_only_own_errors(data, format)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(PIECES | st.binary(max_size=60), ANY_FORMAT)
def test_nothing_but_own_errors_escapes_at_length(data: bytes, format: str) -> None:
    check_only_own_errors(data, format)
