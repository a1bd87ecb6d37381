"""Every format becomes the same columns, and what is no event becomes a dead letter."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from likewise.errors import BuildError, InputError
from likewise.events import BadRecord, Event, RecordMapping
from likewise.events import read_events as in_process
from likewise.events.formats.ntriples import encode_ntriples
from likewise.pipeline.events.frame import events_of
from likewise.pipeline.events.read import read_events
from likewise.pipeline.events.table import events_from_columns
from likewise.pipeline.events.transfer import as_events, dead_letters
from likewise.pipeline.options import LikewiseWarning

pytestmark = pytest.mark.spark

PARKED = Event.of({"type": "parking", "slot": [1, 2.5], "free": True}, id="e1", theme=["city"])
SECOND = 1_000_000


def events_in(frame: Any) -> list[Event]:
    return sorted(events_of(frame.toArrow()), key=lambda event: event.id)


def test_json_lines_and_poison(spark: Any, tmp_path: Path) -> None:
    """Good lines are events; broken ones are letters with file, reason and bytes; blank lines are nothing."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(
        b'{"id": "e1", "time": 1, "theme": ["city"], '
        b'"attributes": {"type": "parking", "slot": [1, 2.5], "free": true}}\n'
        b"\n"
        b'{"id": 3}\n'
        b"\xff\xfe\n"
        b'{"attributes": {"type": "bus"}}\n'
    )
    frame = read_events(spark, file)
    first, second = sorted(events_in(frame), key=lambda event: event.id != "e1")
    assert first == Event(PARKED.id, PARKED.tuples, PARKED.theme, SECOND, SECOND)
    assert second.id.startswith("events.jsonl:")
    letters = sorted(dead_letters(frame).collect(), key=lambda letter: letter["reason"])
    assert [letter["reason"] for letter in letters] == ["id is a JSON number, not text", "not valid UTF-8 at byte 1"]
    assert [letter["record"] for letter in letters] == ['{"id": 3}', "\\xff\\xfe"]
    assert {letter["source"] for letter in letters} == {"events.jsonl"}


def test_an_event_without_a_time_can_take_that_of_its_file(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"id": "a", "time": 1, "attributes": {"x": 1}}\n{"id": "b", "attributes": {"x": 1}}\n')
    first, second = events_in(read_events(spark, file, stamp=True))
    assert first.start == SECOND
    assert second.start == file.stat().st_mtime_ns // 1_000_000 * 1000


def test_cloudevents_one_a_line_or_many(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    line = '{"specversion": "1.0", "id": "%s", "source": "/car", "type": "parked", "data": {"slot": 4}}'
    file.write_text(f'{line % "1"}\n[{line % "2"}, {line % "3"}]\n{{"specversion": "0.3"}}\n')
    frame = read_events(spark, file, format="cloudevents")
    assert [event.id for event in events_in(frame)] == ["1", "2", "3"]
    assert events_in(frame)[0].tuples == (("type", "parked"), ("source", "/car"), ("slot", 4))
    assert dead_letters(frame).count() == 1


def test_rdf_has_one_subject_per_event(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "events.nt"
    file.write_text(
        '<http://x/e1> <http://x/type> "match" .\n<http://x/e1> <http://x/team> "Spain" .\n'
        '<http://x/e2> <http://x/type> "bus" .\n'
    )
    assert [len(event.tuples) for event in events_in(read_events(spark, file))] == [2, 1]
    turtle = tmp_path / "events.ttl"
    turtle.write_text('@prefix x: <http://x/> .\nx:e1 x:type "match" ; x:team "Spain" .\n')
    assert [len(event.tuples) for event in events_in(read_events(spark, turtle))] == [2]


def test_csv_with_a_column_mapping(spark: Any, tmp_path: Path) -> None:
    """Cells get their types, empty ones are left out, and rows that make no event are letters."""
    file = tmp_path / "readings.csv"
    file.write_text(
        "rid,when,temp,place,tags,code\n"
        '1,1970-01-01 00:00:01,3.5,Galway,"city, road",07\n'
        "2,yesterday,4,Cork,,1\n"
        "3,1970-01-01T00:00:02Z,,,,\n"
        "4,1970-01-01T00:00:02Z,1,2,3,4,5,6\n"
    )
    columns = RecordMapping(
        id="rid",
        time="when",
        theme="tags",
        attributes={"temp": "temperature", "place": "place", "code": "code"},
        kinds={"code": "text"},
    )
    frame = read_events(spark, file, columns=columns)
    assert events_in(frame) == [
        Event(
            "1",
            (("temperature", 3.5), ("place", "Galway"), ("code", "07")),
            ("city", "road"),
            SECOND,
            SECOND,
        )
    ]
    assert sorted(letter["reason"] for letter in dead_letters(frame).collect()) == [
        "the row has 8 cells, the header 6",
        "the row says nothing",
        "when 'yesterday' is not an ISO 8601 time",
    ]


def test_parquet_and_any_table(spark: Any, tmp_path: Path) -> None:
    """A table with typed columns becomes events; written as Parquet they are read back the same."""
    table = spark.createDataFrame([("a", 3, True, ["x", "y"])], "key string, slot int, free boolean, tag array<string>")
    frame = events_from_columns(table, RecordMapping(id="key", theme=["city"], constants={"type": "parking"}))
    expected = [
        Event(
            "a",
            (("slot", 3), ("free", True), ("tag", "x"), ("tag", "y"), ("type", "parking")),
            ("city",),
        )
    ]
    assert events_in(frame) == expected
    frame.write.parquet(str(tmp_path / "t.parquet"))
    assert events_in(read_events(spark, tmp_path / "t.parquet")) == expected


def test_maps_are_attributes_too(spark: Any) -> None:
    frame = spark.createDataFrame([("a", {"type": ["x", "y"]})], "id string, attributes map<string, array<string>>")
    assert events_in(as_events(frame)) == [Event("a", (("type", "x"), ("type", "y")))]


def test_a_path_that_is_not_there_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_events(spark, tmp_path / "missing.jsonl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "x.jsonl", "format": "xml"}, "unknown format"),
        ({"path": "x.csv"}, "which columns"),
        ({"path": "x.ttl", "columns": RecordMapping()}, "name their own"),
        ({"path": "x.jsonl", "keep": ["a"]}, "no columns to keep"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(spark: Any, arguments: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        read_events(spark, **arguments)


def test_a_file_of_unknown_format_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("1;2\n")
    with pytest.raises(BuildError, match="is not known from its name"):
        read_events(spark, tmp_path / "x.dat")


def test_many_documents_spread_over_tasks(spark: Any, tmp_path: Path) -> None:
    """A document is read by one task, but several tasks share the documents of a folder."""
    for number in range(12):
        (tmp_path / f"{number:02}.nt").write_bytes(encode_ntriples(Event.of({"slot": number}, id=f"urn:e{number}")))
    from pyspark.sql import functions as F

    frame = read_events(spark, tmp_path, format="ntriples")
    spread = frame.groupBy(F.spark_partition_id().alias("task")).count().collect()
    assert len(spread) > 1
    assert sum(row["count"] for row in spread) == 12


MAKERS = (
    '{"ts": 1772355600000, "temp": 21.5}',
    '{"zeitpunkt": "2026-03-01T09:01:00Z", "wert": 3}',
    '{"ts": "", "zeitpunkt": "2026-03-01T09:02:00Z", "wert": 4}',
    '{"ts": "soon", "zeitpunkt": "2026-03-01T09:03:00Z", "wert": 5}',
)


def test_flat_records_of_several_makers(spark: Any, tmp_path: Path) -> None:
    """Lines, documents and columns take the first time that says something, as one process does."""
    mapping = RecordMapping(time=["ts", "zeitpunkt"])
    (tmp_path / "lines.jsonl").write_text("\n".join(MAKERS))
    (tmp_path / "whole.json").write_text(f"[{', '.join(MAKERS)}]")
    spelt = RecordMapping(time=["TS", "Zeitpunkt", "other"])
    table = spark.read.json(str(tmp_path / "lines.jsonl"))
    frames = [read_events(spark, tmp_path / name, columns=mapping) for name in ("lines.jsonl", "whole.json")]
    for frame in [*frames, events_from_columns(table, spelt)]:
        starts = {event.tuples[0]: (event.start or 0) // SECOND for event in events_in(frame)}
        assert starts == {("temp", 21.5): 1_772_355_600, ("wert", 3): 1_772_355_660, ("wert", 4): 1_772_355_720}
        [letter] = dead_letters(frame).collect()
        assert "ts" in letter["reason"]
        assert "time" in letter["reason"]
    with pytest.raises(BuildError, match="no column 'a'"):
        events_from_columns(table, RecordMapping(time=["a", "b"]))
    with pytest.raises(BuildError, match="not guessed on Spark"):
        read_events(spark, tmp_path / "lines.jsonl", columns=RecordMapping(complete=False))


def test_logs_are_read_as_one_process_reads_them(spark: Any, tmp_path: Path) -> None:
    mapping = RecordMapping(time="ts", kinds={"room": "text"})
    files = {
        "a.logfmt": ('ts=1772355600 room=2.10 msg="door open"\n=7\nts=soon x=1\n', mapping),
        "a.syslog": ("<34>1 2026-03-01T09:00:00Z gate su - - - failed\nwords\n<999>x\n", None),
    }
    for name, (text, columns) in files.items():
        (tmp_path / name).write_text(text)
        flaws: list[BadRecord] = []
        [alone] = in_process(tmp_path / name, mapping=columns, on_error=flaws.append)
        frame = read_events(spark, tmp_path / name, columns=columns)
        [event] = events_in(frame)
        assert (event.tuples, event.start) == (alone.tuples, alone.start)
        assert sorted(row["reason"] for row in dead_letters(frame).collect()) == sorted(flaw.reason for flaw in flaws)
        assert len(flaws) == 2
    with pytest.raises(BuildError, match="logfmt records need to know"):
        read_events(spark, tmp_path / "a.logfmt")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_json_as_spark_writes_it_is_lines(spark: Any, tmp_path: Path, compression: str) -> None:
    """Files are named `.json`, but hold lines; by format `json`, too, and in one process."""
    out = str(tmp_path / "out")
    spark.sql("select 's' || id as key, id as n from range(5)").coalesce(1).write.json(out, compression=compression)
    mapping = RecordMapping(id="key")
    wanted = {f"s{number}": (("n", number),) for number in range(5)}
    for way in ("auto", "json"):
        events = events_in(read_events(spark, out, columns=mapping, format=way))
        assert {event.id: event.tuples for event in events} == wanted
    (file,) = Path(out).glob("part-*")
    assert {event.id: event.tuples for event in in_process(file, mapping=mapping, format="json")} == wanted


def test_documents_and_cloudevents_stay_what_they_are(spark: Any, tmp_path: Path) -> None:
    cloud = '{"specversion": "1.0", "id": "c", "source": "s", "type": "parking"}'
    (tmp_path / "a.json").write_text('{"id": "a",\n "attributes": {"n": 1}}\n')
    (tmp_path / "b.json").write_text('{"id": "b", "attributes": {"n": 1}}\n')
    (tmp_path / "c.json").write_text(f"{cloud}\n{cloud.replace(chr(34) + 'c', chr(34) + 'd')}\n")
    assert [event.id for event in events_in(read_events(spark, tmp_path / "c.json"))] == ["c", "d"]
    assert [event.id for event in events_in(read_events(spark, tmp_path))] == ["a", "b", "c", "d"]


def test_folders_within_a_folder_are_not_left_out_in_silence(spark: Any, tmp_path: Path) -> None:
    """Spark reads only folders that are named like `day=1`."""
    for place in ("top", "top/below", "table/day=1"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "e.jsonl").write_text(f'{{"id": "{place}", "attributes": {{"n": 1}}}}\n')
    with pytest.warns(LikewiseWarning, match=r"does not read the folders in .*top: below"):
        read_events(spark, tmp_path / "top")
    every = {"recursiveFileLookup": "true"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [event.id for event in events_in(read_events(spark, tmp_path / "table"))] == ["table/day=1"]
        frame = read_events(spark, tmp_path / "top", options=every)
    assert [event.id for event in events_in(frame)] == ["top", "top/below"]
    with pytest.raises(BuildError, match=r"the files of .* are in folders within it"):
        read_events(spark, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BuildError, match="empty has no files"):
        read_events(spark, tmp_path / "empty")


def test_a_path_is_one_path(spark: Any, tmp_path: Path) -> None:
    paths: Any = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    with pytest.raises(BuildError, match="a path cannot be list"):
        read_events(spark, paths)
