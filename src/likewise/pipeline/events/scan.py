"""Parquet files of events, read by the workers themselves.

The dictionaries of a Parquet file already number its distinct texts. Read with Arrow they stay numbers up to the
matcher, where Spark would make a row of texts for every event and hand it over; that costs more than the matching.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from likewise.pipeline.events.frame import ARROW_SCHEMA, EVENTS_SCHEMA, TEXTS, tidy
from likewise.pipeline.events.transfer import Batches, EventOrigin, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS: Final = 10_000
"""Events in a batch."""
OPEN: Final = 4 << 20
"""Opening a file costs as much as reading so many bytes of it."""

_TOLERANT: Final = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")

Part = tuple[str, int, int]
"""A file, and which share of how many of it."""


def parquet_origin(table: DataFrame) -> EventOrigin:
    """How workers read the events of a table of Parquet files themselves."""
    return EventOrigin(partial(_rows, table))


def _rows(table: DataFrame) -> tuple[DataFrame, Step] | None:
    """A row for each task, and what the task reads; nothing where Spark has to read.

    That is also where columns are of other types than those of events.
    """
    sizes = local_sizes(table) if plain(table) else None
    if not sizes:
        return None
    rows, tasks = task_rows(table.sparkSession, sizes)
    return rows, Scan(tasks)


def local_sizes(table: DataFrame) -> dict[str, int] | None:
    """The files of a table with their sizes, if workers can read them; nothing where Spark has to.

    That is where folders give columns (`day=1/`), files lie elsewhere than in a file system that is mounted, or Spark
    was told to forgive broken files.
    """
    conf = table.sparkSession.conf
    if any(conf.get(key, "false") == "true" for key in _TOLERANT):
        return None
    paths = [_local(address) for address in table.inputFiles()]
    try:
        return None if None in paths else {path: os.stat(path).st_size for path in paths if path is not None}
    except OSError:
        return None


def task_rows(spark: Any, sizes: dict[str, int]) -> tuple[DataFrame, tuple[tuple[Part, ...], ...]]:
    """A row for each task, and the shares of files that it reads."""
    tasks = shares(sizes, most=_most(spark, sum(sizes.values()) + OPEN * len(sizes)))
    return spark.range(0, len(tasks), 1, len(tasks)), tuple(tasks)


def plain(table: DataFrame) -> bool:
    """Whether the columns of a table are just those of events, except that some may be missing.

    Spark calls every column of a Parquet file nullable, so types are compared without that.
    """
    from pyspark.sql.types import StructType

    events = cast("StructType", StructType.fromDDL(EVENTS_SCHEMA))
    wanted = {each.name: each.dataType.simpleString() for each in events}
    told = {each.name: each.dataType.simpleString() for each in table.schema}
    same = all(told[name] == kind for name, kind in wanted.items() if name in told)
    return same and {"id", "attributes"} <= told.keys()


def _local(address: str) -> str | None:
    """The path of a file in a mounted file system, if it lies in no folder that stands for a column."""
    parts = urlsplit(address)
    path = unquote(parts.path)
    return path if parts.scheme == "file" and "=" not in os.path.dirname(path) else None


def _most(spark: Any, whole: int) -> int:
    """So many bytes for a task, as Spark itself would choose."""
    from pyspark.errors import PySparkException

    most = _bytes(spark.conf.get("spark.sql.files.maxPartitionBytes", "128m"))
    try:
        cores = int(spark.sparkContext.defaultParallelism)
    except (PySparkException, AttributeError):
        # Spark Connect does not tell.
        cores = 8
    return min(most, max(OPEN, whole // cores))


def _bytes(text: str) -> int:
    """A size as Spark writes it.

    >>> _bytes("16m"), _bytes("134217728b"), _bytes("1gb")
    (16777216, 134217728, 1073741824)
    """
    digits = text.rstrip("bkmgtpBKMGTP")
    unit = text[len(digits) :].lower().removesuffix("b") or "b"
    return int(digits) << (10 * "bkmgtp".index(unit))


def shares(sizes: dict[str, int], *, most: int) -> list[tuple[Part, ...]]:
    """What each task reads: small files together, large ones in shares, about as many bytes for each.

    >>> shares({"a": 9 << 20, "b": 1, "c": 1}, most=5 << 20)
    [(('a', 0, 2),), (('a', 1, 2),), (('b', 0, 1), ('c', 0, 1))]
    """
    tasks: list[tuple[Part, ...]] = []
    open_parts: list[Part] = []
    held = 0
    for path, size in sizes.items():
        count = max(1, -(-size // most))
        for number in range(count):
            cost = size // count + OPEN
            if open_parts and held + cost > most + OPEN:
                tasks.append(tuple(open_parts))
                open_parts, held = [], 0
            open_parts.append((path, number, count))
            held += cost
    return [*tasks, tuple(open_parts)] if open_parts else tasks


@dataclass(frozen=True, slots=True)
class Scan:
    """Reads the shares of a task; the task is told by its number, the only row that Spark gives it."""

    tasks: tuple[tuple[Part, ...], ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for part in self.tasks[number]:
                    yield from read_part(*part)


def read_part(path: str, number: int, count: int) -> Iterator[pa.RecordBatch]:
    """The events of the row groups whose middle lies in this share of the file's rows."""
    numbered = True
    with _open(path, numbered=False) as file:
        groups = list(_groups(file.metadata, number, count))
    for group in groups:
        done = 0
        if numbered:
            try:
                for batch in _read_group(path, group, numbered=True):
                    yield batch
                    done += batch.num_rows
                continue
            except pa.ArrowNotImplementedError:
                # A writer whose dictionary got too large goes on with plain texts; within lists Arrow cannot follow.
                numbered = False
        for batch in _read_group(path, group, numbered=False):
            fresh = batch.slice(max(0, done))
            done -= batch.num_rows - fresh.num_rows
            if fresh.num_rows:
                yield fresh


def _read_group(path: str, group: int, *, numbered: bool) -> Iterator[pa.RecordBatch]:
    with _open(path, numbered=numbered) as file:
        wanted = [name for name in file.schema_arrow.names if name in ARROW_SCHEMA.names]
        for batch in file.iter_batches(ROWS, row_groups=[group], columns=wanted, use_threads=False):
            yield brought(batch)


def _open(path: str, *, numbered: bool) -> pq.ParquetFile:
    texts = [f"attributes.list.element.{text}" for text in TEXTS] if numbered else None
    return pq.ParquetFile(path, read_dictionary=texts, coerce_int96_timestamp_unit="us", pre_buffer=False)


def _groups(told: pq.FileMetaData, number: int, count: int) -> Iterable[int]:
    before = 0
    for group in range(told.num_row_groups):
        rows = told.row_group(group).num_rows
        # Twice the middle, in whole numbers, so that every group has one share and one only.
        if (2 * before + rows) * count // max(2 * told.num_rows, 1) == number:
            yield group
        before += rows


def brought(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with the columns and types of events; texts of attributes may stay dictionaries."""
    there = set(batch.schema.names)
    columns = [
        _column(batch.column(field.name), field) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in ARROW_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, names=ARROW_SCHEMA.names)


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    return tidy(column) if field.name == "attributes" else column.cast(field.type)
