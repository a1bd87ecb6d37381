"""A join by meaning is the cross join over the threshold, whatever the way it is worked out."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from likewise.errors import BuildError
from likewise.pipeline import join_by_meaning, join_tables
from likewise.pipeline.joins import pairs as join_pairs
from likewise.semantics import Glossary, Space, measure, write_space

pytestmark = pytest.mark.spark

DOCUMENTS = [
    ("Car park", "parking garage car vehicle parking space street"),
    ("Garage", "garage car repair vehicle parking door"),
    ("Energy use", "energy consumption usage electricity meter"),
    ("Laptop", "laptop computer notebook battery power"),
    ("Computer", "computer laptop processor memory"),
    ("Office", "computer office desk room"),
]
LEFT = [(1, "laptop"), (2, "parking"), (3, "zzyzx"), (4, None), (5, "laptop"), (6, "energy"), (7, "qwxy")]
RIGHT = [("x", "computer"), ("y", "garage"), ("z", "zzyzx"), ("n", None), ("c", "computer"), ("l", "Laptops")]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spaces") / "tiny"
    write_space(folder, DOCUMENTS)
    return folder


@pytest.fixture
def left(spark: Any) -> Any:
    return spark.createDataFrame(LEFT, "id int, word string")


@pytest.fixture
def right(spark: Any) -> Any:
    return spark.createDataFrame(RIGHT, "id string, term string")


@pytest.fixture
def in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides meet in groups of about two terms."""
    monkeypatch.setattr(join_pairs, "CHUNK", 2)
    monkeypatch.setattr(join_pairs, "SMALL", 0)
    monkeypatch.setattr(join_pairs, "TALL", 2)


@pytest.fixture(params=["small", pytest.param("groups", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest) -> str:
    """The right side goes with the tasks, or both sides meet in groups."""
    if request.param == "groups":
        request.getfixturevalue("in_groups")
    return str(request.param)


def test_small_tables_are_joined_without_a_shuffle(left: Any, right: Any, space: Path) -> None:
    """The left side is read once, each list is made once, and the plan names our step."""
    joined = join_by_meaning(left, right, on=("word", "term"), measure="esa", spaces=space)
    plan = joined._jdf.queryExecution().executedPlan().toString()
    assert plan.count("LikewiseJoin(") == plan.count("ArrowEvalPython") == 1
    assert "BroadcastHashJoin" in plan
    assert "hashpartitioning" not in plan


def scores(space: Path, name: str = "esa", **options: Any) -> dict[tuple[int, str], float]:
    """What every pair of rows scores, from the measure's own matrix; the right side asks."""
    made = measure(name, spaces=[Space.open(space)], **options)
    rows = [(left, right) for left in LEFT for right in RIGHT if left[1] is not None and right[1] is not None]
    return {(left[0], right[0]): float(made.matrix([right[1]], [left[1]])[0, 0]) for left, right in rows}


def pairs(frame: Any) -> dict[tuple[int, str], float]:
    rows = frame.collect()
    found = {(row["id"], row["id_right"]): row["relatedness"] for row in rows}
    assert len(found) == len(rows), "no pair comes twice"
    return found


def over(space: Path, threshold: float, **options: Any) -> dict[tuple[int, str], Any]:
    every = scores(space, **options)
    return {pair: pytest.approx(score, abs=1e-6) for pair, score in every.items() if score >= threshold}


def test_rows_join_at_or_over_the_threshold(left: Any, right: Any, space: Path, way: str) -> None:
    """Repeated terms join each for itself; equal terms that the space does not know are 1; null joins nothing."""
    found = pairs(join_by_meaning(left, right, on=("word", "term"), threshold=0.2, measure="esa", spaces=space))
    assert found == over(space, 0.2)
    assert found[3, "z"] == 1
    assert {(1, "x"), (5, "c"), (1, "l")} <= set(found)
    assert not any(key == 7 for key, _ in found)


def test_the_nearest_alone(left: Any, right: Any, space: Path, way: str) -> None:
    """`best=1` keeps one term of the right for each term of the left, and all rows that have it."""
    found = pairs(join_by_meaning(left, right, on=("word", "term"), best=1, measure="esa", spaces=space))
    every = scores(space)
    wanted: dict[Any, Any] = {}
    for key, word in LEFT:
        near = sorted((-every[key, other], term) for other, term in RIGHT if term and word and every[key, other] > 0)
        wanted |= {(key, other): every[key, other] for other, term in RIGHT if near and term == near[0][1]}
    assert found == {pair: pytest.approx(score, abs=1e-6) for pair, score in wanted.items()}
    assert (1, "l") in found
    assert (1, "x") not in found
    two = pairs(join_by_meaning(left, right, on=("word", "term"), best=2, threshold=1, measure="esa", spaces=space))
    assert set(two) == {(1, "l"), (5, "l"), (3, "z")}


def test_equal_scores_go_to_the_very_same_text(spark: Any, space: Path, way: str) -> None:
    """All spellings score 1; the one that is written alike is the nearest, else the first in order."""
    left = spark.createDataFrame([("laptops",), ("LAPTOP",)], "a string")
    right = spark.createDataFrame([("laptop",), ("laptops",), ("Laptop",)], "b string")
    rows = join_by_meaning(left, right, on=("a", "b"), best=1, measure="esa", spaces=space).collect()
    assert {(row["a"], row["b"]) for row in rows} == {("laptops", "laptops"), ("LAPTOP", "Laptop")}


def test_groups_find_what_tasks_find(left: Any, right: Any, space: Path, in_groups: None) -> None:
    """More terms than one task takes: all pairs over the threshold, and the best of all groups."""
    found = join_by_meaning(left, right, on=("word", "term"), threshold=0.2, measure="esa", spaces=space)
    assert pairs(found) == over(space, 0.2)
    nearest = join_by_meaning(left, right, on=("word", "term"), best=1, measure="esa", spaces=space)
    assert {(1, "l"), (3, "z"), (5, "l")} <= set(pairs(nearest))
    assert (1, "x") not in pairs(nearest)


@pytest.mark.parametrize("how", ["left", "right", "full", "left_semi", "anti"])
def test_every_kind_of_join(left: Any, right: Any, space: Path, how: str, way: str) -> None:
    """As Spark's own kinds: what finds no partner stays, on the side that is asked for."""
    rows = join_by_meaning(
        left, right, on=("word", "term"), threshold=0.2, measure="esa", spaces=space, how=how
    ).collect()
    both = set(over(space, 0.2))
    lonely = {(key, None) for key, _ in LEFT} - {(key, None) for key, _ in both}
    unasked = {(None, key) for key, _ in RIGHT} - {(None, key) for _, key in both}
    if how in ("left_semi", "anti"):
        assert rows[0].asDict().keys() == {"id", "word"}
        kept = {key for key, _ in both} if how == "left_semi" else {key for key, _ in lonely}
        assert sorted(row["id"] for row in rows) == sorted(kept)
        return
    wanted = both | (lonely if how in ("left", "full") else set()) | (unasked if how in ("right", "full") else set())
    assert sorted(map(str, ((row["id"], row["id_right"]) for row in rows))) == sorted(map(str, wanted))
    assert all((row["relatedness"] is None) == (None in (row["id"], row["id_right"])) for row in rows)


@pytest.mark.parametrize("sides", [(0, 1), (1, 0), (0, 0)])
def test_an_empty_side(left: Any, right: Any, space: Path, sides: tuple[int, int], way: str) -> None:
    left, right = left.limit(sides[0] * 7), right.limit(sides[1] * 6)
    assert join_by_meaning(left, right, on=("word", "term"), measure="esa", spaces=space).count() == 0
    assert (
        join_by_meaning(left, right, on=("word", "term"), measure="esa", spaces=space, how="left").count()
        == sides[0] * 7
    )
    assert join_by_meaning(left, right, on=("word", "term"), measure="esa", spaces=space, how="full").count() == max(
        sides[0] * 7, sides[1] * 6
    )


def test_a_table_joins_itself(left: Any, space: Path) -> None:
    """Columns of the right get a suffix, and so does the column to join on."""
    found = join_by_meaning(left, left, on="word", threshold=1, measure="esa", spaces=space)
    assert found.columns == ["id", "word", "id_right", "word_right", "relatedness"]
    rows = {(row["id"], row["id_right"]) for row in found.collect()}
    assert rows == {(1, 1), (1, 5), (5, 1), (5, 5), (2, 2), (3, 3), (6, 6), (7, 7)}


def test_odd_names_of_columns(spark: Any, space: Path) -> None:
    """Dots, blanks, and capitals that differ only."""
    left = spark.createDataFrame([("laptop", 1)], "`the.word` string, `Key` int")
    right = spark.createDataFrame([("computer", 2)], "`a term` string, `key` int")
    found = join_by_meaning(
        left, right, on=("the.word", "a term"), threshold=0.1, measure="esa", spaces=space, score="near"
    )
    assert found.columns == ["the.word", "Key", "a term", "key_right", "near"]
    assert found.count() == 1


def test_texts_of_any_collation_join(spark: Any, space: Path) -> None:
    left = spark.sql("select 'laptop' collate utf8_lcase as device")
    right = spark.sql("select 'computer' collate unicode as name")
    joined = join_by_meaning(left, right, on=("device", "name"), best=1, measure="esa", spaces=str(space))
    assert [(row.device, row.name) for row in joined.collect()] == [("laptop", "computer")]


def test_a_join_of_a_join(spark: Any, left: Any, right: Any, space: Path) -> None:
    """The result is a table as any other, whatever its columns are called."""
    once = join_by_meaning(
        left, right.withColumnRenamed("id", "_score"), on=("word", "term"), best=1, measure="esa", spaces=space
    )
    twice = join_by_meaning(
        once, right, on="term", threshold=1, measure="esa", spaces=space, score="second", suffix="_2"
    )
    assert twice.columns == ["id", "word", "_score", "term", "relatedness", "id_2", "term_2", "second"]
    assert {row["second"] for row in twice.collect()} == {1.0}
    with pytest.raises(BuildError, match="two columns 'relatedness'"):
        join_by_meaning(once, right, on="term", measure="esa", spaces=space)


def test_several_columns_of_meaning(spark: Any, space: Path, way: str) -> None:
    """Each must reach the threshold; the whole is their geometric mean."""
    left = spark.createDataFrame(
        [(1, "laptop", "parking"), (2, "laptop", "energy")], "id int, device string, place string"
    )
    right = spark.createDataFrame(
        [("x", "computer", "garage"), ("y", "garage", "garage")], "id string, thing string, at string"
    )
    on = {"device": "thing", "place": "at"}
    found = pairs(join_by_meaning(left, right, on=on, threshold=0.2, measure="esa", spaces=space))
    esa = measure("esa", spaces=[Space.open(space)])
    product = esa.matrix(["laptop"], ["computer"])[0, 0] * esa.matrix(["parking"], ["garage"])[0, 0]
    assert found == {(1, "x"): pytest.approx(float(product) ** 0.5, abs=1e-6)}
    assert found == pairs(
        join_by_meaning(left, right, on=list(on.items()), best=1, threshold=0.2, measure="esa", spaces=space)
    )


def test_columns_that_must_be_equal(spark: Any, space: Path, way: str) -> None:
    """`best` chooses among the rows that are equal there."""
    left = spark.createDataFrame(
        [(1, "laptop", "a"), (2, "laptop", "b"), (3, "laptop", "c")], "id int, word string, city string"
    )
    right = spark.createDataFrame(
        [("x", "computer", "a"), ("l", "laptops", "b"), ("n", "notebook", "a"), ("g", "garage", "c")],
        "id string, term string, town string",
    )
    options: dict[str, Any] = {"on": ("word", "term"), "equal": ("city", "town"), "measure": "esa", "spaces": space}
    assert set(pairs(join_by_meaning(left, right, threshold=0.01, **options))) == {(1, "x"), (1, "n"), (2, "l")}
    assert set(pairs(join_by_meaning(left, right, best=1, **options))) == {(1, "x"), (2, "l")}
    kept = join_by_meaning(left, right, best=1, how="full", **options).collect()
    assert {(row["id"], row["id_right"]) for row in kept} == {(1, "x"), (2, "l"), (3, None), (None, "n"), (None, "g")}
    anti = join_by_meaning(left, right, threshold=0.01, how="anti", **options).collect()
    assert [row["id"] for row in anti] == [3]


def test_each_row_has_its_own_theme(spark: Any, space: Path, way: str) -> None:
    left = spark.createDataFrame(
        [
            (1, "parking", ["car"]),
            (2, "parking", ["energy"]),
            (3, "parking", None),
            (4, "parking", ["street", "car", None]),
        ],
        "id int, word string, theme array<string>",
    )
    right = spark.createDataFrame([("y", "garage", "car"), ("z", "garage", None)], "id string, term string, tag string")
    found = join_by_meaning(
        left, right, on=("word", "term"), best=9, spaces=space, measure="thematic", themes=("theme", "tag")
    )
    thematic = measure("thematic", spaces=[Space.open(space)])
    themes = {1: ["car"], 2: ["energy"], 3: [], 4: ["car", "street"]}
    assert pairs(found) == {
        (key, other): pytest.approx(
            float(thematic.matrix(["parking"], ["garage"], subscription_theme=mine, event_theme=theirs)[0, 0]), abs=1e-6
        )
        for (key, mine), (other, theirs) in itertools.product(themes.items(), (("y", ["car"]), ("z", [])))
    }
    assert [row["term"] for row in found.collect()] == ["garage"] * 8, "tags are no part of the term"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("esa-euclidean", {}),
        ("combined", {}),
        ("jiang-conrath", {}),
        ("concept", {}),
        ("hybrid", {}),
        ("esa+coded+opposed", {}),
        ("esa+contrast", {"competitors": ["computer", "garage", "energy"]}),
        ("esa+rank", {"background": ["computer", "garage", "energy"]}),
    ],
)
def test_every_measure(left: Any, right: Any, space: Path, name: str, options: dict[str, Any]) -> None:
    found = join_by_meaning(left, right, on=("word", "term"), threshold=0.05, spaces=space, measure=name, **options)
    assert pairs(found) == over(space, 0.05, name=name, **options)


def test_evidence_as_in_process(left: Any, right: Any, space: Path) -> None:
    """The calibrated score weighs a pair against the rivals on the right: on Spark as in process."""
    found = join_by_meaning(left, right, on=("word", "term"), threshold=0.05, spaces=space)
    tables = [
        pa.Table.from_pylist([{"id": key, name: text} for key, text in rows])
        for rows, name in ((LEFT, "word"), (RIGHT, "term"))
    ]
    wanted = join_tables(
        *tables, on=("word", "term"), threshold=0.05, measure=measure("evidence", spaces=[Space.open(space)])
    )
    by_pair = {(row["id"], row["id_right"]): row["relatedness"] for row in wanted.to_pylist()}
    assert len(by_pair) >= 5
    assert pairs(found) == {pair: pytest.approx(score, abs=1e-6) for pair, score in by_pair.items()}


def test_one_partner_for_each_term_and_how_sure_it_is(left: Any, right: Any, space: Path) -> None:
    """No term comes twice; a margin is the distance to the best other term of the right."""
    options: dict[str, Any] = {"on": ("word", "term"), "threshold": 0.05, "measure": "esa", "spaces": space}
    rows = join_by_meaning(left, right, one_to_one=True, with_margin=True, **options).collect()
    partners = {(row["word"], row["term"]) for row in rows}
    assert len(partners) == len({word for word, _ in partners}) == len({term for _, term in partners}) > 1
    every = scores(space)
    words, terms = dict(LEFT), dict(RIGHT)
    for row in rows:
        others = [
            score for (word, term), score in every.items() if words[word] == row["word"] and terms[term] != row["term"]
        ]
        assert row["margin"] == pytest.approx(row["relatedness"] - max(others, default=0), abs=1e-6)
    with pytest.raises(BuildError, match="by one column alone"):
        join_by_meaning(left, right, equal=("word", "term"), one_to_one=True, **options)


def test_reasons_of_a_join(left: Any, right: Any, space: Path, way: str) -> None:
    found = join_by_meaning(
        left, right, on=("word", "term"), threshold=0.2, measure="esa", spaces=space, with_explanation=True
    ).collect()
    (row,) = [row for row in found if (row["id"], row["id_right"]) == (1, "x")]
    assert {entry["concept"] for entry in row["why"]} == {"Laptop", "Computer"}
    assert sum(entry["weight"] for entry in row["why"]) == pytest.approx(row["relatedness"], abs=1e-6)
    assert len(found) == len(over(space, 0.2))


@pytest.mark.parametrize("how", ["inner", "left", "left_semi", "left_anti"])
def test_a_stream_joins_as_a_batch(spark: Any, left: Any, right: Any, space: Path, tmp_path: Path, how: str) -> None:
    left.repartition(3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(left.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    options: dict[str, Any] = {"on": ("word", "term"), "threshold": 0.2, "spaces": space, "how": how}
    joined = join_by_meaning(stream, right, **options)
    query = joined.writeStream.format("memory").queryName(f"joined_{how}").trigger(availableNow=True).start()
    query.awaitTermination(120)
    found = spark.table(f"joined_{how}")
    batch = join_by_meaning(left, right, **options)
    assert found.columns == batch.columns
    assert sorted(map(str, found.collect())) == sorted(map(str, batch.collect()))


def test_a_stream_with_equal_columns_and_the_nearest(
    spark: Any, left: Any, right: Any, space: Path, tmp_path: Path
) -> None:
    left.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(left.schema).parquet(str(tmp_path / "in"))
    nearest = join_by_meaning(stream, right, on=("word", "term"), best=1, measure="esa", spaces=space)
    query = nearest.writeStream.format("memory").queryName("nearest").trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert pairs(spark.table("nearest")) == pairs(
        join_by_meaning(left, right, on=("word", "term"), best=1, measure="esa", spaces=space)
    )
    equal = {"on": ("word", "term"), "equal": {"word": "term"}, "spaces": space}
    query = (
        join_by_meaning(stream, right, **equal)
        .writeStream.format("memory")
        .queryName("equal")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert set(pairs(spark.table("equal"))) == {(3, "z")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "word"}, "no column 'word' to join on"),
        ({"on": []}, "needs a column to go by"),
        ({"on": ("id", "term")}, "the column 'id' is int, not text"),
        ({"how": "cross"}, "cannot be 'cross'"),
        ({"threshold": 0}, "0 is not a threshold for a join"),
        ({"threshold": float("nan")}, "nan is not a threshold for a join"),
        ({"threshold": 1.5}, "1.5 is not a threshold for a join"),
        ({"best": 0}, "best=0 leaves nothing"),
        ({"suffix": ""}, "two columns 'id'"),
        ({"score": "word"}, "two columns 'word'"),
        ({"themes": ("id", "id")}, "the column 'id' is no theme"),
        ({"with_explanation": True, "how": "anti"}, "reasons are given for one column"),
        ({"measure": "esb"}, "no measure 'esb'"),
        ({"measure": "esa", "spaces": ()}, "needs a space"),
    ],
)
def test_mistakes_show_when_the_join_is_built(
    left: Any, right: Any, space: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BuildError, match=message):
        join_by_meaning(left, right, **({"on": ("word", "term"), "spaces": space} | options))


def test_columns_are_named_as_spark_names_them(spark: Any, left: Any, right: Any, space: Path) -> None:
    """Without regard to capitals; a column that is not there has a hint."""
    options: dict[str, Any] = {"measure": "esa", "spaces": space, "best": 1}
    found = join_by_meaning(left, right, on=("WORD", "Term"), **options)
    assert found.columns == join_by_meaning(left, right, on=("word", "term"), **options).columns
    assert pairs(found) == pairs(join_by_meaning(left, right, on=("word", "term"), **options))
    with pytest.raises(BuildError, match="no column 'wrd'") as error:
        join_by_meaning(left, right, on=("wrd", "term"), **options)
    assert "did you mean 'word'" in str(error.value)
    twins = right.selectExpr("id", "id as ID", "term")
    with pytest.raises(BuildError, match="two columns of the same name"):
        join_by_meaning(left, twins, on=("word", "term"), **options)


def test_what_a_stream_cannot_do(spark: Any, left: Any, right: Any, space: Path, tmp_path: Path) -> None:
    stream = spark.readStream.schema(left.schema).parquet(str(tmp_path))
    on = ("word", "term")
    for options, message in (
        ({"how": "full"}, "cannot be joined full"),
        ({"with_explanation": True}, "not given in a stream"),
        ({"on": [on, ("word", "id")]}, "one column of meaning"),
        ({"equal": ("word", "id"), "best": 1}, "one column of meaning"),
    ):
        with pytest.raises(BuildError, match=message):
            join_by_meaning(stream, right, **({"on": on, "spaces": space} | options))
    with pytest.raises(BuildError, match="cannot be a stream"):
        join_by_meaning(right, stream, on=("term", "word"), measure="esa", spaces=space)


def test_a_right_side_too_large_for_a_stream(
    spark: Any, left: Any, right: Any, space: Path, tmp_path: Path, in_groups: None
) -> None:
    stream = spark.readStream.schema(left.schema).parquet(str(tmp_path))
    with pytest.raises(BuildError, match="too many for a stream"):
        join_by_meaning(stream, right, on=("word", "term"), measure="esa", spaces=space)


ELSEWHERE = """
import json, sys
from likewise.pipeline import join_by_meaning, register_related, spark_session
from likewise.pipeline.joins import pairs as join_pairs
space, place, way = sys.argv[1:]
if way == "groups":
    join_pairs.SMALL, join_pairs.CHUNK, join_pairs.TALL = 0, 2, 2
settings = {"spark.sql.shuffle.partitions": "2"}
if place == "connect":
    settings["spark.api.mode"] = "connect"
spark = spark_session(**({"remote": "local[2]"} if place == "connect" else {"master": place}), settings=settings)
left = spark.createDataFrame(json.loads(sys.stdin.readline()), "id int, word string")
right = spark.createDataFrame(json.loads(sys.stdin.readline()), "id string, term string")
options = {"on": ("word", "term"), "measure": "esa", "spaces": space}
rows = join_by_meaning(left, right, threshold=0.2, with_explanation=True, **options).collect()
register_related(spark, measure="esa", spaces=space)
related = spark.sql("select related('laptop', 'computer') as r, why_related('laptop', 'computer') as why").collect()
found = [[row["id"], row["id_right"], row["relatedness"]] for row in rows]
print("RESULT", json.dumps([found, related[0]["r"], len(related[0]["why"])]))
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["small", "groups"])
@pytest.mark.parametrize("place", ["connect", "local-cluster[2,1,1024]"])
def test_the_same_in_every_place(space: Path, place: str, way: str, tmp_path: Path) -> None:
    """Over Spark Connect, and on two executors."""
    lines = json.dumps(LEFT) + "\n" + json.dumps(RIGHT) + "\n"
    command = [sys.executable, "-c", ELSEWHERE, str(space), place, way]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, input=lines, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert results, done.stderr[-3000:]
    rows, related, reasons = json.loads(results[0].removeprefix("RESULT "))
    assert {(key, other): score for key, other, score in rows} == over(space, 0.2)
    assert len(rows) == len(over(space, 0.2))
    assert related == pytest.approx(scores(space)[1, "x"], abs=1e-6)
    assert reasons == 2


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "left_semi", "left_anti"])
def test_the_left_side_is_read_once(spark: Any, tmp_path: Path, left: Any, right: Any, space: Path, how: str) -> None:
    """A table that is dear to read, or a view over much, is not read a second time for its terms."""
    left.write.parquet(str(tmp_path / "left"))
    stored = spark.read.parquet(str(tmp_path / "left"))
    found = join_by_meaning(stored, right, on=("word", "term"), threshold=0.1, how=how, measure="esa", spaces=space)
    assert found._jdf.queryExecution().optimizedPlan().toString().count("parquet") == 1


def test_a_glossary_goes_to_the_workers(spark: Any, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("vfd = fan\n")
    left = pa.table({"word": ["vfd 3", "lamp"]})
    right = pa.table({"term": ["fan", "light bulb"]})
    frames = [spark.createDataFrame(table) for table in (left, right)]
    meant = measure("evidence", glossary=Glossary.from_file(words))
    options = {"on": ("word", "term"), "threshold": 0.3}
    found = join_by_meaning(*frames, glossary=words, **options).toArrow().to_pylist()
    assert sorted(found, key=str) == sorted(join_tables(left, right, measure=meant, **options).to_pylist(), key=str)
    assert ("vfd 3", "fan") in {(row["word"], row["term"]) for row in found}
    plain = join_by_meaning(*frames, **options).collect()
    assert ("vfd 3", "fan") not in {(row["word"], row["term"]) for row in plain}
    with pytest.raises(BuildError, match="takes no glossary"):
        join_by_meaning(*frames, glossary=words, measure="jiang-conrath", **options)
