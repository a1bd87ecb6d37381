"""The background on Spark: a sample of the events, taken once by the driver, so that all workers score alike.

Of a batch it is the first events as Spark reads them. A stream has no first events that all its workers know; what a
`Stream` has learned is kept in its checkpoint (`KeptSample`), so that it scores alike after a restart.
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
"""What is known of the stream: `"stream"` is to be learned from its first events, None is nothing."""

SCHEMA: Final = f"attributes {ATTRIBUTES}"


def given_background(known: BackgroundChoice) -> Competitors | Background | None:
    """The background that is given beforehand, if any."""
    if not isinstance(known, str):
        return known
    if known != "stream":
        raise BuildError(f"{known!r} is no background", hint="give Background.of(events), or None for none")
    return None


def informed(recipe: Recipe, events: DataFrame, known: BackgroundChoice = "stream") -> Recipe:
    """The recipe with what the first events say, if that is to be learned and would change any score."""
    if known != "stream" or events.isStreaming or not recipe.learns:
        return recipe
    return replace(recipe, learned=background_of(events))


def background_of(events: DataFrame) -> Background | None:
    """What the first 256 events of a batch say of their stream; nothing if there are less than 64."""
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
    """Lets through the first events of a partition, and reads no further."""

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
    """The first events that are there when a stream starts, if its source can be read without taking from it."""
    from pyspark.errors import AnalysisException

    try:
        there = peek_of(events)
        return [] if there is None else first_events(there)
    except AnalysisException:  # no file yet from which columns could be known
        return []


class KeptSample:
    """The sample of a stream in its checkpoint: a folder for each micro-batch that added to it.

    Before a batch is matched, its first events are added, until there are enough. A batch that is done again finds what
    it added. Spark writes and reads it, so that it lies where the checkpoint lies.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[int, list[Event]] | None = None

    @classmethod
    def begin(
        cls, spark: SparkSession, path: str, *, query: str, first: Callable[[], list[Event]]
    ) -> KeptSample | None:
        """That of a checkpoint; a new one begins with the `first` events, one that began without goes on without."""
        kept = cls(path)
        if not _is_there(spark, path):
            if _is_there(spark, f"{query}/offsets"):
                return None
            kept._add(spark, first(), batch=START)
        return kept

    def start(self, spark: SparkSession) -> Background | None:
        """What was known when the stream began."""
        return _background(self._read(spark).get(START, []))

    def at(self, rows: DataFrame, batch: int) -> Background | None:
        """What is known for a batch: the events of those before, and its own first ones."""
        known = self._before(rows.sparkSession, batch)
        if not self.is_settled(rows.sparkSession, batch):
            own = first_events(rows, MOST_EVENTS - len(known))
            if own:
                self._add(rows.sparkSession, own, batch=batch)
        return _background([*known, *self._read(rows.sparkSession).get(batch, [])])

    def is_settled(self, spark: SparkSession, batch: int) -> bool:
        """Whether a batch has nothing to add, or has added it."""
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
"""Stands for what was there before the first batch."""


def _is_there(spark: SparkSession, path: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return bool(spark.read.text(path).columns)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
