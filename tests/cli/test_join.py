"""`likewise join`: tables in, rows that mean the same out, the same in this process as on Spark."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from likewise.cli._app import build
from likewise.cli._tables import join_tables
from likewise.errors import BuildError, InputError
from likewise.semantics import write_space
from likewise.testing import TableMeasure

DOCUMENTS = [
    ("Car park", "parking garage car vehicle parking space street"),
    ("Garage", "garage car repair vehicle parking door"),
    ("Laptop", "laptop computer notebook battery power"),
    ("Computer", "computer laptop processor memory"),
    ("Office", "computer office desk room"),
]
DEVICES = "id,device\n1,laptop\n2,parking\n3,\n4,zzyzx\n5,laptop\n"
CATALOGUE = [
    {"name": "computer", "owner": "IT"},
    {"name": "garage", "owner": "facilities"},
    {"name": "zzyzx", "owner": "?"},
]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_space(tmp_path / "tiny", DOCUMENTS)
    (tmp_path / "devices.csv").write_text(DEVICES)
    (tmp_path / "catalogue.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CATALOGUE))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build(), ["join", *arguments])


def lines(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--json", "--space", "tiny")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_of_two_files(tables: Path) -> None:
    rows = lines("devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1")
    assert [(row["id"], row["name"]) for row in rows] == [
        ("1", "computer"),
        ("2", "garage"),
        ("4", "zzyzx"),
        ("5", "computer"),
    ]
    assert rows[2]["relatedness"] == 1
    assert list(rows[0]) == ["id", "device", "name", "owner", "relatedness"]


def test_what_has_no_partner_stays_on_the_side_asked_for(tables: Path) -> None:
    ask = ("devices.csv", "catalogue.jsonl", "--on", "device=name", "--threshold", "1")
    assert [(r["id"], r["owner"], r["relatedness"]) for r in lines(*ask, "--how", "full")] == [
        ("4", "?", 1.0),
        *((key, None, None) for key in ("1", "2", "3", "5")),
        *((None, owner, None) for owner in ("IT", "facilities")),
    ]
    assert [row["id"] for row in lines(*ask, "--how", "anti")] == ["1", "2", "3", "5"]
    assert lines(*ask, "--how", "semi") == [{"id": "4", "device": "zzyzx"}]


def test_reasons_and_people_s_output(tables: Path) -> None:
    (row,) = lines("devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--explain")[:1]
    assert {each["concept"] for each in row["why"]} == {"Laptop", "Computer"}
    shown = run("devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--explain", "--space", "tiny")
    assert "device: laptop  name: computer" in shown.stdout
    assert "Laptop 0." in shown.stdout
    assert "4 rows" in shown.stderr


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_result_is_a_table_again(tables: Path, suffix: str) -> None:
    """What was written joins again."""
    out = f"joined.{suffix}"
    result = run(
        "devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--space", "tiny", "--out", out
    )
    assert result.exit_code == 0, result.output
    again = lines(out, "catalogue.jsonl", "--on", "name", "--threshold", "1", "--how", "semi")
    assert [row["id"] for row in again] == ["1", "2", "4", "5"]
    twice = lines(out, "catalogue.jsonl", "--on", "name", "--best", "1", "--score", "second")
    assert [row["second"] for row in twice] == [1.0] * 4


def test_bad_rows_are_told_or_kept(tables: Path) -> None:
    (tables / "bad.csv").write_text("id,device\n1,laptop\n2,a,b\n")
    (tables / "bad.jsonl").write_text('{"name": "computer"}\nno object\n[1]\n')
    ask = ("bad.csv", "bad.jsonl", "--on", "device=name", "--best", "1", "--space", "tiny")
    result = run(*ask, "--json")
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 1, "the good rows go on"
    assert "bad.csv:3: 3 cells where the header has 2" in result.stderr
    assert "bad.jsonl:2" in result.stderr
    kept = run(*ask, "--dead-letter", "letters.jsonl")
    assert kept.exit_code == 0, kept.output
    assert len((tables / "letters.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("devices.csv", "catalogue.jsonl", "--on", "thing"), "no column 'thing'"),
        (("devices.csv", "missing.csv", "--on", "device"), "cannot be read"),
        (("devices.csv", "catalogue.xlsx", "--on", "device"), "what kind of table"),
        (("-", "-", "--on", "device"), "cannot come from stdin"),
        (("devices.csv", "catalogue.jsonl", "--on", "device=name", "--how", "cross"), "cannot be 'cross'"),
        (("devices.csv", "catalogue.jsonl", "--on", "device=name", "--threshold", "2"), "no bar for a join"),
        (("empty.csv", "catalogue.jsonl", "--on", "device=name"), "no header"),
        (("devices.csv", "numbers.jsonl", "--on", "device=name"), "not text"),
    ],
)
def test_mistakes_are_told(tables: Path, arguments: tuple[str, ...], told: str) -> None:
    (tables / "empty.csv").write_text("")
    (tables / "numbers.jsonl").write_text('{"name": 1}\n')
    result = run(*arguments, "--space", "tiny")
    assert isinstance(result.exception, (BuildError, InputError))
    assert told in str(result.exception)


def test_a_folder_of_parquet_is_a_table(tables: Path) -> None:
    (tables / "catalogue").mkdir()
    pq.write_table(pa.Table.from_pylist(CATALOGUE), tables / "catalogue" / "part.parquet")
    assert len(lines("devices.csv", "catalogue", "--on", "device=name", "--best", "1")) == 4


WORDS = st.sampled_from(["a", "b", "c", "d", None])


@given(st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6), st.sampled_from(["inner", "left", "right", "full"]))
def test_a_join_is_a_loop_over_all_pairs(left: list[str | None], right: list[str | None], how: str) -> None:
    table = TableMeasure({("a", "b"): 0.5, ("a", "c"): 0.25, ("c", "d"): 0.75})
    near = {
        (i, j): float(table.matrix([a], [b])[0, 0])
        for (i, a), (j, b) in itertools.product(enumerate(left), enumerate(right))
        if a is not None and b is not None
    }
    wanted = [(i, j, score) for (i, j), score in near.items() if score >= 0.5]
    if how in ("left", "full"):
        wanted += [(i, None, None) for i in range(len(left)) if all(i != a for a, _, _ in wanted)]
    if how in ("right", "full"):
        wanted += [(None, j, None) for j in range(len(right)) if all(j != b for _, b, _ in wanted)]
    tables = [
        pa.table({"at": pa.array(np.arange(len(words))), "word": pa.array(words, pa.string())})
        for words in (left, right)
    ]
    found = join_tables(*tables, on=("word", "word"), measure=table, threshold=0.5, how=how).to_pylist()
    assert sorted(map(str, ((row["at"], row["at_right"], row["relatedness"]) for row in found))) == sorted(
        map(str, wanted)
    )


@pytest.mark.spark
def test_spark_gives_the_same_rows(spark: Any, tables: Path) -> None:
    ask = ("devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--how", "left")
    here, there = lines(*ask), lines(*ask, "--spark")
    assert sorted(map(str, here)) == sorted(map(str, there))
    written = run(*ask, "--spark", "--out", "joined.parquet", "--space", "tiny")
    assert written.exit_code == 0, written.output
    assert pq.read_table("joined.parquet").num_rows == len(here)
