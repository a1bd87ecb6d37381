"""One Spark session, local, on a cluster, or over Spark Connect."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import BuildError, MissingError
from likewise.pipeline._jvm import start_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    "spark.sql.session.timeZone": "UTC",
    # Workers are forked with NumPy, Numba and the rest already loaded: they start in milliseconds.
    "spark.python.daemon.module": "likewise.pipeline._daemon",
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
