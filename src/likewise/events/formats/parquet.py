"""Parquet files: events in Likewise's own layout, or the rows of any table by a mapping.

The dictionaries in a file of events already number its distinct texts; the matcher uses these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from likewise.errors import InputError
from likewise.events.arrow import columns_of_batch, holds_events
from likewise.events.columns import EventColumns, TupleTable
from likewise.events.guessing import SAMPLE, settle_mapping
from likewise.events.mapping import RecordMapping
from likewise.events.records import Flaw, OnMapping, RecordIntake
from likewise.events.table_columns import CAPACITY, TableColumns

if TYPE_CHECKING:
    import pyarrow.parquet as pq


ROWS: Final = 16_384
_COLUMNS: Final = ("id", "time", "end", "theme", "attributes")
_NUMBERED: Final = [f"attributes.list.element.{text}" for text in ("name", "value", "kind")]


def read_parquet(
    source: Any, intake: RecordIntake, *, mapping: RecordMapping | None = None, on_mapping: OnMapping | None = None
) -> Iterator[EventColumns]:
    """Yield the events of a Parquet file, given as a path or a stream of bytes."""
    try:
        file = _open(source)
        if mapping is None and holds_events(file.schema_arrow):
            yield from _read_events(parquet_batches(source), intake)
        else:
            yield from _read_table(file, intake, mapping, on_mapping)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot be read as Parquet: {reason}", source=intake.source) from None


def parquet_batches(source: Any, *, share: tuple[int, int] = (0, 1), rows: int = ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a file of events, or of one share `(number, count)`; each row group is in exactly one share."""
    with _open(source) as file:
        groups = list(_groups(file.metadata, *share))
    numbered = True
    # One row group at a time: Arrow cannot put the dictionaries of two groups into one batch.
    for group in groups:
        done = 0
        try:
            for batch in _event_rows(source, group, rows, numbered=numbered):
                done += batch.num_rows
                yield batch
        except pa.ArrowNotImplementedError:
            if not numbered:
                raise
            # Writers fall back to plain texts if a dictionary gets too large; Arrow cannot read that within lists.
            numbered = False
            for batch in _event_rows(source, group, rows, numbered=False):
                fresh = batch.slice(min(done, batch.num_rows))
                done -= batch.num_rows - fresh.num_rows
                if fresh.num_rows:
                    yield fresh


def _event_rows(source: Any, group: int, rows: int, *, numbered: bool) -> Iterator[pa.RecordBatch]:
    with _open(source, numbered=numbered) as file:
        wanted = [name for name in file.schema_arrow.names if name in _COLUMNS]
        yield from file.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)


def _open(source: Any, *, numbered: bool = False) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    texts = _NUMBERED if numbered else None
    return pq.ParquetFile(source, read_dictionary=texts, coerce_int96_timestamp_unit="us", pre_buffer=False)


def _groups(metadata: pq.FileMetaData, number: int, count: int) -> Iterator[int]:
    """The row groups whose middle lies in this share of the file's rows."""
    before = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        # Twice the middle, in integers, so that every group is in exactly one share.
        if (2 * before + rows) * count // max(2 * metadata.num_rows, 1) == number:
            yield group
        before += rows


def _read_events(batches: Iterator[pa.RecordBatch], intake: RecordIntake) -> Iterator[EventColumns]:
    table, first = TupleTable(), 1
    for batch in batches:
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
    """Flatten structs into columns named by their path."""
    table = pa.Table.from_batches([batch])
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table.combine_chunks().to_batches()[0]
