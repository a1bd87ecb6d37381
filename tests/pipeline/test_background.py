"""What the first events of a stream say, on Spark: the same for all workers, and after a restart."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from likewise.engine import Engine
from likewise.errors import LikewiseError
from likewise.events import Event, encode_line
from likewise.matching import MOST_EVENTS, Background, Matcher
from likewise.pipeline import FileSink, FixedRecipe, Places, Stream, background_of, match, read_events
from likewise.pipeline.background import KeptSample, first_events
from likewise.pipeline.events.frame import batch_of
from likewise.recipe import Recipe

pytestmark = pytest.mark.spark

SINGLE = "lift: {device~ = lift~, place~ = entrance hall~} threshold 0.01"
PAIR = "pair: {device~ = lift~} as x then {device = lamp} as y within 5 seconds threshold 0.01"
DEVICES = ("elevator", "lamp", "water pump", "escalator", "door")
PLACES = ("hall", "lobby", "cellar")
NOW = {"availableNow": True}


def made(count: int, *, start: int = 0) -> list[Event]:
    """Events of a house, a second apart."""
    return [
        Event(
            f"e{at:04}",
            (("device", DEVICES[at * at % 5]), ("place", PLACES[at % 3 if at < 150 else 0]), ("load", at % 7)),
            (),
            at * 1_000_000,
            at * 1_000_000,
        )
        for at in range(start, start + count)
    ]


def frame(spark: Any, events: list[Event]) -> Any:
    return spark.createDataFrame(pa.Table.from_batches([batch_of(events)])).coalesce(1)


def scored(events: list[Event], background: Background | None) -> Counter[Any]:
    """What the matcher in one process says."""
    (subscription,) = Recipe.of(SINGLE).subscriptions
    matcher = Matcher(background=background)
    matcher.add(subscription.body, options=subscription.options)
    return Counter((event.id, found.score) for event in events for found in matcher.match(event))


def scores_in(rows: Any) -> Counter[Any]:
    return Counter((row["event_id"], row["score"]) for row in rows.collect())


def write(folder: Path, name: str, events: list[Event], *, at: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"".join(map(encode_line, events)))
    os.utime(folder / name, (10**9 + at, 10**9 + at))


def test_a_batch_learns_from_its_first_events(spark: Any) -> None:
    events = made(300)
    engine = Engine()
    engine.subscribe(SINGLE)
    engine.learn_background(events)
    wanted = Counter(
        (notification.event.id, notification.score)
        for notification in engine.publish_batch(events)
        if notification.match is not None
    )
    given = frame(spark, events)
    assert background_of(given) == Background.of(events, limit=MOST_EVENTS)
    assert scores_in(match(given, SINGLE)) == wanted == scored(events, Background.of(events))
    assert scores_in(match(given, SINGLE, background=None)) == scored(events, None) != wanted
    few = frame(spark, events[:63])
    assert background_of(few) is None
    assert scores_in(match(few, SINGLE)) == scored(events[:63], None)


def test_only_what_goes_by_evidence_is_looked_at(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        pytest.fail("a job ran for nothing")

    monkeypatch.setattr("likewise.pipeline.background.first_events", refuse)
    given = frame(spark, made(70))
    match(given, "plain: {device = lamp}")
    match(given, SINGLE, background=None)
    match(given, SINGLE, background=Background.of(made(70)))
    with pytest.raises(LikewiseError, match="no background"):
        match(given, SINGLE, background="strem")  # type: ignore[arg-type]  # a mistake of the caller


def test_many_subscriptions_learn_too() -> None:
    assert Recipe.of("\n".join(f"s{at}: {{device~ = lamp {at}~}}" for at in range(1100))).learns


def test_types_survive_the_sample(spark: Any) -> None:
    events = [Event("e", (("a", 1), ("a", 1.5), ("b", True), ("c", "1")))]
    (found,) = first_events(frame(spark, events))
    assert [(name, type(value), value) for name, value in found.tuples] == [
        ("a", int, 1),
        ("a", float, 1.5),
        ("b", bool, True),
        ("c", str, "1"),
    ]


def test_matches_of_a_stream_learn_from_the_first_batches_and_keep_that(spark: Any, tmp_path: Path) -> None:
    parts = [made(100), made(120, start=100), made(60, start=220)]
    events = [event for part in parts for event in part]
    inbox, checkpoint = tmp_path / "in", str(tmp_path / "state")
    write(inbox, "0.jsonl", parts[0], at=0)
    write(inbox, "1.jsonl", parts[1], at=1)

    def run() -> None:
        read = read_events(spark, inbox, format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
        sink = FileSink(str(tmp_path / "out"))
        stream = Stream(read, FixedRecipe(Recipe.of(SINGLE)), sink, checkpoint, trigger=NOW)
        stream.start().awaitTermination()

    run()
    write(inbox, "2.jsonl", parts[2], at=2)
    run()
    out = {at: scores_in(spark.read.parquet(str(tmp_path / "out" / f"batch={at}"))) for at in range(3)}
    known = [events[:100], events[:220], events[:256]]
    assert out == {at: scored(part, Background.of(known[at])) for at, part in enumerate(parts)}
    # A batch that is done again has what it had, though more is known by now.
    kept = KeptSample(Places(checkpoint).background)
    assert kept.at(frame(spark, parts[1]), 1) == Background.of(events[:220])


@pytest.mark.slow
def test_detections_keep_what_the_stream_knew_when_it_began(spark: Any, tmp_path: Path) -> None:
    events = made(200)
    inbox, checkpoint = tmp_path / "in", str(tmp_path / "state")
    write(inbox, "0.jsonl", events[:120], at=0)

    def run(**options: Any) -> None:
        read = read_events(spark, inbox, format="jsonl", stream=True)
        sink = FileSink(str(tmp_path / "out"))
        Stream(
            read, FixedRecipe(Recipe.of(PAIR)), sink, checkpoint, trigger=NOW, buckets=1, **options
        ).start().awaitTermination()

    run()
    write(inbox, "1.jsonl", events[120:], at=1)
    with pytest.raises(Exception, match="background"):
        run(background=None)
    run()
    engine = Engine(background=Background.of(events[:120]))
    engine.subscribe(PAIR)
    wanted = Counter(
        (tuple(event.id for event in sent.detection.members), sent.detection.probability)
        for sent in engine.publish_batch(events)
        if sent.detection is not None
    )
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert wanted
    assert Counter((tuple(member["id"] for member in row["events"]), row["probability"]) for row in rows) == wanted


def test_a_checkpoint_that_began_without_goes_on_without(spark: Any, tmp_path: Path) -> None:
    path, query = str(tmp_path / "background"), tmp_path / "query"
    (query / "offsets").mkdir(parents=True)
    (query / "offsets" / "0").write_text("v1\n")
    assert KeptSample.begin(spark, path, query=str(query), first=list) is None
    new = KeptSample.begin(spark, path, query=str(tmp_path / "new"), first=list)
    assert new is not None
    assert new.start(spark) is None
    # Once it began with one, it goes on with it.
    again = KeptSample.begin(spark, path, query=str(query), first=lambda: made(70))
    assert again is not None
    assert again.start(spark) is None
