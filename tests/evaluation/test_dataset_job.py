"""The data set at any size: events by number, truth by construction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.evaluation.tiny import tiny

from likewise.evaluation.dataset_job import ExpandTask, expand_on_spark, truth_of
from likewise.evaluation.thematic_dataset import relevant


@pytest.mark.parametrize("degree", [0.0, 0.5, 1.0])
def test_truth_is_that_of_the_set_in_memory(degree: float) -> None:
    data = tiny().approximated(degree)
    task = ExpandTask.of(data)
    made = [task.make(number) for number in range(300)]
    same = replace(data, events=tuple(event for event, _ in made), origins=tuple(origin for _, origin in made))
    wanted = [set() for _ in made]
    for subscription, profile in zip(data.subscriptions, data.profiles, strict=True):
        for at in relevant(profile, same).nonzero()[0]:
            wanted[at].add(subscription.name)
    assert [set(task.relevant(event, origin)) for event, origin in made] == wanted
    assert any(wanted)


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
    assert rows == {event.id: (origin, task.relevant(event, origin)) for event, origin in events}
    assert truth_of(made).count() == sum(len(relevant) for _, relevant in rows.values())
