"""Matching on Spark gives what the matcher gives in process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import BuildError, LikewiseError
from likewise.events import Event, columns_of_batch
from likewise.language import parse
from likewise.matching import Matcher
from likewise.pipeline.events.frame import batch_of
from likewise.pipeline.matching import ScoreTask, match, shown
from likewise.recipe import Recipe

SUBSCRIPTIONS = """
warm: {temperature > 20}
galway: {city = Galway, type = parking}
narrow: {temperature in [10, 20)}
free: {free = true}
"""
WORDS = st.sampled_from(["Galway", "galway", "parking", "Cork", "true", "1"])
VALUES = st.one_of(WORDS, st.integers(0, 30), st.booleans(), st.floats(0, 30))
EVENTS = st.lists(
    st.builds(
        lambda pairs, theme: Event("e", tuple(pairs), tuple(dict.fromkeys(theme)), 5, 5),
        st.lists(st.tuples(st.sampled_from(["city", "type", "temperature", "free"]), VALUES), min_size=1, max_size=5),
        st.lists(st.sampled_from(["city", "energy"]), max_size=2),
    ),
    max_size=6,
)


@settings(deadline=None)
@given(EVENTS)
def test_columns_give_the_numbers_that_events_give(events: list[Event]) -> None:
    """The way through Arrow and the way through event objects number the same tuples alike."""
    matcher = Matcher()
    mine, theirs = matcher.encode(columns_of_batch(batch_of(events))), matcher.encode(events)
    assert mine.ids.tolist() == theirs.ids.tolist()
    assert mine.starts.tolist() == theirs.starts.tolist()
    assert [matcher.vocabulary.themes[at] for at in mine.themes] == [
        matcher.vocabulary.themes[at] for at in theirs.themes
    ]


def expected(events: list[Event], text: str = SUBSCRIPTIONS) -> list[tuple[Any, ...]]:
    matcher = Matcher()
    for subscription in parse(text):
        matcher.add(subscription.body, options=subscription.options, key=subscription.name)
    return sorted(
        (event.id, found.subscription, found.score, found.mapping.probability)
        for event, row in zip(events, matcher.match_batch(events), strict=True)
        for found in row
    )


def some_events(count: int) -> list[Event]:
    rng = random.Random(count)
    return [
        Event(
            f"e{number}",
            (
                ("temperature", rng.randrange(30)),
                ("city", rng.choice(["Galway", "Cork"])),
                ("type", rng.choice(["parking", "bus"])),
                ("free", rng.random() < 0.5),
            ),
            (),
            number,
            number,
        )
        for number in range(count)
    ]


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((row["event_id"], row["subscription"], row["score"], row["probability"]) for row in frame.collect())


@pytest.mark.spark
def test_a_frame_of_matches_equals_the_matcher(spark: Any) -> None:
    events = some_events(300)
    frame = spark.createDataFrame(batch_of(events).to_pandas(), _schema())
    found = match(frame.repartition(3), SUBSCRIPTIONS)
    assert rows_of(found) == expected(events)
    row = found.where("subscription = 'narrow'").orderBy("time").first()
    (entry,) = row["mapping"]
    assert (entry["attribute"], entry["event_attribute"], entry["value"]) == ("temperature", "temperature", "[10, 20)")
    assert 10 <= int(entry["event_value"]) < 20
    assert (entry["similarity"], entry["probability"]) == (1.0, 1.0)


def _schema() -> str:
    from likewise.pipeline.events.frame import EVENTS_SCHEMA

    return EVENTS_SCHEMA


@pytest.mark.spark
def test_without_explanations_the_matches_are_the_same(spark: Any) -> None:
    events = some_events(300)
    frame = spark.createDataFrame(batch_of(events).to_pandas(), _schema()).repartition(2)
    plain, explained = (match(frame, SUBSCRIPTIONS, with_explanation=explain) for explain in (False, True))
    assert plain.schema == explained.schema
    assert _scores(plain) == _scores(explained)
    assert plain.where("probability is not null or mapping is not null").isEmpty()


def _scores(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((row["event_id"], row["time"], row["subscription"], row["score"]) for row in frame.collect())


def test_every_event_is_told_once_with_all_its_scores() -> None:
    events = [Event.of({"temperature": 25, "free": True}, id="a"), Event.of({"x": 1}, id="b"), *some_events(3)]
    (batch,) = ScoreTask(Recipe.of(SUBSCRIPTIONS))([batch_of(events)])
    first = batch.to_pylist()[0]
    assert (first["event_id"], first["subscription"], first["score"]) == ("a", [0, 3], [1.0, 1.0])
    assert "b" not in batch.column("event_id").to_pylist()


def test_subscriptions_come_from_text_or_file(tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.lw"
    file.write_text(SUBSCRIPTIONS)
    assert Recipe.of(file).subscriptions == Recipe.of(SUBSCRIPTIONS).subscriptions == Recipe.of(str(file)).subscriptions
    with pytest.raises(BuildError, match="cannot read"):
        Recipe.of(tmp_path / "missing.lw")


BAD = ["x: {a~ = b~} approach approximate", "x: {a = b} approach nonsense", "x: ({a = b} as c; {d = e} as f)10s"]


@pytest.mark.spark
@pytest.mark.parametrize("text", BAD)
def test_mistakes_show_when_the_job_is_built(spark: Any, text: str) -> None:
    """Approximation without a space, an unknown approach, a pattern where a profile belongs."""
    frame = spark.createDataFrame([("a", {"type": "x"})], "id string, attributes map<string, string>")
    with pytest.raises(LikewiseError):
        match(frame, text)


def test_a_range_is_shown_as_it_is_written() -> None:
    (subscription,) = parse("x: {a in (1, 2.5]}")
    assert shown(subscription.body.predicates[0].value) == "(1, 2.5]"
