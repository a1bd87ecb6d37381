"""What goes wrong in Spark or on a disk, told in one line with what to do about it."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator

from likewise.errors import InputError, LikewiseError, SpaceError


@contextlib.contextmanager
def failures_of(source: str) -> Iterator[None]:
    """What went wrong in Spark or on the disk, in one line that names the source."""
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
    # A worker's Python error comes with its traceback: what went wrong stands last.
    line = lines[-1] if "Traceback" in text and "Error" in lines[-1] else lines[0]
    return InputError(f"Spark failed: {line[:300]}; nothing was written", source=source)


def stream_failure(text: str) -> str:
    r"""Why a query failed, in one line of the many that Spark says: what Python raised last, or what Spark says first.

    >>> trace = "Traceback (most recent call last):\n  File …\nlikewise.delivery.DeliveryError: nobody answers"
    >>> stream_failure(f"[FAILED] Job aborted: {trace}\n\tat org.apache.spark\n=== Streaming Query ===\nState: …")
    'nobody answers'
    >>> stream_failure("[PATH_NOT_FOUND] There is no such path. SQLSTATE: 42K03")
    'There is no such path.'
    """
    said = text.partition("=== Streaming Query ===")[0]
    if "sources in the checkpoint offsets" in said:
        return "the checkpoint is of a stream with other sources, of which a heartbeat is one"
    raised, inside = "", False
    for line in said.splitlines():
        if "Traceback (most recent call last)" in line:
            inside = True
        elif inside and (found := _RAISED.match(line)):
            raised, inside = line if found[1] is None else line.removeprefix(found[1]), False
    first = next((line for line in said.splitlines() if line.strip()), "no reason was given")
    line = raised or re.sub(r"^\[[A-Z0-9_.]+\] ", "", first.strip())
    return line.partition(" SQLSTATE: ")[0].strip()[:500]


_RAISED = re.compile(r"(?:(likewise\.[\w.]+: )|[A-Za-z_][\w.]*(?:: |$))")
"""A line of a traceback that names what was raised; of our own errors the message says all."""
