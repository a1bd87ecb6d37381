"""`match` and `detect` on Spark: the answers of a file or folder, printed as without Spark or written as Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from likewise.cli.output import counted, errors, output, print_json
from likewise.cli.spark.session import progress_of, refuse_taken, session

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, Row

    from likewise.cli.reading.input import Rejects
    from likewise.cli.reading.records import Records
    from likewise.composite import Detection
    from likewise.language import Subscription
    from likewise.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """Where a command runs on Spark, what it reads, and where its answers and refusals go."""

    events: str
    rejects: Rejects
    master: str | None = None
    remote: str | None = None
    out: str | None = None
    as_json: bool = False
    records: Records

    def run(self, kind: str, find: Callable[[DataFrame], tuple[int, DataFrame]]) -> None:
        """Find answers in the events: how many there are, and the records that could not be taken."""
        from likewise.pipeline import read_events

        reading = self.records.on_spark(_path(self.events))
        refuse_taken(self.out)
        with session(self.master, self.remote) as spark, progress_of(spark):
            count, letters = find(read_events(spark, self.events, **reading))
            _reject(letters, self.rejects)
        if not self.as_json:
            errors.print(counted(count, kind))
        self.rejects.conclude()


def match_on_spark(job: SparkJob, subscriptions: Iterable[Subscription], **options: Any) -> None:
    """`likewise match --spark`."""
    from likewise.pipeline import dead_letters, match

    def find(frame: DataFrame) -> tuple[int, DataFrame]:
        if job.out is not None:
            count = _write(match(frame, subscriptions, **options), job.out)
        else:
            count = _print_matches(frame, subscriptions, as_json=job.as_json, **options)
        return count, dead_letters(frame)

    job.run("match", find)


def detect_on_spark(job: SparkJob, patterns: Iterable[Subscription], **options: Any) -> None:
    """`likewise detect --spark`."""
    from likewise.pipeline import detect
    from likewise.pipeline.events.transfer import refused

    def find(frame: DataFrame) -> tuple[int, DataFrame]:
        found = detect(frame, patterns, **options)
        count = _write(found, job.out) if job.out is not None else _print_detections(found, as_json=job.as_json)
        return count, refused(frame)

    job.run("detection", find)


def _path(events: str) -> str:
    from likewise.errors import BuildError

    if events == "-":
        raise BuildError("Spark reads files, not stdin", hint="give a file or a folder, or leave out --spark")
    return events


def _write(found: DataFrame, out: str) -> int:
    found.write.mode("errorifexists").parquet(out)
    return int(found.sparkSession.read.parquet(out).count())


def _print_matches(frame: DataFrame, subscriptions: Iterable[Subscription], *, as_json: bool, **options: Any) -> int:
    """Print what the command prints without Spark."""
    import msgspec
    import typer

    from likewise.cli.commands.subscribing.match import show_match
    from likewise.pipeline.background import informed
    from likewise.pipeline.events.transfer import over_events
    from likewise.pipeline.matching import recipe_of

    recipe = informed(recipe_of(subscriptions, **options), frame, options.get("background", "stream"))
    lines = over_events(frame, MatchLines(recipe), "line string")
    count = 0
    for row in lines.toLocalIterator():
        count += 1
        typer.echo(row["line"]) if as_json else show_match(msgspec.json.decode(row["line"]))
    return count


@dataclass(frozen=True, slots=True)
class MatchLines:
    """Makes of every match, inside a worker, the line that `likewise match --json` prints."""

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
            lines = [msgspec.json.encode(match_plain(match)).decode() for _, match in found]
            yield pa.record_batch({"line": pa.array(lines, pa.string())})


def _print_detections(found: DataFrame, *, as_json: bool) -> int:
    """Print what the command prints without Spark, in the order of time."""
    from likewise.composite import detection_lines, detection_plain

    count = 0
    # Moments as numbers: as datetimes they would come in the time zone of this process, without notice.
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
    members = tuple(Event(event["id"], (), (), event["start"], event["end"]) for event in row["events"])
    names = tuple(event["role"] for event in row["events"])
    return Detection(
        row["pattern"], row["time"], row["start"], row["end"], row["probability"], names, members, cast("Any", None)
    )


def _reject(letters: DataFrame, rejects: Rejects) -> None:
    """Hand over what is no event, and what detection could not take."""
    from likewise.events import BadRecord
    from likewise.pipeline.events.transfer import DETECTOR

    for row in letters.toLocalIterator():
        take = rejects.refuse if row["source"] == DETECTOR else rejects
        take(BadRecord(row["source"], row["line"], row["reason"], (row["record"] or "").encode()))
