"""Parquet files: events as Likewise writes them, or the rows of any table by a mapping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.errors import InputError
from likewise.events.arrow import columns_of_batch, holds_events
from likewise.events.columns import EventColumns, TupleTable
from likewise.events.guessing import SAMPLE, settle_mapping
from likewise.events.mapping import RecordMapping
from likewise.events.records import Flaw, OnMapping, RecordIntake
from likewise.events.table_columns import CAPACITY, TableColumns

__all__ = ["read_parquet"]

ROWS: Final = 16_384


def read_parquet(
    source: Any, intake: RecordIntake, *, mapping: RecordMapping | None = None, on_mapping: OnMapping | None = None
) -> Iterator[EventColumns]:
    """The events of a Parquet file, given by its path or as a stream of bytes."""
    try:
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=False)
        if mapping is None and holds_events(file.schema_arrow):
            yield from _read_events(file, intake)
        else:
            yield from _read_table(file, intake, mapping, on_mapping)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot be read as Parquet: {reason}", source=intake.source) from None


def _read_events(file: pq.ParquetFile, intake: RecordIntake) -> Iterator[EventColumns]:
    table, first = TupleTable(), 1
    wanted = [name for name in ("id", "time", "end", "theme", "attributes") if name in file.schema_arrow.names]
    for batch in file.iter_batches(ROWS, columns=wanted, use_threads=False):
        if len(table.pairs) > CAPACITY:
            table = TupleTable()
        columns = columns_of_batch(batch, table=table, source=intake.source, first=first)
        empty = np.flatnonzero(np.diff(columns.offsets) == 0)
        flaws = [Flaw(first + row, InputError("the event has no attributes"), b"") for row in empty.tolist()]
        if len(empty):
            columns = columns.take(np.delete(np.arange(len(columns)), empty))
        first += batch.num_rows
        yield from intake.admit(columns, flaws, lambda _: b"")


def _read_table(
    file: pq.ParquetFile, intake: RecordIntake, mapping: RecordMapping | None, on_mapping: OnMapping | None
) -> Iterator[EventColumns]:
    reader: TableColumns | None = None
    first = 1
    for batch in file.iter_batches(ROWS, use_threads=False):
        flat = _flat(batch)
        if reader is None:
            if mapping is None or not mapping.complete:
                mapping = settle_mapping(mapping, flat.slice(0, SAMPLE).to_pylist())
                if on_mapping is not None:
                    on_mapping(mapping)
            reader = TableColumns(mapping, flat.schema.names, source=intake.source)
        lines = np.arange(first, first + flat.num_rows)
        columns, bad = reader.read({name: flat.column(name) for name in reader.wanted}, lines)
        flaws = [
            Flaw(first + row, reason, str(flat.slice(row, 1).to_pylist()[0]).encode()) for row, reason in bad.items()
        ]
        if bad:
            columns = columns.take(np.delete(np.arange(len(columns)), list(bad)))
        first += flat.num_rows
        yield from intake.admit(columns, flaws, lambda _: b"")


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose structs are columns of their own, named by their path."""
    table = pa.Table.from_batches([batch])
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table.combine_chunks().to_batches()[0]
