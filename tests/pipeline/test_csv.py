"""Workers that read CSV themselves make the events that Spark's reader and expressions would."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.pipeline.traces import PATTERNS, expected, signatures, trace

from likewise.events import Event, instants
from likewise.language import Profile, parse
from likewise.matching import Matcher
from likewise.pipeline import TableMapping, dead_letters, detect, match, read_events
from likewise.pipeline.events.csv import Lines, Place, Table
from likewise.pipeline.events.csv_kernel import (
    find_black,
    find_lines,
    gather_cells,
    name_texts,
    split_cells,
    write_rows,
)
from likewise.pipeline.events.csv_scan import read_share
from likewise.pipeline.events.frame import batch_of, events_of
from likewise.pipeline.events.timestamps import read_common

HEADER = ["id", "when", "until", "tags", "temp", "place"]
ALL = TableMapping(id="id", time="when", end="until", theme="tags")
NAMELESS = TableMapping(time="when", kinds={"temp": "text", "place": "number"}, constants={"x": ""})


def rows_of(frame: Any) -> Counter[str]:
    """Every row, whatever its order and its line."""
    table = frame.toArrow()
    for at, name in ((1, "time"), (2, "end")):
        # As numbers: years after 9999 are no dates of Python's.
        table = table.set_column(at, name, instants(table[name]))
    rows = table.to_pylist()
    for row in rows:
        if row["flaw"]:
            row["flaw"]["line"] = None
    return Counter(map(str, rows))


def by_spark(spark: Any, path: Path, columns: TableMapping) -> Any:
    """The same read by Spark: any option of its reader, even one that says nothing new, leaves it to Spark."""
    return read_events(spark, path, format="csv", columns=columns, options={"mode": "PERMISSIVE"})


def own(frame: Any) -> bool:
    """Whether workers make the events."""
    return "_likewise_origin" in vars(frame)


def events_in(frame: Any) -> list[Event]:
    return sorted(events_of(frame.toArrow()), key=lambda event: event.id)


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


WORDS = st.text(st.sampled_from(list("ab10.,-+eT: \t'\"\\/\u00e9\u2028\u0085\u00df\U0001f600\x1f\x7f")), max_size=6)
PLAIN = WORDS.map(lambda text: text.replace(",", "").lstrip('"'))
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
            "1\u2028",
            '""',
            '"x" ',
            '5" x',
            "NaN",
            " Infinity ",
            "-Infinity",
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
        "2020-01-01 10:30:00.123456789+01:00",
        "2020-1-2",
        "soon",
        "2020-02-30T00:00:00",
        "1969-12-31 23:59:59.5 Europe/Dublin",
        "2020-01-01T10:30Z",
        " 2020-01-01T10:30:00 ",
        "12020-01-01 1:2:3",
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
CONTENTS = st.tuples(st.lists(LINES, min_size=20, max_size=60), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())


@pytest.mark.spark
@settings(
    deadline=None,
    max_examples=3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(CONTENTS, max_size=3), st.booleans(), st.sampled_from([ALL, NAMELESS]))
def test_any_table_is_read_as_spark_reads_it(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, contents: list[Any], packed: bool, columns: TableMapping
) -> None:
    """Several files with a header each; quotes, blanks, nulls, bad rows, odd times, BOM; whoever reads the bytes."""
    folder = tmp_path_factory.mktemp("tables")
    for number, (lines, end, marked) in enumerate([([], "\n", False), *contents]):
        text = end.join([",".join(HEADER), *lines]) + end * (number % 2)
        content = text.encode("utf-8-sig" if marked else "utf-8").replace(b"\xc3\xa9", b"\xe9", 1)
        # One compressed file makes Spark read all lines.
        last = packed and number == len(contents)
        (folder / f"{number}.csv{'.gz' * last}").write_bytes(gzip.compress(content) if last else content)
    mine = read_events(spark, folder, format="csv", columns=columns)
    assert own(mine)
    assert rows_of(mine) == rows_of(by_spark(spark, folder, columns))


TABLE = Table(("id", "x"), TableMapping(id="id"))


@settings(deadline=None)
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
    read = [row for share in shares for batch in read_share(TABLE, share, block=block) for row in batch.to_pylist()]
    whole = [row for batch in read_share(TABLE, (str(path), 0, size)) for row in batch.to_pylist()]
    assert Counter(map(str, read)) == Counter(map(str, whole))
    standing = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for flaw in [row["flaw"] for row in read if row["flaw"] and not row["flaw"]["record"].startswith("{")]:
        assert standing[flaw["line"] - 1] == flaw["record"]


def test_nothing_and_infinity_are_what_they_are_in_any_table() -> None:
    """An empty constant and NaN are no values, and an infinite number is no event; as text both are words."""
    table = Table(("id", "x", "y"), TableMapping(id="id", kinds={"x": "number"}, constants={"none": "", "c": "d"}))
    good, bad = table.events(Lines.of_text(b"a,NaN,NaN\nb, -Infinity ,1\nc,2,Infinity\n")[0], Place("x.csv"))
    assert [[tuple(each.values()) for each in row] for row in good.column("attributes").to_pylist()] == [
        [("y", "NaN", "text"), ("c", "d", "text")],
        [("x", "2", "number"), ("y", "Infinity", "text"), ("c", "d", "text")],
    ]
    (flaw,) = bad.column("flaw").to_pylist()
    assert (flaw["reason"], flaw["record"]) == ("a number is infinite", '{"id":"b","x":" -Infinity ","y":"1"}')
    bare = Table(("id", "x"), TableMapping(id="id", constants={"none": ""}))
    (letters,) = bare.events(Lines.of_text(b"a,\n")[0], Place("x.csv"))
    assert letters.column("flaw")[0]["reason"].as_py() == "the event has no attributes"


def test_kernels_are_compiled_once_for_all_lines() -> None:
    """Lines of a file and of Spark, good rows and bad, are the same to them: compiling takes seconds."""
    table = Table(("id", "when", "x"), TableMapping(time="when"))
    for text in (b"a,2020-01-01T00:00:00Z,1\nb,soon,2\nc\n", b"a,2020-01-01T00:00:00Z,1\n"):
        column = pa.array(text.splitlines(), pa.binary())
        for lines in (Lines.of_text(text)[0], Lines.of_column(column)[0], Lines.of_column(column.slice(0, 1))[0]):
            assert next(iter(table.events(lines, Place("x.csv")))).column("attributes")[0].as_py()
    for kernel in (find_lines, find_black, split_cells, gather_cells, write_rows, name_texts, read_common):
        assert len(kernel.signatures) == 1


@pytest.mark.spark
def test_a_torn_quote_is_told_with_its_line(spark: Any, tmp_path: Path) -> None:
    """A cell that goes on over a line, or after its quote, is no guess of ours."""
    file = tmp_path / "x.csv"
    file.write_text('id,note\n1,"two\nlines"\n\n2,"a"b\n3,"said ""so"", he"\n4\n')
    frame = read_events(spark, file, columns=TableMapping(id="id"))
    assert events_in(frame) == [Event("3", (("note", 'said "so", he'),))]
    letters = [tuple(letter) for letter in dead_letters(frame).orderBy("line").collect()]
    torn = "a quote is not closed, or closed before its cell ends"
    assert letters == [
        ("x.csv", 2, torn, '1,"two'),
        ("x.csv", 3, "the row has another number of cells", 'lines"'),
        ("x.csv", 5, torn, '2,"a"b'),
        ("x.csv", 7, "the row has another number of cells", "4"),
    ]


@pytest.mark.spark
def test_spark_reads_what_workers_cannot(spark: Any, tmp_path: Path) -> None:
    """Options of its reader, formats of times, folders that stand for columns; a separator or a glob does not."""
    file = tmp_path / "some" / "x.csv"
    file.parent.mkdir()
    file.write_text('id;when;note\n1;31/12/2020;"two\nlines"\n')
    (tmp_path / "days" / "day=mon").mkdir(parents=True)
    (tmp_path / "days" / "day=mon" / "x.csv").write_text("id,x\n1,2\n")
    lines = read_events(spark, file, columns=TableMapping(id="id"), options={"sep": ";", "multiLine": "true"})
    assert [event.tuples[1] for event in events_in(lines)] == [("note", "two\nlines")]
    timed = TableMapping(id="id", time="when", attributes=["when"], time_format="dd/MM/yyyy")
    moments = read_events(spark, file, columns=timed, options={"sep": ";"})
    folders = read_events(spark, tmp_path / "days", format="csv", columns=TableMapping(id="id"))
    assert [event.tuples for event in events_in(folders)] == [(("x", 2), ("day", "mon"))]
    assert not any(map(own, (lines, moments, folders)))
    told = {"sep": ";", "pathGlobFilter": "x.*"}
    plain = read_events(spark, file.parent, format="csv", columns=TableMapping(id="id"), options=told)
    assert own(plain)
    assert dead_letters(plain).count() == 2


@pytest.mark.spark
def test_times_without_a_zone_are_those_of_the_session(spark: Any, tmp_path: Path) -> None:
    """Of the session as it was when the events were read."""
    file = tmp_path / "x.csv"
    times = ["2020-07-01 12:00:00", "2020-03-29T01:30:00", "2020-10-25 01:30:00", "2020-07-01T12:00:00Z"]
    file.write_text("\n".join(["id,when", *(f"{number},{time}" for number, time in enumerate(times))]))
    columns = TableMapping(id="id", time="when", attributes=["id"])
    spark.conf.set("spark.sql.session.timeZone", "Europe/Dublin")
    try:
        mine, theirs = read_events(spark, file, columns=columns), by_spark(spark, file, columns)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert own(mine)
    assert rows_of(mine) == rows_of(theirs)


def written(events: list[Event], path: Path) -> Path:
    lines = [f"{each.id},{each.time:%Y-%m-%dT%H:%M:%SZ},{','.join(str(v) for _, v in each.tuples)}" for each in events]
    path.write_text("\n".join(["id,time,type,room", *lines]))
    return path


@pytest.mark.spark
def test_matches_and_detections_are_those_of_parquet_and_of_one_process(spark: Any, tmp_path: Path) -> None:
    events = trace(400)
    csv = read_events(spark, written(events, tmp_path / "e.csv"), columns=TableMapping(id="id", time="time"))
    pq.write_table(pa.Table.from_batches([batch_of(events)]), tmp_path / "e.parquet")
    parquet = read_events(spark, tmp_path / "e.parquet")
    interests = "x: {type = a}\ny: {room = r1, type = b}"
    mine, theirs = (sorted(map(str, match(each, interests).collect())) for each in (csv, parquet))
    assert mine == theirs
    matcher = Matcher()
    for each in parse(interests):
        assert isinstance(each.body, Profile)
        matcher.add(each.body, options=each.options, key=each.name)
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
        spark, tmp_path / "in", format="csv", columns=TableMapping(id="id", time="time"), stream=True, options=options
    )
    assert own(frame)
    rows: list[Any] = []
    writer = match(frame, "x: {type = a}").writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert sorted(row["event_id"] for row in rows) == [each.id for each in events if ("type", "a") in each.tuples]
