"""Detection on Spark, batch and streaming, beside the detector in one process and Flink."""

from __future__ import annotations

import os
import random
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_run import best, cpu, main, memory, row, session, task

PATTERN = "pair: first {type = a} as x then first {type = b} as y within 30 minutes where x.room = y.room"


def rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    yield from _detection(folder, quick=quick)
    yield from _streaming(folder, quick=quick)


def _detection(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.composite import Detector
    from likewise.events import Event
    from likewise.language import parse
    from likewise.pipeline._frame import batch_of

    count = 100_000 if quick else 1_000_000
    dice = random.Random(7)
    start = 1_600_000_000_000_000
    events = [
        Event(
            f"e{number}",
            (("type", dice.choice("abcd")), ("room", f"room {dice.randrange(1000)}")),
            (),
            start + number * 100_000,
            start + number * 100_000,
        )
        for number in range(count)
    ]
    path = folder / "rooms.parquet"
    pq.write_table(pa.Table.from_batches([batch_of(events)]), path, row_group_size=50_000)
    detector = Detector(parse(PATTERN))
    found: list[Any] = []
    alone = count / cpu(lambda: found.extend(detector.publish_batch(events)))
    yield row("keyed detection, detector in process", alone, "events/s of one core")
    told = task(__file__, "detect", cores=2, data=str(path))
    same = "same detections" if told["rows"] == len(found) else f"{told['rows']} detections, the detector {len(found)}"
    yield row("keyed detection, Spark, two cores", told["rate"], "events/s by the clock", target=">= Flink", note=same)
    yield row("keyed detection, Spark", told["cpu_rate"], "events/s of one core")
    yield runpy.run_path(str(Path(__file__).with_name("_flink.py")))["keyed_row"](events)


def _streaming(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    """A long stream of the same pattern: the last batches must cost what the first did."""
    batches, size = (9, 1_000) if quick else (60, 10_000)
    told = task(__file__, "stream", cores=2, folder=str(folder / "stream"), batches=batches, size=size)
    yield row("stream, first third of the batches", told["first"], "s a batch")
    yield row("stream, last third of the batches", told["last"], "s a batch", target=f"about {told['first']:.2f}")
    yield row("stream, snapshots of state, middle", told["middle bytes"] / 1e6, "MB")
    what = f"about {told['middle bytes'] / 1e6:.2f}"
    yield row("stream, snapshots of state, end", told["last bytes"] / 1e6, "MB", target=what)


def _detect(*, data: str, cores: int) -> dict[str, Any]:
    from likewise.pipeline import detect, read_events

    with session(cores) as spark, memory() as used:
        events = read_events(spark, data, format="parquet")
        found = detect(events, PATTERN)
        count = events.count()
        seconds, busy, found_rows = best(found, 3)
    return {"rate": count / seconds, "cpu_rate": count / busy, "rows": found_rows, "memory": max(used, default=0)}


def _stream(*, folder: str, batches: int, size: int, cores: int) -> dict[str, Any]:
    from statistics import median

    from likewise.events import Event, encode_line
    from likewise.pipeline import detect, read_events

    place, dice = Path(folder), random.Random(7)
    (place / "in").mkdir(parents=True)
    start = 1_600_000_000_000_000
    for batch in range(batches):
        lines = []
        for at in range(size):
            # Each batch is half an hour of events, so that windows close as fast as they open.
            moment = start + batch * 1_800_000_000 + at * (1_800_000_000 // size)
            tuples = (("type", dice.choice("abcd")), ("room", f"room {dice.randrange(1000)}"))
            lines.append(encode_line(Event(f"e{batch}-{at}", tuples, (), moment, moment)))
        file = place / "in" / f"{batch:05}.jsonl"
        file.write_bytes(b"".join(lines))
        os.utime(file, (10**9 + batch, 10**9 + batch))
    with session(cores) as spark:
        events = read_events(spark, place / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
        writer = detect(events, PATTERN, delay="1 minute", buckets=4).writeStream.format("noop")
        query = writer.option("checkpointLocation", str(place / "state")).trigger(availableNow=True).start()
        query.awaitTermination()
        steps = [told for told in query.recentProgress if told["numInputRows"]]
    seconds = [told["durationMs"]["triggerExecution"] / 1000 for told in steps]
    # What the store writes for a batch is the snapshots of that batch.
    written = [told["stateOperators"][0]["customMetrics"].get("rocksdbTotalBytesWritten", 0) for told in steps]
    third = len(steps) // 3
    return {
        "first": median(seconds[1 : third + 1]),
        "last": median(seconds[-third:]),
        "middle bytes": median(written[third : 2 * third]),
        "last bytes": median(written[-third:]),
    }


if __name__ == "__main__":
    main(detect=_detect, stream=_stream)
