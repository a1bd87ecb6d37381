"""Columns of the input that are kept in matches and detections.

They are appended to the id of their event, as JSON after a mark, and removed from it in the result. Workers, shuffles
and state therefore need no columns for them, and a detection has those of each of its members.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from likewise.errors import BuildError
from likewise.pipeline.events.frame import EVENT_COLUMNS, Keep, as_events, column, folding
from likewise.pipeline.events.table import kept_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

MARK: Final = "\x1e\x1e"
"""Separates an id from the kept columns; JSON never contains it."""
KEPT: Final = "_likewise_kept"
_OPTIONS: Final = {
    # In other zones, offsets of times before standard time have seconds, which XXX cannot write.
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """The kept columns with their types."""

    schema: StructType

    @property
    def declared(self) -> list[str]:
        """Their names and types, as in a table declaration."""
        return [f"{field.name} {field.dataType.simpleString()}" for field in self.schema.fields]

    def id(self, marked: Column) -> Column:
        """The id alone."""
        from pyspark.sql import functions as F

        tail = F.length(F.substring_index(marked, MARK, -1)) + F.lit(len(MARK))
        return F.substring(marked, F.lit(1), F.length(marked) - tail)

    def row(self, marked: Column) -> Column:
        """The kept columns as a struct of the types that JSON has."""
        from pyspark.sql import functions as F

        return F.from_json(F.substring_index(marked, MARK, -1), _written_kind(self.schema), _OPTIONS)

    def columns(self, row: Column) -> list[Column]:
        """The kept columns from the struct that `row` made; separate from `row`, so that JSON is parsed only once."""
        from pyspark.sql import functions as F

        return [
            _mapped(row.getField(field.name), field.dataType, F.map_from_entries).alias(field.name)
            for field in self.schema.fields
        ]


def keeping(events: DataFrame, keep: Keep, *, taken: Sequence[str]) -> tuple[DataFrame, Kept | None]:
    """Events whose ids carry the columns to keep, or the same frame; the result has columns named `taken` already."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not keep:
        return events, None
    fold = folding(events)
    chosen = [name for name in events.columns if fold(name) not in EVENT_COLUMNS] if keep == "*" else keep
    names = kept_columns(chosen, events.columns, taken=taken, fold=fold)
    if not names:
        return events, None
    schema = StructType([events.schema[name] for name in names])
    for field in schema.fields:
        if re.search(r"\b(geography|geometry)\b", field.dataType.simpleString()):
            kind = field.dataType.simpleString()
            raise BuildError(
                f"the column {field.name!r} is {kind}: it cannot be kept", hint="convert it to binary first"
            )
    cells = [_mapped(column(field.name), field.dataType, F.map_entries).alias(field.name) for field in schema.fields]
    row = F.to_json(F.struct(*cells), _OPTIONS).alias(KEPT)
    made = as_events(events, [row])
    marked = F.when(F.col("id").isNotNull(), F.concat("id", F.lit(MARK), KEPT))
    return made.select(marked.alias("id"), *EVENT_COLUMNS[1:]), Kept(schema)


def _written_kind(kind: Any) -> Any:
    """The type of a value in JSON, where only text can be the key of a map: other maps are lists of entries."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    match kind:
        case StructType():
            return StructType([StructField(field.name, _written_kind(field.dataType)) for field in kind.fields])
        case ArrayType():
            return ArrayType(_written_kind(kind.elementType))
        case MapType(keyType=StringType()):
            return MapType(StringType(), _written_kind(kind.valueType))
        case MapType():
            return ArrayType(_entries(kind))
    return kind


def _entries(kind: Any) -> StructType:
    from pyspark.sql.types import StructField, StructType

    fields = (("key", kind.keyType), ("value", kind.valueType))
    return StructType([StructField(name, _written_kind(inner)) for name, inner in fields])


def _mapped(cell: Column, kind: DataType, change: Callable[[Column], Column]) -> Column:
    """A value in which each map with keys other than text is changed to entries, or back."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if not _has_odd_maps(kind):
        return cell
    match kind:
        case StructType():
            parts = [_mapped(cell[field.name], field.dataType, change).alias(field.name) for field in kind.fields]
            return F.when(cell.isNotNull(), F.struct(*parts))
        case ArrayType(elementType=inner):
            return F.transform(cell, lambda item: _mapped(item, inner, change))
        case MapType(keyType=StringType(), valueType=inner):
            return F.transform_values(cell, lambda _, value: _mapped(value, inner, change))
    assert isinstance(kind, MapType)
    forth = change is F.map_entries

    def changed(entry: Column) -> Column:
        key = _mapped(entry["key"], kind.keyType, change)
        value = _mapped(entry["value"], kind.valueType, change)
        return F.struct(key.alias("key"), value.alias("value"))

    return F.transform(change(cell), changed) if forth else change(F.transform(cell, changed))


def _has_odd_maps(kind: Any) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    match kind:
        case StructType():
            return any(_has_odd_maps(field.dataType) for field in kind.fields)
        case ArrayType():
            return _has_odd_maps(kind.elementType)
        case MapType():
            return not isinstance(kind.keyType, StringType) or _has_odd_maps(kind.valueType)
    return False


def unmarked(id: str) -> str:
    """The id of an event, without what it carries.

    >>> unmarked("e1" + MARK + '{"tenant": "x"}'), unmarked("e1")
    ('e1', 'e1')
    """
    return id.rpartition(MARK)[0] if MARK in id else id
