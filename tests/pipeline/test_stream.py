"""Streams: changed without restart, poison beside, late and early events, nothing lost and nothing twice."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from tests.pipeline.traces import PATTERNS, SECOND, START, closing, expected, signatures, trace, write_files

from likewise.errors import BuildError
from likewise.events import Event
from likewise.pipeline.detection.batch import detect
from likewise.pipeline.detection.route import RouteTask
from likewise.pipeline.events.frame import batch_of
from likewise.pipeline.events.read import read_events
from likewise.pipeline.streaming.sinks import FileSink
from likewise.pipeline.streaming.stream import Places, Stream, read_stream
from likewise.pipeline.streaming.subscriptions import FixedRecipe, SubscriptionTable
from likewise.recipe import Recipe

pytestmark = pytest.mark.spark

ONE_FILE = {"maxFilesPerTrigger": "1"}
NOW = {"availableNow": True}


def run(stream: Stream) -> None:
    stream.start().awaitTermination()


def test_subscriptions_change_between_batches_and_poison_goes_aside(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """The table is read for every batch; a broken table leaves the last good one in force."""
    inbox, table, out = tmp_path / "in", tmp_path / "subscriptions.lw", str(tmp_path / "out")
    letters = FileSink(str(tmp_path / "letters"), format="json")
    table.write_text("first: {type = a}")
    events = trace(90)

    def step(number: int, text: str) -> None:
        write_files(inbox, events[30 * number : 30 * number + 30], size=30, first=number)
        table.write_text(text)
        frame = read_stream(spark, "files", {"path": str(inbox)}, places=Places(checkpoint))
        source = SubscriptionTable(str(table), Places(checkpoint).pins)
        run(Stream(frame, source, FileSink(out), checkpoint, dead_letters=letters, trigger=NOW))

    step(0, "first: {type = a}")
    (inbox / "poison.jsonl").write_bytes(b"not an event\n")
    os.utime(inbox / "poison.jsonl", (10**9, 10**9))  # Spark passes over files much older than the newest
    step(1, "second: {type = b}")
    step(2, "broken: {type = ")
    rows = Counter((row["subscription"], row["event_id"]) for row in spark.read.parquet(out).collect())
    changes = [("first", "a"), ("second", "b"), ("second", "b")]
    wanted = Counter(
        (changes[at // 30][0], event.id)
        for at, event in enumerate(events)
        if dict(event.tuples)["type"] == changes[at // 30][1]
    )
    assert rows == wanted
    (letter,) = spark.read.json(str(tmp_path / "letters")).collect()
    assert (letter["source"], letter["record"]) == ("poison.jsonl", "not an event")
    assert "expected" in (Path(Places(checkpoint).pins) / "error.txt").read_text()


def test_out_of_order_events_across_batches_give_what_the_detector_gives(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """Events come up to 20 places late, over several batches; state waits for the watermark."""
    events = trace(120, jitter=20)
    last = closing(events)
    write_files(tmp_path / "in", [*events, last], size=40)
    frame = read_events(spark, tmp_path / "in", format="jsonl", stream=True, options=ONE_FILE)
    found = detect(frame, PATTERNS, lateness="25 seconds", buckets=2)
    query = found.writeStream.format("memory").queryName("detections").option("checkpointLocation", checkpoint)
    query.trigger(**NOW).start().awaitTermination()
    # Time alone decides nothing after the last event has come.
    assert signatures(spark.table("detections").toArrow()) == before(expected([*events, last]), last)


PAIR = "pair: {type = a} as x then {type = b} as y within 1 minute where x.room = y.room"


def reading(name: str, kind: str, at: float, room: str = "1") -> Event:
    moment = START + int(at * SECOND)
    return Event(name, (("type", kind), ("room", room)), (), moment, moment)


def letters_of(spark: Any, folder: Path) -> set[tuple[str, str]]:
    """Why, and the id of the event or the record itself."""
    rows = spark.read.json(str(folder)).collect()
    return {
        (row["reason"], json.loads(row["record"])["id"] if row["record"].startswith("{") else row["record"])
        for row in rows
    }


def test_late_events_and_poison_become_dead_letters_beside_the_detections(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """What comes after the watermark has passed it is told, with the pattern that missed it; the rest is in time."""
    batches = [
        [reading("a1", "a", 0), reading("a2", "a", 10, room="2")],
        [reading("tick", "z", 300)],
        # The watermark is at 300 - 30 seconds: one is before it, the other just in time.
        [reading("late", "b", 20), reading("a3", "a", 275), reading("b3", "b", 280)],
        [reading("later", "b", 269.5), reading("b4", "b", 270), Event("nowhen", (("type", "a"),))],
        [reading("end", "z", 9000)],
    ]
    inbox, letters = tmp_path / "in", tmp_path / "letters"
    for number, events in enumerate(batches):
        write_files(inbox, events, size=9, first=number)
    with (inbox / "0003.jsonl").open("ab") as file:
        file.write(b"not an event\n")
    os.utime(inbox / "0003.jsonl", (10**9 + 3, 10**9 + 3))
    frame = read_stream(spark, "files", {"path": str(inbox), **ONE_FILE}, places=Places(checkpoint))
    sink, beside = FileSink(str(tmp_path / "out")), FileSink(str(letters), format="json")
    stream = Stream(
        frame, FixedRecipe(Recipe.of(PAIR)), sink, checkpoint, dead_letters=beside, trigger=NOW, lateness="30 seconds"
    )
    query = stream.start()
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch").toArrow()
    assert [[member["id"] for member in row["events"]] for row in found.to_pylist()] == [["a3", "b3"]]
    assert letters_of(spark, letters) == {
        ("late by 250 s for pair", "late"),
        ("late by 0.5 s for pair", "later"),
        ("it has no time", "nowhen"),
        (next(why for why, what in letters_of(spark, letters) if what == "not an event"), "not an event"),
    }
    refused = [step["observedMetrics"]["refused"]["events"] for step in query.recentProgress if step["numInputRows"]]
    assert refused == [0, 0, 1, 3, 0]


def test_without_a_delay_what_an_event_completes_is_told_in_its_batch(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """Nothing need follow. One more of the same moment is in time; one before it is late, even in its millisecond."""
    batches = [
        [reading("a", "a", 0)],
        [reading("b1", "b", 1.0005)],
        [reading("b2", "b", 1.0005), reading("before", "b", 1.0004)],
    ]
    for number, events in enumerate(batches):
        write_files(tmp_path / "in", events, size=9, first=number)
    frame = read_stream(spark, "files", {"path": str(tmp_path / "in"), **ONE_FILE}, places=Places(checkpoint))
    batches: list[tuple[int, int, str]] = []

    def sink(rows: Any, batch: int) -> None:
        batches.extend((batch, rows.count(), row["events"][1]["id"]) for row in rows.collect())

    beside = FileSink(str(tmp_path / "letters"), format="json")
    query = Stream(frame, FixedRecipe(Recipe.of(PAIR)), sink, checkpoint, dead_letters=beside, trigger=NOW).start()
    query.awaitTermination()
    with_events = [step["batchId"] for step in query.recentProgress if step["numInputRows"]]
    assert batches == [(with_events[1], 1, "b1"), (with_events[2], 1, "b2")]
    assert letters_of(spark, tmp_path / "letters") == {("it is too late for pair", "before")}


def test_a_clock_far_ahead_is_refused_and_does_not_move_the_watermark(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """One wrong clock must not make all that follows late."""
    now = time.time_ns() // 1000
    wrong = Event("wrong", (("type", "z"),), (), now + 10**15, now + 10**15)
    write_files(tmp_path / "in", [wrong], size=1)
    write_files(tmp_path / "in", [reading("a", "a", 0), reading("b", "b", 1)], size=2, first=1)
    write_files(tmp_path / "in", [reading("end", "z", 900)], size=1, first=2)
    frame = read_stream(spark, "files", {"path": str(tmp_path / "in"), **ONE_FILE}, places=Places(checkpoint))
    sink, beside = FileSink(str(tmp_path / "out")), FileSink(str(tmp_path / "letters"), format="json")
    run(
        Stream(
            frame, FixedRecipe(Recipe.of(PAIR)), sink, checkpoint, dead_letters=beside, trigger=NOW, max_ahead="1 day"
        )
    )
    assert spark.read.parquet(str(tmp_path / "out")).count() == 1
    assert letters_of(spark, tmp_path / "letters") == {("its clock is too far ahead", "wrong")}


def test_patterns_are_added_changed_and_removed_in_a_stream_and_the_others_keep_their_state(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    """Each file is a batch of its own: the table is read for it, while the same query runs."""
    inbox, table, out = tmp_path / "in", tmp_path / "patterns.lw", tmp_path / "out"
    inbox.mkdir()

    def pattern(name: str, first: str, second: str) -> str:
        return f"{name}: {{type = {first}}} as x then {{type = {second}}} as y within 1 hour where x.room = y.room\n"

    kept, gone = pattern("kept", "a", "b"), pattern("gone", "a", "b")
    table.write_text(kept + gone + pattern("changed", "a", "b"))
    source = SubscriptionTable(str(table), Places(checkpoint).pins)
    frame = read_stream(spark, "files", {"path": str(inbox)}, places=Places(checkpoint))
    query = Stream(frame, source, FileSink(str(out)), checkpoint).start()
    try:
        write_files(inbox, [reading("a1", "a", 0), reading("t1", "z", 10)], size=9, first=0)
        query.processAllAvailable()
        table.write_text(kept + pattern("changed", "a", "c") + pattern("added", "c", "b"))
        write_files(inbox, [reading("c1", "c", 20), reading("b1", "b", 30), reading("t2", "z", 40)], size=9, first=1)
        query.processAllAvailable()
        table.write_text(kept + gone + pattern("changed", "a", "c"))
        write_files(inbox, [reading("a2", "a", 50), reading("b2", "b", 60), reading("c2", "c", 70)], size=9, first=2)
        query.processAllAvailable()
        write_files(inbox, [reading("end", "z", 90)], size=9, first=3)
        query.processAllAvailable()
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.read.parquet(str(out)).collect()
    found = {(row["pattern"], *(member["id"] for member in row["events"])) for row in rows}
    assert found == {
        ("kept", "a1", "b1"),  # held what it had while the others changed
        ("kept", "a1", "b2"),
        ("kept", "a2", "b2"),
        ("added", "c1", "b1"),  # and was removed before b2
        ("gone", "a2", "b2"),  # came back with nothing of what it had held
        ("changed", "a2", "c2"),  # a1 was held by what it was before
    }
    assert len(rows) == len(found)


def before(found: Counter[Any], last: Event) -> Counter[Any]:
    """Without what is only known at the very last moment, which a watermark never reaches."""
    return Counter({key: count for key, count in found.items() if key[1] < (last.start or 0)})


def test_a_hot_key_has_a_place_of_its_own_and_the_rest_go_elsewhere(spark: Any) -> None:
    """Nine of ten events are of one room: they meet in one partition, the others are spread as if it were not there."""
    events = [
        reading(f"e{number:05}", "ab"[number % 2], number, room="hot" if number % 10 else f"r{number // 20}")
        for number in range(400)
    ]
    text = "pair: {type = a} as x then {type = b} as y within 1 second where x.room = y.room"
    routed = pa.Table.from_batches(RouteTask(FixedRecipe(Recipe.of(text)), 8)([batch_of(events)])).to_pylist()
    parts: dict[str, Counter[int]] = {"hot": Counter(), "cold": Counter()}
    for row in routed:
        if row["hits"] is not None:
            parts["hot" if "hot" in row["tuples"] else "cold"][row["part"]] += 1
    assert sum(parts["hot"].values()) == 360
    assert len(parts["hot"]) == 1
    assert len(parts["cold"]) == 8
    assert max(parts["cold"].values()) <= 20
    frame = spark.createDataFrame(pa.Table.from_batches([batch_of(events)]))
    assert signatures(detect(frame, text).toArrow()) == expected(events, text)


def test_events_come_through_a_socket(spark: Any, tmp_path: Path, checkpoint: str) -> None:
    """A JSON line each; what is no event is a dead letter, and one without a time gets that of its arrival."""
    lines = b'{"id": "e1", "time": "2026-01-01T10:00:00Z", "attributes": {"type": "a"}}\npoison\n'
    lines += b'{"id": "e2", "attributes": {"type": "a"}}\n'
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        frame = read_stream(spark, "socket", {"host": "127.0.0.1", "port": port}, places=Places(checkpoint))
        sink, letters = FileSink(str(tmp_path / "out")), FileSink(str(tmp_path / "letters"), format="json")
        query = Stream(frame, FixedRecipe(Recipe.of("any: {type = a}")), sink, checkpoint, dead_letters=letters).start()
        try:
            server.settimeout(60)
            client, _ = server.accept()
            with client:
                client.sendall(lines)
                for _ in range(600):
                    if sum(step["numInputRows"] for step in query.recentProgress) >= 3:
                        break
                    time.sleep(0.1)
        finally:
            query.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("event_id").collect()
    assert [row["event_id"] for row in rows] == ["e1", "e2"]
    assert rows[1]["time"] is not None
    (letter,) = spark.read.json(str(tmp_path / "letters")).collect()
    assert (letter["source"], letter["record"]) == (f"127.0.0.1:{port}", "poison")


def test_a_source_says_what_it_lacks(spark: Any) -> None:
    with pytest.raises(BuildError, match="no source"):
        read_stream(spark, "pigeon", {}, places=Places("x"))
    for source in ("files", "mqtt", "socket", "rate"):
        with pytest.raises(BuildError, match=f"the source {source} needs"):
            read_stream(spark, source, {}, places=Places("x"))


def test_rate_tells_a_file_over_and_over(spark: Any, tmp_path: Path, checkpoint: str) -> None:
    write_files(tmp_path / "in", trace(3), size=3)
    options = {"path": str(tmp_path / "in"), "format": "jsonl", "rowsPerSecond": "50"}
    frame = read_stream(spark, "rate", options, places=Places(checkpoint))
    source = FixedRecipe(Recipe.of("any: {type != z}"))
    stream = Stream(frame, source, FileSink(str(tmp_path / "out")), checkpoint)
    query = stream.start()
    try:
        for _ in range(300):
            time.sleep(0.2)
            if any(progress["numInputRows"] >= 3 for progress in query.recentProgress):
                break
    finally:
        query.stop()
    ids = {row["event_id"].split("-")[0] for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    assert ids == {"e00000", "e00001", "e00002"}


def test_with_a_heartbeat_an_absence_is_told_though_nothing_comes(spark: Any, tmp_path: Path, checkpoint: str) -> None:
    """The one event there ever is has no successor; the clock says when it was too long ago. The rest is as without."""
    now = time.time_ns() // 1000
    opened = Event("opened", (("type", "a"), ("room", "1")), (), now, now)
    write_files(tmp_path / "in", [opened], size=1)
    frame = read_stream(spark, "files", {"path": str(tmp_path / "in")}, places=Places(checkpoint))
    text = "open: {type = a} as x then not {type = b} as y for 2 seconds where x.room = y.room"
    sink = FileSink(str(tmp_path / "out"))
    query = Stream(frame, FixedRecipe(Recipe.of(text)), sink, checkpoint, heartbeat="1 second").start()
    try:
        found: list[Any] = []
        for _ in range(600):
            if list((tmp_path / "out").glob("batch=*/*.parquet")):
                found = spark.read.parquet(str(tmp_path / "out")).drop("batch").toArrow().to_pylist()
            if found:
                break
            time.sleep(0.2)
    finally:
        query.stop()
    (row,) = found
    assert [member["id"] for member in row["events"]] == ["opened"]
    assert row["end"].timestamp() * SECOND == pytest.approx(now + 2 * SECOND, abs=1)


@pytest.mark.parametrize(
    ("trigger", "text", "message"),
    [
        (NOW, PAIR, "streams that go on"),
        ({}, "single: {type = a}", "is for patterns"),
        ({}, PAIR, "too short"),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(
    spark: Any, tmp_path: Path, checkpoint: str, trigger: Any, text: str, message: str
) -> None:
    (tmp_path / "in").mkdir()
    frame = read_stream(spark, "files", {"path": str(tmp_path / "in")}, places=Places(checkpoint))
    source, sink = FixedRecipe(Recipe.of(text)), FileSink(str(tmp_path / "out"))
    with pytest.raises(BuildError, match=message):
        Stream(frame, source, sink, checkpoint, trigger=trigger, heartbeat="10 ms").start()
