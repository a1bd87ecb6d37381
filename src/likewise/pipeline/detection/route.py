"""Stage one of detection, stateless: which events hit which members of which pattern, and to which places they go.

One encoding and one scoring call serve the members of all patterns. Hits are columns: no Python object is made for an
event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.composite import (
    BUCKETS,
    Composer,
    HitColumns,
    LeafNode,
    MappedValues,
    Rendezvous,
    build_plan,
    mapped_values,
)
from likewise.events import EventColumns, normalise
from likewise.language import Composite
from likewise.matching import EventScores, Matcher
from likewise.pipeline.detection.parcels import Numbers, TupleFacts, hit_texts, tuple_texts
from likewise.pipeline.events.keep import marked
from likewise.pipeline.events.transfer import NO_TIME, Flaw, record_of, sort_out
from likewise.pipeline.streaming.subscriptions import RecipeSource, Versions
from likewise.recipe import Recipe, once
from likewise.semantics import Measure

MOMENT: Final = pa.timestamp("us", tz="UTC")
_EVENT: Final = [
    *((name, pa.int64()) for name in ("at", "start")),
    *((name, pa.string()) for name in ("id", "tuples", "hits")),
]
_EVENT_SCHEMA: Final = "at bigint, start bigint, id string, tuples string, hits string"

BATCH_SCHEMA: Final = f"part int, route int, shared boolean, {_EVENT_SCHEMA}, refused bigint, untimed bigint"
"""A hit of a batch job: its partition, the number of its pattern, and whether it goes to other places too. A row
without `hits` carries only the event time reached, or the number of refused events."""

STREAM_SCHEMA: Final = f"pattern string, version string, place int, `end` timestamp_ltz, {_EVENT_SCHEMA}, record string"
"""The same in a stream. Only ticks have an `end`, the column of Spark's watermark: Spark would drop late rows silently.
Stage two decides which event is late and reports it with the whole `record`."""

_BATCH = pa.schema(
    [
        ("part", pa.int32()),
        ("route", pa.int32()),
        ("shared", pa.bool_()),
        *_EVENT,
        ("refused", pa.int64()),
        ("untimed", pa.int64()),
    ]
)
_STREAM = pa.schema(
    [
        ("pattern", pa.string()),
        ("version", pa.string()),
        ("place", pa.int32()),
        ("end", MOMENT),
        *_EVENT,
        ("record", pa.string()),
    ]
)

# The places of the hits of a batch, as columns of numbers.


Pairs = tuple[Numbers, Numbers]
"""Events, and the place of each."""

_NONE: Final = np.zeros(0, np.int64)


class Landing(NamedTuple):
    """Events and the places that they are sent to; `shared` marks events with several places."""

    event: Numbers
    place: Numbers
    shared: NDArray[np.bool_]

    @classmethod
    def of(cls, pairs: list[Pairs]) -> Landing:
        """Each event once at each place."""
        if not pairs:
            return cls(_NONE, _NONE, np.zeros(0, np.bool_))
        events, places = (np.concatenate(column) for column in zip(*pairs, strict=True))
        most = int(places.max(initial=0)) + 1
        # A table of all pairs is several times faster than sorting.
        marked = np.zeros((int(events.max(initial=-1)) + 1) * most, np.bool_)
        marked[events * most + places] = True
        events, places = np.divmod(np.flatnonzero(marked), most)
        same = events[1:] == events[:-1]
        shared = np.append(same, False) | np.append(False, same)
        return cls(events, places, shared[: len(events)])


@dataclass(frozen=True)
class RoutedPattern:
    """One pattern in stage one: the profiles of its composer, and the places of its hits.

    `numbers` maps handles of the matcher to profile numbers of the composer, and `attributes` are those that its
    conditions compare. `mapped` has the handles of profiles that may answer such an attribute under another name.
    """

    route: Rendezvous
    numbers: dict[int, int]
    leaves: list[tuple[int, LeafNode]]
    attributes: frozenset[str]
    mapped: frozenset[int]

    def land(self, found: FoundHits, keys: Keys) -> Landing:
        """The places of the events that hit a member."""
        pairs = []
        for handle, leaf in self.leaves:
            events = found.events(handle)
            if len(events):
                pairs.append(keys.places(events, self.route, leaf, found.mapped.get(handle)))
        return Landing.of(pairs)

    def hits(self, found: FoundHits) -> HitColumns:
        """The hits of this pattern, sorted by event."""
        parts = [(found.slice(handle), handle, number) for handle, number in self.numbers.items()]
        event = np.concatenate([found.event[rows] for rows, _, _ in parts])
        number = np.concatenate([np.full(rows.stop - rows.start, number) for rows, _, number in parts])
        sure = np.concatenate([found.probability[rows] for rows, _, _ in parts])
        order = np.argsort(event, kind="stable")
        mapped = None
        if self.mapped & found.mapped.keys():
            values = [self._mapped(found, handle, at) for rows, handle, _ in parts for at in found.event[rows].tolist()]
            mapped = [values[at] for at in order.tolist()]
        return HitColumns(event[order], number[order], sure[order], mapped)

    def _mapped(self, found: FoundHits, handle: int, at: int) -> MappedValues | None:
        values = found.mapped.get(handle, {}).get(at) if handle in self.mapped else None
        return None if values is None else {name: mapped for name, mapped in values.items() if name in self.attributes}


class FoundHits:
    """All hits of a batch by profile, and the mapped values of profiles that are matched by meaning."""

    def __init__(self, members: Members, events: EventColumns) -> None:
        matcher = members.matcher
        encoded = matcher.encode(events)
        scores = matcher.score_batch(encoded)
        order = np.argsort(scores.handle, kind="stable")
        scores = EventScores(scores.event[order], scores.handle[order], scores.score[order])
        self.event = scores.event.astype(np.int64)
        self.probability = matcher.probabilities(scores.handle, scores.score)
        self._bounds = np.searchsorted(scores.handle, np.arange(len(matcher) + 1))
        self.mapped: dict[int, dict[int, MappedValues | None]] = {}
        for handle in members.mapped:
            mine = self.slice(handle)
            asked = EventScores(scores.event[mine], scores.handle[mine], scores.score[mine])
            if len(asked.event):
                matches = matcher.matches_of(encoded, asked)
                values = (mapped_values(match.profile, match.event, match) for _, match in matches)
                self.mapped[handle] = dict(zip(sorted(asked.event.tolist()), values, strict=True))

    def slice(self, handle: int) -> slice:
        """The rows of a profile's hits."""
        return slice(int(self._bounds[handle]), int(self._bounds[handle + 1]))

    def events(self, handle: int) -> Numbers:
        """The events that hit a profile."""
        return self.event[self.slice(handle)]


class Keys:
    """The places of the key attributes' values in one batch; each attribute is looked up once."""

    def __init__(self, events: EventColumns, facts: TupleFacts) -> None:
        self._events = events
        self._facts = facts
        self._owner = np.repeat(np.arange(len(events)), np.diff(events.offsets))
        self._made: dict[tuple[str, int], Pairs] = {}

    def places(
        self, events: Numbers, route: Rendezvous, leaf: LeafNode, mapped: dict[int, MappedValues | None] | None
    ) -> Pairs:
        """The places of events that hit a member; the key may have another name, which only the mapping knows."""
        if route.attribute is None:
            return events, np.zeros_like(events)
        attribute = route.attribute[leaf.role]
        owner, place = self._of(attribute, route.buckets)
        mine = self._mask(events)[owner]
        bare = events[~self._mask(owner)[events]]
        there = [(at, target) for at in bare.tolist() for target in _mapped_places(route, mapped, attribute, at)]
        # An event without a key joins no other, but a pattern such as "a then not b" may hold for it alone: place 0.
        rest = np.setdiff1d(bare, [at for at, _ in there]) if there else bare
        far = np.array(there, np.int64).reshape(-1, 2)
        return (
            np.concatenate((owner[mine], far[:, 0], rest)),
            np.concatenate((place[mine], far[:, 1], np.zeros_like(rest))),
        )

    def _mask(self, events: Numbers) -> NDArray[np.bool_]:
        out = np.zeros(len(self._events), np.bool_)
        out[events] = True
        return out

    def _of(self, attribute: str, buckets: int) -> Pairs:
        """Which events have the attribute, and the place of each of its values."""
        if (attribute, buckets) not in self._made:
            place = self._facts.places(attribute, buckets)[self._events.codes]
            mine = np.flatnonzero(place >= 0)
            self._made[attribute, buckets] = self._owner[mine], place[mine]
        return self._made[attribute, buckets]


def _mapped_places(
    route: Rendezvous, mapped: dict[int, MappedValues | None] | None, attribute: str, at: int
) -> set[int]:
    values = None if mapped is None else mapped.get(at)
    return set() if values is None else {route.place_of(value) for value, _ in values.get(attribute, ())}


def batch_number() -> int | None:
    """The number of the micro-batch that this task belongs to; None outside a stream."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return None if number is None else int(number)


@dataclass(frozen=True)
class Members:
    """The members of all patterns in one matcher, with the places of each."""

    matcher: Matcher
    patterns: list[RoutedPattern]

    @property
    def mapped(self) -> frozenset[int]:
        """The profiles whose mapped values are needed."""
        return frozenset().union(*(pattern.mapped for pattern in self.patterns))

    @property
    def routes(self) -> list[Rendezvous]:
        """The rendezvous of each pattern."""
        return [pattern.route for pattern in self.patterns]

    @classmethod
    def of(cls, recipe: Recipe, *, buckets: int, spread: bool = True) -> Members:
        """Made once in a process."""
        return once((recipe.key, "members", buckets, spread), lambda: cls._make(recipe, buckets, spread))

    @classmethod
    def _make(cls, recipe: Recipe, buckets: int, spread: bool) -> Members:
        known = {subscription.name: subscription for subscription in recipe.subscriptions}
        matcher, handles, patterns = recipe.bare_matcher(), dict[Any, int](), list[RoutedPattern]()
        for subscription in recipe.patterns:
            plan, composer = build_plan(subscription, known), make_composer(recipe, subscription.name)
            numbers = {}
            for number, wanted in composer.profiles.items():
                if wanted not in handles:
                    handles[wanted] = matcher.add(wanted.profile, options=wanted.options)
                numbers[handles[wanted]] = number
            leaves = [(handles[leaf.profile, leaf.options], leaf) for leaf in plan.leaves]
            attributes = composer.attributes
            mapped = frozenset(
                handle
                for handle, leaf in leaves
                for predicate in leaf.profile.predicates
                if predicate.attribute_approximate and normalise(predicate.attribute) in attributes
            )
            route = Rendezvous.of(plan, buckets=buckets, spread=spread)
            patterns.append(RoutedPattern(route, numbers, leaves, attributes, mapped))
        return cls(matcher, patterns)


def make_composer(recipe: Recipe, pattern: str, *, lateness: int = 0) -> Composer:
    """A composer of one pattern, which may refer to all other subscriptions by name."""
    composer = Composer(measure=_measure(recipe), max_jump=None, lateness=lateness)
    for subscription in recipe.subscriptions:
        composer.define(subscription)
    (wanted,) = (subscription for subscription in recipe.patterns if subscription.name == pattern)
    assert isinstance(wanted.body, Composite)
    composer.add(pattern, wanted.body, wanted.options)
    return composer


def restored_composer(recipe: Recipe, snapshot: bytes) -> Composer:
    """A composer that continues from a snapshot of another process."""
    return Composer.restore(snapshot, measure=_measure(recipe))


def _measure(recipe: Recipe) -> Measure | None:
    """The measure of conditions that compare by meaning."""
    return once((recipe.key, "conditions"), lambda: recipe.bare_matcher().measure)


@dataclass(frozen=True, slots=True)
class RouteTask:
    """Sends the events that hit a member, with their hits, once to each place."""

    source: RecipeSource
    buckets: int = BUCKETS
    spread: bool = True
    max_ahead: int | None = None
    streaming: bool = False
    kept: int = 0
    """The number of columns to keep: the last ones of each batch. The ids of hits carry them."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = batch_number() if self.streaming else None
        members = Members.of(self.source.recipe(number), buckets=self.buckets, spread=self.spread)
        versions, facts = self.source.versions(number), TupleFacts()
        if versions.gone:
            yield _swept(versions, self.buckets)
        for batch in batches:
            good, flaws = sort_out(batch, max_ahead=self.max_ahead)
            if flaws:
                yield _handed_on(flaws) if self.streaming else _counted(flaws)
            if good.num_rows:
                kept = good.columns[good.num_columns - self.kept :]
                yield from self._routed(members, versions, facts.read(good), facts, kept)

    def time_rows(self, moment: int) -> pa.RecordBatch:
        """Rows that only advance event time, for a stream with a heartbeat."""
        number = batch_number()
        members = Members.of(self.source.recipe(number), buckets=self.buckets, spread=self.spread)
        return self._ticks(members, self.source.versions(number), moment, moment)

    def _routed(
        self,
        members: Members,
        versions: Versions,
        events: EventColumns,
        facts: TupleFacts,
        kept: list[pa.Array],
    ) -> Iterator[pa.RecordBatch]:
        found, keys = FoundHits(members, events), Keys(events, facts)
        for number, pattern in enumerate(members.patterns):
            landing = pattern.land(found, keys)
            rows = landing.event
            if not len(rows):
                continue
            ids = events.ids.take(pa.array(rows))
            if kept:
                ids = marked(ids, [column.take(pa.array(rows)) for column in kept])
            columns = [*(pa.array(column[rows]) for column in (events.ends, events.starts)), ids]
            columns += [tuple_texts(events, rows, facts, pattern.attributes), hit_texts(pattern.hits(found), rows)]
            columns += [self._records(events, rows)] if self.streaming else [pa.nulls(len(rows), pa.int64())] * 2
            head = self._head(pattern.route, number, landing, versions)
            yield pa.RecordBatch.from_arrays([*head, *columns], schema=_STREAM if self.streaming else _BATCH)
        yield self._ticks(members, versions, int(events.ends.min()), int(events.ends.max()))

    def _records(self, events: EventColumns, rows: Numbers) -> pa.Array:
        """The whole events, for dead letters: any of them may be late."""
        return pa.array([record_of(event) for event in events.take(rows)], pa.string())

    def _head(self, route: Rendezvous, number: int, landing: Landing, versions: Versions) -> list[pa.Array]:
        count = len(landing.event)
        if self.streaming:
            names = [pa.repeat(route.pattern, count), pa.repeat(versions.live[route.pattern], count)]
            return [*names, pa.array(landing.place, pa.int32()), pa.nulls(count, MOMENT)]
        part = (landing.place + route.offset) % self.buckets
        return [pa.array(part, pa.int32()), pa.repeat(pa.scalar(number, pa.int32()), count), pa.array(landing.shared)]

    def _ticks(self, members: Members, versions: Versions, first: int, last: int) -> pa.RecordBatch:
        """Rows with the event time reached, for patterns with timers and for the watermark."""
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
            # Without a time, so that no watermark drops it: its place checks the layout of the checkpoint.
            rows.append({**_NOBODY, "id": ""})
        return rows_of(rows, _STREAM if self.streaming else _BATCH)


_NOBODY: Final = {"pattern": "", "version": "", "place": 0}
"""The key of rows that are for no pattern."""


def _handed_on(flaws: list[Flaw]) -> pa.RecordBatch:
    """Refused events as rows for no pattern; their place emits them without touching state."""
    return rows_of([{**_NOBODY, "record": msgspec.json.encode(flaw).decode()} for flaw in flaws], _STREAM)


def _counted(flaws: list[Flaw]) -> pa.RecordBatch:
    """How many events a batch job refuses, in a row for no pattern.

    It goes through the shuffle, because Spark loses the observed counts of a stage without output rows.
    """
    untimed = sum(flaw["reason"] == NO_TIME for flaw in flaws)
    return rows_of([{"part": 0, "refused": len(flaws), "untimed": untimed}], _BATCH)


def _swept(versions: Versions, buckets: int) -> pa.RecordBatch:
    """A row for every place that may hold state of a removed pattern."""
    rows = [
        {"pattern": name, "version": old, "place": place} for name, old, _ in versions.gone for place in range(buckets)
    ]
    return rows_of(rows, _STREAM)


def rows_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as columns; times are numbers, and missing values are null."""
    arrays = [column_of([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column; times are given in microseconds."""
    return pa.array(values, pa.int64()).cast(kind) if kind == MOMENT else pa.array(values, kind)
