"""Files of events that workers read themselves, in shares: Parquet, and lines of CSV.

Workers read files in a mounted file system, with the readers of `likewise.events`. Spark would make a row of texts for
every event and hand it over, which costs more than the matching.

Spark itself reads streams, compressed files and other file systems. It hands over lines of CSV and leaves the rest to
the worker. The cells are read as in one process, except that a line is a row: a cell of several lines could lie in two
shares.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from likewise.events import BadRecord, CsvColumns, EventColumns, RecordIntake, RecordMapping, parquet_batches
from likewise.pipeline.events.frame import (
    ARROW_SCHEMA,
    BETWEEN,
    EVENTS_SCHEMA,
    ColumnWriter,
    digest_of,
    tidy,
    with_ids,
)
from likewise.pipeline.events.transfer import Batches, Decoded, EventOrigin, Step, frame_rows, remember

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ROWS: Final = 10_000
"""Events in a batch."""
OPEN: Final = 4 << 20
"""Opening a file costs as much as reading this many bytes."""

_TOLERANT: Final = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")

Part = tuple[str, int, int]
"""A file, and which share of how many of it."""


def parquet_origin(table: DataFrame) -> EventOrigin:
    """How workers read the events of a table of Parquet files themselves."""
    return EventOrigin(partial(_rows, table))


def _rows(table: DataFrame, kept: Sequence[str], letters: bool) -> tuple[DataFrame, Step]:
    """A row for each task, and what the task reads; the rows of the table where Spark has to read.

    That is also where columns are of other types than those of events.
    """
    sizes = local_sizes(table) if plain(table) else None
    if not sizes:
        return frame_rows(table, kept, letters)
    rows, tasks = task_rows(table.sparkSession, sizes)
    return rows, Scan(tasks)


def local_sizes(table: DataFrame) -> dict[str, int] | None:
    """The files of a table with their sizes, if workers can read them; nothing where Spark has to.

    That is where folders give columns (`day=1/`), files lie elsewhere than in a file system that is mounted, or Spark
    is set to ignore broken files.
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
    wanted = {field.name: field.dataType.simpleString() for field in events}
    present = {field.name: field.dataType.simpleString() for field in table.schema}
    same = all(present[name] == kind for name, kind in wanted.items() if name in present)
    return same and {"id", "attributes"} <= present.keys()


def _local(address: str) -> str | None:
    """The path of a file in a mounted file system, if it lies in no folder that stands for a column."""
    parts = urlsplit(address)
    path = unquote(parts.path)
    return path if parts.scheme == "file" and "=" not in os.path.dirname(path) else None


def _most(spark: Any, whole: int) -> int:
    """The bytes of a task, as Spark itself would choose."""
    from pyspark.errors import PySparkException

    most = _bytes(spark.conf.get("spark.sql.files.maxPartitionBytes", "128m"))
    try:
        cores = int(spark.sparkContext.defaultParallelism)
    except (PySparkException, AttributeError):
        # Spark Connect does not report it.
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
    """Reads the shares of a task; the task is known by its number, the only row that Spark gives it."""

    tasks: tuple[tuple[Part, ...], ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for part in self.tasks[number]:
                    yield from read_part(*part)


def read_part(path: str, number: int, count: int) -> Iterator[pa.RecordBatch]:
    """The events of a share of a file."""
    return map(brought, parquet_batches(path, share=(number, count), rows=ROWS))


def brought(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with the columns and types of events; texts of attributes may stay dictionaries."""
    there = set(batch.schema.names)
    columns = [
        _column(batch.column(field.name), field) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in ARROW_SCHEMA
    ]
    return with_ids(pa.RecordBatch.from_arrays(columns, names=ARROW_SCHEMA.names))


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    return tidy(column) if field.name == "attributes" else column.cast(field.type)


# Lines of CSV.


BLOCK: Final = 1 << 20
"""Bytes that are read and cut into cells at once."""
_BOM: Final = b"\xef\xbb\xbf"
_PROBE: Final = 4096
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_PACKED: Final = (".bz2", ".deflate", ".gz", ".lz4", ".snappy", ".zst", ".zstd")
"""Files that Spark unpacks while it reads."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """What a worker must know of a CSV table: its columns by place, and what they are for."""

    names: tuple[str, ...]
    mapping: RecordMapping
    separator: str = ","

    def reader(self, source: str) -> TableReader:
        """Reads the lines of a file."""
        return TableReader(self, source)


class TableReader:
    """Lines of one file into batches of events, and after them those lines that are none."""

    def __init__(self, table: CsvTable, source: str) -> None:
        self._flaws: list[BadRecord] = []
        intake = RecordIntake(source, self._flaws.append, None)
        self._columns = CsvColumns(table.names, table.mapping, intake, separator=table.separator, multiline=False)
        self._writer = ColumnWriter()
        self._separator = table.separator

    def read(self, text: bytes, first: int | None) -> Iterator[pa.RecordBatch]:
        """The events of whole lines, the first of them numbered `first`, if that is known.

        >>> from likewise.pipeline.events.frame import decoded
        >>> reader = CsvTable(("id", "temp", "place"), RecordMapping(id="id")).reader("x.csv")
        >>> good, bad = reader.read(b"e1,3.5,Galway\\ne2,,\\n", 2)
        >>> [tuple(entry.values()) for entry in decoded(good).column("attributes").to_pylist()[0]]
        [('temp', '3.5', 'number'), ('place', 'Galway', 'text')]
        >>> [(flaw["line"], flaw["reason"], flaw["record"]) for flaw in bad.column("flaw").to_pylist()]
        [(3, 'the row says nothing', 'e2,,')]
        """
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for events in self._columns.read(text, 1 if first is None else first):
            yield self._writer.batch(_named(events, text, 1 if first is None else first, separator=self._separator))
        if self._flaws:
            flaws = [flaw if first is not None else replace(flaw, line=None) for flaw in self._flaws]
            self._flaws.clear()
            yield self._writer.batch(None, flaws)


def _named(events: EventColumns, text: bytes, first: int, *, separator: str) -> EventColumns:
    """The events with ids for those that have none: the file and a digest of the cells, the same in every reading."""
    missing = events.ids.is_null().to_numpy(zero_copy_only=False)
    if not missing.any():
        return events
    assert events.lines is not None
    lines = text.split(b"\n")
    ids = events.ids.to_pylist()
    for at in compress(range(len(ids)), missing):
        cells = cells_of(lines[int(events.lines[at]) - first].decode(errors="replace"), separator)
        ids[at] = row_id(events.source, BETWEEN.join(cells))
    return replace(events, ids=pa.array(ids, pa.string()))


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of a line that was found to be a row.

    >>> cells_of('1,"a, ""b"" c",,x', ",")
    ['1', 'a, "b" c', '', 'x']
    """
    if '"' not in line:
        return line.split(separator)
    between = re.escape(separator)
    found = re.findall(rf'(?:^|{between})(?:"((?:[^"]|"")*)"|([^{between}]*))', line)
    return [quoted.replace('""', '"') or bare for quoted, bare in found]


def row_id(source: str, content: str) -> str:
    """The id of what has none: the name of its file, and a digest of its line or cells. Spark's SQL makes the same."""
    return f"{source}:{digest_of(content)}"


def csv_events(lines: DataFrame, table: CsvTable, *, stream: bool) -> DataFrame:
    """The events of a table of text lines (`value`), made in the workers."""
    rows, step = _whole_files(lines, table, stream=stream) or (_as_rows(lines), LineStep(table))
    return remember(rows.mapInArrow(Decoded(step), EVENTS_SCHEMA), EventOrigin(lambda *_: (rows, step)))


def _whole_files(lines: DataFrame, table: CsvTable, *, stream: bool) -> tuple[DataFrame, Step] | None:
    sizes = None if stream else local_sizes(lines)
    if not sizes or any(path.endswith(_PACKED) for path in sizes):
        return None
    rows, tasks = task_rows(lines.sparkSession, sizes)
    # In bytes of the file as it is now, so that all tasks agree on them even if it grows.
    shares = (tuple(_bytes_of(part, sizes[part[0]]) for part in task) for task in tasks)
    return rows, ShareStep(table, tuple(shares))


def _bytes_of(part: Part, size: int) -> Share:
    path, number, count = part
    return path, size * number // count, size * (number + 1) // count


def _as_rows(lines: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return lines.select(
        F.col("value").cast("binary").alias("line"),
        F.col("_metadata.file_name").alias("source"),
        # Eight bytes for each row distinguish one file from the next as well as its path does.
        F.xxhash64("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
    )


Share = tuple[str, int, int]
"""A file, and the bytes in which the lines begin that belong to the share."""


@dataclass(frozen=True, slots=True)
class ShareStep:
    """Reads the shares of a task; the task is known by its number, the only row that Spark gives it."""

    table: CsvTable
    tasks: tuple[tuple[Share, ...], ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for share in self.tasks[number]:
                    yield from read_share(self.table, share)


def read_share(table: CsvTable, share: Share, *, block: int = BLOCK) -> Iterator[pa.RecordBatch]:
    """The events of the lines that begin in a share of a file; the first line of a file names its columns."""
    path, first, last = share
    with open(path, "rb") as file:
        start, end = line_start(file, first), line_start(file, last)
        count, header = LineCount(path, start), first == 0
        reader = table.reader(os.path.basename(path))
        for text in blocks(file, start, end, block=block):
            rows = text
            if header and text.strip():
                rows, header = _below_header(text), False
            for batch in reader.read(rows, 0) if rows.strip() else ():
                yield _counted(batch, count, before=_ends(text) - _ends(rows))
            count.ended += _ends(text)


def _below_header(text: bytes) -> bytes:
    blank = len(text) - len(text.lstrip())
    found = _LINE_END.search(text, blank)
    return text[found.end() :] if found else b""


def _counted(batch: pa.RecordBatch, count: LineCount, *, before: int) -> pa.RecordBatch:
    """A batch of dead letters with their line numbers in the file; other batches stay as they are."""
    flaws = batch.column("flaw")
    if flaws.null_count == len(batch):
        return batch
    first = count.first() + before
    numbered = [{**flaw, "line": flaw["line"] + first} for flaw in flaws.to_pylist()]
    place = batch.schema.get_field_index("flaw")
    return batch.set_column(place, batch.schema.field(place), pa.array(numbered, flaws.type))


@dataclass(slots=True)
class LineCount:
    """The number of a line: those before the share are counted only if one of the share is reported."""

    path: str
    start: int
    ended: int = 0
    before: int | None = None

    def first(self) -> int:
        """The number of the first line that has not ended."""
        if self.before is None:
            with open(self.path, "rb") as file:
                self.before = sum(_ends(text) for text in blocks(file, 0, self.start))
        return self.before + self.ended + 1


def _ends(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def line_start(file: BinaryIO, place: int) -> int:
    """The first place from here on where a line begins, or the end of the file; a mark of byte order is passed over.

    >>> import io
    >>> [line_start(io.BytesIO(b"ab\\r\\ncd\\re"), place) for place in range(9)]
    [0, 4, 4, 4, 4, 7, 7, 7, 8]
    """
    file.seek(max(0, place - 1))
    if place == 0:
        return len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    at = place - 1
    while text := file.read(_PROBE):
        found = _LINE_END.search(text)
        if found:
            at += found.end()
            # What ends with CR at the edge of what was read may go on with LF.
            return at + (text[found.start() :] == b"\r" and file.read(1) == b"\n")
        at += len(text)
    return at


def blocks(file: BinaryIO, start: int, end: int, *, block: int = BLOCK) -> Iterator[bytes]:
    """The bytes of a file between two places, in pieces of whole lines."""
    file.seek(start)
    rest = b""
    while start < end and (text := file.read(min(block, end - start))):
        start += len(text)
        text = rest + text
        if start >= end:
            yield text
            return
        cut = text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, -1) + 1
        if cut:
            yield text[:cut]
        rest = text[cut:]
    if rest:
        yield rest


@dataclass(frozen=True, slots=True)
class LineStep:
    """Makes events of lines that Spark has read; the first line of each file names its columns."""

    table: CsvTable

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        # The file whose first line was left out; its lines follow one another, over several batches maybe.
        begun: int | None = None
        for batch in batches:
            lines = batch.column("line").to_pylist()
            files, starts = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("file", "start"))
            edges = (np.flatnonzero(np.diff(files) != 0) + 1).tolist()
            for first, end in zip([0, *edges], [*edges, len(lines)], strict=True):
                rows = [line for line in lines[first:end] if line and line.strip()]
                if not rows:
                    continue
                header = starts[first] == 0 and files[first] != begun
                begun = files[first]
                yield from self._read(rows[1:] if header else rows, batch.column("source")[first].as_py())

    def _read(self, rows: Sequence[bytes], source: str) -> Iterator[pa.RecordBatch]:
        return self.table.reader(source).read(b"\n".join(rows), None) if rows else iter(())
