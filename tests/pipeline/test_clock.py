"""The clock as a source: behind by a beat, patient after a start, and the same again for a batch done again."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyspark")

from likewise.errors import BuildError
from likewise.pipeline import microseconds
from likewise.pipeline.detection.batch import SECOND, DetectOptions
from likewise.pipeline.detection.stream import ClockReader


class Watch:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return int(self.seconds * SECOND)


def moments(reader: ClockReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    parts = reader.partitions(start, end)
    return [row["moment"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_time_is_told_one_to_two_beats_behind_the_clock() -> None:
    watch = Watch(1000)
    reader = ClockReader({"beat": str(10 * SECOND)}, clock=watch)
    start = reader.initialOffset()
    for seconds, tick in ((1020, 1010), (1029.9, 1010), (1030, 1020), (1075, 1060)):
        watch.seconds = seconds
        assert moments(reader, start, reader.latestOffset(start)) == [tick * SECOND]


def test_started_again_it_leaves_a_whole_beat_to_what_came_meanwhile() -> None:
    watch = Watch(5009)
    reader = ClockReader({"beat": str(10 * SECOND)}, clock=watch)
    before = {"beats": 99}
    for seconds in (5009, 5010, 5019):
        watch.seconds = seconds
        assert reader.latestOffset(before) == before
    watch.seconds = 5020
    assert moments(reader, before, reader.latestOffset(before)) == [5010 * SECOND]


def test_a_clock_that_is_put_back_does_not_turn_time_back() -> None:
    watch = Watch(1000)
    reader = ClockReader({"beat": str(10 * SECOND)}, clock=watch)
    watch.seconds = 1030
    start = reader.latestOffset(reader.initialOffset())
    watch.seconds = 900
    assert reader.latestOffset(start) == start


def test_a_copy_in_a_worker_reads_a_batch_as_it_was() -> None:
    reader = ClockReader({"beat": str(10 * SECOND)}, clock=Watch(1000))
    (tick,) = reader.partitions({"beats": 3}, {"beats": 7})
    copy = pickle.loads(pickle.dumps(reader))
    assert [batch.to_pydict() for batch in copy.read(tick)] == [{"moment": [70 * SECOND]}]


def test_a_heartbeat_is_a_second_at_least() -> None:
    with pytest.raises(BuildError, match="too short"):
        DetectOptions(heartbeat=microseconds("900 ms"))
    with pytest.raises(BuildError, match="not a length of time"):
        microseconds("often")
