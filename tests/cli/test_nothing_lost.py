"""No command destroys a file: inputs, other outputs, old outputs, and dead letters of earlier runs stay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer

from likewise.cli.app import run
from likewise.cli.guard import guard
from likewise.cli.reading.input import Rejects
from likewise.cli.reading.tables import read_table
from likewise.errors import BuildError, InputError
from likewise.events import DeadLetters, read_events, write_events
from likewise.files import whole_file, write_whole

EVENT = {"id": "1", "time": "2026-01-01T10:00:00Z", "attributes": {"type": "presence"}}
FILES = {
    "in.jsonl": json.dumps(EVENT) + "\n{broken\n",
    "s.lw": "a: {type = presence}\n",
    "p.lw": "a: {type = presence}\nb: a then a within 1 minute\n",
    "t.csv": "id,name\n1,lift\n2,door\n",
    "labels.tsv": "a\t1\t1\n",
    "v.txt": "presence\n",
}

CLASHES = [
    "match in.jsonl s.lw --dead-letters in.jsonl",
    "match in.jsonl s.lw --dead-letters in.jsonl",
    "match in.jsonl s.lw --dead-letters s.lw",
    "match in.jsonl s.lw --dead-letters ./sub/../s.lw",
    "match in.jsonl s.lw --dead-letters link.jsonl",
    "match in.jsonl s.lw --dead-letters hard.jsonl",
    "match link.jsonl s.lw --dead-letters in.jsonl",
    "match in.jsonl s.lw --background v.txt --dead-letters v.txt",
    "match in.jsonl s.lw --chart x.html --dead-letters x.html",
    "match in.jsonl s.lw --out x --dead-letters x",
    "detect in.jsonl p.lw --dead-letters in.jsonl",
    "detect in.jsonl p.lw --snapshot in.jsonl",
    "detect in.jsonl p.lw --snapshot state --dead-letters state",
    "detect in.jsonl p.lw --chart x.html --dead-letters x.html",
    "vocabulary in.jsonl --out in.jsonl",
    "vocabulary in.jsonl --out w --dead-letters w",
    "convert in.jsonl --out in.jsonl",
    "convert t.csv --out o --dead-letters o",
    "convert t.csv --out o --dead-letters t.csv",
    "themes in.jsonl --dead-letters in.jsonl",
    "tune in.jsonl s.lw --labels labels.tsv --dead-letters labels.tsv",
    "tune in.jsonl s.lw --labels labels.tsv --chart x.html --dead-letters x.html",
    "join t.csv t.csv --on id --out t.csv",
    "join t.csv t.csv --on id --dead-letters t.csv",
    "join t.csv t.csv --on id --spark --out t.csv",
    "stream s.lw --from path=sub --to path=sub --sink files --checkpoint state",
    "stream s.lw --from path=sub --checkpoint sub",
    "stream s.lw --from path=sub --checkpoint state --dead-letters state",
    "space build --corpus sub --out ./sub",
    "space build --corpus sub/a.txt --out ./sub --overwrite",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("a text")
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "in.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_SPACES", "no-such-folder")
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("line", CLASHES)
def test_a_path_is_not_read_and_written_at_once(folder: Path, capfd: Any, line: str) -> None:
    before = content(folder)
    assert run(line.split()) == 2
    printed = capfd.readouterr().err
    assert "same file" in printed or "same folder" in printed or "is inside" in printed
    assert content(folder) == before


@pytest.mark.parametrize("place", ["sub", "no/such/bad.jsonl", "in.jsonl/bad.jsonl"])
@pytest.mark.parametrize("line", ["match in.jsonl s.lw", "detect in.jsonl p.lw", "vocabulary in.jsonl"])
def test_dead_letters_that_cannot_be_written_are_reported_before_the_work(
    folder: Path, capfd: Any, line: str, place: str
) -> None:
    assert run([*line.split(), "--dead-letters", place]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert f"--dead-letters {place}" in printed.err
    assert "hint: " in printed.err


def test_one_stream_cannot_be_two_inputs() -> None:
    with pytest.raises(BuildError, match="EVENTS and SUBSCRIPTIONS cannot both be read from stdin"):
        guard(reads={"EVENTS": "-", "SUBSCRIPTIONS": "-"})
    guard(reads={"EVENTS": "-"}, writes={"--out": "-"})


def test_devices_may_be_used_twice() -> None:
    guard(reads={"EVENTS": os.devnull}, writes={"--out": os.devnull, "--dead-letters": os.devnull})


def test_dead_letters_of_a_second_run_are_appended(folder: Path) -> None:
    for _ in range(2):
        assert run(["match", "in.jsonl", "s.lw", "--dead-letters", "bad.jsonl"]) == 0
    letters = [json.loads(line) for line in (folder / "bad.jsonl").read_text().splitlines()]
    assert [letter["line"] for letter in letters] == [2, 2]


def test_dead_letters_begin_a_new_line_after_one_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"source": "cut sho')
    with DeadLetters(path) as letters:
        list(read_events(iter_stream(b"{\n"), on_error=letters, allow_empty=True))
    assert json.loads(path.read_text().splitlines()[1])["line"] == 1


def iter_stream(data: bytes) -> Any:
    import io

    return io.BytesIO(data)


def test_an_output_replaces_the_old_one_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old")

    def broken() -> Any:
        yield from read_events(iter_stream(json.dumps(EVENT).encode()))
        raise InputError("the input breaks off")

    with pytest.raises(InputError, match="breaks off"):
        write_events(broken(), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_full_disk_names_the_path_and_leaves_nothing(tmp_path: Path) -> None:
    def fill(path: Path) -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"new.txt: cannot be written: No space left") as found:
        fill(tmp_path / "new.txt")
    assert found.value.hint == "make room on the disk"
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("line", ["convert t.csv --out /dev/full", "match in.jsonl s.lw --dead-letters /dev/full"])
def test_a_device_that_is_full_is_named(folder: Path, capfd: Any, line: str) -> None:
    assert run(line.split()) == 2
    assert "/dev/full: cannot be written: No space left on device" in capfd.readouterr().err


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_join_reports_an_unclosed_quote_instead_of_swallowing_rows(folder: Path, capfd: Any) -> None:
    (folder / "open.csv").write_text('id,name\n1,lift\n2,"door\n3,gate\n4,fence\n')
    rejects = Rejects()
    assert read_table("open.csv", rejects).to_pylist() == [{"id": "1", "name": "lift"}]
    assert "open.csv:3: this quoted text has no end" in capfd.readouterr().err
    with pytest.raises(typer.Exit):
        rejects.conclude()


def test_a_quote_inside_a_cell_opens_nothing(folder: Path) -> None:
    (folder / "inch.csv").write_text('id,name\n1,lift\n2,5" pipe\n')
    assert read_table("inch.csv", Rejects()).to_pylist()[1] == {"id": "2", "name": '5" pipe'}


def test_events_refused_for_their_time_count_as_bad_records(folder: Path, capfd: Any) -> None:
    late = EVENT | {"id": "2", "time": "2025-01-01T10:00:00Z"}
    (folder / "late.jsonl").write_text(json.dumps(EVENT) + "\n" + json.dumps(late) + "\n")
    assert run(["detect", "late.jsonl", "p.lw"]) == 2
    assert "1 event refused: 1 because it is too late" in capfd.readouterr().err
    assert run(["detect", "late.jsonl", "p.lw", "--dead-letters", "bad.jsonl"]) == 0
    assert json.loads((folder / "bad.jsonl").read_text())["reason"] == "it is too late"
