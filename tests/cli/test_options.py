"""Commands share their options, and the result of `tune` can be used in three ways."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from likewise import Engine, measure
from likewise.cli.app import build
from likewise.errors import BuildError
from likewise.events import read_events
from likewise.language import parse
from likewise.matching import Background
from likewise.semantics import Competitors, Glossary

OPTIONS = ("approach", "measure", "threshold", "space", "background", "no_background", "glossary", "settings")
LEFT_OUT = {("tune", "threshold"): "the threshold is what it finds"}


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return build()


@pytest.mark.parametrize("command", ["match", "detect", "why", "tune", "stream", "join"])
def test_every_command_that_compares_words_has_the_same_options(app: typer.Typer, command: str) -> None:
    group: Any = get_command(app)
    have = {parameter.name for parameter in group.commands[command].params}
    expected = {option for option in OPTIONS if (command, option) not in LEFT_OUT}
    assert expected - have == set()
    assert not any(option in have for (name, option) in LEFT_OUT if name == command)


def run(app: typer.Typer, *arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.stderr
    return done.stdout


SAID = ["zzt high", "window open", "lift out of order", "vacant parking space", "smoke", "heating on", "door ajar"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_SPACES", str(tmp_path / "none"))
    rows = [{"id": f"e{at}", "attributes": {"what": SAID[at % 7], "no": at}} for at in range(70)]
    Path("e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("s.lw").write_text("hot: {what = temperature high~}\nlift: {what = elevator broken~}\n")
    Path("l.tsv").write_text("hot\te0\t1\nhot\te1\t0\nhot\te5\t0\nlift\te2\t1\nlift\te6\t0\nhot\te7\t1\n")
    Path("g.txt").write_text("zzt = temperature\n")
    Path("sample.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[3:40]))
    Path("words.txt").write_text(Competitors.of(SAID).to_text())
    return tmp_path


PASTED = [
    ("--approach", "evidence", "--glossary", "g.txt"),
    ("--approach", "evidence+background", "--glossary", "g.txt"),
    ("--approach", "evidence+background", "--background", "sample.jsonl"),
    ("--approach", "evidence+background", "--background", "words.txt", "--glossary", "g.txt"),
    ("--measure", "sentence", "--approach", "contrast"),
    ("--approach", "exact"),
]


@pytest.mark.parametrize("options", PASTED, ids=" ".join)
def test_what_tune_finds_is_pasted_in_three_ways(app: typer.Typer, desk: Path, options: tuple[str, ...]) -> None:
    printed = run(app, "tune", "e.jsonl", "s.lw", "--labels", "l.tsv", "--save", "t.toml", *options)
    [line] = [text for text in printed.splitlines() if text.startswith("command line:")]
    [python] = [text for text in printed.splitlines() if text.startswith("Python:")]
    words = shlex.split(line.partition(":")[2])
    assert words[:2] == ["likewise", "match"]
    by_line, by_file = (
        [json.loads(line) for line in run(app, *command, "--json").splitlines()]
        for command in (words[1:], ["match", "e.jsonl", "s.lw", "--settings", "t.toml"])
    )
    events = list(read_events("e.jsonl"))
    known = {"Background": Background, "Competitors": Competitors, "Engine": Engine, "Glossary": Glossary}
    engine = eval(python.partition(":")[2], known | {
        "Path": Path, "events": events, "measure": measure, "read_events": read_events
    })  # fmt: skip
    for subscription in parse(Path("s.lw").read_text()):
        engine.subscribe(subscription)
    published = engine.publish_batch(events)
    mine = {(match.subscription, match.event.id, round(match.score, 9)) for match in published}

    def found(rows: list[dict[str, Any]]) -> set[tuple[str, str, float]]:
        return {(row["subscription"], row["event"], round(row["score"], 9)) for row in rows if "subscription" in row}

    assert found(by_line) == found(by_file) == mine
    assert bool(mine) == ("exact" not in options)


def test_tune_takes_a_settings_file_and_leaves_out_what_is_not_wanted(app: typer.Typer, desk: Path) -> None:
    Path("s.toml").write_text('approach = "evidence"\nglossary = "g.txt"\nthreshold = 0.9\n')
    asked = ("tune", "e.jsonl", "s.lw", "--labels", "l.tsv", "--json")
    found = json.loads(run(app, *asked, "--settings", "s.toml"))
    assert [row["approach"] for row in found["tried"]] == ["evidence"]
    assert found["settings"]["glossary"] == str(desk / "g.txt")
    names = [
        row["approach"] for row in json.loads(run(app, *asked, "--measure", "evidence", "--no-background"))["tried"]
    ]
    assert names == ["evidence"]
    with pytest.raises(BuildError, match="cannot be tried"):
        run(app, *asked, "--measure", "evidence", "--approach", "hybrid")
    with pytest.raises(BuildError, match="exclude each other"):
        run(app, *asked, "--background", "words.txt", "--no-background")


def test_a_join_takes_an_approach_a_background_and_settings(app: typer.Typer, desk: Path) -> None:
    Path("l.csv").write_text("what\nzzt high\nlift\n")
    Path("r.csv").write_text("name\ntemperature high\nelevator\n")
    Path("s.toml").write_text('approach = "evidence"\nglossary = "g.txt"\nbackground = "none"\nthreshold = 0.6\n')
    asked = ("join", "l.csv", "r.csv", "--on", "what=name", "--json")

    def scores(*options: str) -> dict[str, float]:
        rows = [json.loads(line) for line in run(app, *asked, *options).splitlines()]
        return {row["what"]: row["relatedness"] for row in rows}

    plain = scores("--glossary", "g.txt", "--threshold", "0.6", "--approach", "evidence")
    assert (scores("--settings", "s.toml"), plain.keys()) == (plain, {"zzt high", "lift"})
    Path("l.csv").write_text("what\nsmartphone\n")
    Path("r.csv").write_text("name\nphone\n")
    Path("words.txt").write_text(Competitors.of(["tablet computer", "lamp", "desk"]).to_text())
    Path("sample.jsonl").write_text('{"attributes": {"kind": ["tablet computer", "lamp"]}}\n')
    alone, beside, among = (
        scores(*more)["smartphone"] for more in ((), ("--background", "words.txt"), ("--background", "sample.jsonl"))
    )
    assert alone < min(beside, among)  # no other word of the stream is nearer to it
    for options, printed in (
        (("--approach", "exact"), "asks for no meaning"),
        (("--approach", "contrast"), "no approach contrast"),
        (("--approach", "concept", "--measure", "esa"), "has the measure concept"),
        (("--measure", "sentence", "--background", "words.txt"), "takes no background"),
        (("--measure", "sentence", "--glossary", "g.txt"), "takes no glossary"),
        (("--approach", "evidense"), "unknown approach"),
    ):
        with pytest.raises(BuildError, match=printed):
            run(app, *asked, *options)
