"""A checkpoint belongs to one stream at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from likewise.errors import BuildError
from likewise.pipeline.streaming.stream import CheckpointLock

pytestmark = pytest.mark.spark

HOLD = """
import fcntl, sys
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """Another process has the lock, as the JVM of another stream would."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield


def test_a_checkpoint_in_use_is_refused_and_one_that_becomes_free_is_taken(spark: Any, tmp_path: Path) -> None:
    with held_elsewhere(tmp_path / "lock"), pytest.raises(BuildError, match="another stream uses"):
        CheckpointLock.take(spark, str(tmp_path), patience=0.2)
    claim = CheckpointLock.take(spark, str(tmp_path))
    with pytest.raises(BuildError, match="another stream uses"):
        CheckpointLock.take(spark, str(tmp_path), patience=0.2)
    claim.release()
    CheckpointLock.take(spark, str(tmp_path), patience=0).release()


def test_a_checkpoint_that_cannot_be_written_is_named(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BuildError, match="cannot be written"):
        CheckpointLock.take(spark, str(tmp_path / "file"))


def test_where_there_are_no_locks_it_just_goes_on(spark: Any) -> None:
    CheckpointLock.take(spark, "s3a://bucket/checkpoint").release()
