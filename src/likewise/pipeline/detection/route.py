"""The stateless half of detection: which events matter to which pattern, and where they must go.

All in Arrow columns: no Python object is made for an event, least of all for those that nobody waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.composite import BUCKETS, LeafNode, Rendezvous, build_plan, key_digest, uncollected, wanted_attributes
from likewise.events import Event, Value, normalise
from likewise.matching import Matcher, canonical
from likewise.pipeline.events.frame import TEXTS, encode, events_of, instants, parsed
from likewise.pipeline.events.refusals import NO_TIME, Flaw, sort_out
from likewise.pipeline.streaming.subscriptions import RecipeSource, Versions
from likewise.recipe import Recipe, once

# Events on their way from the worker that matched them to the one that detects: the tuples of each as one text.
#
# Few and narrow columns are what a shuffle is fast with, and equal tuples make equal texts, which are read only once.


BETWEEN: Final = "\uffff"
"""Stands between texts; where a text has it, it is written as `ESCAPE` and a digit."""
ESCAPE: Final = "\ufffe"

Numbers = NDArray[np.int64]


def parcels(attributes: pa.ListArray, rows: Numbers, wanted: Callable[[str], bool] | None = None) -> pa.Array:
    """The tuples of some events, of those attributes that are wanted, as a text each.

    >>> tuples = [("a", "1", "number"), ("b", "x", "text")]
    >>> column = pa.array([[dict(zip(TEXTS, each, strict=True)) for each in tuples]])
    >>> (text,) = parcels(column, np.array([0]), lambda name: name == "b").to_pylist()
    >>> text.split(BETWEEN), tuples_of(text)
    (['b', 'x', 'text'], (('b', 'x'),))
    """
    parts = attributes.flatten().flatten()
    sizes = pc.fill_null(pc.list_value_length(attributes), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))[rows]
    sizes = sizes[rows]
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    places = np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])
    if wanted is not None:
        kept = _meant(parts[0], wanted)[places]
        owner = np.repeat(np.arange(len(rows)), sizes)[kept]
        places = places[kept]
        bounds = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(rows)))))
    chosen = pa.array(places)
    texts = pa.concat_arrays([plain(part.take(chosen)) for part in parts[: len(TEXTS)]])
    count = len(places)
    # Name, value and kind of one tuple beside each other.
    turned = texts.take(pa.array(np.arange(3 * count).reshape(3, count).T.ravel()))
    return joined(turned, 3 * bounds)


def _meant(names: pa.Array, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
    coded = dictionary(names)
    answers = np.array([name is not None and wanted(name) for name in coded.dictionary.to_pylist()], np.bool_)
    return answers[coded.indices.to_numpy(zero_copy_only=False)] if len(answers) else np.zeros(len(names), np.bool_)


def joined(texts: pa.Array, bounds: Numbers) -> pa.Array:
    """Texts joined to one for each pair of neighbouring bounds."""
    if _has(texts, ESCAPE) or _has(texts, BETWEEN):
        texts = pc.replace_substring(pc.replace_substring(texts, ESCAPE, ESCAPE + "0"), BETWEEN, ESCAPE + "1")
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), texts), BETWEEN)


def _has(texts: pa.Array, sign: str) -> bool:
    return bool(pc.any(pc.match_substring(texts, sign)).as_py())


def themes(column: pa.ListArray, rows: Numbers) -> pa.Array:
    """The tags of some events as a text each; most have none."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    if not pc.any(pc.greater(lengths, 0)).as_py():
        return pa.repeat("", len(rows))
    taken = column.take(pa.array(rows))
    sizes = pc.fill_null(pc.list_value_length(taken), 0).to_numpy(zero_copy_only=False)
    return joined(plain(taken.flatten()), np.concatenate(([0], np.cumsum(sizes))))


def dictionary(column: pa.Array) -> pa.DictionaryArray:
    """A column with its distinct texts numbered."""
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def plain(column: pa.Array) -> pa.Array:
    """A column of texts, none of them missing."""
    texts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return texts.cast(pa.string()).fill_null("")


def split(text: str) -> list[str]:
    """The texts that were joined."""
    parts = text.split(BETWEEN) if text else []
    if ESCAPE in text:
        return [part.replace(ESCAPE + "1", BETWEEN).replace(ESCAPE + "0", ESCAPE) for part in parts]
    return parts


@lru_cache(maxsize=1 << 16)
def tuples_of(text: str) -> tuple[tuple[str, Value], ...]:
    """The tuples of a parcel."""
    parts = iter(split(text))
    rows = zip(parts, parts, parts, strict=True)
    return tuple((name, value if kind == "text" else parsed(value, kind)) for name, value, kind in rows)


def events_of_parcels(batch: pa.RecordBatch) -> list[Event]:
    """The events of rows with `id`, `start`, `at`, `theme` and `tuples`; one without tuples is a mere moment."""
    with uncollected():
        columns = [batch.column("id").to_pylist(), _each(batch.column("tuples"), tuples_of)]
        columns.append(_each(batch.column("theme"), lambda text: tuple(split(text))))
        columns += [batch.column(name).to_pylist() for name in ("start", "at")]
        return list(map(Event, *columns))


def _each(column: pa.Array, read: Callable[[str], Any]) -> Iterator[Any]:
    """What each text says; equal ones are read once."""
    coded = plain(column).dictionary_encode()
    told = [read(text) for text in coded.dictionary.to_pylist()]
    return map(told.__getitem__, coded.indices.to_pylist())


# Where the events of a batch land: the meeting places of those that match a member, as columns of numbers.


Pairs = tuple[Numbers, Numbers]
"""Events, and the place of each."""

_NONE: Final = np.zeros(0, np.int64)


class Landing(NamedTuple):
    """Events and the meeting places at which they are awaited; `shared` are those with several."""

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
        # Marked in a table of all, which is several times faster than sorting.
        marked = np.zeros((int(events.max(initial=-1)) + 1) * most, np.bool_)
        marked[events * most + places] = True
        events, places = np.divmod(np.flatnonzero(marked), most)
        same = events[1:] == events[:-1]
        shared = np.append(same, False) | np.append(False, same)
        return cls(events, places, shared[: len(events)])


class Keys:
    """The places of the values of key attributes in one batch, each attribute looked at once."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        attributes = batch.column("attributes")
        self._tuples = attributes.flatten().flatten()
        sizes = pc.fill_null(pc.list_value_length(attributes), 0).to_numpy(zero_copy_only=False)
        self._count = len(sizes)
        self._owner = np.repeat(np.arange(self._count), sizes)
        self._names = dictionary(self._tuples[0])
        self._made: dict[tuple[str, int], Pairs] = {}

    def places(self, events: Numbers, route: Rendezvous, leaf: LeafNode) -> Pairs:
        """Where events go that match a member whose attributes are said exactly."""
        if route.attribute is None:
            return events, np.zeros_like(events)
        owner, place = self._of(route.attribute[leaf.role], route.buckets)
        mine = self._mask(events)[owner]
        # One without a key can be bound to nothing, yet "and then not …" may come true for it alone: to place 0.
        bare = events[~self._mask(owner)[events]]
        return np.concatenate((owner[mine], bare)), np.concatenate((place[mine], np.zeros_like(bare)))

    def mapped(self, matcher: Matcher, handle: int, events: Numbers, *, route: Rendezvous, leaf: LeafNode) -> Pairs:
        """Where they go if another attribute may have answered for the key, which only the mapping tells."""
        pairs: list[tuple[int, int]] = []
        for at, event in zip(events.tolist(), events_of(self._batch.take(pa.array(events))), strict=True):
            match = {each.subscription: each for each in matcher.match(event)}.get(handle)
            pairs += [(at, place) for place in sorted(route.places(leaf, event, match))]
        made = np.array(pairs, np.int64).reshape(-1, 2)
        return made[:, 0], made[:, 1]

    def _mask(self, events: Numbers) -> NDArray[np.bool_]:
        out = np.zeros(self._count, np.bool_)
        out[events] = True
        return out

    def _of(self, attribute: str, buckets: int) -> Pairs:
        """Which events have the attribute, and the place of each of its values."""
        if (attribute, buckets) not in self._made:
            self._made[attribute, buckets] = self._find(attribute, buckets)
        return self._made[attribute, buckets]

    def _find(self, attribute: str, buckets: int) -> Pairs:
        meant = [name is not None and normalise(name) == attribute for name in self._names.dictionary.to_pylist()]
        if not any(meant):
            return _NONE, _NONE
        mine = np.flatnonzero(np.array(meant)[self._names.indices.to_numpy(zero_copy_only=False)])
        rows = pa.array(mine)
        values, kinds = (plain(part.take(rows)).dictionary_encode() for part in self._tuples[1:3])
        most = len(kinds.dictionary)
        found, back = np.unique(_codes(values) * most + _codes(kinds), return_inverse=True)
        texts, sorts = values.dictionary.to_pylist(), kinds.dictionary.to_pylist()
        digests = [_digest_of(texts[one // most], sorts[one % most]) for one in found.tolist()]
        return self._owner[mine], (np.array(digests, np.uint64) % np.uint64(buckets)).astype(np.int64)[back]


def _codes(column: pa.DictionaryArray) -> Numbers:
    return np.asarray(column.indices.to_numpy(zero_copy_only=False), np.int64)


@lru_cache(maxsize=1 << 16)
def _digest_of(text: str, kind: str) -> int:
    return key_digest(canonical(parsed(text, kind)))


MOMENT: Final = pa.timestamp("us", tz="UTC")
_EVENT: Final = [
    *((name, pa.int64()) for name in ("at", "start")),
    *((name, pa.string()) for name in ("id", "theme", "tuples")),
]
_EVENT_SCHEMA: Final = "at bigint, start bigint, id string, theme string, tuples string"

BATCH_SCHEMA: Final = f"part int, route int, shared boolean, {_EVENT_SCHEMA}, refused bigint, untimed bigint"
"""A routed event of a batch job: its partition, the number of its pattern, and whether it goes to other places too.
Without `tuples` it only says how far event time has come, or how many events were refused."""

STREAM_SCHEMA: Final = f"pattern string, version string, place int, `end` timestamp, {_EVENT_SCHEMA}"
"""The same in a stream. Only mere moments have an `end`: it moves Spark's watermark, and Spark drops what it takes for
late by it; which event is late is decided, and told, where it would have been used."""

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
    routes: list[Rendezvous]
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
        routes = [Rendezvous.of(plan, buckets=buckets, spread=spread) for plan in plans]
        exact = dict(recipe.options).get("approach") in (None, "exact")
        wanted = [wanted_attributes(plan) if exact else None for plan in plans]
        return cls(matcher, list(users.values()), routes, wanted)


@dataclass(frozen=True, slots=True)
class RouteTask:
    """Lets through the events that match a member, once for each place where they are awaited."""

    source: RecipeSource
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
            if flaws:
                yield _handed_on(flaws) if self.streaming else _counted(flaws)
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
                if not self.streaming:
                    columns += [pa.nulls(len(landing.event), pa.int64())] * 2
                yield pa.RecordBatch.from_arrays([*head, *columns], schema=_STREAM if self.streaming else _BATCH)
        yield self._ticks(members, versions, pc.min_max(ends).as_py())

    def _head(self, route: Rendezvous, number: int, landing: Landing, versions: Versions) -> list[pa.Array]:
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


def _counted(flaws: list[Flaw]) -> pa.RecordBatch:
    """How many events a batch job refuses, in a row that only says so."""
    untimed = sum(flaw["reason"] == NO_TIME for flaw in flaws)
    return rows_of([{"part": -1, "refused": len(flaws), "untimed": untimed}], _BATCH)


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
