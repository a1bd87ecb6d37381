"""`likewise why`, `check` on what would be refused later, and settings that all commands take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from likewise.cli.app import run
from likewise.cli.meaning import read_settings, settings_text, settled
from likewise.cli.options import MeaningOptions

EVENT = '{"id": "e1", "time": "2026-01-01T10:00:00Z", "attributes": {"type": "presence", "room": 101}}'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_SPACES", "no-such-folder")


def test_why_and_why_not_for_a_subscription_as_text(capfd: Any) -> None:
    assert run(["why", EVENT, "a: {type = presence}"]) == 0
    assert capfd.readouterr().out.startswith(
        "a matches e1 with 100 %\n  • type = presence  ↔  type: presence  100 %, exact"
    )
    assert run(["why", EVENT, "a: {room > 200, type = presence}"]) == 0
    printed = capfd.readouterr().out
    assert "a does not match e1" in printed
    assert "why not: room > 200" in printed


def test_why_for_a_pattern_says_which_part_came_and_what_was_missing(capfd: Any) -> None:
    pattern = "p: {type = presence} as first then {type = alarm} as second within 1 minute"
    assert run(["why", EVENT, pattern]) == 0
    printed = capfd.readouterr().out
    assert "e1 answers first of p" in printed
    assert "  second does not match e1: 0 %" in printed
    assert "why not: type = alarm is not answered" in printed
    assert run(["why", EVENT, pattern, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["parts"]["second"]["matched"] is False


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("good: {x = 1}\nbad: {kind > abc}\n", "cannot be ordered", 2),
        ("a: {x = 1}\nbad: a then a within 0 minutes\n", "at least", 2),
        ("a: {x = 1}\nbad: a then not a\n", "needs a window", 2),
        ("p: p then p within 1 s\n", "circle", 1),
        ("open: {x = 1\nnext: {y = 2}\n", "this brace of `open` is never closed", 1),
    ],
)
def test_check_finds_what_match_and_detect_refuse(capfd: Any, text: str, message: str, line: int) -> None:
    Path("s.lw").write_text(text)
    assert run(["check", "s.lw"]) == 2
    printed = capfd.readouterr()
    assert message in printed.err
    assert f"s.lw:{line}:" in printed.err
    assert "^" in printed.err
    assert "bad:" not in printed.out, "the bad ones are not printed among the good"
    assert ("next: {y = 2}" in printed.out) == ("next" in text)


def test_settings_are_read_back_and_options_override_them(tmp_path: Path) -> None:
    Path("my.toml").write_text(settings_text({"approach": "exact", "threshold": 0.25, "background": "words.txt"}))
    found = read_settings(tmp_path / "my.toml")
    assert found == {"approach": "exact", "threshold": 0.25, "background": tmp_path / "words.txt"}
    meaning = settled(MeaningOptions(threshold=0.75, settings=tmp_path / "my.toml"))
    assert (meaning.approach, meaning.threshold) == ("exact", 0.75)


def test_what_tune_saves_match_takes(capfd: Any) -> None:
    Path("e.jsonl").write_text(EVENT + "\n")
    Path("s.lw").write_text("a: {type = presence}\n")
    Path("l.tsv").write_text("a\te1\t1\n")
    labels = ["--labels", "l.tsv", "--approach", "exact", "--save", "best.toml"]
    assert run(["tune", "e.jsonl", "s.lw", *labels]) == 0
    assert "command line: likewise match e.jsonl s.lw --approach exact --threshold 0.5" in capfd.readouterr().out
    assert run(["match", "e.jsonl", "s.lw", "--settings", "best.toml", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["score"] == 1.0


def test_matches_as_parquet_without_spark(capfd: Any) -> None:
    import pyarrow.parquet as pq

    Path("e.jsonl").write_text(EVENT + "\n")
    Path("s.lw").write_text("a: {type = presence}\n")
    assert run(["match", "e.jsonl", "s.lw", "--out", "found.parquet"]) == 0
    assert capfd.readouterr().out == ""
    assert pq.read_table("found.parquet").column("subscription").to_pylist() == ["a"]


def test_why_of_a_trace_says_once_how_far_a_pattern_came(capfd: Any, tmp_path: Path) -> None:
    """In order of time, not of the file; an attribute that a condition needs and no event has is named."""
    events = tmp_path / "events.jsonl"
    events.write_text(
        '{"id": "b", "time": "2026-01-01T00:01:00Z", "attributes": {"k": "B", "room": "1"}}\n'
        '{"id": "a", "time": "2026-01-01T00:00:00Z", "attributes": {"k": "A", "space": "1"}}\n'
        '{"id": "c", "time": "2026-01-01T00:00:30Z", "attributes": {"k": "C"}}\n'
    )
    pattern = "p: {k = A} as x then {k = B} as y within 1 hour where x.room = y.room"
    assert run(["why", str(events), pattern]) == 0
    printed = capfd.readouterr().out
    assert "x: a condition asks for 'room', which a does not have" in printed
    assert "1 event answered no part of p" in printed
    assert printed.count("0 detected") == 1
    assert printed.index("a answers x of p") < printed.index("b answers y of p")
