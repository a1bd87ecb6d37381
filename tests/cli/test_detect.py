"""`likewise detect` on small files, and the streams behind its examples."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli import app as _app
from likewise.errors import BuildError, InputError
from likewise.language import parse

ROOT = Path(__file__).parents[2]
EVENTS = """
{"id": "w", "time": "2024-01-01T10:00:00Z", "attributes": {"type": "window broken", "room": "101"}}
{"id": "x", "time": "2024-01-01T10:01:00Z", "attributes": {"type": "presence", "room": "102"}}
{"id": "y", "time": "2024-01-01T10:10:00Z", "attributes": {"type": "presence", "room": "101"}}
{"id": "z", "time": "2024-01-01T10:09:00Z", "attributes": {"type": "presence", "room": "101"}}
"""
PATTERNS = """
window: {type = "window broken"}
presence: {type = presence}
break-in: window as w then presence as p within 10 minutes where w.room = p.room
quiet: not presence for 1 hour
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    (tmp_path / "patterns.lw").write_text(PATTERNS)
    return str(tmp_path / "events.jsonl"), str(tmp_path / "patterns.lw")


def run(*arguments: str) -> str:
    # One event is late; if it is not kept, the exit code is 2.
    if "--dead-letters" not in arguments:
        arguments += ("--dead-letters", os.devnull)
    result = CliRunner().invoke(_app.build(), ["detect", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_detections_in_words(files: tuple[str, str]) -> None:
    assert run(*files).splitlines() == [
        "2024-01-01 10:10:00  break-in  w = w (type: window broken, room: 101), p = y (type: presence, room: 101)"
    ]


def test_a_small_file_is_answered_as_a_large_one(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    small = run(*files, "--explain", "--state")
    monkeypatch.setattr("likewise.cli.commands.subscribing.detect.SMALL", 0)
    assert run(*files, "--explain", "--state") == small


def test_json_with_the_trace(files: tuple[str, str]) -> None:
    [found] = [json.loads(line) for line in run(*files, "--json", "--explain").splitlines()]
    assert found["events"] == {"w": ["w"], "p": ["y"]}
    assert found["trace"][1]["activated"] == "2024-01-01T10:00:00Z"
    assert found["trace"][1]["terminated"] == "2024-01-01T10:10:00Z"


def test_lateness_lets_late_events_in(files: tuple[str, str]) -> None:
    lines = run(*files, "--lateness", "1 minute").splitlines()
    assert [line.partition("p = ")[2].split()[0] for line in lines] == ["z", "y"]


def test_until_goes_on_after_the_last_event(files: tuple[str, str]) -> None:
    assert "2024-01-01 11:10:00  quiet" in run(*files, "--until", "2024-01-01T12:00:00")


def test_state_tells_why_a_pattern_stopped(files: tuple[str, str]) -> None:
    out = run(*files, "--state")
    assert "break-in: 1 detected, 0 held, 0 dropped" in out
    assert "quiet: 0 detected, 1 held" in out


def test_late_events_go_to_the_dead_letters(files: tuple[str, str], tmp_path: Path) -> None:
    letters = tmp_path / "bad.jsonl"
    run(*files, "--dead-letters", str(letters))
    [letter] = [json.loads(line) for line in letters.read_text().splitlines()]
    assert letter["reason"] == "it is too late"
    assert json.loads(letter["record"])["id"] == "z"


def test_a_snapshot_goes_on(files: tuple[str, str], tmp_path: Path) -> None:
    lines = EVENTS.strip().splitlines()
    halves = []
    for number, part in enumerate((lines[:1], lines[1:])):
        source = tmp_path / f"half{number}.jsonl"
        source.write_text("\n".join(part))
        halves.append(run(str(source), files[1], "--snapshot", str(tmp_path / "state.bin")))
    assert halves == ["", run(*files)]


def test_a_snapshot_goes_on_with_the_patterns_of_now(files: tuple[str, str], tmp_path: Path) -> None:
    """A pattern that was changed, added or removed since the snapshot is reported and takes effect."""
    state = tmp_path / "state.bin"
    run(*files, "--snapshot", str(state))
    (tmp_path / "patterns.lw").write_text(PATTERNS.replace("10 minutes", "9 minutes").replace("quiet", "silent"))
    result = CliRunner().invoke(_app.build(), ["detect", *files, "--snapshot", str(state), "--state"])
    assert "since the snapshot: added silent; changed break-in; removed quiet" in result.stderr
    assert "silent: 0 detected" in result.stdout


def test_events_that_were_not_taken_are_told(files: tuple[str, str]) -> None:
    result = CliRunner().invoke(_app.build(), ["detect", *files])
    assert "1 event refused: 1 because it is too late" in result.stderr
    assert result.exit_code == 2, "an event that is lost counts like any other bad record"


def test_what_did_not_happen_is_part_of_the_trace(files: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "patterns.lw").write_text(PATTERNS + "calm: window then not {type = fire} as fire within 5 minutes")
    assert "    no fire from 2024-01-01 10:00:00 to 2024-01-01 10:05:00  p = 1.000" in run(*files, "--explain")


def test_a_pattern_that_did_not_fire_is_in_json_and_in_the_timeline(files: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "patterns.lw").write_text(
        PATTERNS + "three: window then presence then {type = fire} as fire within 5 minutes"
    )
    state = json.loads(run(*files, "--state", "--json").splitlines()[-1])["state"]
    [three] = [pattern for pattern in state if pattern["name"] == "three"]
    assert three["furthest"].startswith("had window = w, presence = x; at fire: the window was over")
    assert [(line["role"], line["what"]) for line in three["trace"]] == [
        ("window", "event"),
        ("presence", "event"),
        ("fire", "missing"),
    ]
    pytest.importorskip("altair")
    run(*files, "--chart", str(tmp_path / "chart.html"))
    assert "three: not detected" in (tmp_path / "chart.html").read_text()


def test_two_steps_find_the_same(files: tuple[str, str]) -> None:
    assert run(*files, "--two-step") == run(*files)


def test_a_timeline_stands_alone(files: tuple[str, str], tmp_path: Path) -> None:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    chart = tmp_path / "timeline.html"
    run(*files, "--chart", str(chart))
    page = chart.read_text()
    assert "break-in" in page
    assert "<script src=" not in page


@pytest.mark.parametrize(
    ("options", "error"),
    [(["--lateness", "soon"], BuildError), (["--full", "panic"], BuildError), (["--until", "later"], BuildError)],
)
def test_bad_options(files: tuple[str, str], options: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        run(*files, *options)


def test_a_missing_file(files: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="no such file"):
        run(files[0], "nowhere.lw")


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "patterns").glob("*.lw")), ids=lambda path: path.stem)
def test_the_examples_can_be_built(path: Path) -> None:
    from likewise.composite import Detector

    assert Detector(parse(path.read_text())).patterns


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = Path(os.environ.get("LIKEWISE_DATA", "no-data"))
    if not (folder / "streams").exists():
        pytest.skip(f"no streams at {folder}: set LIKEWISE_DATA")
    out = tmp_path_factory.mktemp("streams") / "homes.jsonl"
    arguments = ["dataset", "homes", "--house", "A", "--out", str(out), "--data", str(folder)]
    assert CliRunner().invoke(_app.build(), arguments, catch_exceptions=False).exit_code == 0
    return str(out)


def counts(events: str, patterns: str) -> dict[str, int]:
    lines = run(events, str(ROOT / "examples" / "patterns" / patterns), "--json").splitlines()
    return dict(Counter(json.loads(line)["pattern"] for line in lines))


def test_p1_to_p4_on_a_real_home(homes: str) -> None:
    found = counts(homes, "homes.lw")
    assert found == {"night-snack": 1, "unused": 8, "meal": 13, "home-to-bed": 3, "second-helping": 7}


def test_allen_relations_on_a_real_home(homes: str) -> None:
    found = counts(homes, "allen.lw")
    assert found["bath-with-open-bedroom"] == 157
    assert found["going-out"] == 7


@pytest.mark.parametrize("lateness", ["0 s", "30 s"])
def test_a_snapshot_leaves_time_open(tmp_path: Path, lateness: str) -> None:
    """Events of the next file at the last moment of this one, or late, are handled as in one file."""

    def line(kind: str, clock: str) -> str:
        return json.dumps({"id": kind, "time": f"2024-01-01T{clock}Z", "attributes": {"k": kind}})

    (tmp_path / "p.lw").write_text("p: {k = A} as a and {k = B} as b within 1 s\n")
    second = "10:00:00" if lateness == "0 s" else "09:59:59"
    parts = [line("A", "10:00:00"), line("B", second)]
    options = [str(tmp_path / "p.lw"), "--lateness", lateness, "--snapshot"]
    (tmp_path / "whole.jsonl").write_text("\n".join(parts))
    until = ["--until", "2024-01-01T11:00:00"]
    whole = run(str(tmp_path / "whole.jsonl"), *options, str(tmp_path / "whole.bin"), *until)
    assert "a = A (k: A), b = B (k: B)" in whole
    found = ""
    for number, part in enumerate(parts):
        (tmp_path / f"{number}.jsonl").write_text(part)
        last = until if number else []
        found += run(str(tmp_path / f"{number}.jsonl"), *options, str(tmp_path / "parts.bin"), *last)
    assert found == whole
