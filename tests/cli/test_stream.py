"""The commands on Spark: `stream`, `match --spark`, `detect --spark`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark")

from tests.pipeline.traces import PATTERNS, expected, trace, write_files

from likewise.cli.app import build
from likewise.errors import LikewiseError

pytestmark = pytest.mark.spark


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(build(), [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path / "in", trace(40), size=20)
    (tmp_path / "subscriptions.lw").write_text("a: {type = a}\n")
    (tmp_path / "patterns.lw").write_text(PATTERNS)
    return tmp_path


def test_stream_goes_on_where_it_was(spark: Any, folder: Path) -> None:
    """Started again on the same checkpoint, only new results are printed."""
    arguments = (
        *("stream", folder / "subscriptions.lw", "--from", f"path={folder / 'in'}", "--checkpoint", folder / "state"),
        *("--sink", "files", "--to", f"path={folder / 'out'}", "--once", "--json"),
    )
    summary = json.loads(run(*arguments).stdout.splitlines()[-1])
    assert summary["events"] == 40
    wanted = sum(dict(event.tuples)["type"] == "a" for event in trace(40))
    assert spark.read.parquet(str(folder / "out")).count() == wanted
    assert json.loads(run(*arguments).stdout.splitlines()[-1])["events"] == 0


def test_stream_shows_detections_and_keeps_what_it_refused(spark: Any, folder: Path) -> None:
    """The console shows a few rows only, but the state is right in every batch."""
    (folder / "in" / "0001.jsonl").write_bytes((folder / "in" / "0001.jsonl").read_bytes() + b"poison\n")
    os.utime(folder / "in" / "0001.jsonl", (10**9 + 1, 10**9 + 1))
    (folder / "patterns.lw").write_text("close: {type = a} as x then {type = b} as y within 5 seconds")
    printed = run(
        *("stream", folder / "patterns.lw", "--from", f"path={folder / 'in'}", "--from", "maxFilesPerTrigger=1"),
        *("--checkpoint", folder / "state", "--dead-letters", folder / "letters", "--once", "--json"),
    )
    *shown, summary = map(json.loads, printed.stdout.splitlines())
    found = expected(trace(40), "close: {type = a} as x then {type = b} as y within 5 seconds")
    assert len(shown) == len(found) > 0
    assert (summary["events"], summary["refused"]) == (41, 1)
    (letter,) = spark.read.json(str(folder / "letters")).collect()
    assert letter["record"] == "poison"


def test_match_and_detect_give_on_spark_what_they_give_without(spark: Any, folder: Path) -> None:
    file = folder / "in" / "0000.jsonl"
    plain = run("match", file, folder / "subscriptions.lw", "--json").stdout.splitlines()
    spread = run("match", file, folder / "subscriptions.lw", "--json", "--spark").stdout.splitlines()
    assert sorted(json.loads(line)["event"] for line in spread) == sorted(json.loads(line)["event"] for line in plain)
    assert plain
    alone = run("detect", file, folder / "patterns.lw", "--json").stdout.splitlines()
    found = run("detect", file, folder / "patterns.lw", "--json", "--spark").stdout.splitlines()
    assert sorted(found) == sorted(alone)
    assert alone


def test_on_spark_a_bad_record_is_told_and_what_cannot_be_done_is_refused(spark: Any, folder: Path) -> None:
    file = folder / "bad.jsonl"
    file.write_text((folder / "in" / "0000.jsonl").read_text() + "no event\n")
    assert run("match", file, folder / "subscriptions.lw", "--spark").exit_code == 2
    kept = run("match", file, folder / "subscriptions.lw", "--spark", "--dead-letters", folder / "dead.jsonl")
    assert kept.exit_code == 0
    assert json.loads((folder / "dead.jsonl").read_text())["record"] == "no event"
    with pytest.raises(LikewiseError, match="not on Spark: --lateness, --explain"):
        run("detect", file, folder / "patterns.lw", "--spark", "--lateness", "5 s", "--explain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sink", "pigeon"], "there is no sink"),
        (["--sink", "files"], "needs path"),
        (["--from", "path"], "not KEY=VALUE"),
        (["--what", "wonders"], "cannot return"),
        (["--every", "1 second", "--once", "--from", "path=x"], "exclude each other"),
        (["--source", "pigeon"], "no source"),
        (["--from", "path=nowhere"], "nothing at --from path=nowhere"),
        (["--from", "path=in", "--every", "soon"], "not a length of time"),
        (["--sink", "webhook", "--to", "url=http://x", "--to", "size=many"], "size must be a number"),
    ],
)
def test_stream_says_what_is_wrong(spark: Any, folder: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(LikewiseError, match=message):
        run("stream", folder / "subscriptions.lw", "--checkpoint", folder / "state", *arguments)


def test_meaning_and_records_are_told_to_every_command_alike(spark: Any, tmp_path: Path) -> None:
    """A glossary, a settings file and a mapping mean the same to `match`, `match --spark` and `stream`."""
    (tmp_path / "in").mkdir()
    feed = tmp_path / "in" / "feed.jsonl"
    feed.write_text('{"no": "a", "ts": 1, "kind": "FLRP"}\n{"no": "b", "zeitpunkt": "2026-03-01", "kind": "cloud"}\n')
    (tmp_path / "s.lw").write_text("flow: {kind~ = flow rate of the pump~}\n")
    (tmp_path / "terms.txt").write_text("FLRP = flow rate of the pump\n")
    (tmp_path / "s.toml").write_text('glossary = "terms.txt"\nthreshold = 0.6\n')
    printed = ("--settings", tmp_path / "s.toml", "--id", "no", "--time", "ts", "--time", "zeitpunkt")
    for where in ((), ("--spark",)):
        done = run("match", feed, tmp_path / "s.lw", *printed, *where, "--json")
        assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["a"], done.stderr
    streamed = run(
        *(
            "stream",
            tmp_path / "s.lw",
            *printed,
            "--from",
            f"path={tmp_path / 'in'}",
            "--checkpoint",
            tmp_path / "state",
        ),
        *("--sink", "files", "--to", f"path={tmp_path / 'out'}", "--once"),
    )
    assert streamed.exit_code == 0
    assert [row.event_id for row in spark.read.parquet(str(tmp_path / "out")).collect()] == ["a"]
