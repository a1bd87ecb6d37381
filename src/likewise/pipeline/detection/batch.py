"""Detection on Spark: a stateless step finds the hits of all members, a keyed step composes them.

Both steps use the matcher and the composer that run everywhere else, and nothing is matched twice. `Rendezvous` assigns
hits to places by key. At each place they are composed in the order of event time. In a batch job a place is a
partition: one composer for each pattern processes all its keys, column by column.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.composite import BUCKETS, Composer, Detection, Rendezvous
from likewise.errors import BuildError, named_options
from likewise.events import Instant
from likewise.pipeline.background import BackgroundChoice, given_background, informed
from likewise.pipeline.detection.parcels import ParcelReader
from likewise.pipeline.detection.route import BATCH_SCHEMA, MOMENT, Members, RouteTask, make_composer
from likewise.pipeline.events.frame import FLAW, Keep
from likewise.pipeline.events.keep import kept_fields, opened
from likewise.pipeline.events.transfer import over_events, refused
from likewise.pipeline.options import (
    LikewiseWarning,
    Span,
    Subscriptions,
    check_frame,
    glossary_text,
    interests,
    microseconds,
)
from likewise.pipeline.session import PARTITIONS, UNTOUCHED, jvm_thread, local_cores
from likewise.pipeline.streaming.subscriptions import FixedRecipe, RecipeSource, SubscriptionTable
from likewise.recipe import Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from pyspark.sql.conf import RuntimeConfig
    from pyspark.sql.types import StructType

DETECTIONS_SCHEMA: Final = (
    "pattern string, time timestamp_ltz, start timestamp_ltz, `end` timestamp_ltz, probability double, "
    "events array<struct<role: string, id: string, start: timestamp_ltz, `end`: timestamp_ltz>>"
)
"""A row for each detection; `time` is when it became known, `events` are its members in the order of the pattern."""

SECOND: Final = 1_000_000
PLACES_PER_CORE: Final = 4
"""More than one, so that the place of a frequent key does not hold up many other keys."""
MEMBER_COLUMNS: Final = ("role", "id", "start", "end")

_MEMBER = pa.struct([("role", pa.string()), ("id", pa.string()), ("start", MOMENT), ("end", MOMENT)])
NOTHING_KEPT: Final = pa.schema([])
ARROW_DETECTIONS: Final = pa.schema(
    [
        ("pattern", pa.string()),
        ("time", MOMENT),
        ("start", MOMENT),
        ("end", MOMENT),
        ("probability", pa.float64()),
        ("events", pa.list_(_MEMBER)),
    ]
)


@named_options
def detect(
    events: DataFrame,
    patterns: Subscriptions | SubscriptionTable,
    *,
    spaces: str | Path | Sequence[str | Path] = (),
    measure: str | None = None,
    approach: str | None = None,
    threshold: float | None = None,
    lateness: Span | None = None,
    watermark: Span | None = None,
    buckets: int = BUCKETS,
    spread: bool = True,
    max_ahead: Span | None = None,
    dead_letters: bool = False,
    heartbeat: Span | None = None,
    keep: Keep = (),
    competitors: Any = None,
    background: BackgroundChoice = "stream",
    glossary: str | Path | None = None,
    aggregation: str | None = None,
    temperature: float | None = None,
    attribute_weight: float | None = None,
) -> DataFrame:
    """Every detection of the patterns, a row each; for batch and streaming DataFrames.

    A stream waits for events that are late by up to `lateness` (alias `watermark`) and refuses later ones; by default,
    it uses the watermark of the column `time`, if that has one. Keys of a pattern are distributed over `buckets`
    partitions. Without `spread`, each pattern has one partition; this is exact for events with several values of a key
    in patterns that choose or consume. Events further ahead of the clock than `max_ahead` are refused.

    With `dead_letters` the result has rows for refused events, with the reason in a column `flaw`; the function
    `dead_letters` returns them. With a `heartbeat` (`10 seconds`), the event time of a live stream advances with the
    clock, so that an absence is detected although no events arrive. `keep` names columns of the input that each member
    of a detection has too (`"*"`: all that are not part of the event). Durations are texts or `timedelta`. Patterns may
    refer to subscriptions for single events among them. Other arguments are those of `match`.
    """
    if lateness is not None and watermark is not None:
        raise BuildError("lateness and watermark are two names of one thing", hint="give one of them")
    if isinstance(patterns, SubscriptionTable):
        source: RecipeSource = patterns
    else:
        options = {
            "approach": approach,
            "threshold": threshold,
            "competitors": competitors,
            "background": given_background(background),
            "glossary": glossary_text(glossary, measure=measure),
            "aggregation": aggregation,
            "temperature": temperature,
            "attribute_weight": attribute_weight,
        }
        source = FixedRecipe(Recipe.of(interests(patterns), measure=measure, spaces=spaces, options=options))
    chosen = DetectOptions(
        lateness=microseconds(lateness if watermark is None else watermark),
        buckets=buckets,
        spread=spread,
        max_ahead=microseconds(max_ahead),
        dead_letters=dead_letters,
        heartbeat=microseconds(heartbeat),
        keep=keep,
    )
    check_frame(events)
    if not events.isStreaming:
        source = FixedRecipe(informed(source.recipe(None), events, background))
    return detect_with(events, source, chosen)


@dataclass(frozen=True, slots=True)
class DetectOptions:
    """How detection is laid out; see `detect`. Durations are in microseconds."""

    lateness: int | None = None
    buckets: int = BUCKETS
    spread: bool = True
    max_ahead: int | None = None
    dead_letters: bool = False
    heartbeat: int | None = None
    keep: Keep = ()

    def __post_init__(self) -> None:
        if self.buckets < 1:
            raise BuildError(f"keys cannot be spread over {self.buckets} buckets", hint="at least 1")
        if self.heartbeat is not None and self.heartbeat < SECOND:
            raise BuildError("the heartbeat is too short", hint="a second at least, such as `10 seconds`")


def detect_with(events: DataFrame, source: RecipeSource, options: DetectOptions | None = None) -> DataFrame:
    """As `detect`, with a source of recipes."""
    options = options or DetectOptions()
    if not events.isStreaming:
        source = FixedRecipe(source.recipe(None))
    if isinstance(source, FixedRecipe):
        if not source.value.patterns:
            raise BuildError("there is no pattern to detect", hint="single events are for match")
        source.value.check()
    if not events.isStreaming and options.heartbeat is not None:
        raise BuildError("a heartbeat is for streams", hint="in a batch job all events are there")
    kept = kept_fields(events, options.keep, taken=MEMBER_COLUMNS)
    if events.isStreaming:
        from likewise.pipeline.detection.stream import detect_stream

        return detect_stream(events, source, options, kept)
    return _detect_batch(events, source, options, kept)


def detections_schema(kept: StructType) -> StructType:
    """The columns of detections whose members have further columns."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    schema = cast("StructType", StructType.fromDDL(DETECTIONS_SCHEMA))
    member = cast("StructType", cast("ArrayType", schema["events"].dataType).elementType)
    events = StructField("events", ArrayType(StructType([*member.fields, *kept.fields])))
    return StructType([events if field.name == "events" else field for field in schema.fields])


def arrow_schema(kept: StructType) -> pa.Schema:
    """The types in which Spark takes columns from a worker."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(kept, timezone="UTC")


def batch_places(conf: RuntimeConfig, buckets: int) -> int:
    """The number of places of a batch job: `buckets`, but no more than shuffle partitions.

    Every place is a task. If a local session has Spark's default number of partitions, a few places for each core are
    enough: an idle task costs more than its share of a small table.
    """
    partitions = conf.get(PARTITIONS) or UNTOUCHED
    cores = local_cores(conf.get("spark.master", None)) if partitions == UNTOUCHED else None
    return min(buckets, int(partitions) if cores is None else cores * PLACES_PER_CORE)


def _detect_batch(events: DataFrame, source: RecipeSource, options: DetectOptions, kept: StructType) -> DataFrame:
    from pyspark.sql import functions as F

    places = batch_places(events.sparkSession.conf, options.buckets)
    task = RouteTask(source, places, options.spread, options.max_ahead, kept=len(kept))
    routed = counted(over_events(events, task, BATCH_SCHEMA, kept=kept.names, name="LikewiseRoute"))
    ordered = routed.repartitionById(places, F.col("part")).sortWithinPartitions("at", "start", "id")
    compose = DetectTask(source, places, options.spread, arrow_schema(kept))
    found = ordered.mapInArrow(compose, detections_schema(kept))
    if not options.dead_letters:
        return found
    flaws = refused(events, max_ahead=options.max_ahead).select(F.struct("*").alias("flaw"))
    return found.withColumn("flaw", F.lit(None).cast(FLAW)).unionByName(flaws, allowMissingColumns=True)


def counted(routed: DataFrame) -> DataFrame:
    """Routed rows with counters of routed and refused events; a warning reports events without a time."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    # Unnamed, because one query may contain two detections.
    seen = Observation()
    columns = [
        F.count("hits").alias("routed"),
        F.coalesce(F.sum("refused"), F.lit(0)).alias("refused"),
        F.coalesce(F.sum("untimed"), F.lit(0)).alias("untimed"),
    ]
    watched = routed.observe(seen, *columns).drop("refused", "untimed")
    if isinstance(vars(seen).get("_result"), dict):
        # Over Spark Connect one cannot wait for the counts: the client adds them when a job has ended.
        vars(seen)["_result"] = ReportedCounts()
    else:
        jvm_thread(_wait_and_warn, seen, name="likewise-refused")
    return watched


class ReportedCounts(dict[str, Any]):
    """Counts of a job, which warn when they arrive."""

    def update(self, *counts: Any, **named: Any) -> None:
        """Store the counts of a finished job."""
        super().update(*counts, **named)
        _warn(self)


def _wait_and_warn(seen: Observation) -> None:
    # The session may end before the job.
    with contextlib.suppress(Exception):
        _warn(seen.get)


def _warn(counts: Mapping[str, int]) -> None:
    """Warn about events that took no part in a job."""
    if counts.get("untimed"):
        untimed = "1 event has" if counts["untimed"] == 1 else f"{counts['untimed']:,} events have"
        warnings.warn(
            f"{untimed} no time and took no part in detection; "
            "dead_letters=True gives them, stamp=True in read_events gives them a time",
            LikewiseWarning,
            stacklevel=2,
        )


@dataclass(slots=True)
class Meeting:
    """One pattern in one partition of a batch job; its composer is created for the first event."""

    recipe: Recipe
    route: Rendezvous
    place: int
    composer: Composer | None = None
    reader: ParcelReader = field(default_factory=ParcelReader)
    last: Instant = field(default=-(1 << 62))
    shared: bool = False

    def take(self, rows: pa.RecordBatch) -> list[Detection]:
        """Routed rows in the order of event time."""
        self.last = max(self.last, rows.column("at")[-1].as_py())
        if not self.route.clocked:
            # Rows without hits only advance time: patterns with timers need all of them, others only the last.
            rows = rows.filter(pc.is_valid(rows.column("hits")))
        if not rows.num_rows:
            return []
        self.shared = self.shared or bool(pc.any(rows.column("shared")).as_py())
        if self.composer is None:
            self.composer = make_composer(self.recipe, self.route.pattern)
        return self.owned(self.composer.take_columns(*self.reader.read(rows)))

    def finish(self) -> list[Detection]:
        """Advance time to the last event, so that all timers up to it fire."""
        return [] if self.composer is None else self.owned(self.composer.advance(self.last))

    def owned(self, found: list[Detection]) -> list[Detection]:
        """The detections that no other place reports."""
        if not self.shared:
            return found
        owns = self.route.owns
        return [
            detection for detection in found if owns(self.place, zip(detection.names, detection.members, strict=True))
        ]


@dataclass(frozen=True)
class DetectTask:
    """Runs composers over the rows of a partition, which come in the order of event time."""

    source: RecipeSource
    places: int = BUCKETS
    spread: bool = True
    kept: pa.Schema = NOTHING_KEPT

    @property
    def __name__(self) -> str:
        return "LikewiseDetect"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        recipe = self.source.recipe(None)
        routes = Members.of(recipe, buckets=self.places, spread=self.spread).routes
        meetings: dict[int, Meeting] = {}
        for batch in batches:
            found: list[Detection] = []
            for number, rows in _by_route(batch):
                if number not in meetings:
                    route = routes[number]
                    place = (rows.column("part")[0].as_py() - route.offset) % self.places
                    meetings[number] = Meeting(recipe, route, place)
                found += meetings[number].take(rows)
            if found:
                yield opened_members(detections_batch(found), self.kept)
        rest = [detection for meeting in meetings.values() for detection in meeting.finish()]
        if rest:
            yield opened_members(detections_batch(rest), self.kept)


def _by_route(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    if batch.column("route").null_count:
        batch = batch.filter(batch.column("route").is_valid())
    if not batch.num_rows:
        return
    routes = batch.column("route").to_numpy(zero_copy_only=False)
    numbers = np.unique(routes).tolist()
    for number in numbers:
        yield number, batch if len(numbers) == 1 else batch.filter(pa.array(routes == number))


def detections_batch(found: Sequence[Detection]) -> pa.RecordBatch:
    """Detections as Arrow columns; members are four long lists, without an object for each member."""
    sizes = np.fromiter((len(detection.members) for detection in found), np.int32, count=len(found))
    members = [event for detection in found for event in detection.members]
    member = pa.StructArray.from_arrays(
        [
            pa.array([name for detection in found for name in detection.names], pa.string()),
            pa.array([event.id for event in members], pa.string()),
            pa.array([event.start for event in members], pa.int64()).cast(MOMENT),
            pa.array([event.start if event.end is None else event.end for event in members], pa.int64()).cast(MOMENT),
        ],
        fields=list(_MEMBER),
    )
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int32())
    columns = [
        pa.array([detection.pattern for detection in found], pa.string()),
        *(
            pa.array([getattr(detection, name) for detection in found], pa.int64()).cast(MOMENT)
            for name in ("time", "start", "end")
        ),
        pa.array([detection.probability for detection in found], pa.float64()),
        pa.ListArray.from_arrays(offsets, member, type=ARROW_DETECTIONS.field("events").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_DETECTIONS)


def opened_members(batch: pa.RecordBatch, kept: pa.Schema) -> pa.RecordBatch:
    """Detections whose members have the kept columns, which their ids carried until here."""
    if not len(kept):
        return batch
    place = batch.schema.get_field_index("events")
    events = batch.column(place)
    members = events.flatten()
    # Spark sends times in the zone of its session.
    own = {field.name: part.cast(field.type) for field, part in zip(_MEMBER, members.flatten(), strict=True)}
    ids, columns = opened(own["id"].to_pylist(), kept.types)
    fields = [*_MEMBER, *kept]
    member = pa.StructArray.from_arrays([*(own | {"id": pa.array(ids, pa.string())}).values(), *columns], fields=fields)
    sizes = pc.fill_null(events.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int32())
    made = pa.ListArray.from_arrays(offsets, member, type=pa.list_(pa.struct(fields)), mask=events.is_null())
    return batch.set_column(place, "events", made)


@dataclass(frozen=True)
class OpenTask:
    """Gives the members of detections of a stream their kept columns."""

    kept: pa.Schema

    @property
    def __name__(self) -> str:
        return "LikewiseKeep"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (opened_members(batch, self.kept) for batch in batches)


def member_rows(detection: Detection) -> list[dict[str, object]]:
    """The events of a detection with their roles."""
    return [
        {"role": role, "id": event.id, "start": event.span[0], "end": event.span[1]}
        for role, event in zip(detection.names, detection.members, strict=True)
    ]
