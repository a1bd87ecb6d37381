"""Events packed for the way to workers come out as they went in."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from likewise.events import Event
from likewise.pipeline import EVENTS_SCHEMA, match
from likewise.pipeline.events.frame import batch_of, events_of
from likewise.pipeline.events.transfer import SEPARATOR, packed, unpacked
from likewise.recipe import Recipe

ODD = f"left{SEPARATOR}right"
INTERESTS = "x: {b = true}\ny: {a != one}"
EVENTS = [
    Event("plain", (("a", "1"), ("b", 2)), ("city", "energy"), 1, 1),
    Event("name", ((ODD, "1"), ("b", 2)), (), 2, 2),
    Event("value", (("a", ODD), ("b", True)), ("city",), 3, 4),
    Event("theme", (("a", "1"),), (ODD, "energy"), 5, 5),
    Event("alone", (("a", SEPARATOR),), (), 6, 6),
    Event("last", (("a", ""),), (), 7, 7),
]


@pytest.mark.spark
def test_a_text_with_the_separator_is_not_torn(spark: Any) -> None:
    """The separator is no character, but nobody can forbid it: such events travel unpacked, all in their order."""
    frame = spark.createDataFrame(batch_of(EVENTS).to_pandas(), EVENTS_SCHEMA).coalesce(1)
    (batch,) = packed(frame).toArrow().combine_chunks().to_batches()
    assert list(events_of(unpacked(batch))) == EVENTS
    assert batch.column("whole").is_valid().to_pylist() == [False, True, True, True, True, False]


@pytest.mark.spark
def test_it_matches_as_any_other(spark: Any) -> None:
    frame = spark.createDataFrame(batch_of(EVENTS).to_pandas(), EVENTS_SCHEMA)
    found = match(frame, INTERESTS, with_explanation=False).collect()
    matcher = Recipe.of(INTERESTS).matcher()
    expected = [(each.subscription, event.id) for event in EVENTS for each in matcher.match(event)]
    assert sorted((row["subscription"], row["event_id"]) for row in found) == sorted(expected)
    assert ("y", "value") in expected
