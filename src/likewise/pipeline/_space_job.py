"""The job corpus -> space: one pass over the corpus on Spark, one sorted stream back, one folder written."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from likewise.errors import BuildError, InputError
from likewise.pipeline._assemble import Concepts, Postings, read_packed, sum_by_name
from likewise.pipeline._corpora import Corpus
from likewise.pipeline._failures import failures_of
from likewise.pipeline._invert import CONCEPT, POSTINGS, REJECTED, SPARK_SCHEMA, TALLY, WORD, Inversion
from likewise.pipeline._pack import pack
from likewise.semantics import DEFAULT_WEIGHTING, WEIGHTINGS, Manifest, SpaceWriter, Weighting
from likewise.semantics._space_format import REJECTED as REJECTED_FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Small splits keep all cores busy on a compressed file; small batches keep a worker's memory low.
_SETTINGS = {
    "spark.sql.files.maxPartitionBytes": str(8 << 20),
    "spark.sql.files.openCostInBytes": str(256 << 10),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
_POSTINGS_A_PARTITION = 4_000_000
_MOST_REJECTED = 10_000


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """How a space is built; all of it stands in the manifest."""

    weighting: Weighting = DEFAULT_WEIGHTING
    min_df: int = 1
    prune: int | None = None
    min_words: int | None = None
    sample: float = 1.0

    def __post_init__(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise BuildError(f"no weighting {self.weighting!r}", hint=f"one of: {', '.join(WEIGHTINGS)}")
        if not 0 < self.sample <= 1:
            raise BuildError(f"a sample is a part of 1, not {self.sample}", hint="e.g. --sample 0.1")
        for name, least in (("min_df", 1), ("prune", 1), ("min_words", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise BuildError(f"--{name.replace('_', '-')} is at least {least}, not {value}")

    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Summary:
    """What a build did."""

    path: Path
    manifest: Manifest
    words: int
    dropped: dict[str, int]
    rejected: int
    duplicates: int
    seconds: float

    @property
    def words_per_second(self) -> float:
        return self.words / self.seconds if self.seconds else 0.0


Report = Callable[[str], None]


def build_space(
    spark: SparkSession,
    corpus: Corpus,
    path: str | Path,
    *,
    options: SpaceOptions | None = None,
    overwrite: bool = False,
    report: Report = lambda _: None,
) -> Summary:
    """Build the space of a corpus at a path, whole or not at all.

    The same corpus and options give the same bytes, wherever the job runs and however it is split. `report` is told
    what begins.
    """
    options = options or SpaceOptions()
    options = replace(options, min_words=options.min_words or corpus.min_words)
    started = time.monotonic()
    with failures_of(corpus.name), _settings(spark), SpaceWriter(path, overwrite=overwrite) as writer:
        report("reading")
        index = _index(spark, corpus, options)
        try:
            return _write(index, writer, corpus=corpus, options=options, report=report, started=started)
        finally:
            index.unpersist()


def _index(spark: SparkSession, corpus: Corpus, options: SpaceOptions) -> DataFrame:
    from pyspark import StorageLevel

    articles = _sampled(corpus.read(spark), options.sample)
    rows = articles.mapInArrow(Inversion(options.min_words or 1), SPARK_SCHEMA)
    # Kept on the workers' disks: it is read three times, and memory is for the work itself.
    return rows.persist(StorageLevel.DISK_ONLY)


def _sampled(articles: DataFrame, part: float) -> DataFrame:
    from pyspark.sql import functions as f

    if part >= 1:
        return articles
    # By the title's hash, not by chance: the same sample however the corpus is split.
    return articles.where(f.pmod(f.xxhash64("title"), f.lit(1_000_000)) < int(part * 1_000_000))


def _write(
    index: DataFrame,
    writer: SpaceWriter,
    *,
    corpus: Corpus,
    options: SpaceOptions,
    report: Report,
    started: float,
) -> Summary:
    facts = _facts(index)
    tallies = zip(*sum_by_name(facts[TALLY]), strict=True)
    counted = {name.decode(): int(count) for name, count in tallies}
    concepts = Concepts.gather(facts[CONCEPT])
    dropped = {name.partition(": ")[2]: n for name, n in sorted(counted.items()) if name.startswith("dropped: ")}
    rejected = counted.get("rejected", 0)
    _check_corpus(corpus, concepts, dropped=dropped, rejected=rejected)
    report("writing words")
    writer.write_concepts(concepts.titles, length=concepts.length, max_freq=concepts.max_freq)
    writer.write_words(*sum_by_name(facts[WORD]))
    if rejected:
        _write_rejected(facts[REJECTED], writer.folder / REJECTED_FILE)
    report("sorting terms")
    partitions = 1 + concepts.postings // _POSTINGS_A_PARTITION
    postings = Postings(writer, concepts, options.weighting, min_df=options.min_df, prune=options.prune)
    postings.write(_sorted_postings(index, partitions))
    report("sealing")
    words = counted.get("words", 0)
    extra = {"words": words, "dropped": dropped, "rejected": rejected, "duplicates": concepts.duplicates}
    made = {"corpus": corpus.name, "format": corpus.format, **options.parameters()}
    manifest = writer.commit(parameters=made, extra=extra)
    return Summary(
        writer.path,
        manifest,
        words=words,
        dropped=dropped,
        rejected=rejected,
        duplicates=concepts.duplicates,
        seconds=time.monotonic() - started,
    )


def _facts(index: DataFrame) -> dict[int, list[pa.Table]]:
    """All rows but the postings, by kind; this first action does the whole pass over the corpus, on all cores."""
    from pyspark.sql import functions as f

    packed = index.where(f.col("kind") != POSTINGS).mapInArrow(pack, "packed binary").collect()
    facts: dict[int, list[pa.Table]] = {CONCEPT: [], WORD: [], REJECTED: [], TALLY: []}
    for table in read_packed(bytes(row.packed) for row in packed):
        for kind, tables in facts.items():
            tables.append(table.filter(pc.field("kind") == kind))
    return facts


def _sorted_postings(index: DataFrame, partitions: int) -> Iterator[pa.Table]:
    """The postings in the order of their terms, a partition at a time, so that the driver never holds them all."""
    from pyspark.sql import functions as f

    rows = index.where(f.col("kind") == POSTINGS).repartitionByRange(partitions, "name")
    packed = rows.sortWithinPartitions("name").mapInArrow(pack, "packed binary")
    return read_packed(bytes(row.packed) for row in packed.toLocalIterator(prefetchPartitions=True))


def _write_rejected(tables: list[pa.Table], path: Path) -> None:
    columns = {"title": "name", "reason": "keys"}
    table = pa.concat_tables(tables).sort_by([("name", "ascending"), ("keys", "ascending")]).slice(0, _MOST_REJECTED)
    texts = {
        name: [cell.decode(errors="replace") for cell in table.column(source).to_pylist()]
        for name, source in columns.items()
    }
    pq.write_table(pa.table(texts), path)


def _check_corpus(corpus: Corpus, concepts: Concepts, *, dropped: dict[str, int], rejected: int) -> None:
    left_out = ", ".join(f"{count} {why}" for why, count in {**dropped, "broken": rejected}.items() if count)
    if not concepts.titles:
        raise InputError(
            f"no article with English words was found ({left_out or 'the corpus is empty'})",
            source=corpus.name,
            hint="check --format, --title-field, --text-field and --min-words",
        )
    if rejected > len(concepts.titles):
        raise InputError(
            f"{rejected} records are broken and only {len(concepts.titles)} are good: this would be a wrong space",
            source=corpus.name,
            hint="check --format, --title-field and --text-field",
        )


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
