"""The stateless half of detection: which events matter to which pattern, and where they must go.

All in Arrow columns: no Python object is made for an event, least of all for those that nobody waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.composite import Plan, build_plan
from likewise.composite._conditions import Side
from likewise.composite._plan import LeafNode
from likewise.events import normalise
from likewise.matching import Matcher
from likewise.pipeline._arrow import encode
from likewise.pipeline._frame import instants
from likewise.pipeline._landing import Keys, Landing, Pairs
from likewise.pipeline._parcels import parcels, themes
from likewise.pipeline._refusals import Flaw, sort_out
from likewise.pipeline._routes import BUCKETS, Route
from likewise.pipeline._table import Source, Versions
from likewise.pipeline._worker import Recipe, once

MOMENT: Final = pa.timestamp("us", tz="UTC")
_EVENT: Final = [
    *((name, pa.int64()) for name in ("at", "start")),
    *((name, pa.string()) for name in ("id", "theme", "tuples")),
]
_EVENT_SCHEMA: Final = "at bigint, start bigint, id string, theme string, tuples string"

BATCH_SCHEMA: Final = f"part int, route int, shared boolean, {_EVENT_SCHEMA}"
"""A routed event of a batch job: its partition, the number of its pattern, and whether it goes to other places too.
Without `tuples` it only says how far event time has come."""

STREAM_SCHEMA: Final = f"pattern string, version string, place int, `end` timestamp, {_EVENT_SCHEMA}"
"""The same in a stream. Only mere moments have an `end`: it moves Spark's watermark, and Spark drops what it takes for
late by it; which event is late is decided, and told, where it would have been used."""

_BATCH = pa.schema([("part", pa.int32()), ("route", pa.int32()), ("shared", pa.bool_()), *_EVENT])
_STREAM = pa.schema(
    [("pattern", pa.string()), ("version", pa.string()), ("place", pa.int32()), ("end", MOMENT), *_EVENT]
)


def batch_number() -> int | None:
    """The number of the micro-batch that this task belongs to; None outside a stream."""
    from pyspark import TaskContext

    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return None if told is None else int(told)


@dataclass
class Members:
    """The members of all patterns in one matcher, and the way from each to its meeting places.

    `wanted` are the attributes that a pattern looks at; None where any may matter, as its words are approximate.
    """

    matcher: Matcher
    leaves: list[list[tuple[int, LeafNode]]]
    routes: list[Route]
    wanted: list[frozenset[str] | None]

    @classmethod
    def of(cls, recipe: Recipe, *, buckets: int, spread: bool = True) -> Members:
        """Made once in a process."""
        return once((recipe.key, "members", buckets, spread), lambda: cls._make(recipe, buckets, spread))

    @classmethod
    def _make(cls, recipe: Recipe, buckets: int, spread: bool) -> Members:
        known = {each.name: each for each in recipe.subscriptions}
        matcher = recipe.bare_matcher()
        users: dict[Any, list[tuple[int, LeafNode]]] = {}
        plans = [build_plan(pattern, known) for pattern in recipe.patterns]
        for number, plan in enumerate(plans):
            for leaf in plan.leaves:
                users.setdefault((leaf.profile, leaf.options), []).append((number, leaf))
        for profile, options in users:
            matcher.add(profile, options=options)
        routes = [Route.of(plan, buckets=buckets, spread=spread) for plan in plans]
        exact = dict(recipe.options).get("approach") in (None, "exact")
        wanted = [wanted_attributes(plan) if exact else None for plan in plans]
        return cls(matcher, list(users.values()), routes, wanted)


def wanted_attributes(plan: Plan) -> frozenset[str] | None:
    """All attributes that a pattern speaks of, if it says exactly what it means."""
    out = set()
    for leaf in plan.leaves:
        if leaf.options.approach not in (None, "exact"):
            return None
        for predicate in leaf.profile.predicates:
            if predicate.attribute_approximate or predicate.value_approximate:
                return None
            out.add(normalise(predicate.attribute))
    sides = (side for condition in plan.conditions for side in (condition.left, condition.right))
    return frozenset(out | {side.attribute for side in sides if isinstance(side, Side)})


@dataclass(frozen=True, slots=True)
class RouteTask:
    """Lets through the events that match a member, once for each place where they are awaited."""

    source: Source
    buckets: int = BUCKETS
    spread: bool = True
    max_ahead: int | None = None
    streaming: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = batch_number() if self.streaming else None
        members = Members.of(self.source.recipe(number), buckets=self.buckets, spread=self.spread)
        versions = self.source.versions(number)
        if versions.gone:
            yield _swept(versions, self.buckets)
        for batch in batches:
            good, flaws = sort_out(batch, max_ahead=self.max_ahead)
            if flaws and self.streaming:
                yield _handed_on(flaws)
            if good.num_rows:
                yield from self._routed(members, versions, good)

    def tell_time(self, moment: int) -> pa.RecordBatch:
        """That event time has come so far, with no event: for a stream with a heartbeat."""
        number = batch_number()
        members = Members.of(self.source.recipe(number), buckets=self.buckets, spread=self.spread)
        return self._ticks(members, self.source.versions(number), {"min": moment, "max": moment})

    def _routed(self, members: Members, versions: Versions, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        starts = instants(batch.column("time"))
        ends = pc.coalesce(instants(batch.column("end")), starts)
        for number, landing in enumerate(_landings(members, batch)):
            if len(landing.event):
                # Only what the pattern looks at, except that dead letters are to be whole.
                wanted = None if self.streaming else members.wanted[number]
                columns = [each.take(pa.array(landing.event)) for each in (ends, starts, batch.column("id"))]
                columns += _contents(batch, landing, wanted)
                head = self._head(members.routes[number], number, landing, versions)
                yield pa.RecordBatch.from_arrays([*head, *columns], schema=_STREAM if self.streaming else _BATCH)
        yield self._ticks(members, versions, pc.min_max(ends).as_py())

    def _head(self, route: Route, number: int, landing: Landing, versions: Versions) -> list[pa.Array]:
        count = len(landing.event)
        if self.streaming:
            names = [pa.repeat(route.pattern, count), pa.repeat(versions.live[route.pattern], count)]
            return [*names, pa.array(landing.place, pa.int32()), pa.nulls(count, MOMENT)]
        part = (landing.place + route.offset) % self.buckets
        return [pa.array(part, pa.int32()), pa.repeat(pa.scalar(number, pa.int32()), count), pa.array(landing.shared)]

    def _ticks(self, members: Members, versions: Versions, span: dict[str, int]) -> pa.RecordBatch:
        """How far event time has come, for those who act on time alone, and for the watermark."""
        first, last = span["min"], span["max"]
        rows: list[dict[str, Any]] = []
        for number, route in enumerate(members.routes):
            times = [(0, first)] if route.clocked else []
            if route.clocked or not self.streaming:
                times += [(place, last) for place in range(route.buckets)]
            for place, moment in times:
                if self.streaming:
                    head = {"pattern": route.pattern, "version": versions.live[route.pattern], "place": place}
                else:
                    head = {"part": (place + route.offset) % self.buckets, "route": number, "shared": False}
                rows.append({**head, "end": moment, "at": moment, "start": moment, "id": ""})
        if self.streaming:
            rows.append({**_NOBODY, "end": last, "at": last, "start": last, "id": ""})
        return rows_of(rows, _STREAM if self.streaming else _BATCH)


def _contents(batch: pa.RecordBatch, landing: Landing, wanted: frozenset[str] | None) -> list[pa.Array]:
    """Theme and tuples of the events that land."""
    if wanted is None:
        return [themes(batch.column("theme"), landing.event), parcels(batch.column("attributes"), landing.event)]
    kept = parcels(batch.column("attributes"), landing.event, lambda name: normalise(name) in wanted)
    return [pa.repeat("", len(landing.event)), kept]


def _landings(members: Members, batch: pa.RecordBatch) -> list[Landing]:
    """For each pattern the events that match a member of it, and their places."""
    found = members.matcher.score_batch(encode(members.matcher, batch))
    keys = Keys(batch)
    pairs: list[list[Pairs]] = [[] for _ in members.routes]
    for handle, users in enumerate(members.leaves):
        events = found.event[found.handle == handle].astype(np.int64)
        for number, leaf in users if len(events) else ():
            route = members.routes[number]
            # Only an approximate attribute may answer under another name.
            if route.attribute is not None and any(p.attribute_approximate for p in leaf.profile.predicates):
                pairs[number].append(keys.mapped(members.matcher, handle, events, route=route, leaf=leaf))
            else:
                pairs[number].append(keys.places(events, route, leaf))
    return [Landing.of(each) for each in pairs]


_NOBODY: Final = {"pattern": "", "version": "", "place": 0}
"""The key of rows that are for no pattern."""


def _handed_on(flaws: list[Flaw]) -> pa.RecordBatch:
    """What is refused passes by the state: the place of nobody hands it on."""
    return rows_of([{**_NOBODY, "tuples": msgspec.json.encode(flaw).decode()} for flaw in flaws], _STREAM)


def _swept(versions: Versions, buckets: int) -> pa.RecordBatch:
    """A call at every place where a pattern that went may have left something."""
    rows = [
        {"pattern": name, "version": old, "place": place} for name, old, _ in versions.gone for place in range(buckets)
    ]
    return rows_of(rows, _STREAM)


def rows_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as columns; moments are numbers, and what a row lacks is null."""
    arrays = [column_of([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column; moments are told as microseconds."""
    return pa.array(values, pa.int64()).cast(kind) if kind == MOMENT else pa.array(values, kind)
