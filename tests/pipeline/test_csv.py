"""Workers read CSV as one process does, whoever reads the bytes and however a file is shared out."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.traces import PATTERNS, expected, signatures, trace

from likewise.errors import BuildError
from likewise.events import BadRecord, Event, RecordMapping
from likewise.events import read_events as read_source
from likewise.language import Profile, parse
from likewise.matching import Matcher
from likewise.pipeline import dead_letters, detect, match, read_events
from likewise.pipeline.events.frame import batch_of, events_of
from likewise.pipeline.events.scan import BETWEEN, CsvTable, LineStep, cells_of, read_share, row_id
from likewise.pipeline.events.table_step import TableStep
from likewise.pipeline.events.transfer import event_rows

HEADER = ["id", "when", "until", "tags", "temp", "place"]
ALL = RecordMapping(id="id", time="when", end="until", theme="tags")
NAMELESS = RecordMapping(time="when", kinds={"temp": "text", "place": "number"}, constants={"x": ""})


def by_spark(spark: Any, path: Path, columns: RecordMapping) -> Any:
    """The same read by Spark: any option of its reader, even one that says nothing new, leaves it to Spark."""
    return read_events(spark, path, format="csv", columns=columns, options={"mode": "PERMISSIVE"})


def own(frame: Any) -> bool:
    """Whether workers read the lines of the file."""
    return not isinstance(event_rows(frame)[1], TableStep)


def events_in(frame: Any) -> list[Event]:
    return sorted(events_of(frame.toArrow()), key=lambda event: event.id)


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


WORDS = st.text(st.sampled_from(list("ab10.,-+eT: \t'\"\\/\u00e9\u2028\u0085\u00df\U0001f600\x1f\x7f")), max_size=6)
PLAIN = WORDS.map(lambda text: text.replace(",", "").replace('"', ""))
CELLS = st.one_of(
    st.sampled_from(
        [
            "",
            "1",
            " 2.5 ",
            "-.5e3",
            "007",
            "0.5",
            "00.5",
            "1.",
            "TRUE",
            "2020-01-01T00:00:00Z",
            '""',
            "NaN",
            " Infinity ",
        ]
    ),
    PLAIN,
    WORDS.map(quoted),
)
TIMES = st.sampled_from(
    [
        "",
        '""',
        "2020-01-01T00:00:00Z",
        "2020-01-01 10:30:00.123456+01:00",
        "2020-1-2",
        "soon",
        "10:30",
        "2020-02-30T00:00:00",
        "2020-01-01T10:30Z",
        " 2020-01-01T10:30:00 ",
        "1600000000",
        "1600000000.1234565",
        "1600000000000",
        "20200101",
    ]
)
TAGS = st.sampled_from(["", "city", quoted("city, road"), quoted(" a ,,b\t,")])
IDS = st.one_of(PLAIN, st.sampled_from(["e1", '""', quoted('a"b')]))
LINES = st.one_of(
    st.tuples(IDS, TIMES, TIMES, TAGS, CELLS, CELLS).map(",".join),
    st.sampled_from(["", "  ", "a,b", "1,2,3,4,5,6,7", ",,,,,", "\t"]),
)


def in_process(path: Path, mapping: RecordMapping) -> tuple[list[Event], list[tuple[Any, ...]]]:
    """What `likewise.events` reads of a file; an event without an id has that of its line."""
    flaws: list[BadRecord] = []
    how: Any = {"format": "csv", "separator": ",", "unique_ids": False, "allow_empty": True}
    found = list(read_source(path, mapping=mapping, on_error=flaws.append, **how))
    lines = path.read_bytes().decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    rows = [BETWEEN.join(cells_of(line, ",")) for line in lines.split("\n")]
    named = []
    for event in found:
        source, _, line = event.id.rpartition(":")
        made = source == path.name and line.isdigit()
        name = row_id(path.name, rows[int(line) - 1]) if made else event.id
        named.append(Event(name, event.tuples, event.theme, event.start, event.end))
    return named, sorted((flaw.line, flaw.reason, flaw.raw.decode(errors="backslashreplace")) for flaw in flaws)


def told_by(batches: Any) -> tuple[list[Event], list[tuple[Any, ...]]]:
    """The same of the batches of a worker."""
    listed = list(batches)
    flaws = [flaw for batch in listed for flaw in batch.column("flaw").to_pylist() if flaw is not None]
    events = [event for batch in listed for event in events_of(batch)]
    return events, sorted((flaw["line"], flaw["reason"], flaw["record"]) for flaw in flaws)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(LINES, min_size=1, max_size=40),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([ALL, NAMELESS]),
    st.integers(1, 4),
    st.integers(20, 400),
)
def test_any_table_is_read_as_in_one_process(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    end: str,
    marked: bool,
    broken: bool,
    columns: RecordMapping,
    count: int,
    block: int,
) -> None:
    """Quotes, blanks, nulls, bad rows, odd times, BOM and bytes that are no text; in any shares and blocks."""
    path = tmp_path_factory.mktemp("tables") / "x.csv"
    content = end.join([",".join(HEADER), *lines]).encode("utf-8-sig" if marked else "utf-8")
    path.write_bytes(content.replace(b"\xc3\xa9", b"\xe9", 1) if broken else content)
    table = CsvTable(tuple(HEADER), replace(columns, constants={}))
    size = path.stat().st_size
    shares = [(str(path), size * at // count, size * (at + 1) // count) for at in range(count)]
    events, flaws = told_by(batch for share in shares for batch in read_share(table, share, block=block))
    wanted, bad = in_process(path, table.mapping)
    assert events == wanted
    assert flaws == bad
    # Lines that Spark has read have no numbers.
    rows = pa.array(path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(), pa.binary())
    given = {"line": rows, "source": ["x.csv"] * len(rows), "file": [7] * len(rows), "start": [0] * len(rows)}
    again, unnumbered = told_by(LineStep(table)([pa.RecordBatch.from_pydict(given)]))
    assert again == wanted
    assert [flaw[1] for flaw in unnumbered] == sorted(flaw[1] for flaw in bad)


TABLE = CsvTable(("id", "x"), RecordMapping(id="id"))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.text('ab,"\n\r ', max_size=8), max_size=30),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 6),
    st.integers(1, 60),
)
def test_shares_and_blocks_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, count: int, block: int
) -> None:
    """However a file is shared out and read, every line is read once, and bad ones have their numbers."""
    path = tmp_path_factory.mktemp("shares") / "x.csv"
    text = end.join(["id,x", *lines])
    path.write_bytes(text.encode())
    size = path.stat().st_size
    shares = [(str(path), size * at // count, size * (at + 1) // count) for at in range(count)]
    # Blank first lines would put the header into another share, as with Spark.
    read, flaws = told_by(batch for share in shares for batch in read_share(TABLE, share, block=block))
    whole, bad = told_by(read_share(TABLE, (str(path), 0, size)))
    assert Counter(map(str, read)) == Counter(map(str, whole))
    assert flaws == bad
    standing = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line, _, record in flaws:
        assert standing[line - 1] == record


@pytest.mark.spark
@pytest.mark.parametrize("columns", [ALL, NAMELESS])
def test_whoever_reads_the_bytes_makes_the_same_events(spark: Any, tmp_path: Path, columns: RecordMapping) -> None:
    """Files that workers read, lines of compressed files that Spark reads, and one process."""
    rows = ["e1,2020-01-01T00:00:00Z,,city,1,hall", "e2,10:30,,,2,attic", "e3,1600000000,,,x,7"]
    text = "\n".join([",".join(HEADER), *rows]).encode()
    for name, content in (("plain/x.csv", text), ("packed/x.csv.gz", gzip.compress(text))):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    frames = [read_events(spark, tmp_path / name, format="csv", columns=columns) for name in ("plain", "packed")]
    assert all(map(own, frames))
    plain, packed = map(events_in, frames)
    named, _ = in_process(tmp_path / "plain" / "x.csv", replace(columns, constants={}))
    assert plain == sorted(named, key=lambda event: event.id)
    assert [event.tuples for event in packed] == [event.tuples for event in plain]
    # A time of day has no date.
    assert [row["reason"] for row in dead_letters(frames[0]).collect()] == ["when '10:30' is not an ISO 8601 time"]


@pytest.mark.spark
def test_a_torn_quote_is_told_with_its_line(spark: Any, tmp_path: Path) -> None:
    """A cell that goes on over a line, or after its quote, is no guess of ours."""
    file = tmp_path / "x.csv"
    file.write_text('id,note\n1,"two\nlines"\n\n2,"a"b\n3,"said ""so"", he"\n4\n')
    frame = read_events(spark, file, columns=RecordMapping(id="id"))
    assert events_in(frame) == [Event("3", (("note", 'said "so", he'),))]
    letters = [tuple(letter) for letter in dead_letters(frame).orderBy("line").collect()]
    assert letters == [
        ("x.csv", 2, "this quoted text has no end", '1,"two'),
        ("x.csv", 3, "this quoted text has no end", 'lines"'),
        ("x.csv", 5, "not a row: ',' expected after '\"'", '2,"a"b'),
        ("x.csv", 7, "the row has 1 cells, the header 2", "4"),
    ]


@pytest.mark.spark
def test_spark_reads_what_workers_cannot(spark: Any, tmp_path: Path) -> None:
    """Options of its reader, folders that stand for columns; a separator or a glob does not."""
    file = tmp_path / "some" / "x.csv"
    file.parent.mkdir()
    file.write_text('id;when;note\n1;31/12/2020;"two\nlines"\n')
    (tmp_path / "days" / "day=mon").mkdir(parents=True)
    (tmp_path / "days" / "day=mon" / "x.csv").write_text("id,x\n1,2\n")
    lines = read_events(spark, file, columns=RecordMapping(id="id"), options={"sep": ";", "multiLine": "true"})
    assert [event.tuples[1] for event in events_in(lines)] == [("note", "two\nlines")]
    folders = read_events(spark, tmp_path / "days", format="csv", columns=RecordMapping(id="id"))
    assert [event.tuples for event in events_in(folders)] == [(("x", 2), ("day", "mon"))]
    assert not any(map(own, (lines, folders)))
    options = {"sep": ";", "pathGlobFilter": "x.*"}
    plain = read_events(spark, file.parent, format="csv", columns=RecordMapping(id="id"), options=options)
    assert own(plain)
    assert dead_letters(plain).count() == 2


@pytest.mark.spark
def test_a_date_and_a_clock_are_joined_by_whoever_reads(spark: Any, tmp_path: Path) -> None:
    """Workers, Spark's expressions and one process; a half alone is a flaw."""
    file = tmp_path / "x.csv"
    file.write_text("id,day,clock,x\n1,16.11.2026,08:00,a\n2,17.11.2026,,b\n3,,,c\n4,17.11.2026,noon,d\n")
    columns = RecordMapping(id="id", time="Day+clock", time_format={"Day+clock": "%d.%m.%Y %H:%M"})
    mine, theirs = read_events(spark, file, columns=columns), by_spark(spark, file, columns)
    assert (own(mine), own(theirs)) == (True, False)
    exact = RecordMapping(id="id", time="day+clock", time_format="%d.%m.%Y %H:%M")
    named, _ = in_process(file, exact)
    assert events_in(mine) == events_in(theirs) == named
    assert [event.tuples for event in named] == [(("x", "a"),), (("x", "c"),)]
    reasons = [[row["reason"] for row in dead_letters(frame).orderBy("record").collect()] for frame in (mine, theirs)]
    assert reasons == [
        ["clock is missing, so day+clock is no time", "day+clock '17.11.2026 noon' is not of the time format"],
        ["a part of the time is missing", "day+clock is not a time"],
    ]


@pytest.mark.spark
def test_spark_gives_a_row_the_id_and_the_times_that_workers_give_it(spark: Any, tmp_path: Path) -> None:
    """Cells in quotes, empty ones and other alphabets are part of an id; times have a format."""
    file = tmp_path / "x.csv"
    file.write_text('when,note,more\n31/12/2020,"said ""so"", he",x\n1/2/2021,été,""\n')
    columns = RecordMapping(time="when", time_format="%d/%m/%Y")
    mine, theirs = read_events(spark, file, columns=columns), by_spark(spark, file, columns)
    assert own(mine)
    assert not own(theirs)
    assert events_in(mine) == events_in(theirs)
    assert {event.time.day for event in events_in(mine)} == {1, 31}


@pytest.mark.spark
def test_times_without_a_zone_are_those_of_the_session(spark: Any, tmp_path: Path) -> None:
    """Of the session as it was when the events were read."""
    file = tmp_path / "x.csv"
    times = ["2020-07-01 12:00:00", "2020-03-29T01:30:00", "2020-10-25 01:30:00", "2020-07-01T12:00:00Z"]
    file.write_text("\n".join(["id,when", *(f"{number},{time}" for number, time in enumerate(times))]))
    columns = RecordMapping(id="id", time="when", attributes=["id"])
    spark.conf.set("spark.sql.session.timeZone", "Europe/Dublin")
    try:
        mine, theirs = read_events(spark, file, columns=columns), by_spark(spark, file, columns)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert own(mine)
    assert events_in(mine) == events_in(theirs)


@pytest.mark.spark
def test_a_zone_that_only_java_knows_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,when\n1,2020-07-01 12:00:00\n")
    spark.conf.set("spark.sql.session.timeZone", "PST")
    try:
        with pytest.raises(BuildError, match=r"session.*no time zone 'PST'"):
            read_events(spark, tmp_path / "x.csv", columns=RecordMapping(id="id", time="when", attributes=["id"]))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def written(events: list[Event], path: Path) -> Path:
    lines = [
        f"{event.id},{event.time:%Y-%m-%dT%H:%M:%SZ},{','.join(str(value) for _, value in event.tuples)}"
        for event in events
    ]
    path.write_text("\n".join(["id,time,type,room", *lines]))
    return path


@pytest.mark.spark
def test_matches_and_detections_are_those_of_parquet_and_of_one_process(spark: Any, tmp_path: Path) -> None:
    events = trace(400)
    csv = read_events(spark, written(events, tmp_path / "e.csv"), columns=RecordMapping(id="id", time="time"))
    pq.write_table(pa.Table.from_batches([batch_of(events)]), tmp_path / "e.parquet")
    parquet = read_events(spark, tmp_path / "e.parquet")
    interests = "x: {type = a}\ny: {room = r1, type = b}"
    mine, theirs = (sorted(map(str, match(frame, interests).collect())) for frame in (csv, parquet))
    assert mine == theirs
    matcher = Matcher()
    for subscription in parse(interests):
        assert isinstance(subscription.body, Profile)
        matcher.add(subscription.body, options=subscription.options, key=subscription.name)
    assert len(mine) == sum(map(len, matcher.match_batch(events)))
    assert signatures(detect(csv, PATTERNS).toArrow()) == expected(events)


@pytest.mark.spark
def test_a_stream_of_files_has_a_header_in_each(spark: Any, tmp_path: Path) -> None:
    events = trace(60)
    (tmp_path / "in").mkdir()
    for number in range(3):
        written(events[number::3], tmp_path / "in" / f"{number}.csv")
    options = {"maxFilesPerTrigger": "1"}
    frame = read_events(
        spark, tmp_path / "in", format="csv", columns=RecordMapping(id="id", time="time"), stream=True, options=options
    )
    assert own(frame)
    rows: list[Any] = []
    writer = match(frame, "x: {type = a}").writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert sorted(row["event_id"] for row in rows) == [event.id for event in events if ("type", "a") in event.tuples]
