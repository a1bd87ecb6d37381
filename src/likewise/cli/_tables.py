"""Tables that commands read, join and write: CSV, JSON lines and Parquet, the good rows in spite of the bad."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.cli._input import Rejects
from likewise.errors import BuildError, InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from likewise.semantics import Measure

KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_HINT = "a table is .csv with a header, .jsonl with an object a line, or .parquet"
Places = NDArray[np.int64]


def kind_of(source: str) -> str:
    """Which kind of table a path names; a folder is Parquet, as Spark writes it.

    >>> kind_of("a/b.csv"), kind_of("-")
    ('csv', 'jsonl')
    """
    if source == "-":
        return "jsonl"
    kind = "parquet" if Path(source).is_dir() else KINDS.get(Path(source).suffix.lower())
    if kind is None:
        raise BuildError(f"what kind of table is {source}?", hint=_HINT)
    return kind


def read_table(source: str, rejects: Rejects) -> pa.Table:
    """The good rows of a table; cells of CSV are text, empty ones are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = kind_of(source)
    try:
        if kind == "parquet":
            return pq.read_table(source)
        text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        rows = list(_csv_rows(text, source, rejects) if kind == "csv" else _json_rows(text, source, rejects))
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source, hint="check the path") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"a column holds several types: {error}", source=source, hint=_HINT) from None


def _csv_rows(text: bytes, source: str, rejects: Rejects) -> Iterator[dict[str, str | None]]:
    from likewise.events import BadRecord

    reader = csv.reader(io.StringIO(text.decode("utf-8-sig", errors="replace"), newline=""))
    header = next(reader, None)
    if not header:
        raise InputError("there is no header in it", source=source, hint=_HINT)
    for cells in reader:
        if len(cells) == len(header):
            yield dict(zip(header, (cell or None for cell in cells), strict=True))
        elif cells:
            reason = f"{len(cells)} cells where the header has {len(header)}"
            rejects(BadRecord(source, reader.line_num, reason, ",".join(cells).encode()))


def _json_rows(text: bytes, source: str, rejects: Rejects) -> Iterator[dict[str, Any]]:
    import msgspec

    from likewise.events import BadRecord

    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            rejects(BadRecord(source, number, f"not a JSON object: {error}", line))


def write_table(table: pa.Table, out: str) -> None:
    """A table as the suffix of its path says."""
    import msgspec
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    kind = kind_of(out)
    if kind == "parquet":
        pq.write_table(table, out)
    elif kind == "csv":
        if "why" in table.schema.names:
            raise BuildError("CSV has no room for reasons", hint="--out with .jsonl or .parquet")
        pa_csv.write_csv(table, out)
    else:
        with Path(out).open("wb") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in table.to_pylist())


def join_tables(
    left: pa.Table,
    right: pa.Table,
    *,
    on: tuple[str, str],
    measure: Measure,
    threshold: float | None = None,
    best: int | None = None,
    how: str = "inner",
    explain: bool = False,
    score: str = "relatedness",
) -> pa.Table:
    """What `join_by_meaning` gives on Spark, in this process; rows in the order of the left."""
    import pyarrow as pa

    from likewise.pipeline._join_columns import how_of, new_names
    from likewise.pipeline._join_near import Bar, near_pairs
    from likewise.pipeline._related import ARROW_WHY, reasons

    how, bar = how_of(how), Bar.of(threshold, best)
    (mine, a), (theirs, b) = (_terms(table, name) for table, name in zip((left, right), on, strict=True))
    pairs = near_pairs(measure, mine, theirs, bar)
    at, pair = _spread(a, pairs.left)
    if how in ("left_semi", "left_anti"):
        found = np.isin(np.arange(left.num_rows), at)
        return left.filter(pa.array(found if how == "left_semi" else ~found))
    order = np.argsort(b, kind="stable")
    one, place = _spread(pairs.right[pair], b[order])
    rows, others, used = at[one], order[place], pair[one]
    lonely = _missing(rows, left.num_rows) if how in ("left", "full") else rows[:0]
    unasked = _missing(others, right.num_rows) if how in ("right", "full") else rows[:0]
    added = [score, *(["why"] if explain else [])]
    renamed = new_names(left.schema.names, right.schema.names, suffix="_right", added=added)
    nothing = [None] * (len(lonely) + len(unasked))
    columns = {
        n: left[n].take(pa.array([*rows, *lonely, *[None] * len(unasked)], pa.int64())) for n in left.schema.names
    }
    indices = pa.array([*others, *[None] * len(lonely), *unasked], pa.int64())
    columns |= {renamed[name]: right[name].take(indices) for name in right.schema.names}
    columns[score] = pa.array([*pairs.relatedness[used].astype(float).tolist(), *nothing], pa.float64())
    if explain:
        why = [reasons(measure, mine[i], theirs[j]) for i, j in zip(pairs.left, pairs.right, strict=True)]
        columns["why"] = pa.array([*(why[number] for number in used), *nothing], ARROW_WHY)
    return pa.table(columns)


def _terms(table: pa.Table, name: str) -> tuple[list[str], Places]:
    """The distinct terms of a column in order, and the number of each row's; -1 for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in table.schema.names:
        known = ", ".join(table.schema.names)
        raise BuildError(f"there is no column {name!r} to join on", hint=f"there are {known}")
    column = table[name].combine_chunks()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise BuildError(f"the column {name!r} is {column.type}, not text", hint="words are joined, not numbers")
    terms = sorted(pc.unique(column.drop_null()).to_pylist())
    places = pc.fill_null(pc.index_in(column, pa.array(terms, column.type)), -1)
    return terms, np.asarray(places, np.int64)


def _spread(wanted: Places, there: Places) -> tuple[Places, Places]:
    """Each place of `wanted` beside each place of the same number in `there`, which is in order.

    >>> [part.tolist() for part in _spread(np.array([1, -1, 0]), np.array([0, 1, 1]))]
    [[0, 0, 2], [1, 2, 0]]
    """
    start, end = (np.searchsorted(there, wanted, side=side) for side in ("left", "right"))
    sizes = np.where(wanted >= 0, end - start, 0)
    index = np.repeat(np.arange(len(wanted)), sizes)
    offset = np.arange(len(index)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return index, np.repeat(start, sizes) + offset


def _missing(places: Places, count: int) -> Places:
    return np.setdiff1d(np.arange(count), places)


def spark_table(spark: SparkSession, source: str) -> DataFrame:
    """The same tables, read by Spark; there a bad row ends the job."""
    if source == "-":
        raise BuildError("Spark reads files, not stdin", hint="give a file or a folder, or leave out --spark")
    kind = kind_of(source)
    path = source if "://" in source else str(Path(source).absolute())
    if kind == "parquet":
        return spark.read.parquet(path)
    reader = spark.read.option("mode", "FAILFAST")
    return reader.csv(path, header=True, escape='"', multiLine=True) if kind == "csv" else reader.json(path)
