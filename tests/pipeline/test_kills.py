"""Streams that are killed, driver, executors and workers, at the worst moment and at any: nothing lost or twice."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import psutil
from tests.pipeline.test_stream import before
from tests.pipeline.traces import PATTERNS, closing, expected, signatures, trace, write_files

from likewise.events import Event
from likewise.pipeline.events.read import read_events
from likewise.pipeline.streaming.sinks import FileSink
from likewise.pipeline.streaming.stream import Stream
from likewise.pipeline.streaming.subscriptions import FixedRecipe
from likewise.recipe import Recipe

pytestmark = pytest.mark.spark

DRIVER = """
import sys, time, pathlib
from likewise.pipeline.session import spark_session
from likewise.pipeline.events.read import read_events
from likewise.pipeline.streaming.sinks import FileSink
from likewise.pipeline.streaming.stream import Stream
from likewise.pipeline.streaming.subscriptions import FixedRecipe
from likewise.recipe import Recipe
from tests.pipeline.traces import PATTERNS

folder, stop_at, master = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def sink_of(what):
    write = FileSink(str(folder / what))
    def sink(rows, batch):
        write(rows, batch)
        if batch == stop_at:
            (folder / f"{what} reached").touch()
            time.sleep(600)
    return sink

spark = spark_session(master=master, settings={"spark.sql.shuffle.partitions": "2"})
events = read_events(spark, folder / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
streams = []
for what, text in (("detections", PATTERNS), ("matches", "a: {type = a}")):
    checkpoint, now = str(folder / "checkpoint" / what), {"availableNow": True}
    source = FixedRecipe(Recipe.of(text))
    streams.append(Stream(events, source, sink_of(what), checkpoint, trigger=now, lateness="25 seconds"))
queries = [stream.start() for stream in streams]
for stream, query in zip(streams, queries):
    while True:
        try:
            query.awaitTermination()
            break
        except Exception as error:
            # Spark gives a Python process ten seconds to start, which is not always enough on a busy machine.
            if not any(sign in str(error) for sign in ("failed to connect back", "RUNNER_INITIALIZATION")):
                raise
            query = stream.start()
"""


class Driver:
    """Two streams, one that matches and one that detects, in a process with a JVM and workers below it."""

    def __init__(self, folder: Path, *, stop_at: int = -1, master: str = "local[2,4]") -> None:
        command = [sys.executable, "-c", DRIVER, str(folder), str(stop_at), master]
        paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "SPARK_LOCAL_IP": "127.0.0.1"}
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        for _ in range(12000):
            if condition():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        pytest.fail(f"it did not happen: {self._log.read_text()[-2000:]}")

    def kill(self, *, everything: bool = False) -> None:
        """The driver, whose JVM then goes by itself, or all of its processes at once."""
        below = self._below() if everything else []
        self.process.kill()
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait()

    def kill_one(self, chosen: Callable[[psutil.Process], bool], rng: random.Random) -> bool:
        """One of its processes, if there is such a one at this moment."""
        return kill_one(psutil.Process(self.process.pid), chosen, rng)

    def end(self) -> None:
        assert self.process.wait(timeout=1200) == 0, self._log.read_text()[-2000:]

    def _below(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def kill_one(top: psutil.Process, chosen: Callable[[psutil.Process], bool], rng: random.Random) -> bool:
    """A chosen process below another; whether there was one."""
    found = []
    for process in top.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if chosen(process):
                found.append(process)
    with contextlib.suppress(psutil.Error, IndexError):
        rng.choice(found).kill()
    return bool(found)


def is_worker(process: psutil.Process) -> bool:
    """A Python worker is what the daemon has forked."""
    return "pipeline.daemon" in _command(process.parent())


def is_executor(process: psutil.Process) -> bool:
    """The JVM of an executor."""
    return "CoarseGrainedExecutorBackend" in _command(process)


def _command(process: psutil.Process | None) -> str:
    return "" if process is None else " ".join(process.cmdline())


def check(spark: Any, folder: Path, events: list[Event]) -> None:
    """What both streams wrote is what one process finds."""
    *earlier, last = events
    found = spark.read.parquet(str(folder / "detections")).drop("batch").toArrow()
    assert signatures(found) == before(expected([*earlier, last]), last)
    matched = Counter(row["event_id"] for row in spark.read.parquet(str(folder / "matches")).collect())
    assert matched == Counter(event.id for event in earlier if dict(event.tuples)["type"] == "a")


def commits(folder: Path) -> int:
    """How many batches Spark knows to be done, of both streams."""
    return len(list((folder / "checkpoint").glob("*/query/commits/[0-9]*")))


def test_a_driver_killed_in_the_middle_of_a_batch_loses_nothing_and_repeats_nothing(spark: Any, tmp_path: Path) -> None:
    """The kill falls after a batch was written and before Spark knows it: the worst moment.

    The next is started at once, when the JVM of the first is not yet gone.
    """
    events = trace(80, jitter=10)
    events.append(closing(events))
    write_files(tmp_path / "in", events, size=40)
    driver = Driver(tmp_path, stop_at=1)
    driver.wait_for(lambda: all((tmp_path / f"{what} reached").exists() for what in ("detections", "matches")))
    driver.kill()
    Driver(tmp_path).end()
    check(spark, tmp_path, events)


def test_workers_killed_in_the_middle_of_batches_lose_nothing_and_repeat_nothing(spark: Any, tmp_path: Path) -> None:
    """Whatever Python worker there is, three times while a stream detects: its tasks are done again."""
    from pyspark import SparkContext

    events = trace(120, jitter=10)
    events.append(closing(events))
    write_files(tmp_path / "in", events, size=40)
    frame = read_events(spark, tmp_path / "in", format="jsonl", stream=True, options={"maxFilesPerTrigger": "1"})
    source, sink = FixedRecipe(Recipe.of(PATTERNS)), FileSink(str(tmp_path / "out"))
    checkpoint, rng, killed = str(tmp_path / "checkpoint"), random.Random(1), 0
    stream = Stream(frame, source, sink, checkpoint, trigger={"availableNow": True}, lateness="25 seconds")
    query = stream.start()
    gateway = SparkContext._gateway
    assert gateway is not None
    while query.isActive:
        # A task may fail three times before its job does.
        if killed < 3 and kill_one(psutil.Process(gateway.proc.pid), is_worker, rng):
            killed += 1
        time.sleep(rng.uniform(0.2, 1.5))
        # A kill may also hit the process that prepares the stream; then it is started again, as the command does.
        if any(sign in str(query.exception()) for sign in ("failed to connect back", "RUNNER_INITIALIZATION")):
            query = stream.start()
    assert killed
    assert query.exception() is None
    found = spark.read.parquet(str(tmp_path / "out")).drop("batch").toArrow()
    assert signatures(found) == before(expected(events), events[-1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kills_at_any_moment_lose_nothing_and_repeat_nothing(spark: Any, tmp_path: Path, seed: int) -> None:
    """Workers are killed while it runs, and the driver again and again, alone or with everything below it."""
    rng = random.Random(seed)
    events = trace(2000, seed=seed, rooms=40, jitter=10)
    events.append(closing(events))
    write_files(tmp_path / "in", events, size=200)
    for _ in range(3):
        driver, done = Driver(tmp_path), commits(tmp_path)
        driver.wait_for(lambda least=done: commits(tmp_path) > least)
        time.sleep(rng.uniform(0, 2))
        driver.kill_one(is_worker, rng)
        time.sleep(rng.uniform(0, 2))
        if driver.process.poll() is None:
            driver.kill(everything=rng.random() < 0.5)
    Driver(tmp_path).end()
    check(spark, tmp_path, events)


@pytest.mark.slow
def test_an_executor_killed_in_the_middle_loses_nothing_and_repeats_nothing(spark: Any, tmp_path: Path) -> None:
    """On a cluster of two executors, each a JVM of its own: one is killed, and then a Python worker."""
    rng = random.Random(1)
    events = trace(800, rooms=20, jitter=10)
    events.append(closing(events))
    write_files(tmp_path / "in", events, size=200)
    driver = Driver(tmp_path, master="local-cluster[2,1,1024]")
    driver.wait_for(lambda: commits(tmp_path) > 0)
    assert driver.kill_one(is_executor, rng)
    driver.wait_for(lambda: commits(tmp_path) > 2)
    driver.kill_one(is_worker, rng)
    driver.end()
    check(spark, tmp_path, events)
