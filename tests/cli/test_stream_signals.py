"""Signals end a stream in its own process without noise, and it continues where it stopped."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import psutil
from tests.pipeline.traces import trace, write_files

from likewise.cli.ending import is_not_py4j_noise

pytestmark = [pytest.mark.spark, pytest.mark.skipif(os.name != "posix", reason="process groups are of POSIX")]

COMMAND = "import sys; from likewise.cli.app import main; sys.argv[0] = 'likewise'; main()"


class Process:
    """`likewise stream` in its own process group, as a terminal or `timeout` starts it."""

    def __init__(self, folder: Path, *more: str) -> None:
        arguments = ["stream", str(folder / "subscriptions.lw"), "--from", f"path={folder / 'in'}"]
        arguments += ["--sink", "files", "--to", f"path={folder / 'out'}", "--checkpoint", str(folder / "state")]
        self._log = folder / "stderr"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, *arguments, "--master", "local[1,4]", *more],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def said(self) -> str:
        return self._log.read_text()

    def wait_for(self, text: str) -> None:
        for _ in range(3000):
            if text in self.said:
                return
            assert self._process.poll() is None, self.said
            time.sleep(0.1)
        pytest.fail(f"it never said {text!r}: {self.said}")

    def below(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def end(self) -> int:
        return self._process.wait(timeout=300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path / "in", trace(20), size=20)
    (tmp_path / "subscriptions.lw").write_text("a: {type = a}\n")
    return tmp_path


def check(spark: Any, folder: Path) -> None:
    """After a restart, only new events are reported."""
    from tests.cli.test_stream import run

    write_files(folder / "in", trace(40)[20:], size=20, first=1)
    run(
        *("stream", folder / "subscriptions.lw", "--from", f"path={folder / 'in'}", "--checkpoint", folder / "state"),
        *("--sink", "files", "--to", f"path={folder / 'out'}", "--once"),
    )
    found = sorted(row["event_id"] for row in spark.read.parquet(str(folder / "out")).collect())
    assert found == [event.id for event in trace(40) if dict(event.tuples)["type"] == "a"]


def test_sigterm_to_the_group_ends_a_stream_quietly_and_leaves_nothing_behind(spark: Any, folder: Path) -> None:
    """It prints only the batch and that it stopped: no traceback, no greeting of Spark; exit code 0."""
    process = Process(folder)
    process.wait_for("batch 0")
    below = process.below()
    os.killpg(process.pid, signal.SIGTERM)
    assert process.end() == 0, process.said
    batch, *said = process.said.splitlines()
    assert batch.startswith("batch 0: 20 events")
    assert said[0] == "stopping"
    assert " ".join(said[1:]).startswith("stopped after 20 events; run it again with --checkpoint")
    assert not psutil.wait_procs(below, timeout=30)[1]
    check(spark, folder)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["everybody", "Ctrl-C", "at the start", "killed"])
def test_a_stream_ends_whoever_gets_the_signal(spark: Any, folder: Path, how: str) -> None:
    """A service manager sends SIGTERM to every process; a kill leaves no JVM and no worker."""
    process = Process(folder)
    process.wait_for("" if how == "at the start" else "batch 0")
    time.sleep(2 if how == "at the start" else 0)
    below = process.below()
    if how == "everybody":
        for child in below:
            # Some end together with their parents.
            with contextlib.suppress(psutil.NoSuchProcess):
                child.terminate()
        os.kill(process.pid, signal.SIGTERM)
    elif how == "killed":
        os.kill(process.pid, signal.SIGKILL)
    else:
        os.killpg(process.pid, signal.SIGINT)
    assert process.end() == (-signal.SIGKILL if how == "killed" else 0), process.said
    assert "Traceback" not in process.said
    assert not psutil.wait_procs(below, timeout=60)[1]
    check(spark, folder)


@pytest.mark.slow
def test_a_jvm_that_is_killed_is_told_in_one_line(spark: Any, folder: Path) -> None:
    process = Process(folder)
    process.wait_for("batch 0")
    for child in process.below():
        if child.name() == "java":
            child.kill()
    assert process.end() != 0
    assert "Spark's JVM ended" in process.said
    assert "Traceback" not in process.said
    check(spark, folder)


@pytest.mark.parametrize("what", ["KeyboardInterrupt", "Exception"])
def test_a_talk_with_the_jvm_that_broke_off_is_no_traceback(what):
    spoken = logging.LogRecord("root", logging.ERROR, "java_gateway.py", 1, f"{what} while sending command.", (), None)
    other = logging.LogRecord("root", logging.ERROR, "mine.py", 1, "something else", (), None)
    assert (is_not_py4j_noise(spoken), is_not_py4j_noise(other)) == (False, True)
