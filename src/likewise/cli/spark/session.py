"""What commands that run on Spark share: the session and its progress."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.cli.ending import cancelling
from likewise.cli.output import errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def session(master: str | None, remote: str | None) -> Iterator[SparkSession]:
    """A session for one command; one that was running before stays."""
    from likewise.pipeline import spark_session

    mine = not _is_running()
    # With Spark's default, every micro-batch would open 200 state stores.
    settings = {"spark.sql.shuffle.partitions": str(partitions(master, remote))}
    spark = spark_session(master=master, remote=remote, settings=settings)
    try:
        with cancelling(spark):
            yield spark
    finally:
        if mine:
            spark.stop()


def partitions(master: str | None, remote: str | None) -> int:
    """The number of shuffle partitions of a command: the cores of a local master, else the number of key buckets.

    >>> partitions("local[3,4]", None), partitions("spark://host:7077", None)
    (3, 32)
    """
    from likewise.composite import BUCKETS
    from likewise.pipeline.session import local_cores

    return local_cores(remote or master or "local[*]") or BUCKETS


def _is_running() -> bool:
    # Without pyspark loaded there is no session; `spark_session` reports whether it is installed.
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


@contextlib.contextmanager
def progress_of(spark: SparkSession) -> Iterator[None]:
    """Tasks done and to do, on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from likewise.pipeline import watch

    columns = (SpinnerColumn(), TextColumn("tasks"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("tasks", total=None)
        with watch(spark, lambda done, every: progress.update(task, completed=done, total=every or None)):
            yield


def refuse_taken(out: str | None) -> None:
    """Refuse an output path that exists, before the work rather than after it."""
    from likewise.errors import BuildError

    if out is not None and "://" not in out and Path(out).exists():
        raise BuildError(f"{out} is already there", hint="choose another place for --out")
