"""Errors from outside Likewise: one message, exit code 2, no traceback."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.cli.trouble import explained

EVENTS = "".join(
    json.dumps({"id": str(number), "time": number, "attributes": {"type": "presence"}}) + "\n" for number in range(5000)
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    (tmp_path / "interest.lw").write_text("a: {type = presence}\n")
    (tmp_path / "other.lw").write_text("a: {type = presence}\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


def likewise(folder: Path, *arguments: str, out: object = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "likewise", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        stdout=out,  # type: ignore[call-overload]
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ | {"LIKEWISE_SPACES": "no-such-folder"},
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["detect", "events.jsonl", "interest.lw", "--snapshot", "folder"], "--snapshot folder is a folder"),
        (["detect", "events.jsonl", "interest.lw", "--snapshot", "interest.lw"], "are the same file: interest.lw"),
        (["detect", "events.jsonl", "interest.lw", "--snapshot", "other.lw"], "other.lw: this is not a snapshot"),
        (["detect", "events.jsonl", "interest.lw", "--chart", "line.png"], "charts are not written as '.png'"),
        (["detect", "events.jsonl", "interest.lw", "--until", "tomorrow"], "'tomorrow' is not a time"),
        (["match", "events.jsonl", "interest.lw", "--chart", "why.pdf"], "charts are not written as '.pdf'"),
        (["match", "events.jsonl", "interest.lw", "--rank", "1", "--explain"], "--rank excludes --chart"),
        (["match", "events.jsonl", "interest.lw", "--out", "folder"], "--out folder is a folder"),
        (["match", "folder", "interest.lw"], "folder: cannot be read"),
        (["dataset", "thematic", "--out", "interest.lw", "--data", "none"], "EuroVoc is not at none"),
    ],
)
def test_mistakes_are_told_before_the_work(files: Path, arguments: list[str], message: str) -> None:
    done = likewise(files, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_a_full_disk_is_told(files: Path, extra: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = likewise(files, "match", "events.jsonl", "interest.lw", *extra, out=full)
    assert done.returncode != 0
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(files: Path) -> None:
    """`likewise match … | head -1`"""
    command = [sys.executable, "-m", "likewise", "match", "events.jsonl", "interest.lw", "--json"]
    with subprocess.Popen(command, cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        printed = running.stderr.read()
    assert running.returncode == 0
    assert b"Traceback" not in printed


def test_events_before_a_cut_are_worked_on(files: Path) -> None:
    """Events before the break of a compressed file are matched, and the break is reported."""
    whole = gzip.compress(os.urandom(0) + EVENTS.encode(), compresslevel=1)
    (files / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    done = likewise(files, "match", "cut.jsonl.gz", "interest.lw", "--json")
    found = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert done.returncode == 2
    assert "cut.jsonl.gz: cannot be read" in done.stderr
    assert found
    assert found == [str(number) for number in range(len(found))]
    assert len(found) % 1000, "the last batch is one that was not full"


def test_one_bad_record_never_loses_the_good_ones(files: Path) -> None:
    (files / "mixed.jsonl").write_text('{"attributes": {"type": NaN}}\n{"attributes": {"type": "presence"}}\n')
    (files / "labels.tsv").write_text("a\tmixed.jsonl:2\t1\n")
    for arguments in (
        ["vocabulary", "mixed.jsonl"],
        ["tune", "mixed.jsonl", "interest.lw", "--labels", "labels.tsv", "--approach", "exact"],
    ):
        done = likewise(files, *arguments)
        assert done.returncode == 2
        assert "mixed.jsonl:1: not valid JSON" in done.stderr
        assert "JSON has no such numbers" in done.stderr
        assert done.stdout
        letters = files / f"{arguments[0]}.jsonl"
        kept = likewise(files, *arguments, "--dead-letters", letters.name)
        assert kept.returncode == 0, kept.stderr
        assert json.loads(letters.read_text())["line"] == 1


def test_subscriptions_in_another_encoding_are_refused_everywhere(files: Path) -> None:
    (files / "latin.lw").write_bytes("a: {type = présence}".encode("latin-1"))
    (files / "labels.tsv").write_text("a\t1\t1\n")
    for arguments in (
        ["match", "events.jsonl", "latin.lw"],
        ["check", "latin.lw"],
        ["tune", "events.jsonl", "latin.lw", "--labels", "labels.tsv"],
    ):
        done = likewise(files, *arguments)
        assert done.returncode == 2
        assert "latin.lw:1: not UTF-8 text\n  hint: save the file as UTF-8" in done.stderr


def test_a_module_that_is_not_installed_names_the_extra() -> None:
    printed = explained(ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"))
    assert printed is not None
    assert printed.hint == "pip install 'likewise[spark]'"
    assert explained(ModuleNotFoundError("No module named 'x'", name="x")) is None


def test_spark_that_is_not_installed_is_told_by_every_command(files: Path) -> None:
    """A module of that name that cannot be imported replaces the missing one."""
    (files / "away" / "pyspark").mkdir(parents=True)
    (files / "away" / "pyspark" / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='pyspark')")
    for arguments in (
        ["match", "events.jsonl", "interest.lw", "--spark"],
        ["detect", "events.jsonl", "interest.lw", "--spark"],
        ["stream", "interest.lw", "--from", "path=folder", "--checkpoint", "state"],
        ["space", "build", "--corpus", "events.jsonl", "--out", "built"],
    ):
        command = [sys.executable, "-m", "likewise", *arguments]
        path = {"PYTHONPATH": str(files / "away")}
        done = subprocess.run(command, cwd=files, capture_output=True, text=True, env=os.environ | path, check=False)
        assert done.returncode == 2
        assert "hint: pip install 'likewise[spark]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_what_spark_raises_is_one_line() -> None:
    class RefusedError(Exception):
        """As pyspark's own."""

    RefusedError.__module__ = "pyspark.errors.exceptions.captured"
    printed = explained(
        RefusedError("[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03\n\nJVM stacktrace:\n at a.b")
    )
    assert printed is not None
    assert printed.message == "Spark reports: [PATH_NOT_FOUND] Path does not exist: x."
    assert printed.hint is not None
