"""Problems on Spark: found before a job by `check`, or reported in one line after it failed."""

from __future__ import annotations

import contextlib
import errno
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from likewise.errors import InputError, LikewiseError, SpaceError, named_options
from likewise.pipeline.options import workers_run_this_python
from likewise.recipe import space_digest, space_paths

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


PACKAGES: Final = ("likewise", "numba", "pyarrow", "pandas", "protobuf")
"""What workers import; protobuf is for streams that detect."""
_PROBE_SCHEMA: Final = "host string, name string, found string"
_JAVA: Final = 17


@named_options
def check(spark: SparkSession, *, spaces: str | Path | Sequence[str | Path] = ()) -> list[str]:
    """Problems of this session with Likewise, a line each; an empty list if there are none.

    It checks packages and their versions, the Python of workers, Java, and whether each space is at its path with the
    same checksums on every machine.
    """
    workers_run_this_python(spark)
    mine = {name: _version(name) for name in PACKAGES}
    paths = list(space_paths(spaces))
    wanted = {path: space_digest(path) for path in paths}
    problems = [f"driver: {name} is not installed" for name, found in mine.items() if not found]
    problems += [f"driver: there is no space at {path}" for path, digest in wanted.items() if not digest]
    problems += _java(spark)
    return problems + list(_workers(spark, mine, wanted))


def _java(spark: SparkSession) -> Iterator[str]:
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:
        java = str(jvm.java.lang.System.getProperty("java.specification.version"))
        if int(java.partition(".")[0]) < _JAVA:
            yield f"driver: Java {java} is too old; Spark needs Java {_JAVA} or later"


def _workers(spark: SparkSession, mine: dict[str, str], wanted: dict[str, str]) -> Iterator[str]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    probe = WorkerProbe(tuple(wanted))
    try:
        tasks = _tasks(spark)
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(probe.__call__, _PROBE_SCHEMA).distinct().collect()
    except (PySparkException, Py4JError) as error:
        # Without the package itself, a worker cannot even unpickle the probe.
        lines = [line.strip() for line in str(error).splitlines() if "Error" in line]
        yield f"workers: they cannot run this: {(lines or [type(error).__name__])[-1][:200]}"
        return
    for host, name, found in sorted((row["host"], row["name"], row["found"]) for row in rows):
        yield from _differences(host, name, found, wanted={**mine, "python": _python(), **wanted})


def _differences(host: str, name: str, found: str, *, wanted: dict[str, str]) -> Iterator[str]:
    """The difference between what a worker reported and the driver, if there is one.

    >>> list(_differences("node1", "numba", "", wanted={"numba": "0.60"}))
    ['worker on node1: numba is not there']
    >>> list(_differences("node1", "python", "3.12", wanted={"python": "3.11"}))
    ['worker on node1: python is 3.12, the driver has 3.11']
    """
    if not found:
        yield f"worker on {host}: {name} is not there"
    elif found != wanted.get(name, found):
        yield f"worker on {host}: {name} is {found}, the driver has {wanted[name]}"


def _tasks(spark: SparkSession) -> int:
    """Enough tasks to reach every worker; Spark Connect does not report how many there are."""
    context: Any = getattr(spark, "_sc", None)
    return 8 if context is None else max(2, int(context.defaultParallelism))


@dataclass(frozen=True, slots=True)
class WorkerProbe:
    """Reports what a worker has, for `mapInArrow`."""

    spaces: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import socket

        import pyarrow as pa

        versions = {name: _version(name) for name in PACKAGES} | {"python": _python()}
        versions |= {path: _digest(path) for path in self.spaces}
        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_pydict(
                    {
                        "host": [socket.gethostname()] * len(versions),
                        "name": list(versions),
                        "found": list(versions.values()),
                    }
                )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _source_version(package)


def _source_version(package: str) -> str:
    """A package on the path that was not installed has no version."""
    from importlib.util import find_spec

    return "from source" if find_spec(package) is not None else ""


def _digest(path: str) -> str:
    try:
        return space_digest(path)
    except (LikewiseError, OSError):
        return ""


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


# After a failure.


@contextlib.contextmanager
def failures_of(source: str) -> Iterator[None]:
    """Translate an error of Spark or of the disk into one line that names the source."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except LikewiseError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise SpaceError("the disk is full", hint="free some space or choose another --out") from error
        raise
    except (PySparkException, Py4JError) as error:
        raise _translated(error, source) from error


_KNOWN = (
    ("No space left on device", "the disk is full", "free space where Spark keeps its files (SPARK_LOCAL_DIRS)"),
    ("PATH_NOT_FOUND", "no corpus there", "paths are read by the Spark workers, not by this program"),
    ("bad block header", "the bzip2 file is broken", "fetch it again; `bzip2 -t` tests it"),
    ("crc error", "the bzip2 file is broken", "fetch it again; `bzip2 -t` tests it"),
    ("CBZip2InputStream", "the bzip2 file is broken", "fetch it again; `bzip2 -t` tests it"),
    ("unexpected end of stream", "the file is cut off", "fetch it again"),
    ("Not in GZIP format", "the gzip file is broken", "fetch it again; `gzip -t` tests it"),
    ("GzipDecompressor", "the gzip file is broken", "fetch it again; `gzip -t` tests it"),
    ("not a Parquet file", "not a Parquet file", "check --format"),
    ("worker exited unexpectedly", "a worker was killed", "more memory, or fewer cores: --master 'local[1,4]'"),
    ("OutOfMemoryError", "Spark ran out of memory", "give it more: --memory 2g"),
)


def _translated(error: Exception, source: str) -> LikewiseError:
    text = str(error)
    for sign, message, hint in _KNOWN:
        if sign in text:
            return InputError(f"{message}; nothing was written", source=source, hint=hint)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    # A Python error of a worker comes with its traceback: the message is the last line.
    line = lines[-1] if "Traceback" in text and "Error" in lines[-1] else lines[0]
    return InputError(f"Spark failed: {line[:300]}; nothing was written", source=source)


def with_reasons(start: Callable[..., Any]) -> Callable[..., Any]:
    """A start of a query whose errors end with the reason, which is otherwise lost in Spark's pages."""

    @wraps(start)
    def started(*arguments: Any, **named: Any) -> Any:
        query = start(*arguments, **named)
        for name in ("awaitTermination", "processAllAvailable"):
            setattr(query, name, _with_reason(getattr(query, name)))
        return query

    return started


def _with_reason(wait: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(wait)
    def waited(*arguments: Any, **named: Any) -> Any:
        from pyspark.errors import PySparkException

        try:
            return wait(*arguments, **named)
        except PySparkException as error:
            error.add_note(f"The reason: {stream_failure(str(error))}")
            raise

    return waited


def stream_failure(text: str) -> str:
    r"""Why a query failed, in one line of Spark's report: the last Python exception, or Spark's first line.

    >>> trace = "Traceback (most recent call last):\n  File …\nlikewise.delivery.DeliveryError: nobody answers"
    >>> stream_failure(f"[FAILED] Job aborted: {trace}\n\tat org.apache.spark\n=== Streaming Query ===\nState: …")
    'nobody answers'
    >>> stream_failure("[PATH_NOT_FOUND] There is no such path. SQLSTATE: 42K03")
    'There is no such path.'
    """
    report = text.partition("=== Streaming Query ===")[0]
    if "sources in the checkpoint offsets" in report:
        return "the checkpoint is of a stream with other sources, of which a heartbeat is one"
    raised, inside = "", False
    for line in report.splitlines():
        if "Traceback (most recent call last)" in line:
            inside = True
        elif inside and (found := _RAISED.match(line)):
            raised, inside = line if found[1] is None else line.removeprefix(found[1]), False
    first = next((line for line in report.splitlines() if line.strip()), "no reason was given")
    line = raised or re.sub(r"^\[[A-Z0-9_.]+\] ", "", first.strip())
    return line.partition(" SQLSTATE: ")[0].strip()[:500]


_RAISED = re.compile(r"(?:(likewise\.[\w.]+: )|[A-Za-z_][\w.]*(?:: |$))")
"""A line of a traceback that names what was raised; of our own errors the message says all."""
