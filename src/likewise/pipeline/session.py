"""One Spark session, local, on a cluster, or over Spark Connect."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from likewise.errors import BuildError, LikewiseError, MissingError, named_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Spark's JVM as a child process in its own process group, with its start-up messages filtered.
#
# Terminals, `timeout` and shells send signals to a whole process group. In our group, the JVM would be gone before the
# stream could be stopped in order. It still ends with this process, because it reads from a pipe that then breaks.


CHATTER: Final = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Setting default log level to ",
    b"To adjust logging level use ",
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker ",
)
"""Spark prints these at every start; no log setting turns them off."""


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
        with _ctrl_c_later():
            gateway = launch_gateway(conf, {"process_group": 0, "stderr": its})  # type: ignore[no-untyped-call]  # PySpark's own
    except PySparkRuntimeError as error:
        os.close(its)
        # The reader prints why it did not start.
        reader.join(5)
        raise LikewiseError("Spark's JVM did not start", hint="Spark needs Java 17 or later") from error
    os.close(its)
    SparkContext._ensure_initialized(gateway=gateway)


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Delay Ctrl-C until the end: a JVM that is left before it has sent its port would never stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, Any]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard and callable(before):
        before(*heard[0])


def _hand_on(handle: int) -> None:
    with os.fdopen(handle, "rb") as lines, contextlib.suppress(OSError):
        for line in news(lines):
            os.write(2, line)


def news(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""Lines without those that Spark always prints, and without the empty ones after them.

    >>> list(news([b"Setting default log level to WARN\n", b"\n", b"Error: no memory\n", b"\n"]))
    [b'Error: no memory\n', b'\n']
    """
    quiet = False
    for line in lines:
        quiet = line.startswith(CHATTER) or (quiet and not line.strip())
        if not quiet:
            yield line


DEFAULT_MASTER = "local[*,4]"
"""All cores; a task whose worker died is tried again, which plain `local[*]` does not do."""

_QUIET = Path(__file__).with_name("log4j2.properties")

_UNHURRIED = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""The JVM's second compiler waits ten times as long as usual: workers do the work, and what it would compile in the
first minute costs more processor time than it saves."""

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "0",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps finished jobs for its UI; with its defaults, memory grows for the first thousand batches.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "100",
    "spark.sql.session.timeZone": "UTC",
    # Workers are forked with NumPy, Numba and the rest already loaded: they start in milliseconds.
    "spark.python.daemon.module": "likewise.pipeline.daemon",
    "spark.driver.extraJavaOptions": " ".join(
        (
            # A stream that is stopped in a batch searches its error with a regular expression that recurses.
            "-Xss16m",
            "-XX:+UseParallelGC",
            *_UNHURRIED,
            f"-Dlog4j2.configurationFile=file:{_QUIET}",
        )
    ),
}


@named_options
def spark_session(
    *, master: str | None = None, remote: str | None = None, settings: dict[str, str] | None = None
) -> SparkSession:
    """The running session, or a new one: `master` as for spark-submit, or `remote` a Spark Connect address.

    Without either, `SPARK_REMOTE` and then all cores of this machine.
    """
    if master and remote:
        raise BuildError("a session has either a master or a remote address", hint="leave one of them out")
    address = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    far = address is not None and not address.startswith("local")
    _check_installed(java=not far)
    from pyspark.sql import SparkSession

    # PySpark sets this when it has started a server in this process.
    if address and not far and "SPARK_LOCAL_REMOTE" not in os.environ:
        _await_connect_port()
    # Workers must be the Python that runs this, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("likewise")
    builder = builder.remote(address) if address else builder.master(master or DEFAULT_MASTER)
    wanted = {**SETTINGS, **(settings or {})}
    if not address:
        start_jvm({"spark.app.name": "likewise", "spark.master": master or DEFAULT_MASTER, **wanted})
    for key, value in wanted.items():
        # A server that others started keeps its own settings; only those of the session are ours.
        if not far or key.startswith("spark.sql."):
            builder = builder.config(key, value)
    with warnings.catch_warnings():
        # A local Connect server takes its settings when it starts and then warns that it cannot take them again.
        warnings.filterwarnings("ignore", "Failed to set spark")
        return builder.getOrCreate()


def _check_installed(*, java: bool) -> None:
    try:
        import pyspark  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingError("this needs Spark", hint="pip install 'likewise[spark]'") from None
    if java:
        _check_java(os.environ.get("JAVA_HOME"))


def _check_java(home: str | None) -> None:
    """Spark takes the Java of JAVA_HOME where that is set, else the first on the path."""
    if home and not shutil.which("java", path=os.path.join(home, "bin")):
        raise MissingError(f"there is no Java in JAVA_HOME, {home}", hint="correct it, or unset it to use the path")
    if not home and not shutil.which("java"):
        raise MissingError(
            "Spark needs Java 17 or later", hint="install a Java runtime, or name a server with --remote"
        )


CONNECT_PORT: Final = 15002
"""A local Spark Connect server listens on this port; PySpark does not let its client look elsewhere."""


def _await_connect_port(port: int = CONNECT_PORT, *, patience: float = 20.0) -> None:
    """Wait until the port of a local Spark Connect server is free; a process that is ending may still hold it."""
    deadline = time.monotonic() + patience
    while True:
        with socket.socket() as probe:
            # As the server does, so that connections that have just been closed do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("localhost", port))
            except OSError:
                if time.monotonic() > deadline:
                    hint = f"use that server with remote='sc://localhost:{port}', or stop it"
                    raise BuildError(
                        f"port {port}, which a local Spark Connect server needs, is in use", hint=hint
                    ) from None
            else:
                return
        time.sleep(0.2)


PARTITIONS: Final = "spark.sql.shuffle.partitions"
UNTOUCHED: Final = "200"
"""Spark's default."""


def local_cores(master: str | None) -> int | None:
    """The cores of a local master; None on a cluster.

    >>> local_cores("local[3,4]"), local_cores("local"), local_cores("spark://host:7077")
    (3, 1, None)
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master or "")
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


# Progress of Spark jobs: how many tasks are done, reported to a listener, locally and over Spark Connect.


Listener: TypeAlias = Callable[[int, int], None]
"""Receives the number of finished tasks and of all tasks of the running stages."""

_INTERVAL = 0.5


@contextlib.contextmanager
def watch(spark: SparkSession, listener: Listener) -> Iterator[None]:
    """Report to the listener while the block runs."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        with _over_connect(spark, listener):
            yield
    else:
        with _local(spark, listener):
            yield


@contextlib.contextmanager
def _over_connect(spark: Any, listener: Listener) -> Iterator[None]:
    def handle(stages: Iterable[Any] | None, **_: object) -> None:
        active = list(stages or ())
        listener(sum(stage.num_completed_tasks for stage in active), sum(stage.num_tasks for stage in active))

    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)


def jvm_thread(target: Callable[..., None], *arguments: Any, name: str) -> threading.Thread:
    """A thread that talks with the JVM, started; the connection that it gets for that is closed when it ends.

    Left to the garbage collector, the socket may go before the connection that would close it.
    """

    def run() -> None:
        try:
            target(*arguments)
        finally:
            _hang_up()

    thread = threading.Thread(target=run, daemon=True, name=name)
    thread.start()
    return thread


def _hang_up() -> None:
    """Close the connection of this thread to the JVM, if it has one."""
    from pyspark import SparkContext

    client: Any = getattr(SparkContext._gateway, "_gateway_client", None)
    ask = getattr(client, "get_thread_connection", None)
    connection = None if ask is None else ask()
    if connection is None:
        return
    with contextlib.suppress(ValueError):
        client.deque.remove(connection)
    connection.close()


@contextlib.contextmanager
def _local(spark: SparkSession, listener: Listener) -> Iterator[None]:
    tracker = spark.sparkContext.statusTracker()
    over = threading.Event()

    def poll() -> None:
        while not over.wait(_INTERVAL):
            # The session may end first; what is shown is for people, so that is no error.
            with contextlib.suppress(Exception):
                active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                stages = [stage for stage in active if stage is not None]
                listener(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))

    thread = jvm_thread(poll, name="likewise-progress")
    try:
        yield
    finally:
        over.set()
        thread.join()
