"""The data set at any size: events by number, truth by construction."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from tests.evaluation.tiny import tiny

from likewise.evaluation.datasets.expansion import slots
from likewise.evaluation.datasets.job import ExpandTask, expand_on_spark, truth_of
from likewise.evaluation.datasets.thematic import relevant
from likewise.pipeline.events.frame import events_of


@pytest.mark.parametrize("degree", [0.0, 0.5, 1.0])
def test_truth_is_that_of_the_set_in_memory(degree: float) -> None:
    data = tiny().approximated(degree)
    task = ExpandTask.of(data)
    made = [task.make(number) for number in range(300)]
    same = replace(data, events=tuple(event for event, _, _ in made), origins=tuple(origin for _, origin, _ in made))
    wanted = [set() for _ in made]
    for subscription, profile in zip(data.subscriptions, data.profiles, strict=True):
        for at in relevant(profile, same).nonzero()[0]:
            wanted[at].add(subscription.name)
    assert [set(names) for _, _, names in made] == wanted
    assert any(wanted)


def test_terms_are_replaced_as_often_as_the_recipe_says_by_what_may_stand_for_them() -> None:
    """Every event has its seed's tuples in order, each term or one of its variants; all variants occur."""
    data = tiny()
    table = pa.Table.from_batches(ExpandTask.of(data)([pa.record_batch({"id": pa.array(range(4_000))})]))
    seen: dict[tuple[int, int], Counter[str]] = {}
    for event, origin in zip(events_of(table), table["origin"].to_pylist(), strict=True):
        for at, term in enumerate(term for pair in event.tuples for term in pair):
            seen.setdefault((origin, at), Counter())[term] += 1
    assert {origin for origin, _ in seen} == set(range(len(data.seeds)))
    shares = []
    for origin, seed in enumerate(data.seeds):
        for at, (role, term) in enumerate(slots(seed)):
            others = data.expansion.of(role, term)
            assert set(seen[origin, at]) == {term, *others}
            if others:
                shares.append(1 - seen[origin, at][term] / seen[origin, at].total())
    assert abs(sum(shares) / len(shares) - data.recipe.replace) < 0.05


def test_an_event_depends_on_nothing_but_its_number() -> None:
    task = ExpandTask.of(tiny())
    assert task.make(17) == ExpandTask.of(tiny()).make(17)
    assert len({task.make(number)[0].tuples for number in range(50)}) > 10


@pytest.mark.spark
def test_the_job_gives_the_same_in_any_partitions(spark: Any) -> None:
    data = tiny()
    made = expand_on_spark(spark, data, 500, theme=["city"])
    task = ExpandTask.of(data, theme=("city",))
    rows = {row["id"]: (row["origin"], row["relevant"]) for row in made.collect()}
    events = [task.make(number) for number in range(500)]
    assert rows == {event.id: (origin, relevant) for event, origin, relevant in events}
    assert truth_of(made).count() == sum(len(relevant) for _, relevant in rows.values())
