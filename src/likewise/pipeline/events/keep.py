"""Columns of the input that are kept in matches and detections.

Matches have them as they came. In a detection, they are appended to the ids of its members, as text after a mark, so
that shuffles and state need no columns for them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from likewise.errors import BuildError
from likewise.pipeline.events.frame import EVENT_COLUMNS, Keep, folding
from likewise.pipeline.events.table import UNSENDABLE, keep_names, kept_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

MARK: Final = "\x1e\x1e"
"""Separates an id from the kept columns, whose text never contains it."""


def kept_fields(events: DataFrame, keep: Keep, *, taken: Sequence[str]) -> StructType:
    """The columns to keep, with their types; the result has columns named `taken` already."""
    from pyspark.sql.types import StructField, StructType

    fold = folding(events)
    chosen = keep_names(keep)
    if chosen == ["*"]:
        chosen = [name for name in events.columns if fold(name) not in EVENT_COLUMNS]
    names = kept_columns(chosen, events.columns, taken=taken, fold=fold)
    fields = [StructField(name, events.schema[name].dataType) for name in names]
    for field in fields:
        kind = field.dataType.simpleString()
        if UNSENDABLE.search(kind):
            raise BuildError(f"the column {field.name!r} is {kind}: it cannot be kept", hint="convert it to text first")
    return StructType(fields)


def declared(fields: StructType) -> dict[str, str]:
    """The names and types of columns, as texts."""
    return {field.name: field.dataType.simpleString() for field in fields.fields}


def marked(ids: pa.Array, kept: Sequence[pa.Array]) -> pa.Array:
    """Ids that carry the kept columns of their rows."""
    plain = [column.cast(_plain(column.type)).to_pylist() for column in kept]
    rows = zip(*plain, strict=True)
    texts = [base64.b64encode(msgspec.msgpack.encode(row)).decode() for row in rows]
    return pa.array([key + MARK + text for key, text in zip(ids.to_pylist(), texts, strict=True)], pa.string())


def opened(ids: Sequence[str], kinds: Sequence[pa.DataType]) -> tuple[list[str], list[pa.Array]]:
    """The ids that carry kept columns, and these columns.

    >>> from decimal import Decimal
    >>> kept = [pa.array([Decimal("1.50"), None]), pa.array([[(1, b"x")], []], pa.map_(pa.int32(), pa.binary()))]
    >>> ids, columns = opened(marked(pa.array(["a", "b"]), kept).to_pylist(), [column.type for column in kept])
    >>> ids, columns[0].to_pylist(), columns[1].to_pylist()
    (['a', 'b'], [Decimal('1.50'), None], [[(1, b'x')], []])
    """
    parts = [key.rpartition(MARK) for key in ids]
    rows = [msgspec.msgpack.decode(base64.b64decode(text)) for _, _, text in parts]
    columns = []
    for place, kind in enumerate(kinds):
        values = [_paired(row[place], kind) for row in rows]
        columns.append(pa.array(values, _plain(kind)).cast(kind))
    return [key for key, _, _ in parts], columns


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type in which values become numbers, texts, bytes and lists of these."""
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.string() if pa.types.is_decimal(kind) else kind


def _paired(value: Any, kind: pa.DataType) -> Any:
    """A value whose maps are lists of pairs, as Arrow takes them."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(_paired(key, kind.key_type), _paired(item, kind.item_type)) for key, item in value]
    if pa.types.is_struct(kind):
        return {field.name: _paired(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_paired(item, kind.value_type) for item in value]
    return value
