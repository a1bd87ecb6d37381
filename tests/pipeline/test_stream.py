"""Streams: changed without restart, poison beside, late and early events, nothing lost and nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
from likewise.pipeline._detect import detect
from likewise.pipeline._read import read_events
from likewise.pipeline._sinks import FileSink
from likewise.pipeline._stream import Places, Stream, read_stream
from likewise.pipeline._table import Fixed, Table
from likewise.pipeline._worker import Recipe

pytestmark = pytest.mark.spark

ONE_FILE = {"maxFilesPerTrigger": "1"}
NOW = {"availableNow": True}


def run(stream: Stream) -> None:
    for query in stream.start():
        query.awaitTermination()


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
        source = Table(str(table), Places(checkpoint).pins)
        run(Stream(frame, source, FileSink(out), checkpoint, letters=letters, trigger=NOW))

    step(0, "first: {type = a}")
    (inbox / "poison.jsonl").write_bytes(b"not an event\n")
    os.utime(inbox / "poison.jsonl", (10**9, 10**9))  # Spark passes over files much older than the newest
    step(1, "second: {type = b}")
    step(2, "broken: {type = ")
    rows = Counter((row["subscription"], row["event_id"]) for row in spark.read.parquet(out).collect())
    told = [("first", "a"), ("second", "b"), ("second", "b")]
    wanted = Counter(
        (told[at // 30][0], event.id)
        for at, event in enumerate(events)
        if dict(event.tuples)["type"] == told[at // 30][1]
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
    found = detect(frame, PATTERNS, delay="25 seconds", buckets=2)
    query = found.writeStream.format("memory").queryName("detections").option("checkpointLocation", checkpoint)
    query.trigger(**NOW).start().awaitTermination()
    # Time alone decides nothing after the last event has come.
    assert signatures(spark.table("detections").toArrow()) == before(expected([*events, last]), last)


def before(found: Counter[Any], last: Event) -> Counter[Any]:
    """Without what is only known at the very last moment, which a watermark never reaches."""
    return Counter({key: count for key, count in found.items() if key[1] < (last.start or 0)})


def test_a_hot_key_holds_up_nobody(spark: Any) -> None:
    """Nine of ten events are of one room; the rest is found all the same."""
    events = [
        Event(
            f"e{number:05}",
            (("type", "ab"[number % 2]), ("room", "hot" if number % 10 else f"r{number}")),
            (),
            START + number * SECOND,
            START + number * SECOND,
        )
        for number in range(400)
    ]
    text = "pair: {type = a} as x then {type = b} as y within 1 second where x.room = y.room"
    from likewise.pipeline._frame import batch_of

    frame = spark.createDataFrame(pa.Table.from_batches([batch_of(events)]))
    assert signatures(detect(frame, text).toArrow()) == expected(events, text)


DRIVER = """
import sys, time, pathlib
from likewise.pipeline._session import spark_session
from likewise.pipeline._read import read_events
from likewise.pipeline._sinks import FileSink
from likewise.pipeline._stream import Stream
from likewise.pipeline._table import Fixed
from likewise.pipeline._worker import Recipe
from tests.pipeline.traces import PATTERNS

folder, stop_at = pathlib.Path(sys.argv[1]), int(sys.argv[2])
write = FileSink(str(folder / "out"))

def sink(rows, batch):
    write(rows, batch)
    if batch == stop_at:
        (folder / "reached").touch()
        time.sleep(600)

settings = {"spark.sql.shuffle.partitions": "2"}
spark = spark_session(master="local[2]", settings=settings)
events = read_events(spark, folder / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
stream = Stream(events, Fixed(Recipe.of(PATTERNS)), sink, str(folder / "checkpoint"),
                trigger={"availableNow": True}, delay="25 seconds")
for query in stream.start():
    query.awaitTermination()
"""


def test_a_driver_killed_in_the_middle_of_a_batch_loses_nothing_and_repeats_nothing(spark: Any, tmp_path: Path) -> None:
    """The kill falls after a batch was written and before Spark knows it: the worst moment."""
    events = trace(80, jitter=10)
    last = closing(events)
    write_files(tmp_path / "in", [*events, last], size=40)
    log = (tmp_path / "driver.log").open("wb")
    root = Path(__file__).parents[2]

    def start(stop_at: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", DRIVER, str(tmp_path), str(stop_at)]
        environment = os.environ | {"PYTHONPATH": str(root)}
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    driver = start(stop_at=1)
    for _ in range(1800):
        if (tmp_path / "reached").exists() or driver.poll() is not None:
            break
        time.sleep(0.1)
    assert (tmp_path / "reached").exists(), (tmp_path / "driver.log").read_text()[-2000:]
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    again = start(stop_at=-1)
    assert again.wait(timeout=300) == 0, (tmp_path / "driver.log").read_text()[-2000:]
    log.close()
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    assert signatures(found.toArrow()) == before(expected([*events, last]), last)


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
    source = Fixed(Recipe.of("any: {type != z}"))
    stream = Stream(frame, source, FileSink(str(tmp_path / "out")), checkpoint)
    (query,) = stream.start()
    try:
        for _ in range(300):
            time.sleep(0.2)
            if any(progress["numInputRows"] >= 3 for progress in query.recentProgress):
                break
    finally:
        query.stop()
    ids = {row["event_id"].split("-")[0] for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    assert ids == {"e00000", "e00001", "e00002"}
