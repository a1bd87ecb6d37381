"""Corpora: what a space can be built from, each read into the columns title, text, skip and flaw.

`skip` says that a record is rightly left out (a redirect), `flaw` that it is damaged; both are null for an article.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from urllib.parse import unquote

import pyarrow as pa

from likewise.errors import BuildError, MissingError
from likewise.pipeline.spaces import mediawiki
from likewise.pipeline.spaces.mediawiki import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# Plain text files as articles: the file's name is the title, bytes that are no text are a flaw.


def read_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of title, text, skip and flaw from batches with the columns path and content."""
    for batch in batches:
        rows = [_article(*cells) for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _article(path: str, content: bytes) -> dict[str, str | None]:
    name = PurePosixPath(unquote(path)).name
    text, flaw = decode(content)
    return {"title": name if flaw else PurePosixPath(name).stem, "text": text, "skip": None, "flaw": flaw}


def decode(content: bytes) -> tuple[str | None, str | None]:
    """The text of a file, or why it has none.

    >>> decode("café".encode()), decode(b"\\x89PNG\\x00")
    (('café', None), (None, 'not a text file'))
    """
    if b"\0" in content:
        return None, "not a text file"
    try:
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return None, f"not UTF-8 at byte {error.start}"


Format: TypeAlias = Literal["wordnet", "jsonl", "parquet", "text", "mediawiki"]
FORMATS: tuple[Format, ...] = get_args(Format)

_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
    ".md": "text",
    ".xml": "mediawiki",
}
_PACKED = {".bz2", ".gz", ".zst", ".zstd", ".lz4", ".snappy", ".deflate"}
_SCHEME = "://"
_LONGEST_STRING = 1 << 30


@dataclass(frozen=True, slots=True)
class Corpus:
    """Where articles come from, and the names of their fields."""

    source: str
    format: Format
    title_field: str = "title"
    text_field: str = "text"

    @classmethod
    def find(
        cls, source: str, *, format: Format | None = None, title_field: str = "title", text_field: str = "text"
    ) -> Corpus:
        """A corpus by name or path; the format is seen from the name where it is not given."""
        if format is not None and format not in FORMATS:
            raise BuildError(f"no corpus format {format!r}", hint=f"one of: {', '.join(FORMATS)}")
        local = source != "wordnet" and _SCHEME not in source
        if local and not Path(source).exists():
            raise MissingError(f"no corpus at {source}", hint="a file, a folder, a URL that Spark reads, or `wordnet`")
        place = os.path.abspath(source) if local else source
        return cls(place, format or _guess(source), title_field=title_field, text_field=text_field)

    @property
    def name(self) -> str:
        """The last part of the path, which is all that a manifest keeps of it."""
        return self.source.rstrip("/").rpartition("/")[2]

    @property
    def min_words(self) -> int:
        """Below this many words an article is short, if the user says nothing else."""
        return 50 if self.format == "mediawiki" else 1

    def read(self, spark: SparkSession) -> DataFrame:
        """All records as a lazy table."""
        readers: dict[Format, Callable[[SparkSession], DataFrame]] = {
            "wordnet": self._wordnet,
            "jsonl": self._jsonl,
            "parquet": self._parquet,
            "text": self._text,
            "mediawiki": self._mediawiki,
        }
        return readers[self.format](spark)

    def _wordnet(self, spark: SparkSession) -> DataFrame:
        from likewise.semantics import WordNet, wordnet_documents

        titles, texts = zip(*wordnet_documents(WordNet.load()), strict=True)
        table = pa.table({"title": pa.array(titles), "text": pa.array(texts)})
        return self._articles(spark.createDataFrame(table).repartition(4))

    def _jsonl(self, spark: SparkSession) -> DataFrame:
        schema = f"`{self.title_field}` string, `{self.text_field}` string, _broken string"
        options = {"columnNameOfCorruptRecord": "_broken", "maxStringLen": str(_LONGEST_STRING)}
        return self._articles(spark.read.schema(schema).options(**options).json(self.source))

    def _parquet(self, spark: SparkSession) -> DataFrame:
        table = spark.read.parquet(self.source)
        lacking = [name for name in (self.title_field, self.text_field) if name not in table.columns]
        if lacking:
            raise BuildError(
                f"{self.name} has no column {', '.join(lacking)}; it has {', '.join(table.columns)}",
                hint="name them with --title-field and --text-field",
            )
        return self._articles(table)

    def _text(self, spark: SparkSession) -> DataFrame:
        # Read as bytes: Spark's text source would turn a picture into words without a murmur.
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(self.source)
        return files.select("path", "content").mapInArrow(read_files, mediawiki.SPARK_SCHEMA)

    def _mediawiki(self, spark: SparkSession) -> DataFrame:
        # Cut after each page rather than parsed as one document: a broken page then costs only itself,
        # and bzip2 dumps, multistream or not, are read by many workers.
        records = spark.read.option("lineSep", mediawiki.PAGE_END).text(self.source)
        return records.mapInArrow(mediawiki.read_pages, mediawiki.SPARK_SCHEMA)

    def _articles(self, table: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        nothing: Column = f.lit(None).cast("string")
        flaw = nothing
        title = f.col(f"`{self.title_field}`").cast("string")
        if "_broken" in table.columns:
            flaw = f.when(f.col("_broken").isNotNull(), f.lit("not JSON"))
            title = f.coalesce(title, f.substring("_broken", 1, 80))
        return table.select(
            title.alias("title"),
            f.col(f"`{self.text_field}`").cast("string").alias("text"),
            nothing.alias("skip"),
            flaw.alias("flaw"),
        )


def _guess(source: str) -> Format:
    if source == "wordnet":
        return "wordnet"
    path = Path(source)
    if path.is_dir():
        inside = {_suffix(file) for file in path.rglob("*") if file.is_file() and not file.name.startswith(("_", "."))}
        found = {_SUFFIXES[suffix] for suffix in inside if suffix in _SUFFIXES}
        return found.pop() if len(found) == 1 else "text"
    guess = _SUFFIXES.get(_suffix(path))
    if guess is None:
        raise BuildError(f"cannot tell the format of {source}", hint=f"say it with --format: {', '.join(FORMATS)}")
    return guess


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    # Dumps are cut into files like `….xml-p10p30302.bz2`.
    return (suffixes[-1] if suffixes else "").partition("-")[0]
