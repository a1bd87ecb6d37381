"""Events on their way from the worker that matched them to the one that detects: the tuples of each as one text.

Few and narrow columns are what a shuffle is fast with, and equal tuples make equal texts, which are read only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.composite._flat_rows import uncollected
from likewise.events import Event, Value
from likewise.pipeline._frame import TEXTS, parsed

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
