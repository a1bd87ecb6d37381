"""What goes wrong in Spark or on a disk, told in one line with what to do about it."""

from __future__ import annotations

import contextlib
import errno
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
