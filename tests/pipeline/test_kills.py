"""Streams that are killed, driver and workers, at the worst moment and at any: nothing lost and nothing twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import psutil
from tests.pipeline.test_stream import before
from tests.pipeline.traces import closing, expected, signatures, trace, write_files

pytestmark = pytest.mark.spark

DRIVER = """
import sys, time, pathlib
from likewise.pipeline._session import spark_session
from likewise.pipeline._frame import batch_of
from likewise.pipeline._read import read_events
from likewise.pipeline._routing import RouteTask
from likewise.pipeline._sinks import FileSink
from likewise.pipeline._stream import Stream
from likewise.pipeline._table import Fixed
from likewise.pipeline._worker import Recipe
from tests.pipeline.traces import PATTERNS

folder, stop_at = pathlib.Path(sys.argv[1]), int(sys.argv[2])
write = FileSink(str(folder / "out"))

def sink(rows, batch):
    write(rows, batch)
    if batch == stop_at:
        (folder / "reached").touch()
        time.sleep(600)

settings = {"spark.sql.shuffle.partitions": "2"}
spark = spark_session(master="local[2,4]", settings=settings)
events = read_events(spark, folder / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
stream = Stream(events, Fixed(Recipe.of(PATTERNS)), sink, str(folder / "checkpoint"),
                trigger={"availableNow": True}, delay="25 seconds")
for query in stream.start():
    query.awaitTermination()
"""


class Driver:
    """A stream in a process of its own, with a JVM and workers below it."""

    def __init__(self, folder: Path, *, stop_at: int = -1) -> None:
        command = [sys.executable, "-c", DRIVER, str(folder), str(stop_at)]
        paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        for _ in range(6000):
            if condition():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        pytest.fail(f"it did not happen: {self._log.read_text()[-2000:]}")

    def kill(self) -> None:
        """Driver, JVM and workers, all at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_worker(self, rng: random.Random) -> None:
        """One of the Python workers, if there is one at this moment."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                parent = child.parent()
                if parent is not None and "_daemon" in " ".join(parent.cmdline()):
                    found.append(child)
        if found:
            with contextlib.suppress(psutil.Error):
                rng.choice(found).kill()

    def end(self) -> None:
        assert self.process.wait(timeout=1200) == 0, self._log.read_text()[-2000:]


def test_a_driver_killed_in_the_middle_of_a_batch_loses_nothing_and_repeats_nothing(spark: Any, tmp_path: Path) -> None:
    """The kill falls after a batch was written and before Spark knows it: the worst moment."""
    events = trace(80, jitter=10)
    last = closing(events)
    write_files(tmp_path / "in", [*events, last], size=40)
    driver = Driver(tmp_path, stop_at=1)
    driver.wait_for((tmp_path / "reached").exists)
    driver.kill()
    Driver(tmp_path).end()
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    assert signatures(found.toArrow()) == before(expected([*events, last]), last)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_any_moment_lose_nothing_and_repeat_nothing(spark: Any, tmp_path: Path, seed: int) -> None:
    """Thousands of events; workers are killed while it runs, and the driver again and again."""
    rng = random.Random(seed)
    events = trace(5000, seed=seed, rooms=40, jitter=10)
    last = closing(events)
    write_files(tmp_path / "in", [*events, last], size=250)
    done = tmp_path / "checkpoint" / "query" / "commits"
    for _ in range(4):
        before_it = len(list(done.glob("[0-9]*"))) if done.exists() else 0
        driver = Driver(tmp_path)
        driver.wait_for(lambda least=before_it: done.exists() and len(list(done.glob("[0-9]*"))) > least)
        time.sleep(rng.uniform(0, 2))
        driver.kill_worker(rng)
        time.sleep(rng.uniform(0, 2))
        if driver.process.poll() is None:
            driver.kill()
    Driver(tmp_path).end()
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    assert signatures(found.toArrow()) == before(expected([*events, last]), last)
