"""Workers that read Parquet themselves see the events that Spark would give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.events import BadRecord, Event
from likewise.pipeline import match, read_events
from likewise.pipeline.events.frame import batch_of, events_of
from likewise.pipeline.events.scan import Scan, read_part, shares
from likewise.pipeline.events.transfer import event_rows, over_events, sound

INTERESTS = "x: {temperature > 4, free = true}"
MINUTE = 60_000_000


def some_events(count: int) -> list[Event]:
    return [
        Event(
            f"e{number}",
            (
                ("temperature", number % 7),
                ("room", f"r{number % 3}"),
                ("note", f"text {number}"),
                ("free", number % 2 == 0),
            ),
            ("city", "energy")[: number % 3],
            number * MINUTE,
            number * MINUTE + 5,
        )
        for number in range(count)
    ]


def events_seen(frame: Any) -> list[str]:
    """Every event of a frame as the workers see it, in plain text."""

    def tell(batches: Iterable[Any]) -> Iterator[Any]:
        # Workers cannot import the tests: what they run must travel by value.
        import json

        import pyarrow as pa

        from likewise.pipeline.events.frame import events_of

        for batch in batches:
            made = [[event.id, event.tuples, event.theme, event.start, event.end] for event in events_of(batch)]
            yield pa.record_batch({"event": [json.dumps(fields) for fields in made]})

    return sorted(row["event"] for row in over_events(frame, tell, "event string").collect())


def direct(frame: Any) -> bool:
    """Whether workers read the files of a frame."""
    return isinstance(event_rows(frame)[1], Scan)


def table_of(events: list[Event], flaws: int = 0) -> pa.Table:
    bad = [BadRecord("f", number, "no", b"") for number in range(flaws)]
    return pa.Table.from_batches([batch_of(events, bad)])


@pytest.mark.spark
def test_what_spark_wrote_is_read_alike(spark: Any, tmp_path: Path) -> None:
    events = some_events(500)
    pq.write_table(table_of(events, 3), tmp_path / "one.parquet")
    spark.read.parquet(str(tmp_path / "one.parquet")).repartition(3).write.parquet(str(tmp_path / "many"))
    frame = read_events(spark, tmp_path / "many", format="parquet")
    assert direct(frame)
    assert events_seen(frame) == events_seen(frame.select("*"))
    assert len(events_seen(frame)) == 500


@pytest.mark.spark
def test_other_writers_and_gaps_are_read_alike(spark: Any, tmp_path: Path) -> None:
    """Large strings, other orders of texts, nulls wherever they can be, columns that are missing in a file."""
    pq.write_table(table_of(some_events(20)), tmp_path / "a.parquet", row_group_size=6)
    text = pa.large_string()
    reordered = pa.struct([("kind", text), ("value", text), ("name", text)])
    gaps: list[Any] = [
        [{"name": None, "value": "x", "kind": "text"}, {"name": "a", "value": None, "kind": None}],
        [None, {"name": "b", "value": "3", "kind": "number"}],
        [],
        None,
    ]
    columns = {"attributes": pa.array(gaps, pa.large_list(reordered)), "id": pa.array(["g0", "g1", "g2", "g3"], text)}
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    frame = read_events(spark, tmp_path, format="parquet")
    assert direct(frame)
    assert events_seen(frame) == events_seen(frame.select("*"))
    assert [json.loads(line)[0] for line in events_seen(frame) if '"g' in line] == ["g0", "g1"]


@pytest.mark.spark
def test_spark_reads_what_workers_cannot(spark: Any, tmp_path: Path) -> None:
    """Columns told by folders, other types, options for the reader, and whatever was done to the events before."""
    pq.write_table(table_of(some_events(5)), tmp_path / "plain.parquet")
    (tmp_path / "days" / "end=2026-01-01").mkdir(parents=True)
    pq.write_table(table_of(some_events(5)).drop(["end"]), tmp_path / "days" / "end=2026-01-01" / "x.parquet")
    by_name = pa.table({"id": ["x"], "attributes": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))})
    pq.write_table(by_name, tmp_path / "map.parquet")
    plain = read_events(spark, tmp_path / "plain.parquet")
    assert direct(plain)
    assert not direct(plain.where("id > 'e1'"))
    assert not direct(read_events(spark, tmp_path / "days", format="parquet"))
    assert not direct(read_events(spark, tmp_path / "map.parquet"))
    assert not direct(read_events(spark, tmp_path / "plain.parquet", options={"mergeSchema": "true"}))
    assert events_seen(plain.where("id > 'e1'")) == [
        line for line in events_seen(plain) if '"e0"' not in line and '"e1"' not in line
    ]


@pytest.mark.spark
def test_matches_are_the_same_either_way(spark: Any, tmp_path: Path) -> None:
    pq.write_table(table_of(some_events(200)), tmp_path / "e.parquet", row_group_size=50)
    frame = read_events(spark, tmp_path / "e.parquet")
    for explain in (False, True):
        ways = [
            match(read, "x: {temperature > 4, free = true}", with_explanation=explain)
            for read in (frame, frame.select("*"))
        ]
        mine, theirs = (sorted(map(str, found.collect())) for found in ways)
        assert mine == theirs
        assert len(mine) == sum(number % 7 > 4 and number % 2 == 0 for number in range(200))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 9))
def test_shares_of_a_file_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group: int, count: int
) -> None:
    """However a file is shared out, every row group is read once."""
    path = tmp_path_factory.mktemp("shares") / "e.parquet"
    events = some_events(rows)
    pq.write_table(table_of(events), path, row_group_size=group)
    read = [
        event
        for part in range(count)
        for batch in read_part(str(path), part, count)
        for event in events_of(sound(batch))
    ]
    assert read == events


@pytest.mark.parametrize("limit", [1_000, 100_000])
def test_a_dictionary_that_grew_too_large_is_no_hindrance(tmp_path: Path, limit: int) -> None:
    """A writer that gives up on numbering texts half-way leaves both ways in one row group."""
    events = [
        Event(f"e{number}", tuple((f"a{at}", f"value {number} {at}") for at in range(3)), (), number, number)
        for number in range(25_000)
    ]
    path = tmp_path / "e.parquet"
    pq.write_table(table_of(events), path, row_group_size=15_000, dictionary_pagesize_limit=limit, data_page_size=5_000)
    read = [event for batch in read_part(str(path), 0, 1) for event in events_of(sound(batch))]
    assert [event.id for event in read] == [event.id for event in events]
    assert read == events


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(0, 1 << 30)), st.integers(1 << 22, 1 << 28))
def test_tasks_have_every_share_once_and_not_too_much(sizes: dict[str, int], most: int) -> None:
    tasks = shares(sizes, most=most)
    parts = [part for task in tasks for part in task]
    counts = {path: count for path, _, count in parts}
    assert sorted(parts) == sorted((path, number, counts[path]) for path in sizes for number in range(counts[path]))
    assert all(sum(sizes[path] // count for path, _, count in task) <= 2 * most for task in tasks)
