"""Open pipes and growing files are answered event by event, and Ctrl-C keeps what was found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from likewise.cli.reading.live import Followed, arriving

SUBSCRIPTIONS = "a: {type = presence}\n"
PATTERNS = SUBSCRIPTIONS + "b: a as x then a as y within 1 minute\n"


def event(number: int) -> str:
    made = {"id": str(number), "time": f"2026-01-01T10:00:{number:02}Z", "attributes": {"type": "presence"}}
    return json.dumps(made) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.lw").write_text(SUBSCRIPTIONS)
    (tmp_path / "p.lw").write_text(PATTERNS)
    (tmp_path / "log.jsonl").write_text(event(0))
    return tmp_path


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "likewise", *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=os.environ | {"LIKEWISE_SPACES": "no-such-folder"},
    )


def test_a_pipe_is_answered_while_it_is_open_and_ctrl_c_keeps_what_was_found(folder: Path) -> None:
    with start(folder, "match", "-", "s.lw", "--json", "--dead-letters", "bad.jsonl") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for number in range(3):
            running.stdin.write(event(number))
            # The pipe stays open, so the line must be the answer to this event.
            assert json.loads(running.stdout.readline())["event"] == str(number)
        running.stdin.write("{broken\n")
        running.stdin.write(event(3))
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, printed = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == ""
    assert "Traceback" not in printed
    assert "stopped" in printed
    assert json.loads((folder / "bad.jsonl").read_text())["record"] == "{broken"


def test_patterns_answer_a_growing_file_and_keep_their_snapshot(folder: Path) -> None:
    with start(folder, "detect", "log.jsonl", "p.lw", "--follow", "--json", "--snapshot", "state.bin") as running:
        assert running.stdout is not None
        for number in (1, 2):
            with (folder / "log.jsonl").open("a") as log:
                log.write(event(number))
            assert json.loads(running.stdout.readline())["pattern"] == "b"
        running.send_signal(signal.SIGINT)
        _, printed = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in printed
    assert (folder / "state.bin").stat().st_size > 0


def test_what_has_come_is_handed_on_at_once() -> None:
    gate = threading.Event()

    def slow() -> Iterator[int]:
        yield 1
        gate.wait(10)
        yield 2

    batches = arriving(slow(), size=10, stopped=lambda: False)
    assert next(batches) == [1]
    gate.set()
    assert list(batches) == [[2]]


def test_an_error_of_the_reader_comes_after_what_was_read() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("cut")

    batches = arriving(broken(), size=10, stopped=lambda: False)
    assert next(batches) == [1]
    with pytest.raises(ValueError, match="cut"):
        next(batches)


def test_a_log_that_is_rotated_or_cut_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, ended = tmp_path / "log", threading.Event()
    path.write_text("one\n")
    followed = Followed(path, ended.is_set)
    assert read(followed) == b"one\n"
    path.rename(tmp_path / "log.1")
    path.write_text("two\n")
    assert read(followed) == b"two\n"
    path.write_text("3\n")
    assert read(followed) == b"3\n"
    ended.set()
    assert read(followed) == b""
    followed.close()


def read(source: Any) -> bytes:
    buffer = bytearray(100)
    time.sleep(0)
    return bytes(buffer[: source.readinto(buffer)])
