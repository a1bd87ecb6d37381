"""Detection on Spark: a stateless step lets through what matches a member, a keyed step runs the detector.

Both steps use the matcher and the detector that run everywhere else. Events meet where `Route` says; there they
are taken in the order of event time, whatever the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from likewise.composite import Detection, Detector
from likewise.errors import BuildError
from likewise.events import Instant
from likewise.language import Composite
from likewise.pipeline._handover import over_events
from likewise.pipeline._routes import BUCKETS, Route
from likewise.pipeline._routing import MOMENT, ROUTED_SCHEMA, Members, RouteTask, column_of, event_of
from likewise.pipeline._table import Fixed, Source, Table
from likewise.pipeline._worker import Interests, Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DETECTIONS_SCHEMA: Final = (
    "pattern string, time timestamp, start timestamp, `end` timestamp, probability double, "
    "events array<struct<role: string, id: string, start: timestamp, `end`: timestamp>>"
)
"""A row for each detection; `time` is when it was known, `events` are its members in the order of the pattern."""

_MEMBER = pa.struct([("role", pa.string()), ("id", pa.string()), ("start", MOMENT), ("end", MOMENT)])
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


def detect(
    events: DataFrame,
    patterns: Interests | Table,
    *,
    space: str | Path | Sequence[str | Path] = (),
    measure: str | None = None,
    approach: str | None = None,
    threshold: float | None = None,
    delay: str = "0 seconds",
    buckets: int = BUCKETS,
    **options: Any,
) -> DataFrame:
    """Every detection of the patterns, a row each; batch and streaming DataFrames alike.

    A stream waits for events that come late by up to `delay` (the watermark) and drops later ones. `buckets` is over
    how many states the keys of a bound pattern are spread. Subscriptions to single events among the patterns
    are only there to be referred to. Other arguments are those of `match`.
    """
    if isinstance(patterns, Table):
        source: Source = patterns
    else:
        options = {"approach": approach, "threshold": threshold, **options}
        source = Fixed(Recipe.of(patterns, measure=measure, spaces=space, options=options))
    return detect_with(events, source, delay=delay, buckets=buckets)


def detect_with(events: DataFrame, source: Source, *, delay: str = "0 seconds", buckets: int = BUCKETS) -> DataFrame:
    """The same, with everything said in a source of recipes."""
    if not events.isStreaming:
        source = Fixed(source.recipe(None))
    if isinstance(source, Fixed):
        if not source.value.patterns:
            raise BuildError("there is no pattern to detect", hint="single events are for match")
        source.value.check()
    routed = over_events(events, RouteTask(source, buckets, events.isStreaming), ROUTED_SCHEMA, timed=True)
    if events.isStreaming:
        from likewise.pipeline._detect_stream import DetectProcessor, detect_stream

        return detect_stream(routed, DetectProcessor(source, buckets), delay=delay)
    ordered = routed.repartition("pattern", "version", "place").sortWithinPartitions("at", "start", "id")
    return ordered.mapInArrow(DetectTask(source, buckets), DETECTIONS_SCHEMA)


def make_detector(recipe: Recipe, pattern: str, *, lateness: int = 0) -> Detector:
    """A detector of one pattern, that knows all others by name."""
    matcher = recipe.bare_matcher()
    detector = Detector(matcher=matcher, measure=matcher.measure, max_jump=None, lateness=lateness)
    for each in recipe.subscriptions:
        detector.define(each)
    (wanted,) = (each for each in recipe.patterns if each.name == pattern)
    assert isinstance(wanted.body, Composite)
    detector.add(pattern, wanted.body, wanted.options)
    return detector


@dataclass(slots=True)
class Meeting:
    """One pattern at one place of a batch job; a detector is made when the first event comes."""

    recipe: Recipe
    route: Route
    place: int
    detector: Detector | None = None
    last: Instant = field(default=-(1 << 62))

    def take(self, rows: Sequence[tuple[Instant, bytes | None]]) -> list[Detection]:
        """Routed rows in the order of event time."""
        self.last = max(self.last, rows[-1][0])
        # Mere moments matter to those who act on time alone; to others it is enough to know the last.
        events = [event_of(end, data) for end, data in rows if data is not None or self.route.clocked]
        if not events:
            return []
        if self.detector is None:
            self.detector = make_detector(self.recipe, self.route.pattern)
        return self.owned(self.detector.publish_batch(events))

    def finish(self) -> list[Detection]:
        """All timers up to the last event of all."""
        return [] if self.detector is None else self.owned(self.detector.advance(self.last))

    def owned(self, found: list[Detection]) -> list[Detection]:
        """Those that no other place tells of."""
        owns = self.route.owns
        return [each for each in found if owns(self.place, zip(each.names, each.members, strict=True))]


@dataclass(frozen=True, slots=True)
class DetectTask:
    """Runs detectors over the rows of a partition, which come in the order of event time."""

    source: Source
    buckets: int = BUCKETS

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        recipe = self.source.recipe(None)
        routes = {route.pattern: route for route in Members.of(recipe, buckets=self.buckets).routes}
        meetings: dict[tuple[str, int], Meeting] = {}
        for batch in batches:
            found: list[Detection] = []
            for (pattern, place), rows in _by_place(batch).items():
                meeting = meetings.get((pattern, place))
                if meeting is None:
                    meeting = meetings[pattern, place] = Meeting(recipe, routes[pattern], place)
                found += meeting.take(rows)
            if found:
                yield detections_batch(found)
        rest = [each for meeting in meetings.values() for each in meeting.finish()]
        if rest:
            yield detections_batch(rest)


def _by_place(batch: pa.RecordBatch) -> dict[tuple[str, int], list[tuple[Instant, bytes | None]]]:
    columns = (batch.column(name).to_pylist() for name in ("pattern", "place", "at", "event"))
    out: dict[tuple[str, int], list[tuple[Instant, bytes | None]]] = {}
    for pattern, place, end, data in zip(*columns, strict=True):
        out.setdefault((pattern, place), []).append((end, data))
    return out


def detections_batch(found: Sequence[Detection]) -> pa.RecordBatch:
    """Detections as Arrow columns."""
    columns: list[list[Any]] = [
        [each.pattern for each in found],
        [each.time for each in found],
        [each.start for each in found],
        [each.end for each in found],
        [each.probability for each in found],
        [member_rows(each) for each in found],
    ]
    arrays = [column_of(column, kind.type) for column, kind in zip(columns, ARROW_DETECTIONS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_DETECTIONS)


def member_rows(detection: Detection) -> list[dict[str, object]]:
    """The events of a detection with their roles."""
    return [
        {"role": role, "id": event.id, "start": event.span[0], "end": event.span[1]}
        for role, event in zip(detection.names, detection.members, strict=True)
    ]
