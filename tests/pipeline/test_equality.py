"""The same trace through the engine, Spark batch, Spark streaming, a cluster and Spark Connect: the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from tests.pipeline.traces import PATTERNS, SECOND, START, closing, signature, signatures, write_files

from likewise.engine import Engine
from likewise.events import Event
from likewise.matching import Background
from likewise.pipeline import detect, match, read_events
from likewise.pipeline.events.frame import batch_of
from likewise.semantics import write_space

pytestmark = pytest.mark.spark

DOCUMENTS = [
    ("Car park", "parking garage car vehicle parking space street"),
    ("Garage", "garage car repair vehicle parking door"),
    ("Energy use", "energy consumption usage electricity meter power"),
    ("Power", "power electricity energy station"),
    ("Laptop", "laptop computer notebook battery power"),
    ("Computer", "computer laptop processor memory office"),
    ("Office", "office room building desk computer"),
    ("Building", "building room garage energy floor"),
]
SINGLE = """
laptop: {device~ = laptop~} threshold 0.3
energy: {type~ = energy usage~, room = r1} approach approximate threshold 0.2
plain: {type = a}
"""
MEANT = """
meant: {device~ = computer~} as x then {type = b} as y within 20 seconds where x.room = y.room threshold 0.1
"""
DEVICES = ["laptop", "computer", "notebook", "garage", "car"]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("spaces") / "tiny"
    write_space(folder, DOCUMENTS)
    return str(folder)


def events(count: int = 120) -> list[Event]:
    """Readings whose devices are said in several words."""
    kinds = ["a", "b", "electricity consumption", "power", "c"]
    return [
        Event(
            f"e{number:04}",
            (
                ("type", kinds[number * 7 % 5]),
                ("device", DEVICES[number * 3 % 5]),
                ("room", f"r{number * 11 % 4}"),
            ),
            (),
            START + number * SECOND,
            START + number * SECOND,
        )
        for number in range(count)
    ]


def told_by_engine(trace: list[Event], text: str, space: str) -> tuple[Counter[Any], Counter[Any]]:
    """Matches (with exact scores) and detections of the engine, in process; it has seen the trace beforehand."""
    engine = Engine(spaces=[space])
    engine.subscribe(text)
    engine.learn_background(trace)
    notifications = engine.publish_batch(trace)
    notifications += engine.advance(max(event.end or 0 for event in trace))
    matches = Counter(
        (sent.event.id, sent.subscription, sent.score) for sent in notifications if sent.match is not None
    )
    found = Counter(signature(sent.detection) for sent in notifications if sent.detection is not None)
    return matches, found


def matches_of(frame: Any) -> Counter[Any]:
    return Counter((row["event_id"], row["subscription"], row["score"]) for row in frame.collect())


def test_batch_and_every_split_of_a_stream_equal_the_engine(spark: Any, space: str, tmp_path: Path) -> None:
    trace = events()
    trace.append(closing(trace))
    matches, found = told_by_engine(trace, SINGLE, space)[0], told_by_engine(trace, PATTERNS + MEANT, space)[1]
    assert matches
    assert {key[0] for key in found} == {"pair", "first", "unbound", "calm", "absent", "meant"}
    frame = spark.createDataFrame(pa.Table.from_batches([batch_of(trace)])).repartition(2)
    assert matches_of(match(frame, SINGLE, spaces=space)) == matches
    assert matches_of(match(frame, SINGLE, spaces=space, background=None)) != matches
    assert signatures(detect(frame, PATTERNS + MEANT, spaces=space).toArrow()) == found
    # A stream is told what a batch sees by itself.
    known = {"spaces": space, "background": Background.of(trace)}
    last = trace[-1].start or 0
    decided = Counter({key: count for key, count in found.items() if key[1] < last})
    for size in (121, 45):
        folder = tmp_path / str(size)
        write_files(folder / "in", trace, size=size)
        read = read_events(spark, folder / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
        assert matches_of(_run(match(read, SINGLE, **known), folder, f"m{size}", spark)) == matches
        streamed = _run(detect(read, PATTERNS + MEANT, buckets=2, **known), folder, f"d{size}", spark)
        assert signatures(streamed.toArrow()) == decided


def _run(frame: Any, folder: Path, name: str, spark: Any) -> Any:
    writer = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", str(folder / name))
    writer.trigger(availableNow=True).start().awaitTermination()
    return spark.table(name)


ELSEWHERE = """
import json, os, pathlib, signal, sys
from likewise.pipeline import detect, match, read_events, spark_session
from tests.pipeline.test_equality import SINGLE, MEANT, matches_of
from tests.pipeline.traces import PATTERNS, signatures

folder, space = pathlib.Path(sys.argv[1]), sys.argv[2]
marker = folder / "killed"

def kill_once(batches):
    # The first task that gets here takes its whole executor down with it: worker, daemon, JVM.
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        yield from batches
        return
    daemon = os.getppid()
    executor = int(pathlib.Path(f"/proc/{daemon}/stat").read_text().split()[3])
    os.kill(executor, signal.SIGKILL)
    yield from ()

def stored_plan(frame):
    rows, _ = vars(frame)["_likewise_origin"].rows((), False)
    return rows._explain_string()

spark = spark_session(remote=sys.argv[3], settings={"spark.sql.shuffle.partitions": "2"})
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
events = read_events(spark, folder / "in", format="jsonl")
killed = events.mapInArrow(kill_once, events.schema)
matches = matches_of(match(killed, SINGLE, spaces=space))
found = signatures(detect(events, PATTERNS + MEANT, spaces=space).toArrow())
assert marker.exists()
# Files that the workers read themselves.
events.write.parquet(str(folder / "stored"))
stored = read_events(spark, folder / "stored", format="parquet")
assert "Range" in stored_plan(stored)
assert matches_of(match(stored, SINGLE, spaces=space)) == matches
print("RESULT", json.dumps([sorted(map(list, matches.elements())), sorted(map(repr, found.elements()))]))
spark.stop()
"""


@pytest.mark.slow
def test_connect_on_a_cluster_equals_the_engine_even_if_a_worker_is_killed(tmp_path: Path, space: str) -> None:
    """Two executors behind Spark Connect; one is killed in the middle of the job."""
    trace = events()
    write_files(tmp_path / "in", trace, size=61)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path), space, "local-cluster[2,1,1024]"]
    environment = os.environ | {"PYTHONPATH": str(root), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert results, done.stderr[-3000:]
    matches, found = json.loads(results[0].removeprefix("RESULT "))
    wanted, _ = told_by_engine(trace, SINGLE, space)
    assert matches == sorted(map(list, wanted.elements()))
    assert found == sorted(map(repr, told_by_engine(trace, PATTERNS + MEANT, space)[1].elements()))
