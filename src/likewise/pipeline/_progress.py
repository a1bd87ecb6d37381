"""Progress of Spark jobs: how many tasks are done, told to whoever listens, locally and over Spark Connect."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Listener: TypeAlias = Callable[[int, int], None]
"""Told the tasks that are done and all tasks of the stages that run now."""

_INTERVAL = 0.5


@contextlib.contextmanager
def watch(spark: SparkSession, listener: Listener) -> Iterator[None]:
    """Tell the listener while the block runs."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        with _over_connect(spark, listener):
            yield
    else:
        with _local(spark, listener):
            yield


@contextlib.contextmanager
def _over_connect(spark: Any, listener: Listener) -> Iterator[None]:
    def handle(stages: Iterable[Any] | None, **_: object) -> None:
        told = list(stages or ())
        listener(sum(stage.num_completed_tasks for stage in told), sum(stage.num_tasks for stage in told))

    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)


@contextlib.contextmanager
def _local(spark: SparkSession, listener: Listener) -> Iterator[None]:
    tracker = spark.sparkContext.statusTracker()
    over = threading.Event()

    def poll() -> None:
        while not over.wait(_INTERVAL):
            # The session may end first; what is shown is for people, so that is no error.
            with contextlib.suppress(Exception):
                told = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                stages = [stage for stage in told if stage is not None]
                listener(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))

    thread = threading.Thread(target=poll, daemon=True, name="likewise-progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
