"""Detection over a stream: the composer's state is in Spark's state store, and event-time timers advance it."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, wraps
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from likewise.composite import Composer, Detection, HitColumns, Rendezvous
from likewise.errors import BuildError
from likewise.events import Event, Instant
from likewise.pipeline.detection.batch import DetectOptions, OpenTask, arrow_schema, detections_schema, member_rows
from likewise.pipeline.detection.parcels import hits_of, tuples_of
from likewise.pipeline.detection.route import (
    STREAM_SCHEMA,
    Members,
    RouteTask,
    batch_number,
    make_composer,
    restored_composer,
)
from likewise.pipeline.events.frame import FLAW, WATERMARK, watermark_of, with_metadata
from likewise.pipeline.events.keep import declared
from likewise.pipeline.events.table import with_fields
from likewise.pipeline.events.transfer import letter, over_events
from likewise.pipeline.options import LikewiseWarning
from likewise.pipeline.session import PARTITIONS, UNTOUCHED
from likewise.pipeline.streaming.subscriptions import FixedRecipe, RecipeSource, Versions
from likewise.pipeline.trouble import with_reasons
from likewise.recipe import Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


# The clock as a source of rows that carry only a time, so that event time advances while no events arrive.
#
# Event time advances with events. This is enough for a replay, but in a silent live feed an absence would never be
# detected. A heartbeat adds the time of the clock, one to two beats behind it, so that events have a beat to arrive.
# The offsets of a batch are its ticks, so a repeated batch has the same ticks.


FORMAT: Final = "likewise-clock"
SCHEMA: Final = "moment bigint"
_ARROW = pa.schema([("moment", pa.int64())])


def tick_rows(spark: SparkSession, beat: int, route: RouteTask) -> DataFrame:
    """Routed rows with the time of the clock, for patterns with timers and for the watermark."""
    spark.dataSource.register(ClockSource)
    ticks = spark.readStream.format(FORMAT).option("beat", str(beat)).load()
    return ticks.mapInArrow(TickTask(route), STREAM_SCHEMA)


class ClockSource(DataSource):
    """Option: `beat`, in microseconds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> ClockReader:  # noqa: ARG002 - Spark's signature
        return ClockReader(self.options)


class Tick(InputPartition):
    """A moment, in microseconds."""

    def __init__(self, moment: int) -> None:
        super().__init__(None)
        self.moment = moment


class ClockReader(DataSourceStreamReader):
    """An offset is the number of beats since 1970, minus one.

    >>> reader = ClockReader({"beat": "10000000"}, clock=lambda: 1_000_000_059)
    >>> reader.initialOffset(), [tick.moment for tick in reader.partitions({"beats": 97}, {"beats": 99})]
    ({'beats': 99}, [990000000])
    """

    def __init__(
        self, options: Mapping[str, str], *, clock: Callable[[], int] = lambda: time.time_ns() // 1000
    ) -> None:
        self._beat = int(options["beat"])
        self._clock: Callable[[], int] = clock
        self._since = self._now()

    def __getstate__(self) -> dict[str, Any]:
        # A copy goes to every worker, which only unpacks a tick.
        return {"_beat": self._beat}

    def initialOffset(self) -> dict[str, int]:
        """A new query begins now."""
        return {"beats": self._now()}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:  # noqa: ARG002 - Spark's signature
        """The beats so far. After a restart, it waits for a whole beat, so that waiting events are processed first."""
        now = self._now()
        return {"beats": max(start["beats"], now)} if now > self._since + 1 else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Tick]:  # noqa: ARG002 - Spark's signature
        """Only the last beat counts."""
        return [Tick(end["beats"] * self._beat)]

    def read(self, partition: Tick) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # its own kind of partition
        """The tick."""
        yield pa.RecordBatch.from_pydict({"moment": [partition.moment]}, schema=_ARROW)

    def _now(self) -> int:
        return self._clock() // self._beat - 1


@dataclass(frozen=True, slots=True)
class TickTask:
    """Sends the time to all places that a routed event could reach."""

    route: RouteTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield self.route.time_rows(pc.max(batch.column("moment")).as_py())


PATIENCE: Final = 1 << 60
"""The composer's own lateness: unlimited, because Spark's watermark decides which events are late."""

STORES_MB: Final = "32"
"""Memory of all state stores of a worker together, in MB; half of it is the write buffer."""
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BOUNDED: Final = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
STORES_MEMORY: Final = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"
STATE: Final = "snapshot binary, timer bigint"
NUMBERS: Final = (
    "pattern string, time bigint, start bigint, `end` bigint, probability double, "
    f"events array<struct<role: string, id: string, start: bigint, `end`: bigint>>, flaw {FLAW}"
)
"""The rows of the state machine. Times are microseconds, so that Python does not convert their time zone."""

LAYOUT: Final = "hits"
"""The format of the state of a place. Earlier versions stored whole events, which had to be matched again."""

PATTERNS: Final = "patterns"
"""The field of the stored layout with the versions of the patterns, if these cannot change while a stream runs."""

REFUSED: Final = "refused"
"""The name of the number of refused events in Spark's progress."""


Watchable = TypeVar("Watchable")


class BatchContext(NamedTuple):
    """The recipe and the patterns that a batch is processed with."""

    recipe: Recipe
    routes: dict[str, Rendezvous]
    versions: Versions


class DetectProcessor(StatefulProcessor):
    """One pattern at one place: hits wait in the composer until the watermark has passed them.

    Without lateness, events are composed in the batch in which they arrive, and only timers wait for the watermark.
    Events are `filtered` if an upstream operator, such as a windowed aggregation, has dropped late events and emits the
    others only after the watermark has passed them. Then an event is late only if its place has already advanced
    beyond its time.
    """

    def __init__(
        self, source: RecipeSource, options: DetectOptions, kept: Mapping[str, str], *, filtered: bool = False
    ) -> None:
        self._source = source
        self._options = options
        self._kept = kept
        self._prompt = not options.lateness
        self._filtered = filtered

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._state = handle.getValueState("detector", STATE)
        self._batch: BatchContext | None = None

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Compose the events of a batch, then advance to the watermark."""
        pattern, version, place = key
        if not pattern:
            self._check_layout()
            yield from (flaw_row(msgspec.json.decode(row["record"])) for row in rows if row["record"] is not None)
            return
        if not self._current(pattern, version):
            return
        watermark = timerValues.getCurrentWatermarkInMs() * 1000
        composer, timer = self._load(pattern)
        taken = []
        for row in rows:
            if row["at"] < watermark and row["record"] is not None and not self._filtered:
                yield late_row(row["record"], pattern, late=watermark - row["at"])
            else:
                taken.append((event_of(row), row))
        events = [event for event, _ in taken]
        composer.take_columns(events, HitColumns.of([hits_of(event, row["hits"]) for event, row in taken]))
        # Spark's watermark is in milliseconds: within a millisecond, an event may be older than those already composed.
        records = {id(event): row["record"] for event, row in taken}
        refused = ((records[id(refusal.event)], refusal.reason) for refusal in composer.refused)
        yield from (flaw_row(letter(record, f"{why} for {pattern}")) for record, why in refused if record is not None)
        if self._prompt and taken:
            yield from self._owned(composer.release(max(event.span[1] for event in events)), pattern, place)
        yield from self._advance(composer, timer, pattern=pattern, place=place, times=timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002 - Spark's signature
        """The watermark has reached a timer."""
        pattern, version, place = key
        if not self._current(pattern, version):
            return
        composer, _ = self._load(pattern)
        yield from self._advance(composer, None, pattern=pattern, place=place, times=timerValues)

    def close(self) -> None:
        """Nothing is held outside the state."""

    def _parts(self) -> BatchContext:
        if self._batch is None:
            number = batch_number()
            recipe = self._source.recipe(number)
            routes = Members.of(recipe, buckets=self._options.buckets, spread=self._options.spread).routes
            self._batch = BatchContext(
                recipe, {route.pattern: route for route in routes}, self._source.versions(number)
            )
        return self._batch

    def _check_layout(self) -> None:
        """Refuse state of another layout: keys would map to other places, and their state would be lost silently."""
        now = layout_of(self._source.recipe(batch_number()), self._options, self._kept)
        # A table of subscriptions may change; its versions are stored elsewhere.
        patterns = self._source.versions(None).live if isinstance(self._source, FixedRecipe) else {}
        known = self._state.get() if self._state.exists() else None
        then = {**now, PATTERNS: {}} if known is None else msgspec.json.decode(bytes(known[0]))
        refuse_change(then, now, patterns)
        if then.get(PATTERNS, {}) != patterns or known is None:
            self._state.update((msgspec.json.encode({**now, PATTERNS: patterns}), None))

    def _current(self, pattern: str, version: str) -> bool:
        """Whether the pattern is unchanged; the state of a changed or removed pattern is cleared."""
        live = self._parts().versions.live.get(pattern)
        if live == version:
            return True
        if live is not None and isinstance(self._source, FixedRecipe):
            # A timer may fire in a batch without events, in which `_check_layout` is not called.
            raise changed_pattern(pattern)
        if self._state.exists():
            self._state.clear()
        return False

    def _load(self, pattern: str) -> tuple[Composer, int | None]:
        recipe = self._parts().recipe
        state = self._state.get() if self._state.exists() else None
        if state is None:
            return make_composer(recipe, pattern, lateness=PATIENCE), None
        snapshot, timer = state
        return restored_composer(recipe, bytes(snapshot)), timer

    def _advance(self, composer: Composer, timer: int | None, *, pattern: str, place: int, times: Any) -> Iterator[Row]:
        watermark = times.getCurrentWatermarkInMs()
        due = composer.due
        # Events exactly at the watermark may still arrive.
        found = composer.advance(watermark * 1000 - 1) if due is not None and due < watermark * 1000 else []
        self._save(composer, timer, watermark)
        yield from self._owned(found, pattern, place)

    def _owned(self, found: list[Detection], pattern: str, place: int) -> Iterator[Row]:
        """The detections that this place reports; another place reports the others."""
        route = self._parts().routes[pattern]
        return (
            detection_row(detection)
            for detection in found
            if route.owns(place, zip(detection.names, detection.members, strict=True))
        )

    def _save(self, composer: Composer, timer: int | None, watermark: int) -> None:
        due = composer.due
        # Timers are in milliseconds and fire when the watermark reaches them: by then, the due time must have passed.
        wanted = None if due is None else max(due // 1000 + 1, watermark + 1)
        if wanted != timer:
            if timer is not None and timer > watermark:
                self._handle.deleteTimer(timer)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        self._state.update((composer.snapshot(), wanted))


def refuse_change(then: Mapping[str, Any], now: Mapping[str, Any], patterns: Mapping[str, str]) -> None:
    """Refuse a checkpoint whose state does not fit the current settings; `patterns` maps names to versions."""
    if then.get("state") != LAYOUT:
        raise BuildError(
            "the checkpoint was made by another version of Likewise, whose state is laid out otherwise",
            hint="start with a new checkpoint, or go on with that version",
        )
    before = {name: value for name, value in then.items() if name != PATTERNS}
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            way = "go on with the version of Likewise that made it" if name == "model" else f"give {name} as it was"
            raise BuildError(
                f"the checkpoint was made with {name} {before.get(name)!r}, and now it is {now.get(name)!r}",
                hint=f"{way}, or start with a new checkpoint",
            )
    for name, version in then.get(PATTERNS, {}).items():
        if patterns.get(name, version) != version:
            raise changed_pattern(name)


def changed_pattern(name: str) -> BuildError:
    """The error for a changed pattern."""
    return BuildError(
        f"the pattern {name!r} is another one than in the checkpoint, so what it holds there would be lost",
        hint="leave it as it was, give it a new name to begin anew, or let a SubscriptionTable change it",
    )


def layout_of(recipe: Recipe, options: DetectOptions, kept: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The settings that state depends on, except the patterns, which have versions."""
    # Kept columns are part of the ids, also in the state.
    columns = dict(kept) if kept else None
    return {"state": LAYOUT, "buckets": options.buckets, "spread": options.spread, "keep": columns, **recipe.scoring}


def event_of(row: Row) -> Event:
    """The event of a routed row, with the values that conditions compare; a tick has only a time."""
    return Event(row["id"] or "", tuples_of(row["tuples"] or ""), (), row["start"], row["at"])


def late_row(record: str, pattern: str, *, late: Instant) -> Row:
    """A late event as a dead letter."""
    return flaw_row(letter(record, f"late by {late / 1_000_000:g} s for {pattern}"))


def flaw_row(flaw: dict[str, Any]) -> Row:
    """A row of `NUMBERS` for a refused event or record."""
    record = Row(**{name: flaw.get(name) for name in ("source", "line", "reason", "record")})
    return Row(pattern=None, time=None, start=None, end=None, probability=None, events=None, flaw=record)


def detection_row(found: Detection) -> Row:
    """A detection as a row of `NUMBERS`."""
    members = [Row(**member) for member in member_rows(found)]
    return Row(
        pattern=found.pattern,
        time=found.time,
        start=found.start,
        end=found.end,
        probability=found.probability,
        events=members,
        flaw=None,
    )


def own_watermark(events: DataFrame, options: DetectOptions) -> dict[str, int]:
    """The watermark of the events, if they have one; Spark allows a query no second one.

    Spark would fail only after rows were written, so conflicting options are refused here.
    """
    known = watermark_of(events)
    if not known:
        if "EventTimeWatermark" in plan_text(events):
            raise BuildError(
                "the events have a watermark on another column than their time, and a query has only one",
                hint="let the time be that column (F.window_time('window') after a windowed aggregation), "
                "or leave out withWatermark and give detect lateness=…",
            )
        return {}
    for name in ("lateness", "heartbeat"):
        if getattr(options, name) is not None:
            raise BuildError(
                f"the events already have a watermark, so {name} cannot be given",
                hint=f"leave out either withWatermark or {name}",
            )
    return known


def plan_text(frame: DataFrame) -> str:
    """The analysed plan of a frame, classic or over Spark Connect."""
    java = getattr(frame, "_jdf", None)
    if java is not None:
        return str(java.queryExecution().analyzed().toString())
    return str(frame._explain_string(extended=True))  # type: ignore[operator]  # private in Spark, and without types


def gives_late(plan: str) -> bool:
    """Whether a plan emits rows only after the watermark has passed them: aggregations and joins of streams do.

    >>> static = "~Join Inner\\n:- ~EventTimeWatermark\\n+- LogicalRDD"
    >>> gives_late("~Aggregate [window]"), gives_late(static), gives_late(static.replace("Logical", "~Logical"))
    (True, False, True)
    """
    lines = plan.splitlines()
    joins = ((number, line.find("~Join")) for number, line in enumerate(lines))
    joined = (_streams_below(lines[number + 1 :], at) for number, at in joins if at >= 0)
    return "~Aggregate" in plan or any(streams == 2 for streams in joined)


def _streams_below(lines: list[str], at: int) -> int:
    """How many streams are children of the node that stands at a position in the line before."""
    below = takewhile(lambda line: line[at : at + 1] in (" ", ":", "+"), lines)
    return sum(line[at + 3 :].startswith("~") for line in below)


def watched(found: Watchable, detections: frozenset[int] = frozenset()) -> Watchable:
    """A streaming frame whose queries get few state stores; `detections` are the numbers of those it holds.

    The same goes for every DataFrame derived from it by `select`, `groupBy` or any other method. What Spark would
    refuse only after rows were written, or in many lines, is refused when the query is built: a second watermark on
    detections, and two detections in one query.
    """
    kind: Any = type(found)
    vars(found)[_DETECTIONS] = detections | detections_in(found)
    found.__class__ = _watched_kind(kind)
    return found


_DETECTIONS: Final = "_likewise_detections"
_numbers: Final = count()


@cache
def _watched_kind(kind: type[Any]) -> type[Any]:
    if issubclass(kind, WatchedGroups):
        return kind
    methods = {name: method for name, method in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
    passed = {name: _passing(name, method) for name, method in methods.items()}
    return type(kind.__name__, (WatchedGroups if kind.__name__ == GROUPS else WatchedFrame, kind), passed)


def _passing(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    from pyspark.sql import DataFrame

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        held = frozenset[int]().union(*(detections_in(part) for part in (*arguments, *named.values())))
        if name == "withWatermark" and held:
            raise BuildError(
                "detections of a stream come when their watermark has passed, so a second one would drop them all",
                hint="aggregate each batch: found.writeStream.foreachBatch(…), or write them and read them as a stream",
            )
        if len(held) > 1:
            raise twice_detected()
        if name.endswith("TempView"):
            _warn_of_stores(arguments[0])
        made = method(*arguments, **named)
        streams = isinstance(made, DataFrame) and made.isStreaming
        return watched(made, held) if streams or type(made).__name__ == GROUPS else made

    return call


def _warn_of_stores(frame: DataFrame) -> None:
    if frame.sparkSession.conf.get(PARTITIONS) == UNTOUCHED:
        text = (
            f"a query over this view has {UNTOUCHED} state stores and is slow; set {PARTITIONS} to the number of cores"
        )
        warnings.warn(text, LikewiseWarning, stacklevel=3)


def detections_in(part: object) -> frozenset[int]:
    """The detections that a frame is derived from."""
    known: frozenset[int] = vars(part).get(_DETECTIONS, frozenset()) if isinstance(part, WatchedGroups) else frozenset()
    return known


def twice_detected() -> BuildError:
    """The error for two detections in one query."""
    return BuildError(
        "a streaming query cannot detect twice",
        hint="give all patterns to one detect, or start a query for each; "
        "to detect in detections, write the first to files or a table and read these as a stream",
    )


GROUPS: Final = "GroupedData"
"""The name of Spark's class of grouped rows; Spark Connect has its own class of that name."""


def with_few_stores(spark: SparkSession, start: Callable[..., Any]) -> Callable[..., Any]:
    """A start of a query with as many state stores as there are cores, unless the session sets the number.

    A new query takes the number from its session when it starts, a restarted one from its checkpoint. Each store is
    opened in every batch, and Spark's default of 200 takes many times as long as all other work.
    """

    @wraps(start)
    def started(*arguments: Any, **named: Any) -> Any:
        if spark.conf.get(PARTITIONS) != UNTOUCHED:
            return start(*arguments, **named)
        spark.conf.set(PARTITIONS, str(cores_of(spark)))
        try:
            return start(*arguments, **named)
        finally:
            spark.conf.set(PARTITIONS, UNTOUCHED)

    return started


def cores_of(spark: SparkSession) -> int:
    """How many tasks a session runs at once: a range has that many partitions. Spark Connect hides the number."""
    from pyspark.sql import functions as F

    (row,) = spark.range(1 << 16).select(F.spark_partition_id().alias("part")).agg(F.max("part")).collect()
    return int(row[0]) + 1


class WatchedGroups:
    """Grouped rows of a watched frame."""


class WatchedFrame(WatchedGroups):
    """A streaming DataFrame of matches or detections, or derived from one."""

    @property
    def writeStream(self) -> Any:  # noqa: N802 - Spark's name
        """Spark's writer; the queries that it starts have as many state stores as there are cores."""
        writer = super().writeStream  # type: ignore[misc]  # that of the frame which is watched
        for name in ("start", "toTable"):
            started = with_few_stores(self.sparkSession, getattr(writer, name))  # type: ignore[attr-defined]  # as above
            setattr(writer, name, with_reasons(started))
        return writer


def configure_state_store(spark: SparkSession) -> None:
    """Select RocksDB with bounded memory; a bound that the session sets itself is kept."""
    # The only state store with timers, and with state larger than memory.
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    # Every batch rewrites its snapshots, and without a bound each store buffers 64 MB of old ones.
    if spark.conf.get(BOUNDED, None) is None:
        spark.conf.set(BOUNDED, "true")
        spark.conf.set(STORES_MEMORY, spark.conf.get(STORES_MEMORY, None) or STORES_MB)


def detect_stream(events: DataFrame, source: RecipeSource, options: DetectOptions, kept: StructType) -> DataFrame:
    """Detections of a stream, with the columns of a batch job."""
    from pyspark.sql import functions as F

    if detections_in(events) or f"CollectMetrics {REFUSED}," in plan_text(events):
        raise twice_detected()
    known = own_watermark(events, options)
    options = replace(options, lateness=known[WATERMARK] * 1000 if known else options.lateness or 0)
    configure_state_store(events.sparkSession)
    task = RouteTask(source, options.buckets, options.spread, options.max_ahead, streaming=True, kept=len(kept))
    routed = over_events(events, task, STREAM_SCHEMA, kept=kept.names, letters=True, name="LikewiseRoute")
    if options.heartbeat is not None:
        routed = routed.union(tick_rows(events.sparkSession, options.heartbeat, task))
    if known:
        end = with_metadata(F.col("end"), "end", known)
        timed = routed.select(*(end if name == "end" else name for name in routed.columns))
    else:
        timed = routed.withWatermark("end", f"{(options.lateness or 0) // 1000} milliseconds")
    found = timed.groupBy("pattern", "version", "place").transformWithState(
        DetectProcessor(source, options, declared(kept), filtered=bool(known) and gives_late(plan_text(events))),
        outputStructType=NUMBERS,
        outputMode="Append",
        timeMode="EventTime",
    )
    members = F.transform(
        "events",
        lambda member: F.struct(
            member["role"].alias("role"),
            member["id"].alias("id"),
            F.timestamp_micros(member["start"]).alias("start"),
            F.timestamp_micros(member["end"]).alias("end"),
        ),
    )
    times = [F.timestamp_micros(name).alias(name) for name in ("time", "start", "end")]
    rows = found.select("pattern", *times, "probability", members.alias("events"), "flaw")
    rows = rows.observe(REFUSED, F.count("flaw").alias("events"))
    if kept:
        flaw = with_fields(f"flaw {FLAW}", ()).fields
        rows = rows.mapInArrow(OpenTask(arrow_schema(kept)), with_fields(detections_schema(kept), flaw))
    found = rows if options.dead_letters else rows.where("flaw is null").drop("flaw")
    return watched(found, frozenset({next(_numbers)}))
