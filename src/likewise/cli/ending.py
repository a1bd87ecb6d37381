"""How a command ends that was asked to: signals are heeded, and a JVM that goes away is no traceback."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAST_WORDS: Final = 20
"""Seconds in which a JVM that had a signal has stopped what it does."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
AGAIN: Final = "mend it and start again: it goes on where it was"


class Ending:
    """Whether the end is wanted: Ctrl-C says so, and SIGTERM, which service managers send; that is no failure."""

    def __init__(self, *, say: bytes = b"stopping\n") -> None:
        self.wanted = False
        self._say = say

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Signals are heeded inside, in any place; the second one does not wait."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.heed()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def heed(self) -> None:
        """Take the signals, also from a Spark session, which cancels jobs at Ctrl-C as if it were asked to."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self._hear)
        _hush()

    def _hear(self, number: int, _: Any) -> None:
        # An exception would come up in the middle of a talk with the JVM and break it off.
        if self.wanted:
            os._exit(128 + number)
        self.wanted = True
        os.write(2, self._say)
        # The JVM may have had the signal too, and be gone when it is asked.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)

    @contextlib.contextmanager
    def without_jvm(self) -> Iterator[None]:
        """What is said inside to a JVM that is gone: nothing, if the end was wanted, and otherwise one line."""
        try:
            yield
        except LikewiseError:
            raise
        except Exception as error:  # Py4J, Spark and sockets each have their own for a JVM that is gone
            if not jvm_is_gone(patience=_LAST_WORDS if self.wanted else 1):
                raise told_of(error) from error
            if not self.wanted:
                raise LikewiseError("Spark's JVM is gone: killed, or out of memory", hint=AGAIN) from error


def is_news(record: logging.LogRecord) -> bool:
    """Py4J logs a talk with the JVM that Ctrl-C or its end broke off, with all that led to it: told in one line."""
    return not str(record.msg).endswith("while sending command.")


def _hush() -> None:
    """Spark's server of accumulators prints what went wrong when the JVM is gone."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def told_of(error: Exception) -> Exception:
    """What Spark raises, in one line; other exceptions as they are."""
    from pyspark.errors import PySparkException

    from likewise.pipeline.trouble import stream_failure

    return LikewiseError(stream_failure(str(error))) if isinstance(error, PySparkException) else error


def jvm_is_gone(*, patience: float) -> bool:
    """Whether the JVM of this process has ended, or does so within some seconds."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=patience)
    return process.poll() is not None


@contextlib.contextmanager
def cancelling(spark: SparkSession) -> Iterator[None]:
    """Ctrl-C cancels what Spark does inside and ends the command; the second does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, _: Any) -> None:
        if heard:
            os._exit(128 + number)
        heard.append(number)
        # The main thread may be in the middle of a talk with the JVM: another one asks it to stop.
        threading.Thread(target=_cancel, args=(spark,), daemon=True).start()

    before = signal.signal(signal.SIGINT, hear)
    _hush()
    try:
        yield
    except Exception:  # whatever a cancelled job raises
        if not heard:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _cancel(spark: SparkSession) -> None:
    with contextlib.suppress(Exception):
        if hasattr(spark, "interruptAll") and not hasattr(spark, "_jsparkSession"):
            spark.interruptAll()
        else:
            spark.sparkContext.cancelAllJobs()
