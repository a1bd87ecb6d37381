"""Events as the columns of a DataFrame, and back.

A tuple of an event is a struct of three texts: name, value and kind. Text keeps every type exactly, lets
Spark users build the column from anything, and lets a worker number the distinct tuples of a whole batch
with Arrow alone, without a Python object per event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.errors import BuildError
from likewise.events import BadRecord, Event, EventColumns, TupleTable, Value, columns_of_batch, written_moment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


ATTRIBUTES: Final = "array<struct<name: string, value: string, kind: string>>"
FLAW: Final = "struct<source: string, line: bigint, reason: string, record: string>"
EVENTS_SCHEMA: Final = (
    f"id string, time timestamp_ltz, `end` timestamp_ltz, theme array<string>, attributes {ATTRIBUTES}, flaw {FLAW}"
)
"""The columns of events; a record that is not an event has only a `flaw`."""

EVENT_COLUMNS: Final = ("id", "time", "end", "theme", "attributes", "flaw")
Keep: TypeAlias = str | Sequence[str]
"""Columns of the input that results have too: names, or `"*"` for all that are not part of the event."""

BETWEEN: Final = "\x1f"
"""Separates the cells of a row in the text of its digest."""
DIGITS: Final = 16
"""Characters of a digest in an id."""

NO_ATTRIBUTES: Final = "the event has no attributes"
INFINITE_NUMBER: Final = "a number is infinite"

KINDS: Final = ("text", "number", "boolean", "time")
TEXTS: Final = ("name", "value", "kind")
"""The fields of a tuple."""

_MOMENT = pa.timestamp("us", tz="UTC")
_TUPLE = pa.struct([("name", pa.string()), ("value", pa.string()), ("kind", pa.string())])
_FLAW = pa.struct([("source", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("record", pa.string())])
ARROW_SCHEMA: Final = pa.schema(
    [
        ("id", pa.string()),
        ("time", _MOMENT),
        ("end", _MOMENT),
        ("theme", pa.list_(pa.string())),
        ("attributes", pa.list_(_TUPLE)),
        ("flaw", _FLAW),
    ]
)


def written(value: Value) -> tuple[str, str]:
    """The text and the kind of a value.

    >>> written(3), written(3.0), written(True), written("3")
    (('3', 'number'), ('3.0', 'number'), ('true', 'boolean'), ('3', 'text'))
    """
    if isinstance(value, str):
        return value, "text"
    if isinstance(value, bool):
        return str(value).lower(), "boolean"
    if isinstance(value, datetime):
        return written_moment(value).isoformat(), "time"
    return repr(value), "number"


def batch_of(events: Iterable[Event], flaws: Sequence[BadRecord] = ()) -> pa.RecordBatch:
    """Events, and after them the flaws of bad records, as Arrow columns.

    >>> batch = batch_of([Event.of({"slot": [1, 2]}, id="e1")])
    >>> batch.column("attributes").to_pylist()[0][1]
    {'name': 'slot', 'value': '2', 'kind': 'number'}
    """
    ids, starts, ends, themes = [], [], [], []
    names: list[str] = []
    values: list[str] = []
    kinds: list[str] = []
    offsets: list[int | None] = [0]
    for event in events:
        ids.append(event.id)
        starts.append(event.start)
        ends.append(event.start if event.end is None else event.end)
        themes.append(event.theme)
        for name, value in event.tuples:
            text, kind = (value, "text") if isinstance(value, str) else written(value)
            names.append(name)
            values.append(text)
            kinds.append(kind)
        offsets.append(len(names))
    count, bad = len(ids), len(flaws)
    tuples = pa.StructArray.from_arrays(
        [pa.array(column, pa.string()) for column in (names, values, kinds)], fields=list(_TUPLE)
    )
    attributes = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), tuples, type=ARROW_SCHEMA.field(4).type)
    columns = [
        pa.array(ids, pa.string()),
        pa.array(starts, pa.int64()).cast(_MOMENT),
        pa.array(ends, pa.int64()).cast(_MOMENT),
        pa.array(themes, pa.list_(pa.string())),
        attributes,
        pa.nulls(count, _FLAW),
    ]
    if bad:
        missing = [pa.nulls(bad, field.type) for field in list(ARROW_SCHEMA)[:-1]]
        letters = pa.array([_letter(flaw) for flaw in flaws], _FLAW)
        columns = [pa.concat_arrays(pair) for pair in zip(columns, [*missing, letters], strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)


def events_of(batch: pa.RecordBatch | pa.Table) -> Iterator[Event]:
    """The events of a batch, without the rows that have no attributes."""
    parts = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
    return (event for part in parts for event in columns_of_batch(part) if event.tuples)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class ColumnWriter:
    """Writes events in columns as batches; tuples stay dictionary-encoded, and each distinct text is made once."""

    def __init__(self) -> None:
        self._table: TupleTable | None = None
        self._texts: list[tuple[str, str, int]] = []

    def batch(self, events: EventColumns | None, flaws: Sequence[BadRecord] = ()) -> pa.RecordBatch:
        """A batch of events, or of flaws."""
        if events is None:
            return batch_of((), flaws)
        starts = pa.array(events.starts, mask=~events.timed).cast(_MOMENT)
        ends = pa.array(events.ends, mask=~events.timed).cast(_MOMENT)
        themes = pa.array([list(theme) for theme in events.table.themes], pa.list_(pa.string()))
        columns = [events.ids, starts, ends, themes.take(pa.array(events.themes)), self._attributes(events)]
        return pa.RecordBatch.from_arrays([*columns, pa.nulls(len(events), _FLAW)], names=list(EVENT_COLUMNS))

    def _attributes(self, events: EventColumns) -> pa.ListArray:
        table = events.table
        if table is not self._table:
            self._table, self._texts = table, []
        new = ((name, *written(value)) for name, value in table.pairs[len(self._texts) :])
        self._texts += [(name, text, KINDS.index(kind)) for name, text, kind in new]
        used, codes = np.unique(events.codes, return_inverse=True)
        tuples = [self._texts[code] for code in used.tolist()]
        names = pa.array([each[0] for each in tuples], pa.string()).dictionary_encode()
        kinds = pa.DictionaryArray.from_arrays(pa.array([each[2] for each in tuples], pa.int32()), pa.array(KINDS))
        rows = pa.array(codes.astype(np.int32))
        values = pa.DictionaryArray.from_arrays(rows, pa.array([each[1] for each in tuples], pa.string()))
        parts = pa.StructArray.from_arrays([names.take(rows), values, kinds.take(rows)], names=list(TEXTS))
        return pa.ListArray.from_arrays(pa.array(events.offsets, pa.int32()), parts)


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch without dictionaries, as Spark expects it."""
    attributes = batch.column("attributes")
    kind = ARROW_SCHEMA.field("attributes").type
    if attributes.type == kind:
        return batch
    parts = [_plain(part).cast(pa.string()) for part in attributes.flatten().flatten()]
    tuples = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    sizes = pc.fill_null(pc.list_value_length(attributes), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    made = pa.ListArray.from_arrays(offsets, tuples, type=kind)
    return batch.set_column(EVENT_COLUMNS.index("attributes"), "attributes", made)


def tidy(column: pa.Array) -> pa.ListArray:
    """A column of attributes with the three texts of each tuple in order and without nulls; dictionaries stay.

    >>> tidy(pa.array([[{"value": "x", "name": "a"}], None])).to_pylist()
    [[{'name': 'a', 'value': 'x', 'kind': ''}], []]
    """
    if not pa.types.is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    flat = column.flatten()
    made = pa.StructArray.from_arrays([_texts(flat, name) for name in TEXTS], names=list(TEXTS))
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), made)


def _texts(flat: pa.StructArray, name: str) -> pa.Array:
    place = flat.type.get_field_index(name)
    if place < 0:
        return pa.array([""] * len(flat), pa.string())
    # Flattening propagates the nulls of the struct to its fields.
    part = flat.flatten()[place]
    if part.null_count or not (pa.types.is_dictionary(part.type) or pa.types.is_string(part.type)):
        return _plain(part).cast(pa.string()).fill_null("")
    return part


def digest_of(text: str) -> str:
    """The digest for the id of an event without one."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:DIGITS]


def with_ids(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in which every event has an id; one without gets a digest of its content, as `as_events` does.

    >>> from likewise.events import Event
    >>> with_ids(batch_of([Event.of({"a": 1}, id="")])).column("id").to_pylist()
    ['4d79565f7e108efe']
    """
    ids = batch.column("id")
    missing = pc.and_(
        pc.equal(pc.fill_null(ids, ""), ""), pc.greater(pc.list_value_length(batch.column("attributes")), 0)
    )
    if not pc.any(missing).as_py():
        return batch
    rows = batch.filter(missing)
    moments = [rows.column(name).cast(pa.int64()).to_pylist() for name in ("time", "end")]
    lists = [rows.column(name).to_pylist() for name in ("theme", "attributes")]
    made = []
    for start, end, theme, tuples in zip(*moments, *lists, strict=True):
        texts = [BETWEEN.join(entry[part] or "" for entry in tuples) for part in TEXTS]
        tags = None if theme is None else BETWEEN.join(tag or "" for tag in theme)
        parts = [str(moment) for moment in (start, end) if moment is not None]
        made.append(digest_of(BETWEEN.join([*parts, *([] if tags is None else [tags]), *texts])))
    filled = pc.replace_with_mask(ids.cast(pa.string()), missing, pa.array(made, pa.string()))
    return batch.set_column(0, batch.schema.field(0).name, filled)


def column(name: str) -> Column:
    """A column by its very name, dots, blanks and backticks included."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def folding(frame: DataFrame) -> Callable[[str], str]:
    """The form in which column names are compared: lower case, unless the session is case-sensitive."""
    sensitive = frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    return str if sensitive else str.lower


WATERMARK: Final = "spark.watermarkDelayMs"
"""The key of the watermark in the metadata of a column."""


def watermark_of(frame: DataFrame, name: str = "time") -> dict[str, int]:
    """The watermark of a stream's column, as metadata; empty if there is none."""
    fold = folding(frame)
    fields = [field for field in frame.schema.fields if fold(field.name) == fold(name)]
    known = fields[0].metadata if fields and frame.isStreaming else {}
    return {WATERMARK: known[WATERMARK]} if WATERMARK in known else {}


def with_metadata(value: Column, name: str, metadata: Mapping[str, int]) -> Column:
    """A column under a new name, with metadata if there is any."""
    return value.alias(name, metadata=dict(metadata)) if metadata else value.alias(name)


NO_ID: Final = ("array", "map", "struct", "binary", "variant")
"""Types that cannot be an id."""


def refuse_twin_fields(kind: DataType, label: str, fold: Callable[[str], str]) -> None:
    """Refuse a struct with two fields that Spark cannot tell apart."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        refuse_twin_fields(kind.elementType, label, fold)
    if isinstance(kind, MapType):
        refuse_twin_fields(kind.valueType, label, fold)
    if isinstance(kind, StructType):
        known: dict[str, str] = {}
        for field in kind.fields:
            twin = known.setdefault(fold(field.name), field.name)
            if twin != field.name:
                hint = "rename one of them, or set spark.sql.caseSensitive"
                raise BuildError(f"the column {label!r} has two fields {twin!r} and {field.name!r}", hint=hint)
            refuse_twin_fields(field.dataType, f"{label}.{field.name}", fold)


def _letter(flaw: BadRecord) -> dict[str, object]:
    text = flaw.raw.decode("utf-8", errors="backslashreplace")
    return {"source": flaw.source, "line": flaw.line, "reason": flaw.reason, "record": text}
