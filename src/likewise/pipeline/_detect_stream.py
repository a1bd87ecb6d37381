"""Detection over a stream: the detector's state is kept in Spark's state store, event-time timers move it on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from likewise.composite import Detection, Detector
from likewise.pipeline._detect import make_detector, member_rows
from likewise.pipeline._routes import BUCKETS
from likewise.pipeline._routing import Members, batch_number, event_of
from likewise.pipeline._table import Source
from likewise.pipeline._worker import Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATIENCE: Final = 1 << 60
"""The detector's own lateness: it must wait for Spark's watermark and never decide by itself."""

ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE: Final = "snapshot binary, timer bigint"
NUMBERS: Final = (
    "pattern string, time bigint, start bigint, `end` bigint, probability double, "
    "events array<struct<role: string, id: string, start: bigint, `end`: bigint>>"
)
"""The rows of the state machine: moments as microseconds, which no time zone can bend on the way through Python."""


class DetectProcessor(StatefulProcessor):
    """One pattern at one place: events wait in the detector until the watermark has passed them."""

    def __init__(self, source: Source, buckets: int = BUCKETS) -> None:
        self._source = source
        self._buckets = buckets

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._state = handle.getValueState("detector", STATE)
        self._batch: tuple[Recipe, Members] | None = None

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take the events of a batch, then go as far as the watermark allows."""
        pattern, version, place = key
        if not pattern or not self._current(pattern, version):
            return
        detector, timer = self._load(pattern)
        detector.publish_batch([event_of(row["at"], row["event"]) for row in rows])
        yield from self._advance(detector, timer, pattern=pattern, place=place, times=timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """The watermark has come to something that waits."""
        pattern, version, place = key
        if not self._current(pattern, version):
            return
        detector, _ = self._load(pattern)
        yield from self._advance(detector, None, pattern=pattern, place=place, times=timerValues)

    def close(self) -> None:
        """Nothing is held outside the state."""

    def _parts(self) -> tuple[Recipe, Members]:
        if self._batch is None:
            recipe = self._source.recipe(batch_number())
            self._batch = recipe, Members.of(recipe, buckets=self._buckets)
        return self._batch

    def _current(self, pattern: str, version: str) -> bool:
        """Whether the pattern is still as it was; one that was changed or removed leaves no state behind."""
        if self._parts()[1].versions.get(pattern) == version:
            return True
        if self._state.exists():
            self._state.clear()
        return False

    def _load(self, pattern: str) -> tuple[Detector, int | None]:
        recipe, _ = self._parts()
        state = self._state.get() if self._state.exists() else None
        if state is None:
            return make_detector(recipe, pattern, lateness=PATIENCE), None
        snapshot, timer = state
        matcher = recipe.bare_matcher()
        return Detector.restore(bytes(snapshot), matcher=matcher, measure=matcher.measure), timer

    def _advance(self, detector: Detector, timer: int | None, *, pattern: str, place: int, times: Any) -> Iterator[Row]:
        watermark = times.getCurrentWatermarkInMs()
        due = detector.due
        found = detector.advance(watermark * 1000) if due is not None and due <= watermark * 1000 else []
        self._save(detector, timer, watermark)
        (route,) = (route for route in self._parts()[1].routes if route.pattern == pattern)
        for each in found:
            if route.owns(place, zip(each.names, each.members, strict=True)):
                yield detection_row(each)

    def _save(self, detector: Detector, timer: int | None, watermark: int) -> None:
        due = detector.due
        # Timers are in milliseconds and ring once the watermark has reached them.
        wanted = None if due is None else max(-(-due // 1000), watermark + 1)
        if wanted != timer:
            if timer is not None and timer > watermark:
                self._handle.deleteTimer(timer)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        self._state.update((detector.snapshot(), wanted))


def detection_row(found: Detection) -> Row:
    """A detection as a row of `NUMBERS`."""
    members = [Row(**member) for member in member_rows(found)]
    return Row(
        pattern=found.pattern,
        time=found.time,
        start=found.start,
        end=found.end,
        probability=found.probability,
        events=members,
    )


def detect_stream(routed: DataFrame, processor: DetectProcessor, *, delay: str) -> DataFrame:
    """Detections of routed events, with the columns of a batch job."""
    from pyspark.sql import functions as F  # noqa: N812

    # The only store that has timers and more state than memory.
    routed.sparkSession.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    found = (
        routed.withWatermark("end", delay)
        .groupBy("pattern", "version", "place")
        .transformWithState(processor, outputStructType=NUMBERS, outputMode="Append", timeMode="EventTime")
    )
    events = F.transform(
        "events",
        lambda each: F.struct(
            each["role"].alias("role"),
            each["id"].alias("id"),
            F.timestamp_micros(each["start"]).alias("start"),
            F.timestamp_micros(each["end"]).alias("end"),
        ),
    )
    times = [F.timestamp_micros(name).alias(name) for name in ("time", "start", "end")]
    return found.select("pattern", *times, "probability", events.alias("events"))
