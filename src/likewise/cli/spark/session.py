"""What commands that run on Spark share: the session, tables printed row by row, and progress."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from likewise.cli.ending import cancelling
from likewise.cli.output import counted, errors, output, print_json

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, Row, SparkSession

    from likewise.cli.reading.input import Rejects
    from likewise.composite import Detection
    from likewise.language import Subscription
    from likewise.recipe import Recipe


def match_on_spark(
    events: str,
    subscriptions: Iterable[Subscription],
    *,
    master: str | None = None,
    remote: str | None = None,
    out: str | None = None,
    rejects: Rejects,
    as_json: bool = False,
    **options: Any,
) -> None:
    """`likewise match --spark`: the matches of a file or folder, printed or written as Parquet."""
    from likewise.pipeline import dead_letters, match, read_events

    path = _path(events)
    refuse_taken(out)
    with session(master, remote) as spark, progress_of(spark):
        frame = read_events(spark, path)
        if out is not None:
            count = _write(match(frame, subscriptions, **options), out)
        else:
            count = _tell(frame, subscriptions, as_json=as_json, **options)
        _reject(dead_letters(frame), rejects)
    if not as_json:
        errors.print(counted(count, "match"))
    rejects.conclude()


def detect_on_spark(
    events: str,
    patterns: Iterable[Subscription],
    *,
    master: str | None = None,
    remote: str | None = None,
    out: str | None = None,
    rejects: Rejects,
    as_json: bool = False,
    **options: Any,
) -> None:
    """`likewise detect --spark`: the detections of a file or folder, printed or written as Parquet."""
    from likewise.pipeline import detect, read_events
    from likewise.pipeline.events.refusals import refused

    path = _path(events)
    refuse_taken(out)
    with session(master, remote) as spark, progress_of(spark):
        frame = read_events(spark, path)
        found = detect(frame, patterns, **options)
        count = _write(found, out) if out is not None else _tell_detections(found, as_json=as_json)
        _reject(refused(frame), rejects)
    if not as_json:
        errors.print(counted(count, "detection"))
    rejects.conclude()


@contextlib.contextmanager
def session(master: str | None, remote: str | None) -> Iterator[SparkSession]:
    """A session for one command; one that was running before stays."""
    from likewise.pipeline import spark_session

    mine = not _is_running()
    # Spark's usual 200 would be 200 states to open in every micro-batch.
    settings = {"spark.sql.shuffle.partitions": str(partitions(master, remote))}
    spark = spark_session(master=master, remote=remote, settings=settings)
    try:
        with cancelling(spark):
            yield spark
    finally:
        if mine:
            spark.stop()


def partitions(master: str | None, remote: str | None) -> int:
    """Over how many partitions a command shuffles: the cores of this machine, or what keys are spread over.

    >>> partitions("local[3,4]", None), partitions("spark://host:7077", None)
    (3, 32)
    """
    from likewise.composite import BUCKETS

    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", remote or master or "local[*]")
    if local is None:
        return BUCKETS
    return int(local[1]) if (local[1] or "*") != "*" else os.cpu_count() or 1


def _is_running() -> bool:
    # Who has not loaded pyspark runs no session, and whether it is installed at all is told by `spark_session`.
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


@contextlib.contextmanager
def progress_of(spark: SparkSession) -> Iterator[None]:
    """Tasks done and to do, on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from likewise.pipeline import watch

    columns = (SpinnerColumn(), TextColumn("tasks"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("tasks", total=None)
        with watch(spark, lambda done, every: progress.update(task, completed=done, total=every or None)):
            yield


def _path(events: str) -> str:
    from likewise.errors import BuildError

    if events == "-":
        raise BuildError("Spark reads files, not stdin", hint="give a file or a folder, or leave out --spark")
    if events.endswith((".csv", ".tsv")):
        hint = f"make it events first: likewise convert {events} --time COLUMN --out events.jsonl"
        raise BuildError(f"{events} is a table, not events", hint=hint)
    return events


def refuse_taken(out: str | None) -> None:
    """Say before the work, not after it, that there is something in the place to write to."""
    from likewise.errors import BuildError

    if out is not None and "://" not in out and Path(out).exists():
        raise BuildError(f"{out} is already there", hint="choose another place for --out")


def _write(found: DataFrame, out: str) -> int:
    found.write.mode("errorifexists").parquet(out)
    return int(found.sparkSession.read.parquet(out).count())


def _tell(frame: DataFrame, subscriptions: Iterable[Subscription], *, as_json: bool, **options: Any) -> int:
    """Print what the command prints without Spark."""
    import msgspec
    import typer

    from likewise.cli.commands.subscribing.match import show_match
    from likewise.pipeline.events.transfer import over_events
    from likewise.pipeline.matching import recipe_of

    told = over_events(frame, TellTask(recipe_of(subscriptions, **options)), "told string")
    count = 0
    for row in told.toLocalIterator():
        count += 1
        typer.echo(row["told"]) if as_json else show_match(msgspec.json.decode(row["told"]))
    return count


@dataclass(frozen=True, slots=True)
class TellTask:
    """Says of every match, inside a worker, what `likewise match --json` says of it."""

    recipe: Recipe

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        import msgspec
        import pyarrow as pa

        from likewise.cli.commands.subscribing.match import match_plain
        from likewise.events import BatchColumns
        from likewise.pipeline.matching import found_in

        matcher, columns = self.recipe.matcher(), BatchColumns()
        for batch in batches:
            found = found_in(matcher, columns.read(batch))
            told = [msgspec.json.encode(match_plain(match)).decode() for _, match in found]
            yield pa.record_batch({"told": pa.array(told, pa.string())})


def _tell_detections(found: DataFrame, *, as_json: bool) -> int:
    """Print what the command prints without Spark, in the order of time."""
    from likewise.composite import detection_lines, detection_plain

    count = 0
    # Moments as numbers: as datetimes they would come in the time zone of this process, without saying so.
    spans = "transform(events, e -> struct(e.role, e.id, unix_micros(e.start) as start, unix_micros(e.`end`) as `end`))"
    times = [f"unix_micros(`{name}`) as `{name}`" for name in ("time", "start", "end")]
    ordered = found.orderBy("time", "pattern").selectExpr("pattern", *times, "probability", f"{spans} as events")
    for row in ordered.toLocalIterator():
        count += 1
        if as_json:
            print_json(detection_plain(_detection(row)))
            continue
        for line in detection_lines(_detection(row)):
            output.print(line, markup=False, soft_wrap=True)
    return count


def _detection(row: Row) -> Detection:
    from likewise.composite import Detection
    from likewise.events import Event

    # Only what is printed is there: events have no attributes, and there is no trace.
    members = tuple(Event(each["id"], (), (), each["start"], each["end"]) for each in row["events"])
    names = tuple(each["role"] for each in row["events"])
    return Detection(
        row["pattern"], row["time"], row["start"], row["end"], row["probability"], names, members, cast("Any", None)
    )


def _reject(letters: DataFrame, rejects: Rejects) -> None:
    """Hand over what is no event, and what detection could not take."""
    from likewise.events import BadRecord
    from likewise.pipeline.events.refusals import DETECTOR

    for row in letters.toLocalIterator():
        take = rejects.refuse if row["source"] == DETECTOR else rejects
        take(BadRecord(row["source"], row["line"], row["reason"], (row["record"] or "").encode()))
