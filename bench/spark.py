"""Events at scale on Spark: matching and detection, beside the same work in one process (`likewise bench spark`).

Every run on Spark is a process of its own, pinned to its cores with all its children, so that "one core" means one.
Rates are those of a second pass over the data: sessions, workers and caches are warm. Beside the clock on the wall
stands the processor time of the driver, the JVM and all workers together, which a busy machine does not spoil.
`LIKEWISE_BENCH_GROWTH=1` adds the run over 20 million events.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATTERN = "pair: first {type = a} as x then first {type = b} as y within 30 minutes where x.room = y.room"


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Rows for the table."""
    with tempfile.TemporaryDirectory(prefix="likewise-bench-") as folder:
        place = Path(folder)
        return [*_matching(place, quick=quick), *_detection(place, quick=quick), *_streaming(place, quick=quick)]


# --- matching ---------------------------------------------------------------------------------


def _matching(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    count = 200_000 if quick else 5_000_000
    try:
        base, space = _inputs(folder)
    except Exception as error:
        yield {"what": "matching", "value": None, "unit": "", "note": f"skipped: {error}"}
        return
    engine = _engine_rate(folder, space)
    yield _row("matching, engine in process", engine, "events/s of one core")
    data = folder / "events.parquet"
    _say(f"writing {count:,} events")
    _task("write", cores=None, base=str(base), out=str(data), count=count)
    one = _task("match", cores=1, data=str(data), subscriptions=str(folder / "subscriptions.lw"), space=space)
    yield _row("matching, Spark, one core", one["rate"], "events/s by the clock")
    yield _row("matching, Spark, one core", one["cpu_rate"], "events/s of one core", target=f">= {0.4 * engine:,.0f}")
    # Like with like: the engine's rate is one of processor time too.
    yield _row("matching, Spark beside the engine", one["cpu_rate"] / engine, "of the engine's rate", target=">= 0.4")
    yield _row("matches found", one["rows"], "rows")
    if (os.cpu_count() or 1) > 1:
        two = _task("match", cores=2, data=str(data), subscriptions=str(folder / "subscriptions.lw"), space=space)
        yield _row("matching, Spark, two cores", two["rate"], "events/s by the clock")
        yield _row("two cores beside one", two["rate"] / one["rate"], "times", target=">= 1.6")
        yield _row("memory of all processes", two["memory"] / 1e6, "MB")
        if os.environ.get("LIKEWISE_BENCH_GROWTH"):
            yield from _growth(folder, base, space, two)


def _growth(folder: Path, base: Path, space: str, two: dict[str, Any]) -> Iterator[dict[str, object]]:
    data = folder / "many.parquet"
    _say("writing 20,000,000 events")
    _task("write", cores=None, base=str(base), out=str(data), count=20_000_000)
    many = _task("match", cores=2, data=str(data), subscriptions=str(folder / "subscriptions.lw"), space=space)
    yield _row("matching 20 million events", many["rate"], "events/s", target=f"about {two['rate']:,.0f} (linear)")
    yield _row("memory at 20 million", many["memory"] / 1e6, "MB", target=f"about {two['memory'] / 1e6:,.0f} (flat)")


def _inputs(folder: Path) -> tuple[Path, str]:
    """The data set of the matching experiments as Parquet, its subscriptions, and a space."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likewise.evaluation.thematic_dataset import build_thematic
    from likewise.language import format_subscription
    from likewise.pipeline._frame import batch_of

    space = _space()
    data = build_thematic()
    base = folder / "base.parquet"
    pq.write_table(pa.Table.from_batches([batch_of(data.events)]), base)
    text = "".join(f"{format_subscription(each)}\n" for each in data.subscriptions)
    (folder / "subscriptions.lw").write_text(text, encoding="utf-8")
    return base, space


def _space() -> str:
    from likewise.errors import LikewiseError
    from likewise.semantics import find_space

    for name in ("wikipedia", "wordnet"):
        try:
            return str(find_space(name).path)
        except LikewiseError:
            continue
    raise RuntimeError("there is no space (likewise space build --corpus wordnet --out wordnet)")


def _engine_rate(folder: Path, space: str) -> float:
    """Events per second of CPU time, from events in memory to scores, the vocabulary warm."""
    import pyarrow.parquet as pq

    from likewise.pipeline._frame import events_of
    from likewise.pipeline._worker import Recipe

    recipe = Recipe.of(folder / "subscriptions.lw", spaces=space, options={"approach": "approximate"})
    matcher = recipe.matcher()
    events = list(events_of(pq.read_table(folder / "base.parquet")))

    def once() -> None:
        for at in range(0, len(events), 5000):
            matcher.score_batch(matcher.encode(events[at : at + 5000]))

    once()
    return len(events) / min(_cpu(once) for _ in range(5))


def _cpu(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


# --- detection --------------------------------------------------------------------------------


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
    alone = count / _cpu(lambda: found.extend(detector.publish_batch(events)))
    yield _row("keyed detection, detector in process", alone, "events/s of one core")
    told = _task("detect", cores=2, data=str(path))
    same = "same detections" if told["rows"] == len(found) else f"{told['rows']} detections, the detector {len(found)}"
    yield _row("keyed detection, Spark, two cores", told["rate"], "events/s by the clock", target=">= Flink", note=same)
    yield _row("keyed detection, Spark", told["cpu_rate"], "events/s of one core")
    yield runpy.run_path(str(Path(__file__).with_name("_flink.py")))["keyed_row"](events)


def _streaming(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    """A long stream of the same pattern: the last batches must cost what the first did."""
    batches, size = (9, 1_000) if quick else (60, 10_000)
    told = _task("stream", cores=2, folder=str(folder / "stream"), batches=batches, size=size)
    yield _row("stream, first third of the batches", told["first"], "s a batch")
    yield _row("stream, last third of the batches", told["last"], "s a batch", target=f"about {told['first']:.2f}")
    yield _row("stream, snapshots of state, middle", told["middle bytes"] / 1e6, "MB")
    what = f"about {told['middle bytes'] / 1e6:.2f}"
    yield _row("stream, snapshots of state, end", told["last bytes"] / 1e6, "MB", target=what)


# --- tasks in processes of their own ----------------------------------------------------------


def _task(name: str, *, cores: int | None, **arguments: Any) -> dict[str, Any]:
    """Run a task of this file in a process that has so many cores and no more."""
    _say(f"{name}, {cores or 'all'} cores")
    command = [sys.executable, __file__, name, json.dumps({**arguments, "cores": cores})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError(f"{name} failed: {done.stderr[-1500:]}")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


@contextmanager
def _session(cores: int | None) -> Iterator[Any]:
    from likewise.pipeline import spark_session

    if cores is not None and hasattr(os, "sched_setaffinity"):
        # Inherited by the JVM and by every worker that is started from here.
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    settings = {"spark.sql.shuffle.partitions": str(cores or 2), "spark.sql.files.maxPartitionBytes": "16m"}
    spark = spark_session(master=f"local[{cores or '*'}]", settings=settings)
    yield spark
    spark.stop()


def _write(*, base: str, out: str, count: int, cores: int | None) -> dict[str, Any]:
    from pyspark.sql import functions as F  # noqa: N812

    with _session(cores) as spark:
        told = spark.read.parquet(base)
        copies = -(-count // told.count())
        numbers = spark.range(copies).withColumnRenamed("id", "copy")
        many = numbers.crossJoin(F.broadcast(told)).limit(count).withColumn("id", F.concat_ws("-", "id", "copy"))
        parts = max(8, count // 250_000)
        many.drop("copy").repartition(parts).write.parquet(out)
    return {}


def _match(*, data: str, subscriptions: str, space: str, cores: int) -> dict[str, Any]:
    from likewise.pipeline import match, read_events

    with _session(cores) as spark, _memory() as memory:
        events = read_events(spark, data, format="parquet")
        found = match(events, Path(subscriptions), space=space, approach="approximate", explain=False)
        count = events.count()
        found.limit(1000).count()
        seconds, cpu, rows = _best(found, 1 if count > 1_000_000 else 6)
    return {"rate": count / seconds, "cpu_rate": count / cpu, "rows": rows, "memory": memory["most"]}


def _detect(*, data: str, cores: int) -> dict[str, Any]:
    from likewise.pipeline import detect, read_events

    with _session(cores) as spark, _memory() as memory:
        events = read_events(spark, data, format="parquet")
        found = detect(events, PATTERN)
        count = events.count()
        seconds, cpu, rows = _best(found, 3)
    return {"rate": count / seconds, "cpu_rate": count / cpu, "rows": rows, "memory": memory["most"]}


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
    with _session(cores) as spark:
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


def _best(frame: Any, rounds: int) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of processors, rows: the best of some passes after one to warm up.

    All columns are made, and only their count comes back.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows, times, cpu = 0, [], []
    for _ in range(rounds + 1):
        started, used = time.perf_counter(), _processor_time()
        rows = frame.agg(F.count(F.hash(*frame.columns))).first()[0]
        times.append(time.perf_counter() - started)
        cpu.append(_processor_time() - used)
    return min(times[1:]), min(cpu[1:]), int(rows)


def _processor_time() -> float:
    """Seconds that this process and all below it have used."""
    import psutil

    me, total = psutil.Process(), 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            total += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return total


@contextmanager
def _memory() -> Iterator[dict[str, int]]:
    """The most memory that this process and all below it held at once; shared pages count once for each."""
    import psutil

    told, over = {"most": 0}, threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not over.wait(0.5):
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            told["most"] = max(told["most"], total)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield told
    over.set()
    thread.join()


def _row(what: str, value: float, unit: str, **more: object) -> dict[str, object]:
    return {"what": what, "value": value, "unit": unit, **more}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        tasks: dict[str, Callable[..., dict[str, Any]]] = {
            "write": _write,
            "match": _match,
            "detect": _detect,
            "stream": _stream,
        }
        print(json.dumps(tasks[sys.argv[1]](**json.loads(sys.argv[2]))))
    else:
        for line in run(quick="--quick" in sys.argv):
            print(line)
