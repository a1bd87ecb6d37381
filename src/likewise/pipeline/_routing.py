"""The stateless half of detection: which events matter to which pattern, and where they must go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.composite import build_plan
from likewise.composite._plan import LeafNode
from likewise.composite._state import dump_event, load_event
from likewise.events import Event, Instant
from likewise.matching import Matcher
from likewise.pipeline._arrow import encode
from likewise.pipeline._frame import events_of, instants
from likewise.pipeline._routes import BUCKETS, Route
from likewise.pipeline._table import Source, pattern_versions
from likewise.pipeline._worker import Recipe, once

MOMENT: Final = pa.timestamp("us", tz="UTC")
ROUTED_SCHEMA: Final = (
    "pattern string, version string, place int, `end` timestamp, at bigint, start bigint, id string, event binary"
)
_ROUTED = pa.schema(
    [
        ("pattern", pa.string()),
        ("version", pa.string()),
        ("place", pa.int32()),
        ("end", MOMENT),
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
            rows = [*self._events(members, batch), *self._ticks(members, batch)]
            if rows:
                columns = list(zip(*rows, strict=True))
                arrays = [column_of(list(column), kind.type) for column, kind in zip(columns, _ROUTED, strict=True)]
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


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind) if kind == MOMENT else pa.array(values, kind)


def event_of(row_end: Instant, data: bytes | None) -> Event:
    """The event of a routed row; a mere moment is an event that matches nothing."""
    return Event("", (), (), row_end, row_end) if data is None else load_event(_decode(data))
