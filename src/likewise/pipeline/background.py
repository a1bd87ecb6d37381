"""The background on Spark: a sample of the events, taken once by the driver, so that all workers score alike.

The sample of a batch is its first events as Spark reads them. Workers of a stream share no first events, so a `Stream`
stores its sample in the checkpoint (`KeptSample`) and scores alike after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from likewise.errors import BuildError
from likewise.events import Event
from likewise.matching import MOST_EVENTS, Background, StreamSample
from likewise.pipeline.events.frame import ARROW_SCHEMA, ATTRIBUTES, batch_of, events_of
from likewise.pipeline.events.transfer import Batches, over_events, peek_of
from likewise.recipe import Recipe
from likewise.semantics import Competitors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BackgroundChoice: TypeAlias = Competitors | Background | Literal["stream"] | None
"""The background of scores: `"stream"` samples the first events of the stream, None uses no background."""

SCHEMA: Final = f"attributes {ATTRIBUTES}"


def given_background(known: BackgroundChoice) -> Competitors | Background | None:
    """The background that is given beforehand, if any."""
    if not isinstance(known, str):
        return known
    if known != "stream":
        raise BuildError(f"{known!r} is no background", hint="give Background.of(events), or None for none")
    return None


def informed(recipe: Recipe, events: DataFrame, known: BackgroundChoice = "stream") -> Recipe:
    """The recipe with a background sampled from the first events, if one is wanted and would change any score."""
    if known != "stream" or events.isStreaming or not recipe.learns:
        return recipe
    return replace(recipe, learned=background_of(events))


def background_of(events: DataFrame) -> Background | None:
    """The background sampled from the first 256 events of a batch; None if there are fewer than 64."""
    return _background(first_events(events))


def _background(events: Sequence[Event]) -> Background | None:
    sample = StreamSample(events, known=True)
    return sample.background() if sample.size else None


def first_events(events: DataFrame, count: int = MOST_EVENTS) -> list[Event]:
    """The first events in the order in which Spark reads them, without ids and times; no more than needed is read."""
    rows = over_events(events, FirstEvents(count), SCHEMA, name="LikewiseSample").take(count)
    return _events(row.asDict(recursive=True) for row in rows)


def _events(rows: Iterator[Mapping[str, Any]]) -> list[Event]:
    records = [{"id": "", "attributes": row["attributes"]} for row in rows]
    return list(events_of(pa.RecordBatch.from_pylist(records, schema=ARROW_SCHEMA)))


@dataclass(frozen=True, slots=True)
class FirstEvents:
    """Passes on the first events of a partition, and reads no further."""

    count: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        left = self.count
        for batch in batches:
            yield batch_of(events_of(batch.slice(0, left))).select(["attributes"])
            left -= batch.num_rows
            if left <= 0:
                return


# Streams.


def peeked(events: DataFrame) -> list[Event]:
    """The first events that exist when a stream starts, if its source can be read as a batch."""
    from pyspark.errors import AnalysisException

    try:
        there = peek_of(events)
        return [] if there is None else first_events(there)
    except AnalysisException:  # no file yet, so the columns are unknown
        return []


class KeptSample:
    """The sample of a stream in its checkpoint: a folder for each micro-batch that added to it.

    Before a batch is matched, its first events are added, until there are enough. A repeated batch finds the events
    that it added before. Spark writes and reads the folders, so that they may be on any storage that the checkpoint
    may be on.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[int, list[Event]] | None = None

    @classmethod
    def begin(
        cls, spark: SparkSession, path: str, *, query: str, first: Callable[[], list[Event]]
    ) -> KeptSample | None:
        """The sample of a checkpoint: a new one starts with the `first` events, an old one may have none."""
        kept = cls(path)
        if not _is_there(spark, path):
            if _is_there(spark, f"{query}/offsets"):
                return None
            kept._add(spark, first(), batch=START)
        return kept

    def start(self, spark: SparkSession) -> Background | None:
        """The background when the stream was started for the first time."""
        return _background(self._read(spark).get(START, []))

    def at(self, rows: DataFrame, batch: int) -> Background | None:
        """The background for a batch: from the sampled events of earlier batches and its own first ones."""
        known = self._before(rows.sparkSession, batch)
        if not self.is_settled(rows.sparkSession, batch):
            own = first_events(rows, MOST_EVENTS - len(known))
            if own:
                self._add(rows.sparkSession, own, batch=batch)
        return _background([*known, *self._read(rows.sparkSession).get(batch, [])])

    def is_settled(self, spark: SparkSession, batch: int) -> bool:
        """Whether the sample needs nothing more from a batch."""
        return batch in self._read(spark) or len(self._before(spark, batch)) >= MOST_EVENTS

    def _before(self, spark: SparkSession, batch: int) -> list[Event]:
        known = self._read(spark)
        return [event for number in sorted(known) if number < batch for event in known[number]]

    def _add(self, spark: SparkSession, events: Sequence[Event], *, batch: int) -> None:
        attributes = batch_of(events).select(["attributes"])
        rows = spark.createDataFrame(attributes.to_pylist(), SCHEMA).coalesce(1)
        rows.write.mode("overwrite").json(f"{self._path}/batch={batch}")
        self._known = {**(self._known or {}), batch: list(events)}

    def _read(self, spark: SparkSession) -> dict[int, list[Event]]:
        if self._known is None:
            rows = spark.read.schema(f"{SCHEMA}, batch int").json(self._path).collect()
            records = [row.asDict(recursive=True) for row in rows]
            numbers = {row["batch"] for row in records}
            self._known = {number: _events(row for row in records if row["batch"] == number) for number in numbers}
        return self._known


START: Final = -1
"""The batch number of events that were sampled before the first batch."""


def _is_there(spark: SparkSession, path: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return bool(spark.read.text(path).columns)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
