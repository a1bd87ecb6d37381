"""Hits in the shuffle between matching and composing: texts in a few narrow columns.

A shuffle is fast with few narrow columns. Equal tuples and equal hits become equal texts, which are encoded and decoded
once. Of an event, only the tuples that conditions compare are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.composite import Hit, HitColumns, hit_of_text, hit_text, key_digest
from likewise.events import BatchColumns, Event, EventColumns, TupleTable, Value, normalise, value_of_text
from likewise.matching import canonical
from likewise.pipeline.events.frame import written

BETWEEN: Final = "\uffff"
"""Separates texts; within a text it is written as `ESCAPE` and a digit."""
ESCAPE: Final = "\ufffe"
MOST_TUPLES: Final = 1 << 17
"""Distinct tuples in the cache, at most: values that never repeat must not fill the memory."""

Numbers = NDArray[np.int64]


def joined(texts: Iterable[str]) -> str:
    """Texts as one.

    >>> split(joined(["a", "b" + BETWEEN])) == ["a", "b" + BETWEEN]
    True
    """
    return BETWEEN.join(
        text.replace(ESCAPE, ESCAPE + "0").replace(BETWEEN, ESCAPE + "1") if ESCAPE in text or BETWEEN in text else text
        for text in texts
    )


def split(text: str) -> list[str]:
    """The texts that were joined."""
    parts = text.split(BETWEEN) if text else []
    if ESCAPE in text:
        return [part.replace(ESCAPE + "1", BETWEEN).replace(ESCAPE + "0", ESCAPE) for part in parts]
    return parts


def tuple_text(name: str, value: Value) -> str:
    """A tuple as the text of its name, its value and the kind of that."""
    return joined((name, *written(value)))


def tuples_of(text: str) -> tuple[tuple[str, Value], ...]:
    """The tuples that were written one after the other."""
    parts = iter(split(text))
    return tuple((name, value_of_text(value, kind)) for name, value, kind in zip(parts, parts, parts, strict=True))


class TupleFacts(BatchColumns):
    """Reads batches into columns over one table of tuples, and caches facts about each tuple."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, list[Any]] = {}

    def read(self, batch: pa.RecordBatch) -> EventColumns:
        """The events of the next batch."""
        before = self.table
        events = super().read(batch)
        if self.table is not before:
            self._known = {}
        return events

    def _of(self, key: Any, fact: Callable[[str, Value], Any]) -> list[Any]:
        """A fact about each tuple, computed once."""
        known = self._known.setdefault(key, [])
        known.extend(fact(name, value) for name, value in self.table.pairs[len(known) :])
        return known

    def texts(self) -> list[str]:
        """The tuples as texts."""
        return self._of("text", tuple_text)

    def wanted(self, attributes: frozenset[str]) -> NDArray[np.bool_]:
        """A mask of the tuples of these attributes."""
        return np.array(self._of(attributes, lambda name, _: normalise(name) in attributes), np.bool_)

    def places(self, attribute: str, buckets: int) -> Numbers:
        """The place of each tuple as a key; -1 for tuples of other attributes."""

        def place(name: str, value: Value) -> int:
            return key_digest(canonical(value)) % buckets if normalise(name) == attribute else -1

        return np.array(self._of((attribute, buckets), place), np.int64)


def tuple_texts(events: EventColumns, rows: Numbers, facts: TupleFacts, wanted: frozenset[str] | None) -> pa.Array:
    """The tuples of some events as a text each, of the wanted attributes only.

    >>> facts = TupleFacts()
    >>> events = EventColumns.of_events([Event.of({"a": 1, "b": "x"}, id="e")], facts.table)
    >>> [text] = tuple_texts(events, np.array([0]), facts, frozenset({"b"})).to_pylist()
    >>> tuples_of(text)
    (('b', 'x'),)
    """
    sizes = np.diff(events.offsets)[rows]
    bounds = np.concatenate(([0], np.cumsum(sizes)))
    codes = events.codes[np.repeat(events.offsets[rows] - bounds[:-1], sizes) + np.arange(bounds[-1])]
    if wanted is not None:
        kept = facts.wanted(wanted)[codes]
        codes = codes[kept]
        bounds = np.concatenate(([0], np.cumsum(kept)))[bounds]
    return _lists(facts.texts(), codes, bounds)


def hit_texts(hits: HitColumns, rows: Numbers) -> pa.Array:
    """All hits of some events as a text each; the hits are sorted by event.

    >>> hits = HitColumns(np.array([0, 2, 2]), np.array([0, 0, 1]), np.array([1.0, 0.5, 1.0]))
    >>> [split(text) for text in hit_texts(hits, np.array([0, 2])).to_pylist()]
    [['0'], ['0 0.5', '1']]
    """
    texts, codes = _distinct(hits)
    low, high = (np.searchsorted(hits.event, rows, side=side) for side in ("left", "right"))
    bounds = np.concatenate(([0], np.cumsum(high - low)))
    places = np.repeat(low - bounds[:-1], high - low) + np.arange(bounds[-1])
    return _lists(texts, codes[places], bounds)


def _distinct(hits: HitColumns) -> tuple[list[str], Numbers]:
    """Distinct hits as texts, and the number of each hit among them."""
    if hits.mapped is not None:
        columns = (hits.profile.tolist(), hits.probability.tolist(), hits.mapped)
        return [joined([hit_text(*row)]) for row in zip(*columns, strict=True)], np.arange(len(hits.event))
    sure, at = np.unique(hits.probability, return_inverse=True)
    found, codes = np.unique(hits.profile.astype(np.int64) * max(len(sure), 1) + at, return_inverse=True)
    rows = ((int(code) // len(sure), float(sure[code % len(sure)])) for code in found)
    return [hit_text(*row) for row in rows], codes


def _lists(texts: list[str], codes: NDArray[Any], bounds: Numbers) -> pa.Array:
    """Texts by their numbers, joined to one for each pair of neighbouring bounds; equal lists are joined once."""
    sizes = np.diff(bounds)
    most = int(sizes.max(initial=0))
    # Lists of numbers as rows of one width, so that equal lists have equal bytes.
    wide = np.full((len(sizes), max(most, 1)), -1, np.int32)
    at = np.repeat(np.arange(len(sizes)), sizes)
    wide[at, np.arange(len(codes)) - np.repeat(bounds[:-1], sizes)] = codes
    kind = pa.binary(wide.itemsize * wide.shape[1])
    coded = pa.Array.from_buffers(kind, len(wide), [None, pa.py_buffer(wide)]).dictionary_encode()
    rows = np.frombuffer(b"".join(coded.dictionary.to_pylist()), np.int32).reshape(-1, wide.shape[1])
    made = [BETWEEN.join([texts[code] for code in row if code >= 0]) for row in rows.tolist()]
    return pa.array(made, pa.string()).take(coded.indices)


class ParcelReader:
    """Routed rows of a batch job as events in columns and hits in columns; equal texts are read once."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._table = TupleTable()
        self._tuples: dict[str, list[int]] = {}
        self._hits: dict[str, list[tuple[int, float, Any]]] = {}

    def read(self, rows: pa.RecordBatch) -> tuple[EventColumns, HitColumns]:
        """The events of rows with `id`, `start`, `at`, `tuples` and `hits`; a row without hits is a tick."""
        if len(self._table.pairs) > MOST_TUPLES or len(self._hits) > MOST_TUPLES:
            self._start()
        codes, places, offsets = _spread(rows.column("tuples"), self._codes_of)
        ids, starts, ends = (rows.column(name) for name in ("id", "start", "at"))
        events = EventColumns(
            self._table,
            np.array(codes, np.int32)[places],
            offsets,
            np.zeros(len(rows), np.int32),
            ids.cast(pa.string()),
            np.asarray(starts.to_numpy(zero_copy_only=False), np.int64),
            np.asarray(ends.to_numpy(zero_copy_only=False), np.int64),
        )
        return events, self._hit_columns(rows.column("hits"))

    def _hit_columns(self, column: pa.Array) -> HitColumns:
        hits, places, offsets = _spread(column, self._hits_of)
        mapped = None
        if any(hit[2] is not None for hit in hits):
            mapped = [hits[place][2] for place in places.tolist()]
        return HitColumns(
            np.repeat(np.arange(len(column)), np.diff(offsets)),
            np.array([hit[0] for hit in hits], np.int64)[places],
            np.array([hit[1] for hit in hits], np.float64)[places],
            mapped,
        )

    def _codes_of(self, text: str) -> list[int]:
        if text not in self._tuples:
            self._tuples[text] = [self._table.number(name, value) for name, value in tuples_of(text)]
        return self._tuples[text]

    def _hits_of(self, text: str) -> list[tuple[int, float, Any]]:
        if text not in self._hits:
            self._hits[text] = list(map(hit_of_text, split(text)))
        return self._hits[text]


def _spread(column: pa.Array, read: Callable[[str], list[Any]]) -> tuple[list[Any], Numbers, Numbers]:
    """The items of a column's distinct texts, the positions of all rows' items among them, and each row's offset."""
    coded = column.fill_null("").dictionary_encode()
    contents = list(map(read, coded.dictionary.to_pylist()))
    which = coded.indices.to_numpy(zero_copy_only=False)
    sizes = np.fromiter(map(len, contents), np.int64, count=len(contents))
    begins = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    offsets = np.concatenate(([0], np.cumsum(sizes[which])))
    places = np.repeat(begins[which] - offsets[:-1], sizes[which]) + np.arange(offsets[-1])
    return list(chain.from_iterable(contents)), places, offsets


def hits_of(event: Event, text: str | None) -> tuple[Hit, ...]:
    """The hits of one event; a tick has none."""
    return tuple([Hit(event, *hit_of_text(part)) for part in split(text)]) if text else ()
