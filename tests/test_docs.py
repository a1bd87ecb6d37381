"""The README and the docs are up to date: their Python runs, their commands print the output that is shown, and their
subscriptions and events parse."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.cli.trouble import explained
from likewise.errors import LikewiseError
from likewise.events import decode_line, read_events
from likewise.language import parse, parse_event

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

NOT_RUN = {
    "likewise space build": "on Spark; tests/cli/test_space.py",
    "likewise stream": "runs until it is stopped; tests/cli/test_stream.py",
    "likewise evaluate": "takes minutes and the data sets; tests/evaluation",
    "likewise dataset": "takes the data sets; tests/evaluation",
    "likewise detect homes.jsonl": "takes the data sets; tests/cli/test_detect.py",
    "likewise detect aarhus.jsonl": "takes the data sets; tests/cli/test_detect.py",
    "likewise why EVENT": "a form, not a command; tests/cli/test_why.py",
    "likewise serve": "runs until it is stopped; tests/cli/test_broker.py",
    "likewise publish": "needs a running broker; tests/cli/test_broker.py",
    "likewise subscribe '": "needs a running broker; tests/cli/test_broker.py",
    "likewise subscriptions": "needs a running broker; tests/cli/test_broker.py",
    "likewise tail": "needs a running broker; tests/cli/test_broker.py",
    "likewise history": "needs a running broker; tests/cli/test_broker.py",
    "likewise demo": "on Spark; tests/pipeline",
    "likewise node": "needs nodes that run; tests/overlay/test_network.py",
    "likewise subscribe alarms.txt": "needs nodes that run; tests/overlay/test_network.py",
    "likewise overlay --help": "the help of every command; tests/cli/test_help.py",
    "likewise overlay status": "needs nodes that run; tests/overlay/test_network.py",
}
"""Commands that are only parsed, by the command's own parser, and where they are run instead."""
OTHERS = ("scripts/", "pip install", "uv pip", "mosquitto_pub", "git ", "java ")
"""Commands of other programs, which are not run."""

EVENTS = [
    {"id": "e1", "time": "2026-01-01T10:00:00Z", "attributes": {"device": "computer", "office": "room 112"}},
    {"id": "e2", "time": "2026-01-01T10:04:00Z", "attributes": {"type": "presence", "room": "101"}},
]
ARTICLES = [
    {"title": "Car park", "text": "A car park is a place to leave a vehicle; a garage is a car park with a roof."},
    {"title": "Garage", "text": "A garage keeps a vehicle, and a car park keeps many."},
]


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def is_shell(self) -> bool:
        return self.language in ("", "console") and self.text.startswith(("$ ", "likewise ", *OTHERS))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.S | re.M)
    return [Block(page.name, text.count("\n", 0, each.start()) + 1, each[1], each[2]) for each in found]


EVERY = [block for page in PAGES for block in blocks(page)]


def named(block: Block) -> str:
    return f"{block.page}:{block.line}"


@pytest.fixture
def desk(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that pages mention, and spaces: WordNet's also under the names of others."""
    lines = "".join(json.dumps(event) + "\n" for event in EVENTS)
    interest = "usage: {device~ = laptop~, office = room 112}\nsomeone: {type = presence}\n"
    for name in ("events.jsonl", "EVENTS"):
        (tmp_path / name).write_text(lines)
    (tmp_path / "events.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("subscriptions.lw", "subscriptions.txt", "SUBSCRIPTIONS", "PATTERNS"):
        (tmp_path / name).write_text(interest)
    for name in ("labels.tsv", "LABELS"):
        (tmp_path / name).write_text("usage\te1\t1\nsomeone\te2\t1\nsomeone\te1\t0\n")
    articles = "".join(json.dumps(article) + "\n" for article in ARTICLES)
    (tmp_path / "articles.jsonl.bz2").write_bytes(bz2.compress(articles.encode()))
    (tmp_path / "readings.csv").write_text("sensor,at,celsius\nkitchen,2026-01-01T10:00:00Z,21.5\n")
    (tmp_path / "feed.jsonl").write_text('{"deviceId": "d1", "ts": "2026-01-01T10:00:00Z", "temp": 21.5}\n')
    (tmp_path / "patterns.lw").write_text("warm: {temp > 20} as t then {temp > 21} as u within 1 hour\n")
    (tmp_path / "devices.csv").write_text("device,room\nlaptop,112\n")
    (tmp_path / "parts.csv").write_text("name,price\nnotebook computer,900\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "shelf").mkdir()
    for name in ("wordnet", "wikipedia", "manuals"):
        (tmp_path / "shelf" / name).symlink_to(shelf / "wordnet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_SPACES", str(tmp_path / "shelf"))
    return tmp_path


def test_there_are_blocks_of_every_kind() -> None:
    assert {"python", "console", "json", ""} <= {block.language for block in EVERY}


def test_fences_are_closed() -> None:
    for page in PAGES:
        assert page.read_text(encoding="utf-8").count("\n```") % 2 == 0, page.name


# --- Python ------------------------------------------------------------------------------------------------------


PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]
ELSEWHERE = "from pathlib import Path\nfrom likewise.pipeline import"
"""The script of the page on Spark: tests/pipeline/test_docs.py."""


@pytest.mark.spark
@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_python_runs_and_prints_what_the_page_shows(
    page: Path, desk: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks run in order, as a reader would paste them; a `text` block right after one is its output."""
    names = _given(page.name, spark)
    for block, after in pairwise([*blocks(page), Block("", 0, "", "")]):
        if block.language != "python" or block.text.startswith(ELSEWHERE):
            continue
        stdin = io.TextIOWrapper(io.BytesIO((desk / "events.jsonl").read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            # The session is shared by all tests.
            exec(compile(block.text.replace("spark.stop()", ""), named(block), "exec"), names)
        printed = stdout.getvalue()
        for expected in re.findall(r"^print\(.*\)  # (.*)$", block.text, flags=re.M):
            assert expected in printed
        if after.language == "text" and after.line <= block.line + block.text.count("\n") + 4:
            assert printed.strip() == after.text.strip()


def _given(page: str, spark: Any) -> dict[str, Any]:
    """The names that a page expects to be defined."""
    if page == "measures.md":
        return {"sample": list(read_events("events.jsonl"))}
    if page == "spark.md":
        from likewise.pipeline import join_by_meaning, register_related

        spark.createDataFrame([("laptop", "computer")], "a string, b string").createOrReplaceTempView("pairs")
        return {
            "register_related": register_related,
            "join_by_meaning": join_by_meaning,
            "sensors": spark.createDataFrame([("laptop",)], "device string"),
            "catalogue": spark.createDataFrame([("computer",)], "name string"),
        }
    return {}


# --- commands ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A command of a page and the output that is shown; None if none is shown."""

    text: str
    shown: str | None


def calls(block: Block) -> Iterator[Call]:
    """`$ command` with its output below it, or plain commands, a line each with a comment behind."""
    if not block.text.startswith("$ "):
        for line in block.text.replace("\\\n", " ").splitlines():
            yield Call(re.split(r"\s+# |\s{3,}", line)[0], None)
        return
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, output = _command_and_output(part)
        yield Call(command, output or None)


def _command_and_output(part: str) -> tuple[str, str]:
    lines = part.splitlines()
    size = 1
    if ending := re.search(r"<<'?(\w+)'?", lines[0]):
        size = lines.index(ending[1]) + 1
    while lines[size - 1].endswith("\\"):
        size += 1
    return "\n".join(lines[:size]), "\n".join(lines[size:]).strip("\n")


SHELL = [block for block in EVERY if block.is_shell]


@pytest.mark.spark
@pytest.mark.parametrize("page", dict.fromkeys(block.page for block in SHELL))
def test_commands_run_and_print_what_the_page_shows(page: str, desk: Path) -> None:
    app = build()
    for block in SHELL:
        for call in calls(block) if block.page == page else ():
            _check(app, call, where=named(block))


def _check(app: typer.Typer, call: Call, *, where: str) -> None:
    if call.text.startswith(OTHERS):
        return
    if any(call.text.startswith(start) for start in NOT_RUN):
        _parse(app, call.text)
        return
    code, printed = _run(app, _filled(call.text))
    wrong = call.shown is not None and "error: " in call.shown
    assert (code != 0) == wrong, f"{where}: {call.text}\n{printed}"
    # WordNet replaces the Wikipedia space here, so scores differ.
    if call.shown is not None and "wikipedia" not in call.text:
        assert _is_as(_levelled(printed), _levelled(call.shown)), f"{where}: {call.text}\n{printed}"


def _levelled(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _is_as(printed: list[str], shown: list[str]) -> bool:
    """Line by line; `…` stands for any part of a line, and alone for any lines."""
    pattern = "\n".join(re.escape(line) for line in shown).replace("…", "[^\n]*")
    pattern = re.sub(r"^\[\^\n\]\*$", "(?:.|\n)*", pattern, flags=re.M)
    return re.fullmatch(pattern, "\n".join(printed)) is not None


def test_printed_lines_are_compared_with_what_is_shown() -> None:
    assert _is_as(["a 0.12 b", "c"], ["a … b", "c"])
    assert _is_as(["a", "b", "c", "d"], ["a", "…", "d"])
    assert not _is_as(["a", "b"], ["a"])
    assert not _is_as(["a 0.12 b"], ["a … c"])


def _filled(command: str) -> str:
    if command.startswith("likewise tune") and "--approach" not in command:
        command += " --approach exact --approach evidence"  # trying all takes long
    return command.replace("--labels FILE", "--labels LABELS").replace("check FILE", "check SUBSCRIPTIONS")


def _run(app: typer.Typer, command: str) -> tuple[int, str]:
    """Run a single command in this process, anything else in a shell."""
    if not command.startswith("likewise ") or re.search(r" [|<>] ", command):
        return _run_by_shell(command)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        error = explained(done.exception)  # type: ignore[arg-type]
        assert error is not None, done.exception
        return 2, f"{done.output}error: {error}\n"
    return done.exit_code, done.output


def _run_by_shell(command: str) -> tuple[int, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"PATH": path},
    )
    return done.returncode, done.stdout


def _parse(app: typer.Typer, command: str) -> None:
    """Parse a command without running it, so that unknown options and commands fail."""
    words = shlex.split(command.replace("\\\n", " "))[1:]
    found: Any = typer.main.get_command(app)
    while words and words[0] in getattr(found, "commands", ()):
        found = found.commands[words.pop(0)]
    if "--help" not in words:
        found.make_context("likewise", words)


# --- subscriptions and events ------------------------------------------------------------------------------------

WRITTEN = [block for block in EVERY if block.language == "" and not block.is_shell]


@pytest.mark.parametrize("block", WRITTEN, ids=named)
def test_subscriptions_and_events_parse(block: Block) -> None:
    try:
        assert parse(block.text)
    except LikewiseError:
        assert all(parse_event(line) for line in block.text.strip().splitlines())


@pytest.mark.parametrize("block", [block for block in EVERY if block.language == "json"], ids=named)
def test_json_is_events(block: Block) -> None:
    assert all(decode_line(line.encode()) for line in block.text.strip().splitlines())
