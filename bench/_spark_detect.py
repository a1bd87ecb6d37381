"""Detection on Spark, batch and streaming, compared with the detector in one process and with Flink."""

from __future__ import annotations

import contextlib
import os
import random
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _spark_run import best, cpu, main, memory, processor_time, row, say, session, task

PATTERN = "pair: {type = a} as x then first {type = b} as y within 1799999 ms where x.room = y.room"
"""Every a with the next b of its room within half an hour, as Flink finds with AFTER MATCH SKIP TO NEXT ROW.

Flink excludes a distance of exactly 30 minutes, and so does this pattern.
"""


def rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    from likewise.composite import Detector
    from likewise.language import parse

    count = 100_000 if quick else 1_000_000
    events = _rooms(count, hot=0.0)
    detector = Detector(parse(PATTERN))
    found: list[Any] = []
    alone = count / cpu(lambda: found.extend(detector.publish_batch(events)))
    yield row("keyed detection, detector in process", alone, "events/s of one core", note=f"{len(found):,} detections")
    flink = runpy.run_path(str(Path(__file__).with_name("_flink.py")))
    say("keyed detection on Flink")
    peer = flink["keyed_answer"](events, most_pairs="each")
    yield from _flink_rows(peer, flink)
    csv = task(__file__, "detect", cores=2, data=_as_csv(events, folder / "rooms.csv"))
    stored = task(__file__, "detect", cores=2, data=_written(events, folder / "rooms.parquet"))
    for name, result in (("CSV", csv), ("Parquet", stored)):
        same = f"{result['rows']:,} detections, Flink {peer.get('matches', 0):,}, the detector {len(found):,}"
        yield row(f"keyed detection, Spark from {name}, two cores", result["rate"], "events/s by the clock", note=same)
        yield row(f"keyed detection, Spark from {name}, first pass", result["first_rate"], "events/s by the clock")
        yield row(f"keyed detection, Spark from {name}", result["cpu_rate"], "events/s of one core")
    if "skipped" not in peer:
        yield from _beside(peer, csv, stored)
    hot = task(__file__, "detect", cores=2, data=_written(_rooms(count, hot=0.9), folder / "hot.parquet"))
    what = "keyed detection, nine of ten events of one room"
    note = f"{hot['rate'] / stored['rate']:.2f} of the rate without the skew"
    yield row(what, hot["rate"], "events/s by the clock", note=note)


def _flink_rows(peer: dict[str, Any], flink: dict[str, Any]) -> Iterator[dict[str, object]]:
    what = f"peer: Flink {flink['VERSION']} MATCH_RECOGNIZE from CSV"
    if "skipped" in peer:
        yield {"what": what, "value": "skipped", "unit": "events/s by the clock", "note": peer["skipped"]}
        return
    yield row(f"{what}, {peer['cores']} cores", peer["rate"], "events/s by the clock", note=flink["described"](peer))
    yield row(f"{what}, first pass", peer["first_rate"], "events/s by the clock")


def _beside(peer: dict[str, Any], csv: dict[str, Any], stored: dict[str, Any]) -> Iterator[dict[str, object]]:
    """The same pairs of the same rows, in the first pass after a start, and warm."""
    what, target = "keyed detection, Spark / Flink", ">= 1"
    friendly = "Flink without planning and start-up, Spark with both"
    yield row(f"{what}, both from CSV, warm", csv["rate"] / peer["rate"], "times", target=target, note=friendly)
    first = csv["first_rate"] / peer["first_rate"]
    yield row(f"{what}, both from CSV, first pass", first, "times", target=target, note=friendly)
    yield row(f"{what}, Spark from Parquet, warm", stored["rate"] / peer["rate"], "times", target=target)


def _rooms(count: int, *, hot: float) -> list[Any]:
    """Readings of a thousand rooms, a tenth of a second apart; the share `hot` is of one room."""
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

    from likewise.pipeline.events.frame import batch_of

    pq.write_table(pa.Table.from_batches([batch_of(events)]), path, row_group_size=50_000)
    return str(path)


def _as_csv(events: list[Any], path: Path) -> str:
    with path.open("w", encoding="utf-8") as file:
        file.write("id,time,type,room\n")
        for event in events:
            (_, kind), (_, room) = event.tuples
            file.write(f"{event.id},{event.time:%Y-%m-%dT%H:%M:%S.%fZ},{kind},{room}\n")
    return str(path)


def stream_rows(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    """A long stream of the same pattern: time and memory of the last batches must equal those of the first.

    It ends after 25 minutes, or those of `LIKEWISE_BENCH_MINUTES`, even if batches are left.
    """
    wanted, size = (9, 1_000) if quick else (1_000, 1_000)
    minutes = float(os.environ.get("LIKEWISE_BENCH_MINUTES", "25"))
    options = {"batches": wanted, "size": size, "limit": 60 * minutes}
    result = task(__file__, "stream", cores=2, folder=str(folder / "stream"), **options)
    batches = f"{result['batches']:,.0f}"
    for what, unit, scale in (
        ("seconds", "s a batch by the clock", 1.0),
        ("busy", "s a batch of processors", 1.0),
        ("snapshots", "MB of snapshots written a batch", 1e-6),
        ("rows", "rows of state", 1.0),
        ("disk", "MB of state on the disk", 1e-6),
        ("memory", "MB of memory of the state store", 1e-6),
        ("live", "MB of objects of the JVM that are in use", 1e-6),
        ("resident", "MB of memory of all processes", 1e-6),
    ):
        first, middle, last = (result[f"{third} {what}"] * scale for third in THIRDS)
        yield row(f"stream of {batches} batches, first third", first, unit)
        yield row(f"stream of {batches} batches, middle third", middle, unit, target=f"about {first:.2f}")
        yield row(f"stream of {batches} batches, last third", last, unit, target=f"about {first:.2f}")


def _detect(*, data: str, cores: int) -> dict[str, Any]:
    from likewise.events import RecordMapping
    from likewise.pipeline import detect, read_events

    with session(cores) as spark, memory() as used:
        table = RecordMapping(id="id", time="time", kinds={"type": "text", "room": "text"})
        columns = table if data.endswith("csv") else None
        events = read_events(spark, data, columns=columns)
        found = detect(events, PATTERN)
        started = time.perf_counter()
        found.agg({"*": "count"}).first()
        first = time.perf_counter() - started
        # Counted after the first pass: counting reads the CSV and warms the workers.
        count = events.count()
        seconds, busy, found_rows = best(found, 3)
    rates = {"rate": count / seconds, "cpu_rate": count / busy, "first_rate": count / first}
    return {**rates, "rows": found_rows, "memory": max(used, default=0)}


def _stream(*, folder: str, batches: int, size: int, limit: float, cores: int) -> dict[str, Any]:
    from likewise.events import Event, encode_line
    from likewise.pipeline import detect, read_events

    place, dice = Path(folder), random.Random(7)
    (place / "in").mkdir(parents=True)
    start = 1_600_000_000_000_000
    for batch in range(batches):
        lines = []
        for at in range(size):
            # Each batch has half an hour of events, so that as many windows close as open.
            moment = start + batch * 1_800_000_000 + at * (1_800_000_000 // size)
            tuples = (("type", dice.choice("abcd")), ("room", f"room {dice.randrange(1000)}"))
            lines.append(encode_line(Event(f"e{batch}-{at}", tuples, (), moment, moment)))
        file = place / "in" / f"{batch:05}.jsonl"
        file.write_bytes(b"".join(lines))
        os.utime(file, (10**9 + batch, 10**9 + batch))
    with session(cores) as spark, memory() as resident:
        # Few retained states, so that the first third has as many as the last.
        spark.conf.set("spark.sql.streaming.minBatchesToRetain", "5")
        # Old states are deleted every minute by default, which would be every hundred batches here.
        spark.conf.set("spark.sql.streaming.stateStore.maintenanceInterval", "5s")
        events = read_events(spark, place / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
        writer = detect(events, PATTERN, lateness="1 minute", buckets=4).writeStream.format("noop")
        query = writer.option("checkpointLocation", str(place / "state")).trigger(availableNow=True).start()
        seen = _watched(query, place / "state" / "state", spark=spark, limit=limit, live_every=max(1, batches // 12))
    return {"batches": len(seen["steps"])} | thirds(seen.pop("steps"), resident=list(resident), **seen)


def _watched(query: Any, state: Path, *, spark: Any, limit: float, live_every: int) -> dict[str, list[Any]]:
    """Sample a query until it ends: its progress, disk use, processor time and, sometimes, the JVM's live objects."""
    steps: dict[int, Any] = {}
    disk, busy, live, done, used = [], [], [], 0, processor_time()
    over = time.monotonic() + limit
    while not query.awaitTermination(1):
        if time.monotonic() > over:
            query.stop()
        disk.append(_bytes_below(state))
        # Spark keeps only the last hundred, so they are collected here.
        steps |= {progress["batchId"]: progress for progress in query.recentProgress if progress["numInputRows"]}
        last = max(steps, default=0)
        if last >= done + 5:
            now = processor_time()
            busy.append((now - used) / (last - done))
            done, used = last, now
        if last >= live_every * (len(live) + 1):
            live.append(_live_heap(spark))
    steps |= {progress["batchId"]: progress for progress in query.recentProgress if progress["numInputRows"]}
    return {"steps": [steps[at] for at in sorted(steps)], "disk": disk, "busy": busy, "live": live}


def _live_heap(spark: Any) -> int:
    """Bytes of live objects in the JVM."""
    jvm = spark._jvm
    jvm.java.lang.System.gc()
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # old states are deleted meanwhile
            total += path.stat().st_size
    return total


THIRDS = ("first", "middle", "last")


def thirds(steps: list[Any], **more: list[Any]) -> dict[str, float]:
    """Medians over each third of the batches, without the very first batch."""
    from statistics import median

    def state(step: Any, name: str) -> float:
        operator = step["stateOperators"][0]
        return float(operator["customMetrics"].get(name, 0) if name.startswith("rocksdb") else operator[name])

    # The store writes one snapshot per batch.
    columns = {
        "seconds": [step["durationMs"]["triggerExecution"] / 1000 for step in steps],
        "snapshots": [state(step, "rocksdbTotalBytesWritten") for step in steps],
        "rows": [state(step, "numRowsTotal") for step in steps],
        "memory": [state(step, "memoryUsedBytes") for step in steps],
        **more,
    }
    medians: dict[str, float] = {}
    for name, values in columns.items():
        third = max(1, len(values) // 3)
        parts = (values[1 : third + 1], values[third : 2 * third], values[-third:])
        medians |= {f"{part} {name}": median(chosen or [0]) for part, chosen in zip(THIRDS, parts, strict=True)}
    return medians


if __name__ == "__main__":
    main(detect=_detect, stream=_stream)
