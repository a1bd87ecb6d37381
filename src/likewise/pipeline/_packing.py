"""Events packed for the way to a worker, and unpacked there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.pipeline._frame import ARROW_SCHEMA, as_events

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEPARATOR: Final = "\uffff"
"""Stands between packed texts: no character, so hardly any text has it. An event that does travels unpacked."""

PARTS: Final = ("name", "value", "kind")
COLUMNS: Final = ("id", "time", "end", "theme", "attributes")


def packed(events: DataFrame) -> DataFrame:
    """Events for a worker: names, values and kinds joined to one text each, which Spark hands over several times faster
    than arrays of structs. Records that are no events are left behind."""
    from pyspark.sql import functions as F  # noqa: N812

    def joined(column: str) -> Column:
        return F.array_join(column, SEPARATOR, "")

    good = as_events(events).where("flaw is null and size(attributes) > 0")
    parts = [joined(f"attributes.{part}").alias(part) for part in PARTS]
    # As a text: a struct with arrays, even one that is always null, makes the hand-over eight times as long.
    whole = F.to_json(F.struct(F.col("theme").alias("theme"), F.col("attributes").alias("attributes")))
    return good.select(
        "id", "time", "end", joined("theme").alias("theme"), *parts, F.when(_torn(), whole).alias("whole")
    )


def _torn() -> Column:
    """Whether a text of the event has the separator itself."""
    from pyspark.sql import functions as F  # noqa: N812

    # Put end to end, the texts are searched byte by byte: cheap beside counting the separators that should be there.
    texts = [F.array_join(column, "") for column in ("attributes.name", "attributes.value", "attributes.kind", "theme")]
    return F.contains(F.concat_ws("", *texts), F.lit(SEPARATOR))


def unpacked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of events from packed ones."""
    odd = batch.column("whole").is_valid()
    if not pc.any(odd).as_py():
        return _split(batch)
    both = pa.Table.from_batches([_split(batch.filter(pc.invert(odd))), _whole(batch.filter(odd))]).combine_chunks()
    order = np.argsort(np.argsort(odd.to_numpy(zero_copy_only=False), kind="stable"), kind="stable")
    (rows,) = both.take(pa.array(order)).to_batches()
    return rows


def _split(batch: pa.RecordBatch) -> pa.RecordBatch:
    names, values, kinds = (pc.split_pattern(batch.column(part), SEPARATOR) for part in PARTS)
    theme = batch.column("theme")
    tags = pc.split_pattern(pc.if_else(pc.equal(theme, ""), pa.scalar(None, theme.type), theme), SEPARATOR)
    kind = ARROW_SCHEMA.field("attributes").type
    tuples = pa.StructArray.from_arrays(
        [each.flatten().cast(pa.string()) for each in (names, values, kinds)], fields=list(kind.value_type)
    )
    attributes = pa.ListArray.from_arrays(names.offsets, tuples, type=kind)
    return _columns(batch, tags, attributes)


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    told = [msgspec.json.decode(text) for text in batch.column("whole").to_pylist()]
    theme, attributes = (
        pa.array([each.get(name) for each in told], ARROW_SCHEMA.field(name).type) for name in ("theme", "attributes")
    )
    return _columns(batch, theme, attributes)


def _columns(batch: pa.RecordBatch, theme: pa.Array, attributes: pa.Array) -> pa.RecordBatch:
    types = (ARROW_SCHEMA.field(name).type for name in ("theme", "attributes"))
    lists = [column.cast(kind) for column, kind in zip((theme, attributes), types, strict=True)]
    return pa.RecordBatch.from_arrays([*(batch.column(name) for name in COLUMNS[:3]), *lists], names=list(COLUMNS))
