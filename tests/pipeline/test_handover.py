"""Events reach the workers by the shortest way, and workers keep what they made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.pipeline.traces import trace, write_files

from likewise.pipeline import match, read_events
from likewise.pipeline.events.transfer import over_events
from likewise.recipe import Recipe

INTERESTS = "x: {type = a}\ny: {room = r1}"


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


@pytest.mark.spark
def test_lines_are_decoded_and_matched_in_one_step(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(60), size=30)
    events = read_events(spark, tmp_path / "in", format="jsonl")
    direct, by_rows = match(events, INTERESTS), match(events.select("*"), INTERESTS)
    assert (plan_of(direct).count("MapInArrow"), plan_of(by_rows).count("MapInArrow")) == (1, 2)
    assert sorted(map(str, direct.collect())) == sorted(map(str, by_rows.collect()))


@pytest.mark.spark
def test_what_is_held_in_memory_is_not_read_again(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(10), size=10)
    events = read_events(spark, tmp_path / "in", format="jsonl").cache()
    try:
        assert "InMemoryRelation" in str(match(events, INTERESTS)._jdf.queryExecution().withCachedData().toString())
    finally:
        events.unpersist()


def whereabouts(recipe: Recipe) -> Any:
    """A step that tells in which process it ran and which matcher it got there."""

    def step(batches: Iterable[Any]) -> Iterator[Any]:
        import os

        import pyarrow as pa

        found = recipe.matcher()
        for _ in batches:
            yield pa.record_batch({"process": pa.array([os.getpid()]), "matcher": pa.array([id(found)])})

    return step


WHEREABOUTS = "process bigint, matcher bigint"


@pytest.mark.spark
def test_a_worker_makes_its_matcher_once_for_all_tasks_and_jobs(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(80), size=10)
    events = read_events(spark, tmp_path / "in", format="jsonl").repartition(8)
    seen = []
    for _ in range(2):
        # Read anew each time, as a stream reads its table.
        seen += over_events(events, whereabouts(Recipe.of(INTERESTS)), WHEREABOUTS).collect()
    made = {(row["process"], row["matcher"]) for row in seen}
    assert len(seen) == 16
    assert len(made) == len({process for process, _ in made}) < 8


@pytest.mark.spark
def test_a_worker_keeps_its_matcher_from_one_micro_batch_to_the_next(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", trace(60), size=10)
    events = read_events(spark, tmp_path / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
    rows: list[Any] = []
    frame = over_events(events, whereabouts(Recipe.of(INTERESTS)), WHEREABOUTS)
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    made = {(row["process"], row["matcher"]) for row in rows}
    assert len(rows) == 6
    assert len(made) == len({process for process, _ in made}) < 6
