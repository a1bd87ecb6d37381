"""`likewise join`: rows of two tables with the same meaning, with equal results in this process and on Spark."""

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

from likewise.cli.app import build
from likewise.cli.reading.input import Rejects
from likewise.cli.reading.tables import read_table
from likewise.errors import BuildError, InputError
from likewise.pipeline import join_tables
from likewise.semantics import Competitors, write_space
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
    ask = ("devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--explain")
    (row,) = lines(*ask)[:1]
    assert any(reason["concept"].startswith("sentence embedding") for reason in row["why"])
    (row,) = lines(*ask, "--measure", "esa")[:1]
    assert {reason["concept"] for reason in row["why"]} == {"Laptop", "Computer"}
    shown = run(*ask, "--measure", "esa", "--space", "tiny")
    assert "device: laptop  name: computer" in shown.stdout
    assert "Laptop 0." in shown.stdout
    assert "4 rows" in shown.stderr


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_result_is_a_table_again(tables: Path, suffix: str) -> None:
    """The output can be joined again."""
    out = f"joined.{suffix}"
    result = run(
        "devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--space", "tiny", "--out", out
    )
    assert result.exit_code == 0, result.output
    again = lines(out, "catalogue.jsonl", "--on", "name", "--threshold", "1", "--how", "semi")
    assert [row["id"] for row in again] == ["1", "2", "4", "5"]
    twice = lines(out, "catalogue.jsonl", "--on", "name", "--best", "1", "--score", "second")
    assert [row["second"] for row in twice] == [1.0] * 4


def bad_tables(folder: Path) -> tuple[str, ...]:
    (folder / "bad.csv").write_text("id,device\n1,laptop\n2,a,b\n")
    (folder / "bad.jsonl").write_text('{"name": "computer"}\nno object\n[1]\n')
    return ("bad.csv", "bad.jsonl", "--on", "device=name", "--best", "1", "--space", "tiny")


def test_bad_rows_are_told_or_kept(tables: Path) -> None:
    result = run(*bad_tables(tables), "--json")
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 1, "the good rows go on"
    assert "bad.csv:3: 3 cells where the header has 2" in result.stderr
    assert "bad.jsonl:2" in result.stderr
    kept = run(*bad_tables(tables), "--dead-letters", "letters.jsonl")
    assert kept.exit_code == 0, kept.output
    assert [(letter["source"], letter["line"], letter["record"]) for letter in letters(tables / "letters.jsonl")] == [
        ("bad.csv", 3, "2,a,b"),
        ("bad.jsonl", 2, "no object"),
        ("bad.jsonl", 3, "[1]"),
    ]


def letters(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n", []),
        ("a,b\n,\n", [{"a": None, "b": None}]),
        ('a,b\n1,"say ""so"", or\nnot"\n', [{"a": "1", "b": 'say "so", or\nnot'}]),
        ("a,\n1,2\n", [{"a": "1", "_c1": "2"}]),
        (f"a\n{'x' * 200_000}\n", [{"a": "x" * 200_000}]),
    ],
    ids=["nothing", "empty", "quotes", "nameless", "long"],
)
def test_cells_of_csv(tmp_path: Path, text: str, rows: list[dict[str, Any]]) -> None:
    (tmp_path / "cells.csv").write_text(text)
    table = read_table(str(tmp_path / "cells.csv"), Rejects())
    assert table.to_pylist() == rows
    assert all(field.type == pa.string() for field in table.schema), "also where there is nothing in a column"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("devices.csv", "catalogue.jsonl", "--on", "thing"), "no column 'thing'"),
        (("devices.csv", "missing.csv", "--on", "device"), "cannot be read"),
        (("devices.csv", "catalogue.xlsx", "--on", "device"), "is not known"),
        (("-", "-", "--on", "device"), "cannot both be read from stdin"),
        (("devices.csv", "catalogue.jsonl", "--on", "device=name", "--how", "cross"), "cannot be 'cross'"),
        (
            ("devices.csv", "catalogue.jsonl", "--on", "device=name", "--threshold", "0"),
            "is not a threshold for a join",
        ),
        (("empty.csv", "catalogue.jsonl", "--on", "device=name"), "no header"),
        (("twice.csv", "catalogue.jsonl", "--on", "a=name"), "two columns are named 'a'"),
        (("devices.csv", "numbers.jsonl", "--on", "device=name"), "not text"),
    ],
)
def test_mistakes_are_told(tables: Path, arguments: tuple[str, ...], printed: str) -> None:
    (tables / "empty.csv").write_text("")
    (tables / "twice.csv").write_text("a,a\n")
    (tables / "numbers.jsonl").write_text('{"name": 1}\n')
    result = run(*arguments, "--space", "tiny")
    assert isinstance(result.exception, (BuildError, InputError))
    assert printed in str(result.exception)


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


@pytest.mark.parametrize(("name", "between"), [("d.csv", ";"), ("d.csv", "|"), ("d.tsv", "\t")])
def test_the_separator_is_seen_from_the_header(tables: Path, name: str, between: str) -> None:
    (tables / name).write_text(f"no{between}what\n1{between}computer\n2{between}1,5\n")
    found = run(name, "catalogue.jsonl", "--on", "what=name", "--out", "o.tsv", "--space", "tiny")
    assert found.exit_code == 0, found.output
    [header, row] = (tables / "o.tsv").read_text().splitlines()
    assert header.split("\t")[:2] == ['"no"', '"what"']
    assert row.split("\t")[:2] == ['"1"', '"computer"']


@pytest.mark.spark
def test_spark_gives_the_same_rows(spark: Any, tables: Path) -> None:
    ask = ("devices.csv", "catalogue.jsonl", "--on", "device=name", "--best", "1", "--how", "left")
    here, there = lines(*ask), lines(*ask, "--spark")
    assert sorted(map(str, here)) == sorted(map(str, there))
    (tables / "words.txt").write_text("laptop = computer\n")
    (tables / "stream.txt").write_text(Competitors.of(["tablet computer", "phone"]).to_text())
    printed = ("--measure", "evidence", "--glossary", "words.txt", "--background", "stream.txt")
    assert sorted(map(str, lines(*ask, *printed))) == sorted(map(str, lines(*ask, *printed, "--spark")))
    written = run(*ask, "--spark", "--out", "joined.parquet", "--space", "tiny")
    assert written.exit_code == 0, written.output
    assert pq.read_table("joined.parquet").num_rows == len(here)
    again = run(*ask, "--spark", "--out", "joined.parquet", "--space", "tiny")
    assert "already there" in str(again.exception)


@pytest.mark.spark
def test_bad_rows_are_told_or_kept_on_spark(spark: Any, tables: Path) -> None:
    """Good rows are processed as in this process; only the lines of bad ones are unknown."""
    ask = (*bad_tables(tables), "--spark")
    printed = run(*ask, "--json")
    assert printed.exit_code == 2
    assert [json.loads(line)["name"] for line in printed.stdout.splitlines()] == ["computer"]
    assert "bad.csv: 3 cells where the header has 2" in printed.stderr
    assert "bad.jsonl: not a JSON object" in printed.stderr
    kept = run(*ask, "--dead-letters", "letters.jsonl")
    assert kept.exit_code == 0, kept.output
    assert "3 bad records in letters.jsonl" in kept.stderr
    assert run(*bad_tables(tables), "--dead-letters", "here.jsonl").exit_code == 0
    assert letters(tables / "letters.jsonl") == [letter | {"line": None} for letter in letters(tables / "here.jsonl")]


HARD = {
    "quotes.csv": b'id,device\n1,"a ""big"" one, blue"\n2,\n3,""\n\n4\n5,x,y\n6,"two\nlines"\n'
    b'7,  "x" \n"8","a",",\n"\n',
    "windows.csv": b'\xef\xbb\xbfid,,de`v.ice\r\n1,2,3\r\n4,5\r\n6,"two\r\nlines",7\r\n   \r\n8" pipe,a\\,caf\xe9',
    "objects.jsonl": b'{"name": "x", "age": 1}\nno\n[1]\n[{"name": "x"}]\nnull\n{"name": "x"} y\n'
    b'{\'name\': "y"}\n\n \t\n{"b": {"a": [1.5]}, "a.b`c": null, "name": "car"}\r\n{"name": "caf\xe9"}\n{"name": "open',
    "semicolons.csv": b'id;"a, b"\n1;"x;y"\n2;1,5\n3\n4;a;b\n',
    "nothing.csv": b"id,device\n",
    "nothing.jsonl": b"no\n",
}


@pytest.mark.spark
@pytest.mark.parametrize("name", HARD)
def test_spark_reads_what_is_read_here(spark: Any, tmp_path: Path, name: str) -> None:
    """Rows, columns in order, and the reasons of bad rows."""
    from likewise.cli.spark.tables import spark_table

    (tmp_path / name).write_bytes(HARD[name])
    rejects = [Rejects(tmp_path / place) for place in ("here", "there")]
    here = read_table(str(tmp_path / name), rejects[0])
    there = spark_table(spark, str(tmp_path / name))
    there.reject(rejects[1])
    assert there.rows.columns == here.schema.names
    assert [row.asDict(recursive=True) for row in there.rows.collect()] == here.to_pylist()
    assert there.rows.count() == here.num_rows, "also where no column is asked for"
    for reject in rejects:
        reject.conclude()
    if name == "nothing.csv":
        assert rejects[0].count == rejects[1].count == 0
    else:
        printed = letters(tmp_path / "here")
        assert letters(tmp_path / "there") == [letter | {"line": None} for letter in printed]
        counts = {"quotes.csv": 3, "windows.csv": 2, "objects.jsonl": 8, "semicolons.csv": 2, "nothing.jsonl": 1}
        assert len(printed) == counts[name]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("source", "printed"),
    [("-", "not stdin"), ("missing.csv", "cannot be read"), ("empty.csv", "no header"), ("twice.csv", "two columns")],
)
def test_mistakes_are_told_on_spark(spark: Any, tables: Path, source: str, printed: str) -> None:
    (tables / "empty.csv").write_text("")
    (tables / "twice.csv").write_text("a,a\n")
    result = run(source, "catalogue.jsonl", "--on", "device=name", "--space", "tiny", "--spark")
    assert isinstance(result.exception, (BuildError, InputError))
    assert printed in str(result.exception)
