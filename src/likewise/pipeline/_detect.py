"""Detection on Spark: a stateless step lets through what matches a member, a keyed step runs the detector.

Both steps use the matcher and the detector that run everywhere else. Events meet where `Route` says; there they
are taken in the order of event time, whatever the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.composite import Detection, Detector, build_plan
from likewise.composite._plan import LeafNode
from likewise.composite._state import dump_event, load_event
from likewise.errors import BuildError
from likewise.events import Event, Instant
from likewise.language import Composite
from likewise.matching import Matcher
from likewise.pipeline._arrow import encode
from likewise.pipeline._frame import as_events, events_of, instants
from likewise.pipeline._routes import BUCKETS, Route
from likewise.pipeline._table import Fixed, Source, Table, pattern_versions
from likewise.pipeline._worker import Interests, Recipe, once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DETECTIONS_SCHEMA: Final = (
    "pattern string, time timestamp, start timestamp, `end` timestamp, probability double, "
    "events array<struct<role: string, id: string, start: timestamp, `end`: timestamp>>"
)
"""A row for each detection; `time` is when it was known, `events` are its members in the order of the pattern."""

_MOMENT = pa.timestamp("us", tz="UTC")
_MEMBER = pa.struct([("role", pa.string()), ("id", pa.string()), ("start", _MOMENT), ("end", _MOMENT)])
ARROW_DETECTIONS: Final = pa.schema(
    [
        ("pattern", pa.string()),
        ("time", _MOMENT),
        ("start", _MOMENT),
        ("end", _MOMENT),
        ("probability", pa.float64()),
        ("events", pa.list_(_MEMBER)),
    ]
)

ROUTED_SCHEMA: Final = (
    "pattern string, version string, place int, `end` timestamp, at bigint, start bigint, id string, event binary"
)
_ROUTED = pa.schema(
    [
        ("pattern", pa.string()),
        ("version", pa.string()),
        ("place", pa.int32()),
        ("end", _MOMENT),
        ("at", pa.int64()),
        ("start", pa.int64()),
        ("id", pa.string()),
        ("event", pa.binary()),
    ]
)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

Row = tuple[str, str, int, Instant, Instant, Instant, str, bytes | None]
"""A row of `ROUTED_SCHEMA`; without an event it only says how far event time has come. `end` is there twice: as a
timestamp for Spark's watermark, and as a number that no time zone can bend."""


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
    if isinstance(source, Fixed):
        if not source.value.patterns:
            raise BuildError("there is no pattern to detect", hint="single events are for match")
        source.value.check()
    columns = as_events(events).where("flaw is null and attributes is not null and time is not null").drop("flaw")
    routed = columns.mapInArrow(RouteTask(source, buckets, events.isStreaming), ROUTED_SCHEMA)
    if events.isStreaming:
        from likewise.pipeline._detect_stream import DetectProcessor, detect_stream

        return detect_stream(routed, DetectProcessor(source, buckets), delay=delay)
    ordered = routed.repartition("pattern", "version", "place").sortWithinPartitions("at", "start", "id")
    return ordered.mapInArrow(DetectTask(source, buckets), DETECTIONS_SCHEMA)


def batch_number() -> int | None:
    """The number of the micro-batch that this task belongs to; None outside a stream."""
    from pyspark import TaskContext

    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return None if told is None else int(told)


@dataclass
class Members:
    """The members of all patterns in one matcher, and the way from each to its meeting places."""

    matcher: Matcher
    leaves: list[list[tuple[Route, LeafNode]]]
    routes: list[Route]
    versions: dict[str, str]

    @classmethod
    def of(cls, recipe: Recipe, *, buckets: int) -> Members:
        """Made once in a process."""
        return once((recipe.key, "members", buckets), lambda: cls._make(recipe, buckets))

    @classmethod
    def _make(cls, recipe: Recipe, buckets: int) -> Members:
        known = {each.name: each for each in recipe.subscriptions}
        matcher = recipe.bare_matcher()
        users: dict[Any, list[tuple[Route, LeafNode]]] = {}
        routes = []
        for pattern in recipe.patterns:
            plan = build_plan(pattern, known)
            routes.append(Route.of(plan, buckets=buckets))
            for leaf in plan.leaves:
                users.setdefault((leaf.profile, leaf.options), []).append((routes[-1], leaf))
        for profile, options in users:
            matcher.add(profile, options=options)
        return cls(matcher, list(users.values()), routes, pattern_versions(recipe))


@dataclass(frozen=True, slots=True)
class RouteTask:
    """Lets through the events that match a member, once for each place where they are awaited."""

    source: Source
    buckets: int = BUCKETS
    streaming: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        members = Members.of(self.source.recipe(batch_number() if self.streaming else None), buckets=self.buckets)
        for batch in batches:
            if batch.num_rows:
                rows = [*self._events(members, batch), *self._ticks(members, batch)]
                columns = list(zip(*rows, strict=True))
                arrays = [_column(list(column), kind.type) for column, kind in zip(columns, _ROUTED, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=_ROUTED)

    def _events(self, members: Members, batch: pa.RecordBatch) -> Iterator[Row]:
        found = members.matcher.score_batch(encode(members.matcher, batch))
        hit, place = np.unique(found.event, return_inverse=True)
        events = list(events_of(batch.take(pa.array(hit))))
        handles: list[list[int]] = [[] for _ in events]
        for at, handle in zip(place.tolist(), found.handle.tolist(), strict=True):
            handles[at].append(handle)
        for event, matched in zip(events, handles, strict=True):
            yield from self._places(members, event, matched)

    def _places(self, members: Members, event: Event, handles: list[int]) -> Iterator[Row]:
        start, end = event.span
        places: dict[tuple[str, int], None] = {}
        matches: dict[Any, Any] | None = None
        for handle in handles:
            for route, leaf in members.leaves[handle]:
                match = None
                if route.attribute is not None and any(p.attribute_approximate for p in leaf.profile.predicates):
                    # Only an approximate attribute may answer under another name, which the mapping tells.
                    matches = matches or {each.subscription: each for each in members.matcher.match(event)}
                    match = matches.get(handle)
                places.update(dict.fromkeys((route.pattern, at) for at in route.places(leaf, event, match)))
        data = _encode(dump_event(event)) if places else b""
        for pattern, at in places:
            yield pattern, members.versions[pattern], at, end, end, start, event.id, data

    def _ticks(self, members: Members, batch: pa.RecordBatch) -> Iterator[Row]:
        """How far event time has come, for those who act on time alone, and for the watermark."""
        ends = instants(pc.coalesce(batch.column("end"), batch.column("time")))
        first, last = pc.min(ends).as_py(), pc.max(ends).as_py()
        for route in members.routes:
            version = members.versions[route.pattern]
            if route.clocked:
                yield route.pattern, version, 0, first, first, first, "", None
            if route.clocked or not self.streaming:
                yield from ((route.pattern, version, at, last, last, last, "", None) for at in range(route.buckets))
        if self.streaming:
            yield "", "", 0, last, last, last, "", None


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind) if kind == _MOMENT else pa.array(values, kind)


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


def event_of(row_end: Instant, data: bytes | None) -> Event:
    """The event of a routed row; a mere moment is an event that matches nothing."""
    return Event("", (), (), row_end, row_end) if data is None else load_event(_decode(data))


@dataclass(slots=True)
class Meeting:
    """One pattern at one place of a batch job; a detector is made when the first event comes."""

    recipe: Recipe
    route: Route
    place: int
    detector: Detector | None = None
    last: Instant = field(default=-(1 << 62))

    def take(self, end: Instant, data: bytes | None) -> list[Detection]:
        """One routed row, in the order of event time."""
        self.last = max(self.last, end)
        if self.detector is None:
            if data is None and not self.route.clocked:
                return []
            self.detector = make_detector(self.recipe, self.route.pattern)
        return self.owned(self.detector.publish(event_of(end, data)))

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
            columns = (batch.column(name).to_pylist() for name in ("pattern", "place", "at", "event"))
            for pattern, place, end, data in zip(*columns, strict=True):
                meeting = meetings.get((pattern, place))
                if meeting is None:
                    meeting = meetings[pattern, place] = Meeting(recipe, routes[pattern], place)
                found += meeting.take(end, data)
            if found:
                yield detections_batch(found)
        rest = [each for meeting in meetings.values() for each in meeting.finish()]
        if rest:
            yield detections_batch(rest)


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
    arrays = [_column(column, kind.type) for column, kind in zip(columns, ARROW_DETECTIONS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_DETECTIONS)


def member_rows(detection: Detection) -> list[dict[str, object]]:
    """The events of a detection with their roles."""
    return [
        {"role": role, "id": event.id, "start": event.span[0], "end": event.span[1]}
        for role, event in zip(detection.names, detection.members, strict=True)
    ]
