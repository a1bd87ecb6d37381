"""Detection on Spark, batch and streaming, beside the detector in one process and Flink."""

from __future__ import annotations

import os
import random
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_run import best, cpu, main, memory, row, session, task

PATTERN = "pair: first {type = a} as x then first {type = b} as y within 30 minutes where x.room = y.room"


def rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    yield from _detection(folder, quick=quick)
    yield from _streaming(folder, quick=quick)


def _detection(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    from likewise.composite import Detector
    from likewise.language import parse

    count = 100_000 if quick else 1_000_000
    events = _rooms(count, hot=0.0)
    detector = Detector(parse(PATTERN))
    found: list[Any] = []
    alone = count / cpu(lambda: found.extend(detector.publish_batch(events)))
    yield row("keyed detection, detector in process", alone, "events/s of one core")
    flink = runpy.run_path(str(Path(__file__).with_name("_flink.py")))
    peer = flink["keyed_row"](events)
    yield peer
    told = task(__file__, "detect", cores=2, data=_written(events, folder / "rooms.parquet"))
    same = "same detections" if told["rows"] == len(found) else f"{told['rows']} detections, the detector {len(found)}"
    yield row("keyed detection, Spark, two cores", told["rate"], "events/s by the clock", target=">= Flink", note=same)
    yield row("keyed detection, Spark, first pass", told["first_rate"], "events/s by the clock")
    yield row("keyed detection, Spark", told["cpu_rate"], "events/s of one core")
    if isinstance(peer["value"], int | float):
        yield row(
            "keyed detection, Spark beside Flink, both warm", told["rate"] / peer["value"], "times", target=">= 1"
        )
    from_csv = task(__file__, "detect", cores=2, data=_as_csv(events, folder / "rooms.csv"))
    yield row("keyed detection, Spark from CSV, two cores", from_csv["rate"], "events/s by the clock")
    hot = task(__file__, "detect", cores=2, data=_written(_rooms(count, hot=0.9), folder / "hot.parquet"))
    what = "keyed detection, nine of ten events of one room"
    yield row(what, hot["rate"], "events/s by the clock", note=f"{hot['rate'] / told['rate']:.2f} of the rate without")


def _rooms(count: int, *, hot: float) -> list[Any]:
    """Readings of a thousand rooms, a tenth of a second apart; so many of them of one room."""
    from likewise.events import Event

    dice, start = random.Random(7), 1_600_000_000_000_000
    events = []
    for number in range(count):
        kind, room = dice.choice("abcd"), 0 if hot and dice.random() < hot else dice.randrange(1000)
        moment = start + number * 100_000
        events.append(Event(f"e{number}", (("type", kind), ("room", f"room {room}")), (), moment, moment))
    return events


def _written(events: list[Any], path: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.pipeline._frame import batch_of

    pq.write_table(pa.Table.from_batches([batch_of(events)]), path, row_group_size=50_000)
    return str(path)


def _as_csv(events: list[Any], path: Path) -> str:
    with path.open("w", encoding="utf-8") as file:
        file.write("id,time,type,room\n")
        for event in events:
            (_, kind), (_, room) = event.tuples
            file.write(f"{event.id},{event.time:%Y-%m-%dT%H:%M:%S.%fZ},{kind},{room}\n")
    return str(path)


def _streaming(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    """A long stream of the same pattern: the last batches must cost what the first did, and hold no more."""
    batches, size = (9, 1_000) if quick else (60, 10_000)
    told = task(__file__, "stream", cores=2, folder=str(folder / "stream"), batches=batches, size=size)
    for what, unit, scale in (
        ("seconds", "s a batch", 1.0),
        ("snapshots", "MB of snapshots written a batch", 1e-6),
        ("rows", "rows of state", 1.0),
        ("memory", "MB of memory of the state store", 1e-6),
    ):
        first, last = (told[f"{third} {what}"] * scale for third in ("first", "last"))
        yield row(f"stream of {batches} batches, first third", first, unit)
        yield row(f"stream of {batches} batches, last third", last, unit, target=f"about {first:.2f}")


def _detect(*, data: str, cores: int) -> dict[str, Any]:
    from likewise.pipeline import Columns, detect, read_events

    with session(cores) as spark, memory() as used:
        columns = (
            Columns(id="id", time="time", kinds={"type": "text", "room": "text"}) if data.endswith("csv") else None
        )
        events = read_events(spark, data, columns=columns)
        found = detect(events, PATTERN)
        count = events.count()
        started = time.perf_counter()
        found.agg({"*": "count"}).first()
        first = time.perf_counter() - started
        seconds, busy, found_rows = best(found, 3)
    rates = {"rate": count / seconds, "cpu_rate": count / busy, "first_rate": count / first}
    return {**rates, "rows": found_rows, "memory": max(used, default=0)}


def _stream(*, folder: str, batches: int, size: int, cores: int) -> dict[str, Any]:
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
    return thirds(steps)


def thirds(steps: list[Any]) -> dict[str, float]:
    """Medians over the first third of the batches, without the very first, and over the last."""
    from statistics import median

    def state(step: Any, name: str) -> float:
        told = step["stateOperators"][0]
        return float(told["customMetrics"].get(name, 0) if name.startswith("rocksdb") else told[name])

    # What the store writes for a batch is the snapshots of that batch.
    columns = {
        "seconds": [step["durationMs"]["triggerExecution"] / 1000 for step in steps],
        "snapshots": [state(step, "rocksdbTotalBytesWritten") for step in steps],
        "rows": [state(step, "numRowsTotal") for step in steps],
        "memory": [state(step, "memoryUsedBytes") for step in steps],
    }
    third = len(steps) // 3
    first = {f"first {name}": median(values[1 : third + 1]) for name, values in columns.items()}
    return first | {f"last {name}": median(values[-third:]) for name, values in columns.items()}


if __name__ == "__main__":
    main(detect=_detect, stream=_stream)
