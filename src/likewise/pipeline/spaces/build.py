"""The job corpus -> space: one pass over the corpus on Spark, one sorted stream back, one folder written."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from likewise.errors import named_options
from likewise.pipeline.spaces.corpora import Corpus
from likewise.pipeline.trouble import failures_of
from likewise.semantics import SpaceWriter
from likewise.semantics.space import (
    INDEX_SCHEMA,
    POSTINGS,
    SPARK_INDEX_SCHEMA,
    BuildSummary,
    Inversion,
    Progress,
    SpaceOptions,
    assemble,
    by_kind,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Small splits keep all cores busy on a compressed file; small batches keep a worker's memory low.
_SETTINGS = {
    "spark.sql.files.maxPartitionBytes": str(8 << 20),
    "spark.sql.files.openCostInBytes": str(256 << 10),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
PACKED = pa.schema([("packed", pa.binary())])


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row with an Arrow message for each batch.

    >>> batch = pa.record_batch({"n": [1, 2]})
    >>> [row] = pack([batch])
    >>> pa.ipc.open_stream(row.column("packed")[0].as_py()).read_all().to_pydict()
    {'n': [1, 2]}
    """
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=PACKED)


def read_packed(blobs: Iterable[bytes]) -> Iterator[pa.Table]:
    """The tables in Arrow messages."""
    for blob in blobs:
        yield pa.ipc.open_stream(blob).read_all().cast(INDEX_SCHEMA)


@named_options
def build_space(
    spark: SparkSession,
    corpus: Corpus,
    path: str | Path,
    *,
    options: SpaceOptions | None = None,
    overwrite: bool = False,
    report: Progress = lambda _: None,
) -> BuildSummary:
    """Build the space of a corpus at a path, whole or not at all.

    The same corpus and options give the same bytes, wherever the job runs and however it is split. `report` receives
    the name of each stage as it begins.
    """
    options = options or SpaceOptions()
    options = replace(options, min_words=options.min_words or corpus.min_words)
    started = time.monotonic()
    with failures_of(corpus.name), _settings(spark), SpaceWriter(path, overwrite=overwrite) as writer:
        report("reading")
        index = _index(spark, corpus, options)
        try:
            rows = _SparkRows(index)
            summary = assemble(rows, writer, corpus=corpus.name, format=corpus.format, options=options, report=report)
            return replace(summary, seconds=time.monotonic() - started)
        finally:
            index.unpersist()


def _index(spark: SparkSession, corpus: Corpus, options: SpaceOptions) -> DataFrame:
    from pyspark import StorageLevel

    articles = _sampled(corpus.read(spark), options.sample)
    rows = articles.mapInArrow(Inversion(options.min_words or 1), SPARK_INDEX_SCHEMA)
    # Kept on the workers' disks: it is read three times, and memory is for the work itself.
    return rows.persist(StorageLevel.DISK_ONLY)


def _sampled(articles: DataFrame, part: float) -> DataFrame:
    from pyspark.sql import functions as f

    if part >= 1:
        return articles
    # By the title's hash, not by chance: the same sample however the corpus is split.
    return articles.where(f.pmod(f.xxhash64("title"), f.lit(1_000_000)) < int(part * 1_000_000))


@dataclass(frozen=True, slots=True)
class _SparkRows:
    """The rows of an index that a Spark job holds."""

    index: DataFrame

    def facts(self) -> dict[int, list[pa.Table]]:
        """All rows but the postings; this first action does the whole pass over the corpus, on all cores."""
        from pyspark.sql import functions as f

        packed = self.index.where(f.col("kind") != POSTINGS).mapInArrow(pack, "packed binary").collect()
        return by_kind(read_packed(bytes(row.packed) for row in packed))

    def postings(self, chunks: int) -> Iterator[pa.Table]:
        """A partition at a time, so that the driver never holds them all."""
        from pyspark.sql import functions as f

        rows = self.index.where(f.col("kind") == POSTINGS).repartitionByRange(chunks, "name")
        packed = rows.sortWithinPartitions("name").mapInArrow(pack, "packed binary")
        return read_packed(bytes(row.packed) for row in packed.toLocalIterator(prefetchPartitions=True))


@contextlib.contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """The job's settings, put back afterwards: the session may be someone else's."""
    before = {key: spark.conf.get(key, None) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
