"""Spark's JVM as a child that only we speak for: signals of the terminal do not reach it, and its chatter stays out.

A terminal, `timeout` and shells send a signal to a whole process group. A JVM in ours would be gone before the stream
could be stopped in order, so it has a group of its own. It does not outlive us all the same: it reads from a pipe that
breaks when we end, however that comes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from likewise.errors import LikewiseError

CHATTER: Final = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Setting default log level to ",
    b"To adjust logging level use ",
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker ",
)
"""What Spark says at every start, and which no setting of its log turns off: it is printed, not logged."""


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM of a classic session, unless there is one; the settings are those that it must start with."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if os.name != "posix" or SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    ours, its = os.pipe()
    reader = threading.Thread(target=_hand_on, args=(ours,), daemon=True, name="likewise-jvm")
    reader.start()
    try:
        gateway = launch_gateway(conf, {"process_group": 0, "stderr": its})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        os.close(its)
        # Why it did not start is said there.
        reader.join(5)
        raise LikewiseError("Spark's JVM did not start", hint="Spark needs Java 17 or later") from error
    os.close(its)
    SparkContext._ensure_initialized(gateway=gateway)


def _hand_on(handle: int) -> None:
    with os.fdopen(handle, "rb") as lines, contextlib.suppress(OSError):
        for line in news(lines):
            os.write(2, line)


def news(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""Lines without those that say nothing new, and without the empty ones after them.

    >>> list(news([b"Setting default log level to WARN\n", b"\n", b"Error: no memory\n", b"\n"]))
    [b'Error: no memory\n', b'\n']
    """
    quiet = False
    for line in lines:
        quiet = line.startswith(CHATTER) or (quiet and not line.strip())
        if not quiet:
            yield line
