"""Relatedness in SQL is that of the measure, and a pair is asked for once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from likewise.errors import BuildError
from likewise.pipeline import register_related
from likewise.pipeline.joins import sql
from likewise.pipeline.joins.sql import Known, Meaning, related
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
    register_related(spark, measure="esa", spaces=space)
    esa = measure("esa", spaces=[Space.open(space)])
    (row,) = spark.sql("select related(a, b) as r from values ('laptop', 'computer') as t(a, b)").collect()
    assert row["r"] == pytest.approx(float(esa.matrix(["laptop"], ["computer"])[0, 0]))
    assert row["r"] > 0


@pytest.mark.spark
def test_sql_knows_themes(spark: Any, space: Path) -> None:
    """Four arguments: each row is projected by its own themes; no theme is the whole space."""
    register_related(spark, spaces=space, measure="thematic", name="related_by_theme")
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
@pytest.mark.parametrize("wrong", ["'a'", "", "'a', 'b', array('c'), array('d'), 'e'", "'a', 'b', 'c', 'd'"])
def test_wrong_arguments_fail_when_analysed(spark: Any, space: Path, wrong: str) -> None:
    from pyspark.errors import AnalysisException

    register_related(spark, measure="esa", spaces=space)
    for name in ("related", "why_related"):
        with pytest.raises(AnalysisException):
            spark.sql(f"select {name}({wrong})")


@pytest.mark.spark
def test_sql_says_why(spark: Any, space: Path) -> None:
    """The concepts that both terms share; their weights are parts of the score."""
    register_related(spark, measure="esa", spaces=space)
    (row,) = spark.sql(
        "select related('laptop', 'computer') as r, why_related('laptop', 'computer') as why, "
        "why_related('laptop', null) as none"
    ).collect()
    assert {entry["concept"] for entry in row["why"]} == {"Laptop", "Computer"}
    assert sum(entry["weight"] for entry in row["why"]) == pytest.approx(row["r"])
    assert row["none"] is None


@pytest.mark.spark
def test_columns_of_other_types_and_one_theme(spark: Any, space: Path) -> None:
    """Numbers are compared as their text; a side without a theme is projected by none."""
    register_related(spark, spaces=space, measure="thematic", name="related_by_theme")
    (row,) = spark.sql("""
        select related_by_theme(1, '1') as same, related_by_theme('parking', 'garage', array('car')) as one,
            related_by_theme('parking', 'garage', array('car'), array()) as list
    """).collect()
    assert row["same"] == 1
    assert row["one"] == pytest.approx(row["list"])


class Counted(TableMeasure):
    """Counts the pairs that it is asked for."""

    asked = 0

    def matrix(self, subscription_terms: Any, event_terms: Any, **themes: Any) -> Any:
        self.asked += len(subscription_terms) * len(event_terms)
        return super().matrix(subscription_terms, event_terms, **themes)


def test_a_pair_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over batches, too: what a column costs goes by its distinct pairs."""
    table, known = Counted({("laptop", "computer"): 0.5}), Known()
    left, right = pa.array(["laptop"] * 1000), pa.array(["computer"] * 1000)
    assert set(related(table, left, right, known=known).to_pylist()) == {0.5}
    assert related(table, left.slice(0, 3), right.slice(0, 3), known=known).to_pylist() == [0.5] * 3
    assert table.asked == 1
    # Under other themes it is another question.
    car = pa.array([["car"]] * 1000)
    related(table, left, right, car, car, known=known)
    assert table.asked == 2


def test_what_is_too_much_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """And asked for again, with the same answer."""
    monkeypatch.setattr(sql, "KEPT_PAIRS", 2)
    monkeypatch.setattr(sql, "KEPT_TERMS", 4)
    table, known = Counted({("a", "b"): 0.5, ("c", "d"): 0.25, ("e", "f"): 0.75}), Known()
    left, right = pa.array(["a", "c", "e", "a"]), pa.array(["b", "d", "f", "f"])
    for _ in range(3):
        assert related(table, left, right, known=known).to_pylist() == [0.5, 0.25, 0.75, 0.0]
    assert table.asked > 4


def test_equal_terms_that_no_space_knows_are_the_same(space: Path) -> None:
    esa = measure("esa", spaces=[Space.open(space)])
    left, right = pa.array(["zzyzx", "Zzyzx", "zzyzx", ""]), pa.array(["zzyzx", "zzyzx", "qwxy", ""])
    assert related(esa, left, right).to_pylist() == [1.0, 1.0, 0.0, 1.0]


def test_no_rows_no_scores(space: Path) -> None:
    esa = measure("esa", spaces=[Space.open(space)])
    nothing = pa.array([], pa.string())
    assert related(esa, nothing, nothing).to_pylist() == []
    tags = pa.array([], pa.list_(pa.string()))
    assert related(esa, nothing, nothing, tags, tags).to_pylist() == []


@pytest.mark.parametrize("name", ["esa+opposed", "esa+coded+opposed", "combined", "esa+contrast"])
def test_composites_have_their_options(name: str, space: Path) -> None:
    """A measure that needs terms to compare with gets them; the same meaning has the same key."""
    options = {"competitors": ["computer", "garage"]} if "contrast" in name else {}
    meaning = Meaning.of(name, space, **options)
    made = meaning.measure()
    found = related(made, pa.array(["laptop"]), pa.array(["computer"])).to_pylist()
    assert found == [pytest.approx(float(made.matrix(["laptop"], ["computer"])[0, 0]))]
    assert Meaning.of(name, space, **options).key == meaning.key
    assert Meaning.of("esa", space).key != meaning.key


def test_a_measure_says_what_it_lacks(space: Path) -> None:
    with pytest.raises(BuildError, match="needs a space"):
        Meaning.of("esa", ())
    with pytest.raises(BuildError, match="needs competitors"):
        Meaning.of("esa+contrast", space)
    with pytest.raises(BuildError, match="does not take these options"):
        Meaning.of("esa", space, colour="red")
