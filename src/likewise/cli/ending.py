"""How commands stop: Ctrl-C and SIGTERM end them in order, and a JVM that died gives one line, no traceback."""

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

_JVM_GRACE: Final = 20
"""Seconds to wait for a JVM that received the same signal."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
AGAIN: Final = "fix the cause and start the command again: it continues where it stopped"


class Ending:
    """Records Ctrl-C and SIGTERM (from service managers), so that a loop can end in order; this is no failure."""

    def __init__(self, *, message: bytes = b"stopping\n") -> None:
        self.requested = False
        self._message = message

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Handle the signals inside the block; the second signal ends the process at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.install()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def install(self) -> None:
        """Install the handlers; also after a Spark session started, which replaces the one for Ctrl-C."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self._handle)
        _silence_accumulators()

    def _handle(self, number: int, _: Any) -> None:
        # Raising here would interrupt a call to the JVM half way.
        if self.requested:
            os._exit(128 + number)
        self.requested = True
        os.write(2, self._message)
        # The JVM may have received the signal too and be gone at the next call.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)

    @contextlib.contextmanager
    def without_jvm(self) -> Iterator[None]:
        """Handle errors of a JVM that is gone: ignored if the end was requested, else one line."""
        try:
            yield
        except LikewiseError:
            raise
        except Exception as error:  # Py4J, Spark and sockets raise different errors for a JVM that is gone
            if not jvm_is_gone(timeout=_JVM_GRACE if self.requested else 1):
                raise one_line(error) from error
            if not self.requested:
                raise LikewiseError("Spark's JVM ended: it was killed or ran out of memory", hint=AGAIN) from error


def is_not_py4j_noise(record: logging.LogRecord) -> bool:
    """A log filter that drops Py4J's traceback of an interrupted call to the JVM: the error is printed anyway."""
    return not str(record.msg).endswith("while sending command.")


def _silence_accumulators() -> None:
    """Stop Spark's accumulator server from printing a traceback when the JVM is gone."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def one_line(error: Exception) -> Exception:
    """A Spark exception as an error of one line; other exceptions unchanged."""
    from pyspark.errors import PySparkException

    from likewise.pipeline.trouble import stream_failure

    return LikewiseError(stream_failure(str(error))) if isinstance(error, PySparkException) else error


def jvm_is_gone(*, timeout: float) -> bool:
    """Whether the JVM of this process has ended, or ends within some seconds."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=timeout)
    return process.poll() is not None


@contextlib.contextmanager
def cancelling(spark: SparkSession) -> Iterator[None]:
    """Let Ctrl-C cancel Spark's jobs inside the block and end the command; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def handle(number: int, _: Any) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        # The main thread may be in the middle of a call to the JVM, so another thread cancels.
        threading.Thread(target=_cancel, args=(spark,), daemon=True).start()

    before = signal.signal(signal.SIGINT, handle)
    _silence_accumulators()
    try:
        yield
    except Exception:  # anything that a cancelled job raises
        if not received:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


def _cancel(spark: SparkSession) -> None:
    with contextlib.suppress(Exception):
        if hasattr(spark, "interruptAll") and not hasattr(spark, "_jsparkSession"):
            spark.interruptAll()
        else:
            spark.sparkContext.cancelAllJobs()
