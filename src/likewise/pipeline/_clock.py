"""The clock as a source: rows that carry only a time, so that event time goes on while nothing comes.

Event time moves with events. That is right for what is told again, but a live feed that falls silent would never learn
that something did *not* happen. A heartbeat adds the time of the clock, one to two beats behind it, so that events have
a beat to come in. The offsets of a batch are its ticks, so a batch that is done again has the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from likewise.errors import BuildError
from likewise.pipeline._refusals import microseconds
from likewise.pipeline._routing import STREAM_SCHEMA, RouteTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "likewise-clock"
SCHEMA: Final = "moment bigint"
SECOND: Final = 1_000_000
_ARROW = pa.schema([("moment", pa.int64())])


def beat_of(heartbeat: str) -> int:
    """A heartbeat in microseconds.

    >>> beat_of("10 s")
    10000000
    """
    beat = microseconds(heartbeat)
    assert beat is not None
    if beat < SECOND:
        raise BuildError(f"a heartbeat of {heartbeat} is too short", hint="a second at least, such as `10 seconds`")
    return beat


def tick_rows(spark: SparkSession, heartbeat: str, route: RouteTask) -> DataFrame:
    """Routed rows that tell how far the clock has come, for those who act on time alone, and for the watermark."""
    beat = beat_of(heartbeat)
    spark.dataSource.register(ClockSource)
    ticks = spark.readStream.format(FORMAT).option("beat", str(beat)).load()
    return ticks.mapInArrow(TickTask(route), STREAM_SCHEMA)


class ClockSource(DataSource):
    """Option: `beat`, in microseconds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> ClockReader:  # noqa: ARG002, N802 - Spark's names
        return ClockReader(self.options)


class Tick(InputPartition):
    """A moment, in microseconds."""

    def __init__(self, moment: int) -> None:
        super().__init__(None)
        self.moment = moment


class ClockReader(DataSourceStreamReader):
    """An offset is how many beats there were since 1970, less one.

    >>> reader = ClockReader({"beat": "10000000"}, clock=lambda: 1_000_000_059)
    >>> reader.initialOffset(), [tick.moment for tick in reader.partitions({"beats": 97}, {"beats": 99})]
    ({'beats': 99}, [990000000])
    """

    def __init__(
        self, options: Mapping[str, str], *, clock: Callable[[], int] = lambda: time.time_ns() // 1000
    ) -> None:
        self._beat = int(options["beat"])
        self._clock: Callable[[], int] = clock
        self._since = self._now()

    def __getstate__(self) -> dict[str, Any]:
        # A copy goes to every worker, which only unpacks a tick.
        return {"_beat": self._beat}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """A new query begins now."""
        return {"beats": self._now()}

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:  # noqa: ARG002, N802
        """The beats so far. Started again, it waits for a whole beat: what came meanwhile goes first."""
        now = self._now()
        return {"beats": max(start["beats"], now)} if now > self._since + 1 else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Tick]:  # noqa: ARG002
        """Only the last beat counts."""
        return [Tick(end["beats"] * self._beat)]

    def read(self, partition: Tick) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """The tick."""
        yield pa.RecordBatch.from_pydict({"moment": [partition.moment]}, schema=_ARROW)

    def _now(self) -> int:
        return self._clock() // self._beat - 1


@dataclass(frozen=True, slots=True)
class TickTask:
    """Sends the time to where a routed event would tell it."""

    route: RouteTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield self.route.tell_time(pc.max(batch.column("moment")).as_py())
