"""The log of a broker as a Spark source, batch and stream: `read_events(spark, "broker.sqlite3")`.

It reads the events of one namespace from the table `records` of the broker's database, SQLite or PostgreSQL, while the
broker goes on writing. Positions grow with every commit and are never used again, so they are the offsets of a stream.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from likewise.errors import InputError, MissingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "likewise-broker"
SCHEMA: Final = "record binary, source string, received timestamp_ltz"
_ARROW = pa.schema([("record", pa.binary()), ("source", pa.string()), ("received", pa.timestamp("us", tz="UTC"))])
_PART: Final = 50_000
"""Positions in one partition."""
_ROWS: Final = 5_000
_EVENT: Final = 0
"""The kind of records that are events; others are changes of subscriptions and ticks of the clock."""


def read_broker_log(
    spark: SparkSession, database: str, *, namespace: str = "default", stream: bool = False
) -> DataFrame:
    """The events of a namespace, with the columns `record`, `source` and `received` of `decode_records`."""
    LogTable(database, namespace).last()  # errors are reported now, not by a worker
    spark.dataSource.register(BrokerLogSource)
    reader: Any = spark.readStream if stream else spark.read
    found: DataFrame = reader.format(FORMAT).options(database=database, namespace=namespace).load()
    return found


class LogTable:
    """The table of a broker's log; each query has its own connection."""

    def __init__(self, database: str, namespace: str) -> None:
        self._database, self._namespace = database, namespace

    def last(self) -> int:
        """The last position that is stored."""
        [(found,)] = self._rows("SELECT max(position) FROM records", ())
        return int(found or 0)

    def first(self) -> int:
        """The first position that retention has not deleted."""
        [(found,)] = self._rows("SELECT min(position) FROM records", ())
        return int(found or 1)

    def bodies(self, after: int, up_to: int) -> Iterator[list[tuple[bytes, int]]]:
        """Events beyond one position up to another, with their times of arrival."""
        query = (
            "SELECT position, body, received FROM records WHERE position > ? AND position <= ? AND kind = ? "
            f"AND namespace = ? ORDER BY position LIMIT {_ROWS}"
        )
        while rows := self._rows(query, (after, up_to, _EVENT, self._namespace)):
            yield [(bytes(body), received) for _, body, received in rows]
            after = rows[-1][0]

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if is_postgres(self._database):
            return self._postgres_rows(query.replace("?", "%s"), values)
        path = Path(self._database)
        if not path.exists():
            raise InputError(
                "there is no broker's database", source=str(path), hint="it is broker.sqlite3 in its folder"
            )
        try:
            with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise InputError(
                f"not a broker's database: {error}", source=str(path), hint="give broker.sqlite3"
            ) from None

    def _postgres_rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        import psycopg

        try:
            with psycopg.connect(self._database) as connection:
                return connection.execute(query, values).fetchall()
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise MissingError(f"the broker's database cannot be read: {reason}", hint="check the URL") from None


def is_postgres(database: str) -> bool:
    """Whether a database is a PostgreSQL server."""
    return database.startswith(("postgresql://", "postgres://"))


class BrokerLogSource(DataSource):
    """Options: `database` (a file or a URL) and `namespace`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> BrokerLogReader:  # noqa: ARG002 - Spark's signature
        return BrokerLogReader(self.options)

    def streamReader(self, schema: StructType) -> BrokerLogStream:  # noqa: ARG002 - Spark's signature
        return BrokerLogStream(self.options)


class PositionRange(InputPartition):
    """Positions beyond one up to another."""

    def __init__(self, after: int, up_to: int) -> None:
        super().__init__(None)
        self.after, self.up_to = after, up_to


def _ranges(after: int, up_to: int) -> list[PositionRange]:
    return [PositionRange(low, min(low + _PART, up_to)) for low in range(after, up_to, _PART)]


def _read(options: Mapping[str, str], partition: PositionRange) -> Iterator[pa.RecordBatch]:
    table = LogTable(options["database"], options["namespace"])
    for rows in table.bodies(partition.after, partition.up_to):
        bodies, received = zip(*rows, strict=True)
        columns = [list(bodies), ["broker"] * len(rows), list(received)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


class BrokerLogReader(DataSourceReader):
    """All events that exist when the query starts."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options.items())

    def partitions(self) -> list[PositionRange]:
        """Ranges of positions, the same number for all but the last."""
        table = LogTable(self._options["database"], self._options["namespace"])
        return _ranges(table.first() - 1, table.last())

    def read(self, partition: PositionRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # its own kind of partition
        """The events of a range, as Arrow columns."""
        return _read(self._options, partition)


class BrokerLogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the log; an offset is the last position that was taken."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options.items())
        self._end: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """A new query begins with the oldest event."""
        return {"position": self._table().first() - 1}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:  # noqa: ARG002 - Spark's signature
        """The last position by now."""
        last = self._table().last() if self._end is None else self._end
        return {"position": max(last, start["position"])}

    def prepareForTriggerAvailableNow(self) -> None:
        """Read up to the current end, and no further."""
        self._end = self._table().last()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[PositionRange]:
        """The ranges of a batch."""
        return _ranges(start["position"], end["position"])

    def read(self, partition: PositionRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # its own kind of partition
        """The events of a range, as Arrow columns."""
        return _read(self._options, partition)

    def _table(self) -> LogTable:
        return LogTable(self._options["database"], self._options["namespace"])
