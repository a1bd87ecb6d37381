"""A stream of detections over Spark Connect, with the default settings of a session and with tuned ones."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_detect import PATTERN
from _spark_run import main, row, task

TUNED = {"spark.sql.shuffle.partitions": "2", "spark.python.daemon.module": "likewise.pipeline.daemon"}
"""What the page for own sessions recommends for two cores."""

MOST = 3.0
"""How many times as long the stream may take with default settings."""


def connect_rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    """Seconds from start to end of the same stream in a session of each kind."""
    batches = 4 if quick else 20
    _write_batches(folder / "connect" / "in", batches=batches, size=2_000)
    seconds = {
        name: task(__file__, "stream", cores=2, settings=settings, folder=str(folder / "connect"))
        for name, settings in (("tuned", TUNED), ("default", {}))
    }
    assert seconds["tuned"]["rows"] == seconds["default"]["rows"], "both streams must detect the same"
    what = f"Connect, stream of {batches} batches"
    yield row(f"{what}, tuned settings", seconds["tuned"]["seconds"], "s")
    target = f"at most {MOST * seconds['tuned']['seconds']:.1f}"
    yield row(f"{what}, default settings", seconds["default"]["seconds"], "s", target=target)


def _write_batches(place: Path, *, batches: int, size: int) -> None:
    from likewise.events import Event, encode_line

    dice = random.Random(7)
    place.mkdir(parents=True)
    for batch in range(batches):
        lines = []
        for at in range(size):
            moment = 1_600_000_000_000_000 + batch * 1_800_000_000 + at * (1_800_000_000 // size)
            tuples = (("type", dice.choice("abcd")), ("room", f"room {dice.randrange(1000)}"))
            lines.append(encode_line(Event(f"e{batch}-{at}", tuples, (), moment, moment)))
        file = place / f"{batch:05}.jsonl"
        file.write_bytes(b"".join(lines))
        os.utime(file, (10**9 + batch, 10**9 + batch))


def _stream(*, folder: str, settings: dict[str, str], cores: int) -> dict[str, Any]:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    from pyspark.sql import SparkSession

    from likewise.pipeline import detect, read_events

    builder = SparkSession.builder.remote(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    # The first stream of a session loads classes and workers; the second one is measured.
    for run in ("first", "second"):
        place = Path(folder) / f"{run} {len(settings)}"
        events = read_events(
            spark, Path(folder) / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"}
        )
        found = detect(events, PATTERN, lateness="1 minute")
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(place / "state"))
        started = time.perf_counter()
        writer.trigger(availableNow=True).start(str(place / "out")).awaitTermination()
        seconds = time.perf_counter() - started
    rows = spark.read.parquet(str(place / "out")).count()
    spark.stop()
    return {"seconds": seconds, "rows": rows}


if __name__ == "__main__":
    main(stream=_stream)
