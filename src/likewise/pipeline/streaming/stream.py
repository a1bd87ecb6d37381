"""Streams from end to end: a source, matches or detections, a sink, and dead letters beside it.

One stream at a time runs on a checkpoint. The JVM holds the lock, since it is the JVM that writes there: a driver that
was killed leaves its JVM behind for a second or two, in which it may yet finish what it was at. A stream that is
started again at once waits for it; one that is started beside another is refused.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from likewise.composite import BUCKETS
from likewise.errors import BuildError
from likewise.events import Event, RecordMapping
from likewise.pipeline.background import KeptSample, peeked
from likewise.pipeline.detection.batch import DetectOptions, detect_with
from likewise.pipeline.events.frame import Keep, dead_letters
from likewise.pipeline.events.read import decode_records, read_events
from likewise.pipeline.events.transfer import remember_peek
from likewise.pipeline.matching import match_with
from likewise.pipeline.options import Span, microseconds, named_options
from likewise.pipeline.session import jvm_thread
from likewise.pipeline.streaming.sinks import Sink
from likewise.pipeline.streaming.subscriptions import FixedRecipe, RecipeSource, SubscriptionTable
from likewise.recipe import Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


SOURCES = ("files", "rate", "socket", "mqtt", "broker")


@dataclass(frozen=True, slots=True)
class Places:
    """What a stream keeps in its checkpoint folder, beside Spark's own."""

    checkpoint: str

    @property
    def query(self) -> str:
        return f"{self.checkpoint}/query"

    @property
    def pins(self) -> str:
        """Which subscriptions each batch had."""
        return f"{self.checkpoint}/subscriptions"

    @property
    def ledger(self) -> str:
        """Which batch was delivered last."""
        return f"{self.checkpoint}/delivered"

    @property
    def background(self) -> str:
        """The first events, a sample of how common answers are."""
        return f"{self.checkpoint}/background"

    @property
    def spool(self) -> str:
        """MQTT messages that Spark may ask for again."""
        return f"{self.checkpoint}/spool"


@named_options
def read_stream(
    spark: SparkSession,
    source: str,
    options: Mapping[str, str],
    *,
    places: Places,
    mapping: RecordMapping | None = None,
) -> DataFrame:
    """Events from a source by its name; a `mapping` makes events of flat records.

    `files`: path, format, and Spark's own (maxFilesPerTrigger). `socket`: host, port; a JSON line each. `mqtt`:
    broker, topic. `rate`: path of an event file to replay over and over, rowsPerSecond. `broker`: the database of a
    broker (a file or a PostgreSQL URL) and a namespace.
    """
    if source not in SOURCES:
        raise BuildError(f"no source {source!r}", hint=f"one of {', '.join(SOURCES)}")
    given = dict(options)
    if source == "broker" and mapping is not None:
        raise BuildError("a broker's log has events already", hint="leave out the mapping")
    return _READERS[source](spark, given, places, mapping)


def _need(options: dict[str, str], name: str, source: str) -> str:
    if not options.get(name):
        raise BuildError(f"the source {source} needs {name}", hint=f"give {name}=…")
    return options.pop(name)


def _files(spark: SparkSession, options: dict[str, str], _places: Places, mapping: RecordMapping | None) -> DataFrame:
    path, written = _need(options, "path", "files"), options.pop("format", "jsonl")
    stamp = options.pop("stamp", "false").lower() == "true"
    return read_events(spark, path, format=written, stream=True, stamp=stamp, columns=mapping, options=options)


def _socket(spark: SparkSession, options: dict[str, str], _places: Places, mapping: RecordMapping | None) -> DataFrame:
    from pyspark.sql import functions as F

    host, port = options.pop("host", "localhost"), _need(options, "port", "socket")
    reader = spark.readStream.format("socket").option("host", host).option("port", port)
    lines = reader.option("includeTimestamp", "true").load()
    record = F.col("value").cast("binary").alias("record")
    name = F.lit(f"{host}:{port}").alias("source")
    rows = lines.select(record, name, F.col("timestamp").alias("received"))
    return decode_records(rows, format=options.pop("format", "jsonl"), stamp=True, mapping=mapping)


def _mqtt(spark: SparkSession, options: dict[str, str], places: Places, mapping: RecordMapping | None) -> DataFrame:
    from likewise.delivery import client_name
    from likewise.pipeline.streaming.mqtt_source import read_mqtt

    topics = _need(options, "topic", "mqtt").split(",")
    broker, client = _need(options, "broker", "mqtt"), options.pop("client", client_name(places.spool))
    written = options.pop("format", "jsonl")
    rows = read_mqtt(spark, broker, topics=topics, spool=options.pop("spool", places.spool), client=client)
    return decode_records(rows, format=written, stamp=True, mapping=mapping)


def _broker(spark: SparkSession, options: dict[str, str], _places: Places, _mapping: RecordMapping | None) -> DataFrame:
    database = _need(options, "database", "broker")
    return read_events(spark, database, format="broker", stream=True, options=options)


def _rate(spark: SparkSession, options: dict[str, str], _places: Places, mapping: RecordMapping | None) -> DataFrame:
    """The i-th row is the i-th event of a file, over and over, with a new id and the time of the row."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    path = _need(options, "path", "rate")
    recorded = read_events(spark, path, format=options.pop("format", "auto"), columns=mapping).where("flaw is null")
    numbered = recorded.select("*", (F.row_number().over(Window.orderBy("time", "id")) - 1).alias("number")).cache()
    count = numbered.count()
    if not count:
        raise BuildError(f"{path} has no events to replay", hint="give a file with at least one")
    rate = spark.readStream.format("rate").options(**options).load()
    rows = rate.withColumn("number", (F.col("value") % count).cast("int")).join(F.broadcast(numbered), "number")
    name = F.concat_ws("-", "id", "value").alias("id")
    moment = F.col("timestamp")
    events = rows.select(name, moment.alias("time"), moment.alias("end"), "theme", "attributes", "flaw")
    return remember_peek(events, lambda: recorded)


_READERS: dict[str, Callable[[Any, dict[str, str], Places, RecordMapping | None], DataFrame]] = {
    "broker": _broker,
    "files": _files,
    "mqtt": _mqtt,
    "rate": _rate,
    "socket": _socket,
}


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """Matches one micro-batch with the subscriptions pinned to it; run again it does the same again."""

    source: RecipeSource
    sink: Sink
    letters: Sink | None = None
    with_explanation: bool = True
    keep: Keep = ()
    sample: KeptSample | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        recipe = self.source.recipe(batch).single_events()
        sample = self.sample if recipe.learns else None
        if self.letters is None and (sample is None or sample.is_settled(rows.sparkSession, batch)):
            self._match(rows, batch, recipe, sample)
            return
        # What is looked at twice is worked out once, and counted once.
        held = rows.persist()
        try:
            self._match(held, batch, recipe, sample)
            if self.letters is not None:
                write_letters(held, self.letters, batch)
        finally:
            held.unpersist()

    def _match(self, rows: DataFrame, batch: int, recipe: Recipe, sample: KeptSample | None) -> None:
        if sample is not None:
            recipe = replace(recipe, learned=sample.at(rows, batch))
        self.sink(self._matches(rows, recipe), batch)

    def _matches(self, rows: DataFrame, recipe: Recipe) -> DataFrame:
        return match_with(rows, recipe, with_explanation=self.with_explanation, keep=self.keep)


@dataclass(frozen=True, slots=True)
class DetectBatch:
    """Takes the detections of one micro-batch, and what was refused, to where each belongs."""

    sink: Sink
    letters: Sink | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        held = rows.persist()
        try:
            # A sink may look at a part only, or twice: state must be worked out once, and in all places.
            held.count()
            self.sink(held.where("flaw is null").drop("flaw"), batch)
            if self.letters is not None:
                write_letters(held, self.letters, batch)
        finally:
            held.unpersist()


def write_letters(rows: DataFrame, sink: Sink, batch: int) -> None:
    """Dead letters of a batch, if there are any."""
    bad = dead_letters(rows)
    if not bad.isEmpty():
        sink(bad, batch)


@dataclass(frozen=True)
class Stream:
    """A stream ready to start: what is read, what is looked for, where it goes.

    `trigger` is Spark's: `{"availableNow": True}` takes what is there and ends, `{"processingTime": "5 seconds"}`
    goes on for ever. `heartbeat` lets the event time of a live feed go on with the clock, and `keep` names columns of
    the input that go through (see `detect`). The stream learns a background from its first micro-batches, or, to
    detect, from the events that are there when it first starts; `background=None` switches that off, and one that
    the recipe has is kept.
    """

    events: DataFrame
    source: FixedRecipe | SubscriptionTable
    sink: Sink
    checkpoint: str
    what: Literal["matches", "detections"] | None = None
    dead_letters: Sink | None = None
    trigger: Mapping[str, Any] = field(default_factory=dict)
    with_explanation: bool = True
    lateness: Span | None = None
    buckets: int = BUCKETS
    spread: bool = True
    max_ahead: Span | None = None
    heartbeat: Span | None = None
    keep: Keep = ()
    background: Literal["stream"] | None = "stream"

    def __post_init__(self) -> None:
        if self.heartbeat is not None and self.trigger.get("availableNow"):
            raise BuildError("a heartbeat is for streams that go on", hint="leave out the heartbeat, or --once")

    def start(self) -> StreamingQuery:
        """Start the stream: matches, or detections if `what` says so or the subscriptions are patterns."""
        place = self.checkpoint if "://" in self.checkpoint else str(Path(self.checkpoint).absolute())
        claim = CheckpointLock.take(self.events.sparkSession, place)
        try:
            query = self._start(Places(place))
        except BaseException:  # whatever it was, the checkpoint is free again
            claim.release()
            raise
        claim.until_over(query)
        return query

    def _start(self, places: Places) -> StreamingQuery:
        if (self.what or self._guess()) == "detections":
            return self._detections(places)
        if self.heartbeat is not None:
            raise BuildError("a heartbeat is for patterns", hint="single events are matched as they come")
        sample = self._sample(places, first=list)
        batch = MatchBatch(self.source, self.sink, self.dead_letters, self.with_explanation, self.keep, sample)
        return self._query(self.events, batch, places.query)

    def _guess(self) -> str:
        return "detections" if self.source.current().patterns else "matches"

    def _sample(self, places: Places, *, first: Callable[[], list[Event]]) -> KeptSample | None:
        """What is known of the stream, if it is to be learned and there is any use for it."""
        recipe = self.source.current()
        if self.background is None or not (recipe.learns if isinstance(self.source, FixedRecipe) else recipe.may_learn):
            return None
        spark = self.events.sparkSession
        return KeptSample.begin(spark, places.background, query=places.query, first=first)

    def _detections(self, places: Places) -> StreamingQuery:
        sample = self._sample(places, first=lambda: peeked(self.events))
        # Hits wait in the state, so what they were scored with stays as it was at first.
        source = self.source if sample is None else self.source.informed(sample.start(self.events.sparkSession))
        found = detect_with(self.events, source, self._options())
        return self._query(found, DetectBatch(self.sink, self.dead_letters), places.query)

    def _options(self) -> DetectOptions:
        return DetectOptions(
            lateness=microseconds(self.lateness),
            buckets=self.buckets,
            spread=self.spread,
            max_ahead=microseconds(self.max_ahead),
            dead_letters=True,
            heartbeat=microseconds(self.heartbeat),
            keep=self.keep,
        )

    def _query(self, rows: DataFrame, sink: Callable[[DataFrame, int], None], checkpoint: str) -> StreamingQuery:
        writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
        return writer.trigger(**self.trigger).start() if self.trigger else writer.start()


Stream.__init__ = named_options(Stream.__init__)  # type: ignore[method-assign]  # a misspelt field has a hint


# One stream at a time on a checkpoint.


PATIENCE: Final = 20.0
"""Seconds in which a JVM whose driver is gone has ended."""
_POLL = 0.1

_mine: set[str] = set()
"""What this process holds. It must not even open such a file again: closed, it would be unlocked."""


class CheckpointLock:
    """The lock of one checkpoint; without a path it locks nothing."""

    def __init__(self, path: str | None = None, file: Any = None) -> None:
        self._path = path
        self._file = file

    @classmethod
    def take(cls, spark: SparkSession, checkpoint: str, *, patience: float = PATIENCE) -> CheckpointLock:
        """Wait for the checkpoint to be free and take it; over Spark Connect, and on an object store, just go on."""
        jvm = getattr(spark, "_jvm", None)
        if jvm is None or "://" in checkpoint:
            return cls()
        path = Path(checkpoint) / "lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise BuildError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}") from error
        end = time.monotonic() + patience
        while (claim := cls._try(jvm, str(path.resolve()))) is None:
            if time.monotonic() > end:
                raise BuildError(
                    f"another stream uses the checkpoint {checkpoint}", hint="stop it, or give this one its own"
                )
            time.sleep(_POLL)
        return claim

    @classmethod
    def _try(cls, jvm: Any, path: str) -> CheckpointLock | None:
        from py4j.protocol import Py4JJavaError

        if path in _mine:
            return None
        file = jvm.java.io.RandomAccessFile(path, "rw")
        try:
            locked = file.getChannel().tryLock() is not None
        except Py4JJavaError as error:
            file.close()
            if error.java_exception.getClass().getSimpleName() != "IOException":
                raise
            return cls()  # a file system without locks
        if not locked:
            file.close()
            return None
        _mine.add(path)
        return cls(path, file)

    def until_over(self, query: StreamingQuery) -> None:
        """Hold it for as long as the query runs."""
        if self._path is not None:
            jvm_thread(self._hold, query, name="likewise-claim")

    def release(self) -> None:
        """Give up the lock."""
        if self._path is not None:
            # If the JVM is gone, so is its lock.
            with contextlib.suppress(Exception):
                self._file.close()
            _mine.discard(self._path)
            self._path = None

    def _hold(self, query: StreamingQuery) -> None:
        # Only a JVM that is gone cannot be asked.
        with contextlib.suppress(Exception):
            while query.isActive:
                time.sleep(_POLL)
        self.release()
