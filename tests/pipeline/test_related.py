"""Relatedness in SQL and in joins is that of the measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from likewise.errors import BuildError
from likewise.pipeline._related import Meaning, join_by_meaning, register_related, related
from likewise.semantics import Space, measure, write_space
from likewise.testing import TableMeasure

DOCUMENTS = [
    ("Car park", "parking garage car vehicle parking space street"),
    ("Garage", "garage car repair vehicle parking door"),
    ("Energy use", "energy consumption usage electricity meter"),
    ("Laptop", "laptop computer notebook battery power"),
    ("Computer", "computer laptop processor memory"),
]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spaces") / "tiny"
    write_space(folder, DOCUMENTS)
    return folder


def test_rows_get_their_own_pair_and_nulls_stay_null() -> None:
    table = TableMeasure({("laptop", "computer"): 0.5, ("car", "bus"): 0.25})
    left = pa.array(["laptop", "car", None, "car", "laptop"])
    right = pa.array(["computer", "bus", "bus", None, "laptop"])
    assert related(table, left, right).to_pylist() == [0.5, 0.25, None, None, 1.0]


def test_themes_choose_the_meaning_of_each_row(space: Path) -> None:
    thematic = measure("thematic", spaces=[Space.open(space)])
    left, right = pa.array(["parking"] * 2), pa.array(["garage"] * 2)
    themes = pa.array([["car"], ["energy"]])
    found = related(thematic, left, right, themes, themes).to_pylist()
    assert found == [
        pytest.approx(thematic.matrix(["parking"], ["garage"], subscription_theme=[tag], event_theme=[tag])[0, 0])
        for tag in ("car", "energy")
    ]


@pytest.mark.spark
def test_sql_knows_related(spark: Any, space: Path) -> None:
    register_related(spark, space=space)
    esa = measure("esa", spaces=[Space.open(space)])
    (row,) = spark.sql("select related(a, b) as r from values ('laptop', 'computer') as t(a, b)").collect()
    assert row["r"] == pytest.approx(float(esa.matrix(["laptop"], ["computer"])[0, 0]))
    assert row["r"] > 0


@pytest.mark.spark
def test_sql_knows_themes(spark: Any, space: Path) -> None:
    """Four arguments: each row is projected by its own themes; no theme is the whole space."""
    register_related(spark, space=space, measure="thematic", name="related_by_theme")
    thematic = measure("thematic", spaces=[Space.open(space)])
    rows = spark.sql("""
        select tag, related_by_theme('parking', 'garage', array(tag), array('car', tag)) as themed,
            related_by_theme('parking', 'garage') as plain
        from values ('car'), ('energy'), ('laptop') as t(tag)
    """).collect()
    for row in rows:
        themes = {"subscription_theme": [row["tag"]], "event_theme": ["car", row["tag"]]}
        assert row["themed"] == pytest.approx(float(thematic.matrix(["parking"], ["garage"], **themes)[0, 0]))
        assert row["plain"] == pytest.approx(float(thematic.matrix(["parking"], ["garage"])[0, 0]))
    assert len({row["themed"] for row in rows}) > 1


@pytest.mark.spark
def test_three_arguments_are_refused(spark: Any, space: Path) -> None:
    from pyspark.errors import PySparkException

    register_related(spark, space=space)
    with pytest.raises(PySparkException, match="two terms, and perhaps two themes"):
        spark.sql("select related('a', 'b', array('c'))").collect()


@pytest.mark.spark
def test_tables_join_by_meaning(spark: Any, space: Path) -> None:
    """Rows join where the measure is at or over the threshold, and only there."""
    left = spark.createDataFrame([(1, "laptop"), (2, "parking"), (3, "unknown"), (4, None)], "id int, word string")
    right = spark.createDataFrame([("x", "computer"), ("y", "garage")], "id string, term string")
    found = join_by_meaning(left, right, on=("word", "term"), threshold=0.2, space=space)
    esa = measure("esa", spaces=[Space.open(space)])
    scores = esa.matrix(["laptop", "parking"], ["computer", "garage"])
    wanted = {
        (key, other): float(scores[i, j])
        for i, key in enumerate((1, 2))
        for j, other in enumerate(("x", "y"))
        if scores[i, j] >= 0.2
    }
    rows = {(row["id"], row["id_right"]): row["relatedness"] for row in found.collect()}
    assert rows == {pair: pytest.approx(score) for pair, score in wanted.items()}
    assert rows
    kept = join_by_meaning(left, right, on=("word", "term"), threshold=0.2, space=space, how="left")
    assert {row["id"] for row in kept.collect()} == {1, 2, 3, 4}


def test_a_join_says_what_it_lacks(space: Path) -> None:
    with pytest.raises(BuildError, match="needs a space"):
        Meaning.of("esa", ())
