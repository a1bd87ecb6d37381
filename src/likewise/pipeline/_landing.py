"""Where the events of a batch land: the meeting places of those that match a member, as columns of numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.composite._plan import LeafNode
from likewise.events import normalise
from likewise.matching import Matcher
from likewise.matching._vocabulary import canonical
from likewise.pipeline._frame import events_of, parsed
from likewise.pipeline._parcels import Numbers, dictionary, plain
from likewise.pipeline._routes import Route, digest

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

    def places(self, events: Numbers, route: Route, leaf: LeafNode) -> Pairs:
        """Where events go that match a member whose attributes are said exactly."""
        if route.attribute is None:
            return events, np.zeros_like(events)
        owner, place = self._of(route.attribute[leaf.role], route.buckets)
        mine = self._mask(events)[owner]
        # One without a key can be bound to nothing, yet "and then not …" may come true for it alone: to place 0.
        bare = events[~self._mask(owner)[events]]
        return np.concatenate((owner[mine], bare)), np.concatenate((place[mine], np.zeros_like(bare)))

    def mapped(self, matcher: Matcher, handle: int, events: Numbers, *, route: Route, leaf: LeafNode) -> Pairs:
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
    return digest(canonical(parsed(text, kind)))
