"""Reads events into DataFrames, batch and streaming: each format becomes the same columns.

A record that is not an event becomes a row with only a `flaw`, so it can neither stop a job nor get lost: `match` and
`detect` skip it, `dead_letters` returns it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from likewise.errors import BuildError, InputError, named_options
from likewise.events import (
    SYSLOG_MAPPING,
    BadRecord,
    Event,
    OnError,
    RecordMapping,
    decode_lines,
    holds_json_lines,
    instants,
    zone_of,
)
from likewise.events import read_events as read_source
from likewise.pipeline.events.frame import EVENTS_SCHEMA, Keep, batch_of
from likewise.pipeline.events.scan import CsvTable, csv_events, parquet_origin, row_id
from likewise.pipeline.events.table import bound, check_mapping, events_from_columns
from likewise.pipeline.events.transfer import EventOrigin, as_events, remember, remember_peek
from likewise.pipeline.options import LikewiseWarning, workers_run_this_python

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Computed: TypeAlias = "Mapping[str, Column] | None"
"""Columns made of others, by name."""

FORMATS: Final = (
    *("jsonl", "cloudevents", "json", "ntriples", "turtle", "parquet", "csv", "avro", "logfmt", "syslog"),
    "broker",
)
"""`json` is whole documents, an event or an array of events a file; `cloudevents` is lines; `broker` is the database
of a broker, a file or a PostgreSQL URL."""

_PARSED = ("jsonl", "logfmt", "syslog")
_LINES = (*_PARSED, "cloudevents")
_TABLES = ("csv", "parquet")
_RECORDS = (*_PARSED, "json", "avro")
"""Formats of records that need not be in the form of events."""
_SUFFIXES: Final = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".parquet": "parquet",
    ".csv": "csv",
    ".avro": "avro",
    ".logfmt": "logfmt",
    ".syslog": "syslog",
    ".sqlite3": "broker",
}
_COMPRESSED = (".gz", ".bz2", ".zst")
_ROWS = 4096
_NAMELESS = "\x00"
"""The name of the source while lines are decoded: no producer's id begins with it."""


@named_options
def read_events(
    spark: SparkSession,
    path: str | Path,
    *,
    format: str = "auto",
    stream: bool = False,
    columns: RecordMapping | None = None,
    computed: Mapping[str, Column] | None = None,
    keep: Keep = (),
    stamp: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The events of a file or folder, with the columns of `EVENTS_SCHEMA`.

    The format is that of the suffix of the file, or of the files in the folder. `stream` watches a folder for new
    files. `columns` is which columns of a table, or which fields of flat records, make an event; `computed` adds
    columns to a table that are made of others, `keep` names the columns of a table that stay beside the event. `stamp`
    gives an event without a time the time of its file. `options` go to Spark's reader.
    """
    if columns is not None:
        check_mapping(columns)
    _check_path(path)
    given = {key: str(value) for key, value in (options or {}).items()}
    deep = any(key.lower() == "recursivefilelookup" and value.lower() == "true" for key, value in given.items())
    chosen = _guess(str(path), deep=deep) if format == "auto" else format
    if chosen not in FORMATS:
        raise BuildError(f"unknown format {format!r}", hint=f"one of auto, {', '.join(FORMATS)}")
    if not deep:
        _warn_of_folders(Path(path))
    if keep and chosen not in _TABLES:
        raise BuildError(f"{chosen} records have no columns to keep", hint="leave out keep")
    if columns is not None and chosen not in (*_TABLES, *_RECORDS):
        raise BuildError(f"{chosen} events name their own attributes", hint="leave out columns")
    if computed and (columns is None or chosen not in _TABLES):
        raise BuildError("columns are computed from those of a table", hint="give columns=… too, for csv or parquet")
    if columns is None and chosen in ("avro", "logfmt"):
        hint = "give columns=RecordMapping(id=…, time=…, attributes=[…])"
        raise BuildError(f"{chosen} records need to know which fields make an event", hint=hint)
    if columns is None and chosen == "syslog":
        columns = SYSLOG_MAPPING

    workers_run_this_python(spark)

    def read(*, stream: bool) -> DataFrame:
        if chosen == "broker":
            return _broker_log(spark, str(path), stream=stream, stamp=stamp, options=dict(given))
        # A relative path is relative to this process, not to the folder in which Spark was started.
        place = str(Path(path).absolute()) if Path(path).exists() else str(path)
        reader = _Reader(spark, place, stream, given)
        if chosen == "csv":
            return reader.csv(columns, keep, computed)
        if chosen == "parquet":
            return reader.parquet(columns, keep, computed)
        return decode_records(reader.records(chosen), format=chosen, stamp=stamp, mapping=columns)

    from pyspark.errors import AnalysisException

    try:
        return remember_peek(read(stream=True), lambda: read(stream=False)) if stream else read(stream=False)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise InputError("no such file or folder", source=str(path), hint="check the path") from None


def _check_path(path: object) -> None:
    if not isinstance(path, str | Path):
        hint = "a file, a folder or a pattern, such as in/*.jsonl; `union` joins the events of several"
        raise BuildError(f"a path cannot be {type(path).__name__}", hint=hint)


def _broker_log(spark: SparkSession, database: str, *, stream: bool, stamp: bool, options: dict[str, str]) -> DataFrame:
    from likewise.pipeline.events.broker_log import read_broker_log

    namespace = options.pop("namespace", "default")
    if options:
        raise BuildError(f"a broker's log takes no {', '.join(options)}", hint="it takes namespace")
    return decode_records(read_broker_log(spark, database, namespace=namespace, stream=stream), stamp=stamp)


def decode_records(
    records: DataFrame, *, format: str = "jsonl", stamp: bool = False, mapping: RecordMapping | None = None
) -> DataFrame:
    """Events from a DataFrame with the columns `record` (bytes), `source` and `received` (a timestamp)."""
    if mapping is not None and not mapping.complete:
        raise BuildError("a mapping is not guessed on Spark", hint="name the fields that it needs")
    workers_run_this_python(records.sparkSession)
    rows, decoder = records.select("record", "source", "received"), Decoder(format, stamp, mapping)
    return remember(rows.mapInArrow(decoder, EVENTS_SCHEMA), EventOrigin(lambda *_: (rows, decoder)))


@dataclass(frozen=True, slots=True)
class _Reader:
    spark: SparkSession
    path: str
    stream: bool
    options: dict[str, str]

    def _base(self) -> Any:
        return (self.spark.readStream if self.stream else self.spark.read).options(**self.options)

    def records(self, format: str) -> DataFrame:
        """Lines or whole files as bytes; text is cast so that broken encodings arrive as they are."""
        from pyspark.sql import functions as F

        rows: DataFrame
        if format in _LINES:
            rows = self._base().text(self.path)
            record = F.col("value").cast("binary")
        else:
            rows = self._base().format("binaryFile").load(self.path)
            record = F.col("content")
        return rows.select(
            record.alias("record"),
            F.col("_metadata.file_name").alias("source"),
            F.col("_metadata.file_modification_time").alias("received"),
        )

    def parquet(self, columns: RecordMapping | None, keep: Keep, computed: Computed) -> DataFrame:
        base = self._base()
        if self.stream:
            # A stream needs its schema beforehand: that of the existing files.
            schema = EVENTS_SCHEMA if columns is None else self.spark.read.parquet(self.path).schema
            base = base.schema(schema)
        rows = base.parquet(self.path)
        if columns is not None:
            return events_from_columns(rows, columns, computed=computed, keep=keep)
        # With options, only Spark's reader knows how to read.
        return as_events(rows) if self.stream or self.options else remember(as_events(rows), parquet_origin(rows))

    def csv(self, columns: RecordMapping | None, keep: Keep, computed: Computed) -> DataFrame:
        if columns is None:
            raise BuildError(
                "a CSV file needs to know which columns make an event",
                hint="give columns=RecordMapping(id=…, time=…, attributes=[…])",
            )
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        names = self._header()
        columns = bound(columns, [*names, *(computed or ())], _fold(self.spark))
        table = None if keep or computed else self._own_csv(columns, names)
        if table is not None:
            file_options = {key: value for key, value in self.options.items() if key.lower() in FILE_OPTIONS}
            lines = (self.spark.readStream if self.stream else self.spark.read).options(**file_options).text(self.path)
            # Only Spark reads columns from the names of folders.
            if lines.columns == ["value"]:
                return csv_events(lines, table, stream=self.stream)
        schema = StructType([StructField(name, StringType()) for name in [*names, BROKEN]])
        options = {**self._csv_options(), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN, **self.options}
        reader = (self.spark.readStream if self.stream else self.spark.read).options(**options)
        rows = reader.schema(schema).csv(self.path).select("*", F.col("_metadata.file_name").alias(SOURCE))
        return events_from_columns(rows, columns, computed=computed, keep=keep, broken=BROKEN, source=SOURCE)

    def _own_csv(self, columns: RecordMapping, names: list[str]) -> CsvTable | None:
        """How workers read the table; None if only Spark's reader can."""
        options = {key.lower(): value for key, value in self.options.items() if key.lower() not in FILE_OPTIONS}
        separators = {options.pop(name) for name in SEPARATOR_OPTIONS if name in options} or {","}
        zone = self.spark.conf.get("spark.sql.session.timeZone") or ""
        (separator,) = separators if len(separators) == 1 else ("",)
        single = len(separator) == 1 and separator.isascii() and separator not in '"\r\n'
        if not single or options or not {*columns.taken, *columns.renamed(names)} <= {*names}:
            return None
        try:
            zone_of(zone)
        except BuildError:
            # A zone that only Java knows, such as PST.
            return None
        constants = {name: text for name, text in columns.constants.items() if text}
        return CsvTable(tuple(names), replace(columns, zone=_zones(columns, zone), constants=constants), separator)

    def _header(self) -> list[str]:
        """The names in the first line, in the order of the file: CSV columns are found by position."""
        options = {**self._csv_options(), **self.options}
        return [name for name in self.spark.read.options(**options).csv(self.path).columns if name]

    @staticmethod
    def _csv_options() -> dict[str, str]:
        """A quote within quotes is doubled (RFC 4180); by default, Spark expects a backslash before it."""
        return {"header": "true", "escape": '"'}


BROKEN: Final = "_likewise_broken"
SOURCE: Final = "_likewise_source"
SEPARATOR_OPTIONS: Final = ("sep", "delimiter")
FILE_OPTIONS: Final = frozenset(
    {
        "cleansource",
        "filenameonly",
        "latestfirst",
        "maxbytespertrigger",
        "maxcachedfiles",
        "maxfileage",
        "maxfilespertrigger",
        "modifiedafter",
        "modifiedbefore",
        "pathglobfilter",
        "recursivefilelookup",
        "sourcearchivedir",
    }
)
"""Options for which files are read and when, not how."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """Turns records into events inside a worker."""

    format: str
    stamp: bool = False
    mapping: RecordMapping | None = None

    @property
    def __name__(self) -> str:
        return "LikewiseEvents"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                yield self._decode(batch.slice(start, _ROWS))

    def _decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        flaws: list[BadRecord] = []
        records = [record or b"" for record in batch.column("record").to_pylist()]
        sources = [source or "<record>" for source in batch.column("source").to_pylist()]
        if self.format in _PARSED and not self.stamp:
            return batch_of(self._lines(records, sources, flaws.append), flaws)
        events: list[Event] = []
        times = instants(batch.column("received")).to_pylist()
        for source, record, time in zip(sources, records, times, strict=True):
            made = self._made(record, source, flaws.append)
            events += (event.stamped(time) for event in made) if self.stamp and time is not None else made
        return batch_of(events, flaws)

    def _made(self, record: bytes, source: str, on_error: OnError) -> Iterable[Event]:
        if self.format in _PARSED:
            return self._lines([record], [source], on_error)
        return self._documents(record, source, on_error)

    def _lines(self, lines: list[bytes], sources: list[str], on_error: OnError) -> Iterator[Event]:
        """One event a line. Line numbers are unknown here: flaws have none, and an event without an id gets a digest of
        its content."""

        def reject(flaw: BadRecord) -> None:
            on_error(BadRecord(sources[flaw.line or 0], None, flaw.reason, flaw.raw, flaw.hint))

        events = decode_lines(
            lines, source=_NAMELESS, first=0, on_error=reject, mapping=self.mapping, format=self.format
        )
        for event in events:
            if event.id.startswith(_NAMELESS):
                at = int(event.id.removeprefix(f"{_NAMELESS}:"))
                named = row_id(sources[at], lines[at].strip().decode(errors="replace"))
                yield Event(named, event.tuples, event.theme, event.start, event.end)
            else:
                yield event

    def _documents(self, record: bytes, source: str, on_error: OnError) -> list[Event]:
        try:
            found = read_source(
                io.BytesIO(record),
                format=self.format,
                name=source,
                mapping=self.mapping,
                on_error=on_error,
                unique_ids=False,
                allow_empty=True,
            )
            return list(found)
        except InputError as flaw:
            on_error(BadRecord(source, flaw.line, flaw.message, record[:_ROWS], flaw.hint))
            return []


def _zones(columns: RecordMapping, session: str) -> str | dict[str, str]:
    """The zones of times without one: those of the mapping, else that of the session."""
    return {"*": session, **columns.zone} if isinstance(columns.zone, Mapping) else columns.zone or session


def _fold(spark: SparkSession) -> Callable[[str], str]:
    return str if spark.conf.get("spark.sql.caseSensitive", "false") == "true" else str.lower


def _guess(path: str, *, deep: bool = False) -> str:
    """The format by the suffix of a file, or by those of the files that Spark reads in a folder."""
    known = "broker" if path.startswith(("postgresql://", "postgres://")) else _suffix_format(path.rstrip("/"))
    folder = Path(path)
    if known is not None and not folder.is_dir():
        return _split(known, folder)
    files = [file for file in folder.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(folder))]
    read = [file for file in files if deep or all("=" in part for part in file.relative_to(folder).parts[:-1])]
    kinds = {kind: file for file in read for kind in (_suffix_format(file.name),) if kind is not None}
    if len(kinds) == 1:
        return _split(*kinds.popitem())
    if known is not None:
        return known
    if "://" not in path and not folder.exists():
        raise InputError("no such file or folder", source=path, hint="check the path")
    if files and not read:
        raise BuildError(f"the files of {path} are in folders within it", hint=_DEEP)
    why = f"the format of {path} is not known from its name" if read or not folder.is_dir() else f"{path} has no files"
    if kinds:
        why = f"{path} has files of several formats: {', '.join(sorted(kinds))}"
    tables = "; for any other table, events_from_columns(spark.read…, mapping)"
    raise BuildError(why, hint=f"give format=, one of {', '.join(FORMATS)}{tables}")


def _split(kind: str, file: Path) -> str:
    """`jsonl` for a `.json` file of lines, as Spark writes them, because lines can be split between tasks."""
    return "jsonl" if kind == "json" and file.is_file() and holds_json_lines(file) else kind


_DEEP: Final = "options={'recursiveFileLookup': 'true'} reads them too"


def _warn_of_folders(path: Path) -> None:
    """Warn of folders within a folder: Spark reads only those that are named like `day=1`."""
    if path.is_dir():
        skipped = sorted(
            inner.name
            for inner in path.iterdir()
            if "=" not in inner.name and not _is_hidden(Path(inner.name)) and inner.is_dir() and any(inner.iterdir())
        )
        if skipped:
            text = f"Spark does not read the folders in {path}: {', '.join(skipped[:3])}; {_DEEP}"
            warnings.warn(text, LikewiseWarning, stacklevel=4)


def _is_hidden(path: Path) -> bool:
    """Whether Spark ignores a file: its name, or that of a folder above it, begins with `.` or `_`."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _suffix_format(name: str) -> str | None:
    name = name.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), None)
