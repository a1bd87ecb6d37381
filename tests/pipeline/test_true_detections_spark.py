"""Cases in which a detector once gave wrong answers, on Spark: both stages alone, a batch, and a stream."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from tests.pipeline.test_detect_spark import run
from tests.pipeline.traces import SECOND, START, closing, expected, signatures, write_files

from likewise.events import Event
from likewise.pipeline.detection.batch import detect
from likewise.pipeline.events.frame import batch_of
from likewise.pipeline.events.read import read_events

HOUR = 3600 * SECOND
JOINED = "where a.r = n.r and n.r = c.r"
EITHER = "(({k = A} as a and {k = A} as b within 5 s) or {k = Z} as z)"


class Case(NamedTuple):
    """Patterns, events a second apart as `attribute=value` words, and the places of the events of each detection."""

    patterns: str
    events: str
    found: str


CASES = {
    "unique, joined by different attributes": Case(
        "p: {k = T} as a then {k = T} as b within 1 hour where a.to = b.by consume unique",
        "k=T by=A to=B; k=T by=B to=C; k=T by=C to=D; k=T by=D to=E",
        "p01 p23",
    ),
    "joined only through a negated member": Case(
        f"p: {{k = A}} as a then not {{k = N}} as n then {{k = C}} as c within 1 hour {JOINED}",
        "k=A r=1; k=C r=2; k=N r=1; k=C r=1",
        "p01",
    ),
    "the same, after the last": Case(
        f"p: {{k = A}} as a then {{k = C}} as c then not {{k = N}} as n within 10 s {JOINED}",
        "k=A r=1; k=C r=2; k=C r=1; k=N r=1",
        "p01",
    ),
    "a repeated member without the attribute": Case(
        "p: (2 times {k = B} as x) then {k = C} as c within 1 hour where x.r = c.r",
        "k=B r=1; k=B; k=C r=1; k=B r=1; k=B r=1; k=C r=1",
        "p345",
    ),
    "the same with <": Case(
        "p: (2 times {k = B} as x) then {k = C} as c within 1 hour where x.v < c.v",
        "k=B v=1; k=B; k=C v=5; k=B v=1; k=B v=1; k=C v=5",
        "p345",
    ),
    "ways to read the same events": Case(
        f"p: {EITHER} then {{k = C}} as c where a.r = c.r", "k=A r=1; k=A r=2; k=C r=1; k=C r=2", "p012 p103"
    ),
    "an event of both branches": Case(
        "p: ({k = A} as a or {w = 1} as b) then {k = C} as c where a.r = c.r", "k=A w=1 r=1; k=C r=2", "p01"
    ),
    "what a name finds": Case(
        "q: first {k = C} as x or {k = Z} as z\np: q as n then {k = D} as d consume unique",
        "k=C; k=D; k=C; k=D",
        "q0 p01",
    ),
    "duplicates by a sum": Case(
        "p: first {k = A} as a then {k = B} as b within 9 s where b.v = a.v + 1", "k=A v=1; k=A v=5; k=B v=6", "p12"
    ),
    "counted by room": Case("p: 3rd {k = A} as a where a.r = a.r", "k=A r=1; k=A r=2; k=A r=1; k=A r=1; k=A r=1", "p3"),
    "a broken absence": Case(
        "p: first {k = A} as a then not {k = B} as b within 10 s where a.r = b.r", "k=A r=1; k=B r=1; k=A r=1", "p2"
    ),
    "a broken absence between": Case(
        "p: first {k = A} as a then not {k = B} as b then {k = C} as c within 10 s where a.r = b.r and a.r = c.r",
        "k=A r=1; k=B r=1; k=A r=1; k=C r=1",
        "p23",
    ),
    "what is forbidden displaces nothing": Case(
        "p: {k = A} as a then not {k = B} as b then last {k = C} as c within 10 s", "k=A; k=C; k=B; k=C", "p01"
    ),
    "the longest run": Case("p: longest 2 or more times {k = A} as a within 5 s", "k=A; k=A; k=A", "p012"),
}  # fmt: skip


def numbered(text: str, number: int) -> str:
    """With kinds and names of its own, so that all cases run beside each other."""
    return re.sub(r"\b([pq])(?=:| as n)", rf"\g<1>{number}", re.sub(r"\bk = (\w+)", rf"k = \g<1>{number}", text))


def happened(case: Case, number: int) -> list[Event]:
    """The events of a case, hours after those of the one before."""
    out = []
    for place, words in enumerate(case.events.split(";")):
        pairs = (word.split("=") for word in words.split())
        tuples = [(name, f"{value}{number}" if name == "k" else read(value)) for name, value in pairs]
        moment = START + 2 * number * HOUR + place * SECOND
        out.append(Event(f"{number}-{place}", tuple(tuples), (), moment, moment))
    return out


def read(value: str) -> int | str:
    return int(value) if value.isdigit() else value


PATTERNS = "\n".join(numbered(case.patterns, number) for number, case in enumerate(CASES.values()))
EVENTS = [event for number, case in enumerate(CASES.values()) for event in happened(case, number)]
LAST = closing(EVENTS)


def by_case(found: Counter[Any]) -> dict[str, str]:
    """The detections of each case, as it gives them."""
    out: dict[str, str] = {}
    for pattern, *_, members in sorted(found.elements(), key=lambda detection: detection[1]):
        name, number = pattern[0], int(pattern[1:])
        places = "".join(event.partition("-")[2] for _, event in members)
        case = list(CASES)[number]
        out[case] = " ".join([*out.get(case, "").split(), name + places])
    return out


WANTED = {name: case.found for name, case in CASES.items()}


@pytest.mark.parametrize("buckets", [1, 4])
def test_both_stages_give_what_is_right(buckets: int) -> None:
    found = run([*EVENTS, LAST], patterns=PATTERNS, buckets=buckets, size=3)
    assert by_case(found) == WANTED
    assert found == expected([*EVENTS, LAST], PATTERNS)


@pytest.mark.spark
def test_a_batch_gives_what_is_right(spark: Any) -> None:
    frame = spark.createDataFrame(pa.Table.from_batches([batch_of([*EVENTS, LAST])])).repartition(2)
    assert by_case(signatures(detect(frame, PATTERNS, buckets=2).toArrow())) == WANTED


@pytest.mark.spark
def test_a_stream_gives_what_is_right(spark: Any, tmp_path: Path, checkpoint: str) -> None:
    """In three micro-batches; the first ends in the middle of a case."""
    write_files(tmp_path / "in", [*EVENTS, LAST], size=len(EVENTS) // 2)
    frame = read_events(spark, tmp_path / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
    found = detect(frame, PATTERNS, lateness="1 second", buckets=2)
    query = found.writeStream.format("memory").queryName("true_detections").option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    assert by_case(signatures(spark.table("true_detections").toArrow())) == WANTED
