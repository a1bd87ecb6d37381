"""From Arrow columns to the numbers that kernels read, without a Python object per event.

Arrow numbers the distinct names, values and kinds of a batch; a distinct tuple is then one integer, and only
distinct tuples are looked at in Python. A day of sensor readings has few of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.events import Event, Value
from likewise.matching import Encoded, Matcher
from likewise.pipeline._frame import parsed

Codes = NDArray[np.int64]


def encode(matcher: Matcher, batch: pa.RecordBatch) -> Encoded:
    """The events of a batch as the matcher's tuple numbers; a row without attributes is an event without tuples.

    >>> from likewise.pipeline._frame import batch_of
    >>> batch = batch_of([Event.of({"a": 1, "b": "x"}), Event.of({"b": "x"})])
    >>> encoded = encode(Matcher(), batch)
    >>> encoded.ids.tolist(), encoded.starts.tolist()
    ([0, 1, 1], [0, 2, 3])
    """
    pairs, codes, starts = distinct_tuples(batch.column("attributes"))
    themes, theme_codes = distinct_themes(batch.column("theme"))
    # One event that has all distinct tuples, then one for each distinct theme: the matcher numbers them in one go.
    known = matcher.encode([Event("", tuple(pairs)), *(Event("", (), theme) for theme in themes)])
    return Encoded((), known.ids[codes], starts, known.themes[1:][theme_codes], known.generation)


def distinct_tuples(column: pa.ListArray) -> tuple[list[tuple[str, Value]], Codes, Codes]:
    """Distinct tuples, the number of each event's tuples among them, and where each event's begin."""
    starts = _starts(column)
    flat = column.flatten()
    names, values, kinds = (_dictionary(part) for part in flat.flatten()[:3])
    combined = _codes(names) * len(values.dictionary) + _codes(values)
    combined = combined * max(len(kinds.dictionary), 1) + _codes(kinds)
    found, codes = _unique(combined)
    rest, kind_at = np.divmod(found, max(len(kinds.dictionary), 1))
    name_at, value_at = np.divmod(rest, max(len(values.dictionary), 1))
    columns = (
        part.dictionary.take(pa.array(at)).to_pylist()
        for part, at in ((names, name_at), (values, value_at), (kinds, kind_at))
    )
    pairs = [(name or "", parsed(value or "", kind)) for name, value, kind in zip(*columns, strict=True)]
    return pairs, codes, starts


def distinct_themes(column: pa.ListArray) -> tuple[list[tuple[str, ...]], Codes]:
    """Distinct themes, and the number of each event's theme among them."""
    starts = _starts(column)
    sizes = np.diff(starts)
    if not sizes.any():
        return [()], np.zeros(len(column), np.int64)
    joined = pc.binary_join(pc.fill_null(column, []), "\x1f")
    tags = _dictionary(joined)
    return [tuple(text.split("\x1f")) if text else () for text in tags.dictionary.to_pylist()], _codes(tags)


def _starts(column: pa.ListArray) -> Codes:
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int64)


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    if pa.types.is_dictionary(column.type):
        if not column.null_count:
            return column
        column = column.dictionary_decode()
    made = pc.dictionary_encode(column, null_encoding="encode")
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _codes(column: pa.DictionaryArray) -> Codes:
    return np.asarray(column.indices.to_numpy(zero_copy_only=False), np.int64)


def _unique(numbers: Codes) -> tuple[Codes, Codes]:
    """Distinct numbers in order of appearance, and the place of each among them; by hashing, not by sorting."""
    made = pa.array(numbers).dictionary_encode()
    return np.asarray(made.dictionary.to_numpy(zero_copy_only=False), np.int64), _codes(made)
