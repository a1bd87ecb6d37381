"""Over Spark Connect all gives what it gives in one process; one server and one client serve all these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.pipeline.plans import LONGEST
from tests.pipeline.test_equality import DOCUMENTS, MEANT, SINGLE, events, told_by_engine
from tests.pipeline.traces import PATTERNS, closing, write_files

from likewise.semantics import Space, measure, write_space

pytestmark = pytest.mark.spark

CLIENT = """
import json, pathlib, sys, warnings
from likewise.errors import BuildError
from likewise.events import RecordMapping
from likewise.pipeline import FileSink, LikewiseWarning, Stream, check, dead_letters, detect, events_from_columns
from likewise.pipeline import join_by_meaning, match, read_events, register_related, spark_session
from likewise.pipeline.detection.stream import cores_of
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from tests.pipeline.plans import TABLE, frames, longest_line
from tests.pipeline.test_equality import MEANT, SINGLE, matches_of
from tests.pipeline.traces import PATTERNS, signatures

folder, space = pathlib.Path(sys.argv[1]), sys.argv[2]
spark = spark_session(remote="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
results = {"module": type(spark).__module__, "problems": list(map(str, check(spark, spaces=space)))}
trace = read_events(spark, folder / "in", format="jsonl")
results["matches"] = sorted(map(list, matches_of(match(trace, SINGLE, spaces=space)).elements()))
results["batch"] = sorted(map(repr, signatures(detect(trace, PATTERNS + MEANT, spaces=space).toArrow()).elements()))

untimed = spark.range(3).selectExpr("'e' || id as id", "timestamp(null) as time", "map('type', 'a') as attributes")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    detect(untimed, PATTERNS).count()
ours = [warning for warning in seen if warning.category is LikewiseWarning]
results["warned"] = [str(warning.message).partition(" and")[0] for warning in ours]

stream = read_events(spark, folder / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
found = detect(stream, PATTERNS + MEANT, spaces=space, buckets=2)
results["refusals"] = []
again = found.selectExpr("pattern as id", "time", "map('type', pattern) as attributes")
for call in (
    lambda: found.select("time").withWatermark("time", "1 minute"),
    lambda: found.union(detect(stream, PATTERNS)),
    lambda: detect(again, PATTERNS),
    lambda: detect(stream.selectExpr("id", "time", "map('type', id) as attributes").union(again), PATTERNS),
):
    try:
        call()
        results["refusals"].append(None)
    except BuildError as error:
        results["refusals"].append(error.message)
writer = found.writeStream.format("parquet").option("path", str(folder / "out"))
query = writer.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True).start()
query.awaitTermination()
results["stream"] = sorted(map(repr, signatures(spark.read.parquet(str(folder / "out")).toArrow()).elements()))

timed = stream.withWatermark("time", "0 seconds").dropDuplicatesWithinWatermark(["id"])
writer = detect(timed, PATTERNS + MEANT, spaces=space, buckets=2).writeStream.format("parquet")
writer = writer.option("path", str(folder / "timed")).option("checkpointLocation", str(folder / "timed state"))
writer.trigger(availableNow=True).start().awaitTermination()
results["timed"] = sorted(map(repr, signatures(spark.read.parquet(str(folder / "timed")).toArrow()).elements()))

table = spark.sql("select 'e' || id as key, timestamp_seconds(1767261600 + id) as at, 'acme' as tenant, "
    "array(named_struct('kind', 'a')) as reading, named_struct('room', 'r') as place from range(2)")
attributes = {"reading.kind": "type", "place.room": "room", "double": "double"}
mapping = RecordMapping(id="key", time="at", attributes=attributes)
own = events_from_columns(table, mapping, computed={"double": F.length("tenant") * 2}, keep=["tenant"])
subscriptions = spark.sql("select 'x' as Name, '{type = a, double = 8}' as Subscription")
results["kept"] = sorted(map(list, match(own, subscriptions, keep="*").select("event_id", "tenant").collect()))
pair = {"p": "{type = a} as x then {type = a} as y within 1 minute where x.room = y.room"}
(row,) = detect(own, pair, keep=["tenant"]).collect()
results["members"] = [[member.id, member.tenant] for member in row.events]
spark.sql(TABLE).write.parquet(str(folder / "table"))
plans = frames(spark.read.parquet(str(folder / "table")))
results["lines"] = {name: longest_line(frame) for name, frame in plans.items()}
results["plan"] = "LikewiseMatch" in match(own, subscriptions)._explain_string(extended=True)
untimed_pair = own.withColumn("time", F.expr("if(id = 'e0', null, time)"))
results["letters"] = sorted(row.reason for row in dead_letters(detect(untimed_pair, pair, dead_letters=True)).collect())
try:
    match(own, subscriptions, treshold=1)
except TypeError as error:
    results["misspelt"] = str(error).partition("Did you mean ")[2]

single = {"s": "{type = a}"}
done = Stream(stream, single, FileSink(folder / "sunk"), folder / "sink state", trigger={"availableNow": True})
done.start().awaitTermination()
results["sunk"] = spark.read.parquet(str(folder / "sunk")).count() == match(trace, single).count() > 0

first = min((folder / "in").iterdir())
(folder / "in" / "more.jsonl").write_bytes(first.read_bytes())
spark.conf.set("spark.sql.shuffle.partitions", "200")
try:
    fewer = detect(stream, PATTERNS + MEANT, spaces=space, buckets=1).writeStream.format("parquet")
    fewer = fewer.option("path", str(folder / "fewer")).option("checkpointLocation", str(folder / "state"))
    fewer.trigger(availableNow=True).start().awaitTermination()
    results["buckets"] = "went on"
except Exception as error:
    results["buckets"] = "made with buckets 2, and now it is 1" in str(error)
new = detect(stream, pair).writeStream.format("noop").option("checkpointLocation", str(folder / "new state"))
query = new.trigger(availableNow=True).start()
query.awaitTermination()
results["stores"] = [query.recentProgress[0]["stateOperators"][0]["numShufflePartitions"], cores_of(spark)]
results["partitions"] = spark.conf.get("spark.sql.shuffle.partitions")
spark.conf.set("spark.sql.shuffle.partitions", "2")

left = spark.createDataFrame([(1, "laptop"), (2, "zzyzx")], "id int, word string")
right = spark.createDataFrame([("c", "computer"), ("g", "garage")], "id string, term string")
joined = join_by_meaning(left, right, on=("word", "term"), best=1, measure="esa", spaces=space, how="left")
results["joined"] = sorted([row["id"], row["id_right"]] for row in joined.collect())
options = {"on": ("WORD", "term"), "threshold": 0.01, "measure": "esa", "spaces": space}
rows = join_by_meaning(left, right, one_to_one=True, with_margin=True, with_explanation=True, **options).collect()
results["settled"] = [[row["id"], row["id_right"], row["margin"] > 0, len(row["why"]) > 0] for row in rows]
register_related(spark, measure="esa", spaces=space)
results["related"] = spark.sql("select related('laptop', 'computer') as r").collect()[0]["r"]
try:
    spark.sql("select related('laptop') as r").schema
    results["refused"] = False
except AnalysisException:
    results["refused"] = True
print("RESULT", json.dumps(results))
spark.stop()
"""


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("spaces") / "tiny"
    write_space(folder, DOCUMENTS)
    return str(folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, space: str) -> Any:
    """What a client has to tell, in a process of its own: a session is classic or remote for the whole process."""
    folder = tmp_path_factory.mktemp("connect")
    write_files(folder / "in", [*events(60), closing(events(60))], size=31)
    command = [sys.executable, "-c", CLIENT, str(folder), space]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    reported = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert reported, done.stderr[-3000:]
    return json.loads(reported[0].removeprefix("RESULT "))


def test_the_session_is_remote_and_lacks_nothing(results: Any) -> None:
    assert results["module"].startswith("pyspark.sql.connect")
    assert results["problems"] == []


def test_matches_and_detections_are_those_of_the_engine(results: Any, space: str) -> None:
    trace = [*events(60), closing(events(60))]
    matches, _ = told_by_engine(trace, SINGLE, space)
    _, found = told_by_engine(trace, PATTERNS + MEANT, space)
    assert results["matches"] == sorted(map(list, matches.elements()))
    assert results["batch"] == sorted(map(repr, found.elements()))
    # What is known only at the last moment waits for the next event.
    last = trace[-1].start or 0
    assert results["stream"] == sorted(repr(key) for key in found.elements() if key[1] < last)
    assert results["timed"] == results["stream"]


def test_events_without_a_time_are_counted_in_a_warning(results: Any) -> None:
    assert results["warned"] == ["3 events have no time"]


def test_joins_and_sql_know_meaning(results: Any, space: str) -> None:
    assert results["joined"] == [[1, "c"], [2, None]]
    esa = measure("esa", spaces=[Space.open(space)])
    assert results["related"] == pytest.approx(float(esa.matrix(["laptop"], ["computer"])[0, 0]))
    assert results["settled"] == [[1, "c", True, True]]


def test_any_table_is_read_and_its_columns_go_through(results: Any) -> None:
    """Nested paths, computed columns, subscriptions in a frame."""
    assert results["kept"] == [["e0", "acme"], ["e1", "acme"]]
    assert results["members"] == [["e0", "acme"], ["e1", "acme"]]
    assert results["letters"] == ["it has no time"]
    assert results["plan"]


def test_plans_fit_on_a_screen(results: Any) -> None:
    assert {name: length for name, length in results["lines"].items() if length > LONGEST} == {}


def test_streams_end_in_sinks_with_few_stores_and_refuse_other_settings(results: Any) -> None:
    assert results["sunk"]
    assert results["buckets"] is True
    assert results["stores"][0] == results["stores"][1] < 200
    assert results["partitions"] == "200"


def test_what_is_wrong_is_refused_when_built(results: Any) -> None:
    late, *twice = results["refusals"]
    assert "a second one would drop them all" in late
    assert twice == ["a streaming query cannot detect twice"] * 3
    assert results["refused"]
    assert results["misspelt"] == "'threshold'?"
