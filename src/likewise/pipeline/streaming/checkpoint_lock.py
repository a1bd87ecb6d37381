"""One stream at a time on a checkpoint: a lock that the JVM holds, since it is the JVM that writes there.

A driver that was killed leaves its JVM behind for a second or two, in which it may yet finish what it was at. A stream
that is started again at once waits for it; one that is started beside another is refused.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from likewise.errors import BuildError
from likewise.pipeline.session import jvm_thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE: Final = 20.0
"""Seconds in which a JVM whose driver is gone has ended."""
_POLL = 0.1

_mine: set[str] = set()
"""What this process holds. It must not even open such a file again: closed, it would be unlocked."""


class CheckpointLock:
    """The lock of one checkpoint; without a path it locks nothing."""

    def __init__(self, path: str | None = None, file: Any = None) -> None:
        self._path = path
        self._file = file

    @classmethod
    def take(cls, spark: SparkSession, checkpoint: str, *, patience: float = PATIENCE) -> CheckpointLock:
        """Wait for the checkpoint to be free and take it; over Spark Connect, and on an object store, just go on."""
        jvm = getattr(spark, "_jvm", None)
        if jvm is None or "://" in checkpoint:
            return cls()
        path = Path(checkpoint) / "lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise BuildError(f"the checkpoint {checkpoint} cannot be written: {error.strerror}") from error
        end = time.monotonic() + patience
        while (claim := cls._try(jvm, str(path.resolve()))) is None:
            if time.monotonic() > end:
                raise BuildError(
                    f"another stream uses the checkpoint {checkpoint}", hint="stop it, or give this one its own"
                )
            time.sleep(_POLL)
        return claim

    @classmethod
    def _try(cls, jvm: Any, path: str) -> CheckpointLock | None:
        from py4j.protocol import Py4JJavaError

        if path in _mine:
            return None
        file = jvm.java.io.RandomAccessFile(path, "rw")
        try:
            locked = file.getChannel().tryLock() is not None
        except Py4JJavaError as error:
            file.close()
            if error.java_exception.getClass().getSimpleName() != "IOException":
                raise
            return cls()  # a file system without locks
        if not locked:
            file.close()
            return None
        _mine.add(path)
        return cls(path, file)

    def until_over(self, query: StreamingQuery) -> None:
        """Hold it for as long as the query runs."""
        if self._path is not None:
            jvm_thread(self._hold, query, name="likewise-claim")

    def release(self) -> None:
        """Let others have it."""
        if self._path is not None:
            # If the JVM is gone, so is its lock.
            with contextlib.suppress(Exception):
                self._file.close()
            _mine.discard(self._path)
            self._path = None

    def _hold(self, query: StreamingQuery) -> None:
        # Only a JVM that is gone cannot be asked.
        with contextlib.suppress(Exception):
            while query.isActive:
                time.sleep(_POLL)
        self.release()
