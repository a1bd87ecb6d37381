"""The tables of `likewise.cli.reading`, read by Spark: the good rows, and the bad ones aside with their reasons."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlparse
from urllib.request import url2pathname

import pyarrow as pa

from likewise.cli.reading.tables import CLOSE, OPEN, column_names, is_open, json_object, kind_of, uneven
from likewise.errors import BuildError, InputError, LikewiseError
from likewise.events import separator_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from likewise.cli.reading.input import Rejects

# Names that no table of a user has.
_BAD: Final = "_likewise_bad"
_ROW: Final = "_likewise_row"
_LINE: Final = "_likewise_line"

_ORDERED: Final = 1000
"""Lines of JSON that are looked at for the order of columns; Spark's own is that of the alphabet."""


@dataclass(frozen=True, slots=True)
class SparkTable:
    """The rows of a table, and those that are none: columns reason and record, or nothing where there cannot be any."""

    source: str
    rows: DataFrame
    bad: DataFrame | None = None

    def reject(self, rejects: Rejects) -> None:
        """Hand over the bad rows, one by one; Spark does not give their lines."""
        from likewise.events import BadRecord

        for row in self.bad.toLocalIterator() if self.bad is not None else ():
            rejects(BadRecord(self.source, None, row["reason"], bytes(row["record"])))


def spark_table(spark: SparkSession, source: str) -> SparkTable:
    """A table for Spark; nothing but its columns is read yet."""
    if source == "-":
        raise BuildError("Spark reads files, not stdin", hint="give a file or a folder, or leave out --spark")
    kind = kind_of(source)
    path = source if "://" in source else str(Path(source).absolute())
    if "://" not in source and "*" not in source and not Path(source).exists():
        raise InputError("cannot be read: No such file or directory", source=source, hint="check the path")
    if kind == "parquet":
        return SparkTable(source, spark.read.parquet(path))
    return _csv_table(spark, source, path) if kind == "csv" else _json_table(spark, source, path)


def _csv_table(spark: SparkSession, source: str, path: str) -> SparkTable:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    # As RFC 4180 has it: a quote written twice is one, and a cell in quotes may go on over the end of a line.
    top = spark.read.text(path).where(F.col("value").rlike(r"\S")).head()
    separator = separator_of(top["value"] if top else "")
    reader = spark.read.options(escape='"', multiLine=True, columnNameOfCorruptRecord=_BAD, mode="PERMISSIVE")
    reader = reader.options(sep=separator)
    _refuse_open(spark, source, path, separator)
    first = reader.csv(path).head()
    header = column_names([cell or "" for cell in first or ()], source)
    schema = StructType([StructField(name, StringType()) for name in (*header, _BAD)])
    frame = reader.options(header=True).csv(path, schema=schema)
    # Spark refuses to read what is wrong with rows without any cell of theirs; this is true of every row.
    read = F.coalesce(F.length(F.col(f"`{header[0].replace('`', '``')}`")), F.lit(0)) >= 0
    good = frame.where(F.col(_BAD).isNull() & read).drop(_BAD)
    aside = frame.where(F.col(_BAD).isNotNull() & read).select(F.col(_BAD).alias("record"))
    return SparkTable(source, good, aside.mapInArrow(CsvFlaws(len(header), separator), "reason string, record binary"))


def _refuse_open(spark: SparkSession, source: str, path: str, separator: str) -> None:
    """Spark takes a quoted text without an end to the end of the file, without an error."""
    from pyspark.sql import functions as F

    quotes = F.length("value") - F.length(F.replace("value", F.lit('"'), F.lit("")))
    counts = spark.read.text(path).groupBy(F.input_file_name().alias("file")).agg((F.sum(quotes) % 2).alias("odd"))
    for row in counts.where("odd = 1").collect():
        local = Path(url2pathname(urlparse(row["file"]).path))
        if not local.is_file() or is_open(local.read_bytes(), separator):
            raise InputError(OPEN, source=source, hint=CLOSE)


@dataclass(frozen=True, slots=True)
class CsvFlaws:
    """Gives each bad CSV record its reason, for `mapInArrow`."""

    width: int
    separator: str = ","

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            records = batch.column("record").to_pylist()
            reasons = [
                uneven(len(next(csv.reader(io.StringIO(record, newline=""), delimiter=self.separator), [])), self.width)
                for record in records
            ]
            raw = [record.encode() for record in records]
            yield pa.record_batch({"reason": pa.array(reasons, pa.string()), "record": pa.array(raw, pa.binary())})


def _json_table(spark: SparkSession, source: str, path: str) -> SparkTable:
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import StructType

    options = {"columnNameOfCorruptRecord": _BAD, "mode": "PERMISSIVE"}
    found = spark.read.options(**options).json(path).schema
    lines = spark.read.text(path).where(F.col("value").rlike(r"\S"))
    # Spark itself takes more for an object than JSON does: with words after it, in single quotes, in a list.
    flaw = arrow_udf(json_flaws, "string")  # type: ignore[call-overload]  # its stubs miss plain functions
    checked = lines.select(F.col("value").alias(_LINE), flaw(F.col("value").cast("binary")).alias(_BAD))
    good = checked.where(F.col(_BAD).isNull())
    head = [json_object(row[_LINE].encode()) for row in good.select(_LINE).head(_ORDERED)]
    ordered = dict.fromkeys([*(name for row in head for name in row), *found.names])
    schema = StructType([found[name] for name in ordered if name in found.names and name != _BAD])
    rows = good.select(F.from_json(_LINE, schema).alias(_ROW))
    rows = rows.select(*(F.col(_ROW).getField(name).alias(name) for name in schema.names))
    aside = checked.where(F.col(_BAD).isNotNull())
    bad = aside.select(F.col(_BAD).alias("reason"), F.col(_LINE).cast("binary").alias("record"))
    return SparkTable(source, rows, bad)


def json_flaws(lines: pa.Array) -> pa.Array:
    """Why each line is no JSON object, null where it is one.

    >>> json_flaws(pa.array([b'{"a": 1}', b"[1]"])).to_pylist()
    [None, 'not a JSON object: Expected `object`, got `array`']
    """
    return pa.array([_flaw(line) for line in lines.to_pylist()], pa.string())


def _flaw(line: bytes) -> str | None:
    try:
        json_object(line)
    except LikewiseError as error:
        return error.message
    return None
