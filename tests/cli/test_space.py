"""The `space` commands: their text, their JSON and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.errors import LikewiseError
from likewise.semantics import write_space

RUNNER = CliRunner()


def run(*arguments: str) -> str:
    result = RUNNER.invoke(build(), ["space", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIKEWISE_SPACES", str(tmp_path))
    write_space(tmp_path / "tiny", [("garage", "parking cars"), ("street", "parked cars")])
    return tmp_path


def test_list_names_every_space(shelf: Path) -> None:
    (shelf / "broken").mkdir()
    assert run("list").startswith("tiny ")
    broken, tiny = json.loads(run("list", "--json"))
    assert (broken["name"], tiny["name"], tiny["concepts"]) == ("broken", "tiny", 2)
    assert "no manifest.json" in broken["error"]


def test_list_of_an_empty_shelf_tells_how_to_build(tmp_path: Path) -> None:
    assert json.loads(run("list", str(tmp_path), "--json")) == []
    assert run("list", str(tmp_path)) == ""


def test_info_by_name_and_by_path(shelf: Path) -> None:
    by_name = json.loads(run("info", "tiny", "--json"))
    by_path = json.loads(run("info", str(shelf / "tiny"), "--verify", "--json"))
    assert by_name["id"] == by_path["id"]
    assert (by_name["concepts"], by_name["terms"], by_name["postings"]) == (2, 3, 4)
    assert "2 concepts, 3 terms, 4 postings" in run("info", "tiny")


def test_info_of_no_space_tells_which_there_are(shelf: Path) -> None:
    with pytest.raises(LikewiseError, match="there are: tiny"):
        run("info", "tinny")


def test_info_refuses_a_changed_space(shelf: Path) -> None:
    path = shelf / "tiny" / "freq.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x09")
    with pytest.raises(LikewiseError, match="checksum differs"):
        run("info", "tiny", "--verify")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus", "nowhere.jsonl"], "no corpus at nowhere.jsonl"),
        (["--corpus", "wordnet", "--format", "pdf"], "no corpus format 'pdf'"),
        (["--corpus", "wordnet", "--out", "tiny"], "already exists"),
        (["--corpus", "wordnet", "--sample", "3"], "is not a share of the corpus"),
        (["--corpus", "wordnet", "--weighting", "bm25"], "unknown weighting 'bm25'"),
        (["--corpus", "wordnet", "--master", "local[1]", "--remote", "sc://x"], "either a master or a remote"),
    ],
)
def test_build_refuses_mistakes_before_spark_starts(shelf: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(LikewiseError, match=message.replace("'", ".")):
        run("build", "--out", "new", *arguments)
    assert not (shelf / "new").exists()
