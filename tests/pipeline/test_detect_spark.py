"""Detection on Spark gives what the detector gives in process."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.traces import PATTERNS, SECOND, START, expected, signatures, trace

from likewise.composite import HitColumns, MappedValues
from likewise.errors import BuildError, LikewiseError
from likewise.events import Event
from likewise.matching import Matcher
from likewise.pipeline.detection.batch import ARROW_DETECTIONS, DetectTask, detect
from likewise.pipeline.detection.parcels import ParcelReader, TupleFacts, hit_texts, tuple_texts, tuples_of
from likewise.pipeline.detection.route import RouteTask
from likewise.pipeline.events.frame import batch_of
from likewise.pipeline.events.transfer import dead_letters
from likewise.pipeline.streaming.subscriptions import FixedRecipe
from likewise.recipe import Recipe


def run(events: list[Event], *, patterns: str = PATTERNS, buckets: int, size: int, spread: bool = True) -> Counter[Any]:
    """Both steps as Spark runs them, without Spark: any batches in, a shuffle by place, rows in order of time."""
    source = FixedRecipe(Recipe.of(patterns))
    batches = [batch_of(events[at : at + size]) for at in range(0, len(events), size)]
    routed = pa.Table.from_batches(RouteTask(source, buckets, spread=spread)(batches))
    rows = routed.sort_by([("at", "ascending"), ("start", "ascending"), ("id", "ascending")])
    found: list[pa.RecordBatch] = []
    for part in range(buckets):
        mine = rows.filter(pc.equal(rows.column("part"), part)).combine_chunks()
        found += DetectTask(source, buckets, spread)(mine.to_batches(max_chunksize=size))
    return signatures(pa.Table.from_batches(found, schema=ARROW_DETECTIONS))


EVENTS = st.lists(
    st.builds(
        lambda at, kind, rooms, length: (at, kind, tuple(rooms), length),
        st.integers(0, 60),
        st.sampled_from("abc"),
        st.lists(st.sampled_from(["1", "2", "3"]), max_size=2, unique=True),
        st.sampled_from([0, 0, 0, 2]),
    ),
    min_size=1,
    max_size=25,
)


def events_of(facts: list[Any]) -> list[Event]:
    return [
        Event(
            f"e{number:02}",
            (("type", kind), *(("room", room) for room in rooms)),
            (),
            START + at * SECOND,
            START + (at + length) * SECOND,
        )
        for number, (at, kind, rooms, length) in enumerate(facts)
    ]


@settings(deadline=None, max_examples=60)
@given(EVENTS, st.integers(1, 4), st.integers(1, 10), st.randoms())
def test_any_split_and_order_gives_what_the_detector_gives(
    facts: list[Any], buckets: int, size: int, rng: random.Random
) -> None:
    """Events with no room or two rooms, with a duration, in any order and any batches.

    Two rooms are for patterns that neither choose nor deny: those ask about each room for itself.
    """
    patterns = "\n".join(line for line in PATTERNS.splitlines() if not line.startswith(("first", "absent")))
    events = events_of(facts)
    rng.shuffle(events)
    assert run(events, patterns=patterns, buckets=buckets, size=size) == expected(events, patterns)


@settings(deadline=None, max_examples=40)
@given(EVENTS, st.integers(1, 4), st.integers(1, 10), st.randoms())
def test_with_one_value_of_the_key_all_patterns_are_exact(
    facts: list[Any], buckets: int, size: int, rng: random.Random
) -> None:
    events = events_of([(at, kind, rooms[:1], length) for at, kind, rooms, length in facts])
    rng.shuffle(events)
    patterns = PATTERNS + CHOOSING
    assert run(events, patterns=patterns, buckets=buckets, size=size) == expected(events, patterns)


CHOOSING = """
taken: {type = a} as x then {type = b} as y within 30 seconds where x.room = y.room consume unique
one: first {type = a} as x then {type = b} as y within 1 minute where x.room = y.room
silent: {type = a} as x then not {type = b} as y for 20 seconds where x.room = y.room
"""


@settings(deadline=None, max_examples=40)
@given(EVENTS, st.integers(2, 4), st.integers(1, 10))
def test_without_spreading_patterns_that_choose_are_exact_for_several_values_of_a_key(
    facts: list[Any], buckets: int, size: int
) -> None:
    events = events_of(facts)
    found = run(events, patterns=CHOOSING, buckets=buckets, size=size, spread=False)
    assert found == expected(events, CHOOSING)


def test_only_events_that_match_a_member_go_on() -> None:
    source = FixedRecipe(Recipe.of("p: {type = a} as x then {type = b} as y within 3 seconds"))
    events = trace(200)
    routed = pa.Table.from_batches(RouteTask(source, 4)([batch_of(events)])).to_pylist()
    kinds = Counter(dict(event.tuples)["type"] for event in events)
    assert sum(row["hits"] is not None for row in routed) == kinds["a"] + kinds["b"]


@pytest.mark.spark
def test_a_frame_of_detections_equals_the_detector(spark: Any) -> None:
    events = trace(300, jitter=30)
    frame = spark.createDataFrame(pa.Table.from_batches([batch_of(events)])).repartition(3)
    found = detect(frame, PATTERNS, buckets=4)
    assert signatures(found.toArrow()) == expected(events)


@pytest.mark.spark
def test_what_cannot_be_detected_is_refused_when_built(spark: Any) -> None:
    frame = spark.createDataFrame([("a", {"type": "x"})], "id string, attributes map<string, string>")
    with pytest.raises(BuildError, match="no pattern"):
        detect(frame, "x: {a = b}")
    with pytest.raises(LikewiseError, match="measure"):
        detect(frame, "x: {a = b} as y then {c~ = d~} as w within 1 minute", approach="approximate")


@pytest.mark.spark
def test_what_a_batch_refuses_is_told_beside_the_detections(spark: Any) -> None:
    """Without a time, ending before it starts, far ahead: each with its reason, and none of them detected."""
    events = [
        Event("a", (("type", "a"),), (), START, START),
        Event("b", (("type", "b"),), (), START + 1, START + 1),
        Event("nowhen", (("type", "b"),)),
        Event("back", (("type", "b"),), (), START + 5, START + 4),
        Event("ahead", (("type", "b"),), (), 10**17, 10**17),
    ]
    frame = spark.createDataFrame(pa.Table.from_batches([batch_of(events)]))
    text = "p: {type = a} as x then {type = b} as y within 10000 days"
    found = detect(frame, text, max_ahead="1 day", dead_letters=True)
    rows = found.where("flaw is null").collect()
    assert [[member["id"] for member in row["events"]] for row in rows] == [["a", "b"]]
    letters = {(json.loads(row["record"])["id"], row["reason"]) for row in dead_letters(found).collect()}
    assert letters == {
        ("nowhen", "it has no time"),
        ("back", "it ends before it starts"),
        ("ahead", "its clock is too far ahead"),
    }


def test_tuples_and_hits_survive_the_way_whatever_they_say() -> None:
    """The signs that stand between texts may be in them."""
    pairs = (("a\uffff", "\ufffe1"), ("b", 2.5), ("c", True), ("d", ""))
    events = [Event("x", (("z", 1),), (), START, START), Event("e", pairs, (), START, START)]
    facts, rows = TupleFacts(), np.array([1, 1])
    columns = facts.read(batch_of(events))
    mapped: list[MappedValues | None] = [None, {"room": (("\uffff", 0.5),)}]
    sent = HitColumns(np.array([1, 1]), np.array([0, 3]), np.array([1.0, 0.1]), mapped)
    batch = pa.RecordBatch.from_pydict(
        {
            "id": ["e", "e"],
            "start": [START, START],
            "at": [START, START],
            "tuples": tuple_texts(columns, rows, facts, None),
            "hits": hit_texts(sent, rows),
        }
    )
    back, hits = ParcelReader().read(batch)
    assert list(back) == [events[1], events[1]]
    assert list(hits.rows()) == [
        (at, profile, sure, what)
        for at in (0, 1)
        for profile, sure, what in zip((0, 3), (1.0, 0.1), mapped, strict=True)
    ]


def test_of_an_event_only_what_conditions_ask_goes_on() -> None:
    source = FixedRecipe(Recipe.of("p: {type = a} as x then {type = b} as y within 3 seconds where x.room = y.room"))
    event = Event("e", (("type", "a"), ("room", "r1"), ("reading", 7)), ("energy",), START, START)
    routed = pa.Table.from_batches(RouteTask(source, 4)([batch_of([event])])).to_pylist()
    (row,) = (row for row in routed if row["hits"] is not None)
    assert tuples_of(row["tuples"]) == (("room", "r1"),)


def test_every_batch_of_a_stream_has_a_row_that_no_watermark_drops() -> None:
    """There the checkpoint is compared, also where all events are late."""
    task = RouteTask(FixedRecipe(Recipe.of("p: {type = a} as x then {type = b} as y within 3 seconds")), streaming=True)
    for kind in ("a", "c"):
        routed = pa.Table.from_batches(task([batch_of([Event("e", (("type", kind),), (), START, START)])])).to_pylist()
        assert [row["record"] for row in routed if row["pattern"] == "" and row["end"] is None] == [None]


def test_events_without_a_key_have_a_place_too() -> None:
    source = FixedRecipe(Recipe.of("p: {type = a} as x then {type = b} as y within 3 seconds where x.room = y.room"))
    events = [Event("e", (("type", "a"),), (), START, START)]
    routed = pa.Table.from_batches(RouteTask(source, 4)([batch_of(events)])).to_pylist()
    assert [row["id"] for row in routed if row["hits"] is not None] == ["e"]


def test_nothing_is_matched_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """One scoring call for a batch and all patterns in stage one, and none in stage two."""
    calls: list[int] = []
    score = Matcher.score_batch
    monkeypatch.setattr(Matcher, "score_batch", lambda *args: calls.append(1) or score(*args))
    events = trace(60)
    assert run(events, buckets=2, size=60) == expected(events)
    # The other one is that of the detector in this process.
    assert len(calls) <= 2
