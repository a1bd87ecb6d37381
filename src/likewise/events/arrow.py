"""Converts Arrow batches of events, whose tuples are structs of three texts (name, value, kind), to columns.

Arrow numbers the distinct names, values and kinds of a batch; a distinct tuple is then one integer, and Python handles
only the distinct ones. Parquet files of events and Spark's batches have this shape.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.events.columns import EventColumns, TupleTable
from likewise.events.event import Value
from likewise.events.instants import NO_TIME
from likewise.events.values import MAX_INTEGER, MIN_INTEGER

_MOMENT: Final = pa.timestamp("us", tz="UTC")
_PARTS: Final = ("name", "value", "kind")
_MAX_TUPLES: Final = 1 << 17
Codes = NDArray[np.int64]


def value_of_text(text: str, kind: str | None) -> Value:
    """Convert a text to a value of its kind; a text that cannot be converted stays text.

    >>> value_of_text("3", "number"), value_of_text("3.0", "number"), value_of_text("true", "boolean")
    (3, 3.0, True)
    >>> value_of_text("1e400", "number"), value_of_text("yes", "boolean")
    ('1e400', 'yes')
    """
    try:
        if kind == "number":
            if text.lstrip("+-").isdecimal() and MIN_INTEGER <= int(text[:30]) <= MAX_INTEGER:
                return int(text)
            number = float(text)
            return number if math.isfinite(number) else text
        if kind == "boolean":
            lowered = text.strip().lower()
            return lowered == "true" if lowered in {"true", "false"} else text
        return datetime.fromisoformat(text) if kind == "time" else text
    except ValueError:
        return text


def holds_events(schema: pa.Schema) -> bool:
    """Whether a file has events in Likewise's own layout, not the columns of another table."""
    if "attributes" not in schema.names or "id" not in schema.names:
        return False
    kind = schema.field("attributes").type
    if not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return False
    return {"name", "value"} <= {kind.value_type.field(at).name for at in range(kind.value_type.num_fields)}


def columns_of_batch(
    batch: pa.RecordBatch, *, table: TupleTable | None = None, source: str = "<events>", first: int = 1
) -> EventColumns:
    """The events of a batch; a row without attributes is an event without tuples.

    >>> tuples = [[{"name": "slot", "value": "3", "kind": "number"}], []]
    >>> batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "attributes": tuples})
    >>> columns = columns_of_batch(batch)
    >>> columns[0].tuples, len(columns[1].tuples)
    ((('slot', 3),), 0)
    """
    table = TupleTable() if table is None else table
    names = batch.schema.names
    codes, offsets = _tuples(batch.column("attributes"), table)
    start = _instants_or_none(batch, "time")
    end = _instants_or_none(batch, "end")
    themes = np.zeros(batch.num_rows, np.int32)
    if "theme" in names:
        themes = theme_numbers(batch.column("theme"), table)
    return EventColumns(
        table,
        codes,
        offsets,
        themes,
        batch.column("id").cast(pa.string()),
        start,
        np.where(end == NO_TIME, start, end),
        source,
        np.arange(first, first + batch.num_rows),
    )


class BatchColumns:
    """Reads batches into columns over one table, which is replaced when it has too many distinct tuples."""

    def __init__(self) -> None:
        self.table = TupleTable()

    def read(self, batch: pa.RecordBatch) -> EventColumns:
        """The events of the next batch."""
        if len(self.table.pairs) > _MAX_TUPLES:
            self.table = TupleTable()
        return columns_of_batch(batch, table=self.table)


def instants(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of timestamps as microseconds since 1970."""
    return column.cast(_MOMENT).cast(pa.int64())


def _instants_or_none(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    if name not in batch.schema.names:
        return np.full(batch.num_rows, NO_TIME, np.int64)
    column = pc.fill_null(instants(batch.column(name)), NO_TIME)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _tuples(column: pa.ListArray, table: TupleTable) -> tuple[NDArray[np.int32], Codes]:
    offsets = _offsets(column)
    flat = column.flatten()
    parts = [_dictionary(_part(flat, name)) for name in _PARTS]
    sizes = [max(len(part.dictionary), 1) for part in parts]
    combined = (_codes(parts[0]) * sizes[1] + _codes(parts[1])) * sizes[2] + _codes(parts[2])
    distinct, codes = _unique(combined)
    rest, kind_at = np.divmod(distinct, sizes[2])
    name_at, value_at = np.divmod(rest, sizes[1])
    texts = (
        part.dictionary.take(pa.array(at)).to_pylist()
        for part, at in zip(parts, (name_at, value_at, kind_at), strict=True)
    )
    numbers = [
        table.number(name or "", value_of_text(value or "", kind)) for name, value, kind in zip(*texts, strict=True)
    ]
    return np.array(numbers, np.int32)[codes], offsets


def _part(flat: pa.StructArray, name: str) -> pa.Array:
    place = flat.type.get_field_index(name)
    return pa.array(["text"] * len(flat)) if place < 0 else flat.flatten()[place]


def theme_numbers(column: pa.ListArray, table: TupleTable) -> NDArray[np.int32]:
    """The number of each theme of a column in the table."""
    if not np.diff(_offsets(column)).any():
        return np.zeros(len(column), np.int32)
    if pc.any(pc.match_substring(column.flatten(), "\x1f")).as_py():  # the separator used below is in a tag
        return np.array([table.theme_number(tuple(tags or ())) for tags in column.to_pylist()], np.int32)
    encoded = _dictionary(pc.binary_join(pc.fill_null(column, []), "\x1f"))
    numbers = [table.theme_number(tuple(text.split("\x1f")) if text else ()) for text in encoded.dictionary.to_pylist()]
    return np.array(numbers, np.int32)[_codes(encoded)]


def _offsets(column: pa.ListArray) -> Codes:
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int64)


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    if pa.types.is_dictionary(column.type):
        if not column.null_count:
            return column
        column = column.dictionary_decode()
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _codes(column: pa.DictionaryArray) -> Codes:
    return np.asarray(column.indices.to_numpy(zero_copy_only=False), np.int64)


def _unique(numbers: Codes) -> tuple[Codes, Codes]:
    """Distinct numbers in order of appearance, and the index of each number among them; hashed, not sorted."""
    encoded = pa.array(numbers).dictionary_encode()
    return np.asarray(encoded.dictionary.to_numpy(zero_copy_only=False), np.int64), _codes(encoded)
