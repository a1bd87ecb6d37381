"""`likewise vocabulary` creates a background from events, and `likewise match` uses it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likewise.cli.app import build
from likewise.cli.commands.events.vocabulary import read_background
from likewise.errors import BuildError, InputError, LikewiseError


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.jsonl"
    records = [
        {"country": "Eire", "room": "kitchen"},
        {"country": "Kingdom of Spain", "room": "kitchen", "degrees": 20},
    ]
    path.write_text(
        "".join(json.dumps({"id": f"e{at}", "attributes": attributes}) + "\n" for at, attributes in enumerate(records))
    )
    return str(path)


def run(*arguments: str):
    result = CliRunner().invoke(build(), arguments)
    if isinstance(result.exception, LikewiseError):
        raise result.exception
    return result


def test_the_words_of_events_are_written_with_their_version(events: str, tmp_path: Path) -> None:
    out = tmp_path / "words.txt"
    assert run("vocabulary", events, "--out", str(out)).exit_code == 0
    words = read_background(out)
    assert words.terms == ("country", "degree", "eire", "kingdom of spain", "kitchen", "room")
    assert out.read_text().splitlines()[0] == f"# version {words.version}"


def test_without_a_file_they_are_printed(events: str) -> None:
    assert run("vocabulary", events, "--limit", "2").output.splitlines()[1:] == ["country", "kitchen"]
    printed = json.loads(run("vocabulary", events, "--json").output)
    assert printed["count"] == len(printed["terms"]) == 6


def test_a_changed_file_is_refused(events: str, tmp_path: Path) -> None:
    out = tmp_path / "words.txt"
    run("vocabulary", events, "--out", str(out))
    out.write_text(out.read_text() + "hall\n")
    with pytest.raises(InputError, match="not those of version"):
        read_background(out)
    out.write_text("hall\nroom\n")
    assert read_background(out).terms == ("hall", "room")


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(InputError, match="no terms"):
        read_background(tmp_path / "empty")
    with pytest.raises(InputError, match="no such file"):
        read_background(tmp_path / "none")
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_background(tmp_path / "raw")


def test_match_takes_it_and_says_where_it_would_count_for_nothing(events: str, tmp_path: Path) -> None:
    out, wanted = tmp_path / "words.txt", tmp_path / "wanted.lw"
    wanted.write_text("mine: {room = kitchen}\n")
    run("vocabulary", events, "--out", str(out))
    found = run("match", events, str(wanted), "--background", str(out), "--json")
    assert [json.loads(line)["event"] for line in found.output.splitlines()] == ["e0", "e1"]
    with pytest.raises(BuildError, match="cannot use a background"):
        run("match", events, str(wanted), "--approach", "thematic", "--background", str(out))


def test_any_words_of_a_stream_read_back(tmp_path: Path) -> None:
    """Empty values, comments, backslashes and unusual blanks survive in our own file."""
    events = tmp_path / "events.jsonl"
    words = {"a": "", "b": "  ", "c": "#7", "d": "\\n", "e": "line\nbreak", "f": "two\u2028lines", "g": "# version 00"}
    events.write_text(json.dumps({"id": "x", "attributes": words}) + "\n")
    run("vocabulary", str(events), "--out", str(tmp_path / "words.txt"))
    read = read_background(tmp_path / "words.txt")
    assert {"#7", "line break", "two line"} <= {*read.terms}


def test_the_first_events_of_a_file_are_its_background(tmp_path: Path) -> None:
    path, wanted = tmp_path / "many.jsonl", tmp_path / "wanted.lw"
    kinds, countries = ("automobile", "alarm", "rain"), ("Kingdom of Spain", "Spain")
    records = [{"type": kinds[n % 3], "country": countries[n % 2], "n": n} for n in range(90)]
    path.write_text(
        "".join(json.dumps({"id": f"e{at}", "attributes": attributes}) + "\n" for at, attributes in enumerate(records))
    )
    wanted.write_text("noise: {type~ = car~, country~ = Spain~} threshold 0.01\n")

    def scores(*options: str) -> list[tuple[str, float]]:
        found = map(json.loads, run("match", str(path), str(wanted), "--json", *options).output.splitlines())
        return [(match["event"], match["score"]) for match in found]

    assert scores() == scores("--background", str(path)) != scores("--no-background")
    (tmp_path / "mine.toml").write_text('background = "none"\n')
    assert scores("--settings", str(tmp_path / "mine.toml")) == scores("--no-background")
    with pytest.raises(BuildError, match="exclude each other"):
        scores("--no-background", "--background", str(path))
