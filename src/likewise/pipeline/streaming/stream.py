"""Streams from end to end: a source, matches or detections, a sink, and a sink for dead letters.

Only one stream at a time runs on a checkpoint. The JVM holds the lock, because the JVM writes there: after its driver
was killed, it may run and write for another second or two. A stream that is restarted at once waits for it; a second
stream is refused.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from likewise.composite import BUCKETS
from likewise.errors import BuildError, named_options
from likewise.events import Event, RecordMapping
from likewise.matching import Background
from likewise.pipeline.background import KeptSample, peeked
from likewise.pipeline.detection.batch import DetectOptions, detect_with
from likewise.pipeline.events.frame import Keep
from likewise.pipeline.events.read import decode_records, read_events
from likewise.pipeline.events.transfer import dead_letters, remember_peek
from likewise.pipeline.matching import match_with
from likewise.pipeline.options import Span, Subscriptions, check_frame, glossary_text, interests, microseconds
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
    """The folders and files of a stream in its checkpoint, beside Spark's own."""

    checkpoint: str

    @property
    def query(self) -> str:
        return f"{self.checkpoint}/query"

    @property
    def pins(self) -> str:
        """The subscriptions of each batch."""
        return f"{self.checkpoint}/subscriptions"

    @property
    def ledger(self) -> str:
        """The number of the last delivered batch."""
        return f"{self.checkpoint}/delivered"

    @property
    def background(self) -> str:
        """The first events, a sample of how common answers are."""
        return f"{self.checkpoint}/background"

    @property
    def spool(self) -> str:
        """MQTT messages that Spark may read again."""
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
    """Matches one micro-batch with the subscriptions pinned to it; a repeated batch gives the same result."""

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
        # Rows that are used twice are computed once, and counted once.
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
    """Sends the detections of one micro-batch to their sink, and the refused events to theirs."""

    sink: Sink
    letters: Sink | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        held = rows.persist()
        try:
            # A sink may read a part of the rows, or read them twice; state must be updated once, in all partitions.
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
    """A stream ready to start: its events, its subscriptions, and the sink of its results.

    `source` is subscriptions in any form that `match` takes, a `Recipe`, or a `SubscriptionTable` that may change while
    the stream runs. `spaces`, `measure`, `approach`, `threshold` and `glossary` are those of `match`; a `Recipe` or a
    `SubscriptionTable` has its own. `trigger` is Spark's: `{"availableNow": True}` processes the events that are there
    and ends, `{"processingTime": "5 seconds"}` runs until it is stopped. `lateness` has the alias `watermark`,
    `heartbeat` advances the event time of a live feed with the clock, and `keep` names columns of the input that the
    results have too (see `detect`). By default, the stream samples a background from its first micro-batches, or, for
    detection, from the events that are there when it first starts. A background may be given instead, None switches it
    off, and one that the recipe has is kept.
    """

    events: DataFrame
    source: FixedRecipe | SubscriptionTable | Subscriptions
    sink: Sink
    checkpoint: str | Path
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
    background: Background | Literal["stream"] | None = "stream"
    spaces: str | Path | Sequence[str | Path] = ()
    measure: str | None = None
    approach: str | None = None
    threshold: float | None = None
    glossary: str | Path | None = None
    watermark: Span | None = None

    def __post_init__(self) -> None:
        if self.lateness is not None and self.watermark is not None:
            raise BuildError("lateness and watermark are two names of one thing", hint="give one of them")
        if not callable(self.sink):
            raise BuildError(f"a sink cannot be {self.sink!r}", hint="such as FileSink('matches')")
        if self.what not in (None, "matches", "detections"):
            raise BuildError(f"a stream cannot return {self.what!r}", hint="matches or detections")
        if not isinstance(self.background, Background) and self.background not in ("stream", None):
            raise BuildError(f"{self.background!r} is no background", hint="give Background.of(events), or None")
        if self.heartbeat is not None and self.trigger.get("availableNow"):
            raise BuildError("a heartbeat is for streams that go on", hint="leave out the heartbeat, or --once")

    def start(self) -> StreamingQuery:
        """Start the stream: matches, or detections if `what` says so or the subscriptions are patterns."""
        check_frame(self.events)
        checkpoint = str(self.checkpoint)
        place = checkpoint if "://" in checkpoint else str(Path(checkpoint).absolute())
        claim = CheckpointLock.take(self.events.sparkSession, place)
        try:
            query = self._start(Places(place))
        except BaseException:  # also on Ctrl-C, the lock is released
            claim.release()
            raise
        claim.until_over(query)
        return query

    def _start(self, places: Places) -> StreamingQuery:
        source = self._recipes()
        recipe = source.current()
        if self.what == "detections" or (self.what is None and recipe.patterns):
            return self._detections(source, places)
        if self.heartbeat is not None:
            raise BuildError("a heartbeat is for patterns", hint="single events are matched as they come")
        if not recipe.profiles and isinstance(source, FixedRecipe):
            raise BuildError("there is no subscription to match", hint="such as {'hot': '{temp > 30}'}")
        # Wrong columns are refused here, where the stream starts, and not in its first batch.
        match_with(self.events, recipe.single_events(), keep=self.keep)
        sample = self._sample(source, places, first=list)
        batch = MatchBatch(source, self.sink, self.dead_letters, self.with_explanation, self.keep, sample)
        return self._query(self.events, batch, places.query)

    def _recipes(self) -> FixedRecipe | SubscriptionTable:
        """The source of subscriptions, with the background if one was given."""
        source = self._source()
        given = isinstance(self.background, Background) and source.current().may_learn
        return source.informed(self.background) if given else source  # type: ignore[arg-type]  # a Background, as checked

    def _source(self) -> FixedRecipe | SubscriptionTable:
        """The subscriptions, with the options of their meaning."""
        source: Any = self.source
        options = {"approach": self.approach, "threshold": self.threshold, "glossary": self.glossary}
        if isinstance(source, FixedRecipe | SubscriptionTable | Recipe):
            given = {"spaces": self.spaces or None, "measure": self.measure, **options}
            for name, value in given.items():
                if value is not None:
                    kind = type(source).__name__
                    raise BuildError(f"a {kind} has its own options, so {name} cannot be given", hint="give it to that")
            return FixedRecipe(source) if isinstance(source, Recipe) else source
        options["glossary"] = glossary_text(self.glossary, measure=self.measure)
        return FixedRecipe(Recipe.of(interests(source), measure=self.measure, spaces=self.spaces, options=options))

    def _sample(
        self, source: FixedRecipe | SubscriptionTable, places: Places, *, first: Callable[[], list[Event]]
    ) -> KeptSample | None:
        """The sample of the stream's first events, if it is to be taken and would change any score."""
        recipe = source.current()
        if self.background != "stream" or not (recipe.learns if isinstance(source, FixedRecipe) else recipe.may_learn):
            return None
        spark = self.events.sparkSession
        return KeptSample.begin(spark, places.background, query=places.query, first=first)

    def _detections(self, source: FixedRecipe | SubscriptionTable, places: Places) -> StreamingQuery:
        sample = self._sample(source, places, first=lambda: peeked(self.events))
        if sample is not None:
            # Hits wait in the state, so the background of the first start stays in force.
            source = source.informed(sample.start(self.events.sparkSession))
        found = detect_with(self.events, source, self._options())
        return self._query(found, DetectBatch(self.sink, self.dead_letters), places.query)

    def _options(self) -> DetectOptions:
        return DetectOptions(
            lateness=microseconds(self.lateness if self.watermark is None else self.watermark),
            buckets=self.buckets,
            spread=self.spread,
            max_ahead=microseconds(self.max_ahead),
            dead_letters=True,
            heartbeat=microseconds(self.heartbeat),
            keep=self.keep,
        )

    def _query(self, rows: DataFrame, sink: Callable[[DataFrame, int], None], checkpoint: str) -> StreamingQuery:
        writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
        trigger = {name: spark_interval(value) for name, value in self.trigger.items()}
        return writer.trigger(**trigger).start() if trigger else writer.start()


Stream.__init__ = named_options(Stream.__init__)  # type: ignore[method-assign]  # a misspelt field has a hint


def spark_interval(value: Any) -> Any:
    """A value of a trigger as Spark takes it: a `timedelta` as text.

    >>> spark_interval(timedelta(seconds=1.5)), spark_interval(True)
    ('1500 milliseconds', True)
    """
    return f"{(microseconds(value) or 0) // 1000} milliseconds" if isinstance(value, timedelta) else value


# One stream at a time on a checkpoint.


PATIENCE: Final = 20.0
"""Seconds after which a JVM without its driver has ended."""
_POLL = 0.1

_mine: set[str] = set()
"""Locks of this process. Opening and closing such a file again would release its lock."""


class CheckpointLock:
    """The lock of one checkpoint; without a path it locks nothing."""

    def __init__(self, path: str | None = None, file: Any = None) -> None:
        self._path = path
        self._file = file

    @classmethod
    def take(cls, spark: SparkSession, checkpoint: str, *, patience: float = PATIENCE) -> CheckpointLock:
        """Wait until the checkpoint is free and lock it; over Spark Connect and on object stores, there is no lock."""
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
        """Hold the lock as long as the query runs."""
        if self._path is not None:
            jvm_thread(self._hold, query, name="likewise-claim")

    def release(self) -> None:
        """Give up the lock."""
        if self._path is not None:
            # If the JVM has ended, its lock is gone too.
            with contextlib.suppress(Exception):
                self._file.close()
            _mine.discard(self._path)
            self._path = None

    def _hold(self, query: StreamingQuery) -> None:
        # The call fails only if the JVM has ended.
        with contextlib.suppress(Exception):
            while query.isActive:
                time.sleep(_POLL)
        self.release()
