"""Turns errors of other libraries about files, disk or set-up into one clear message."""

from __future__ import annotations

import re
from typing import Any

from likewise.errors import InputError, LikewiseError, MissingError

_EXTRAS = {
    "altair": "charts",
    "fastapi": "broker",
    "grpc": "spark",
    "httpx": "broker",
    "nicegui": "page",
    "onnxruntime": "embedding",
    "paho": "spark",
    "pandas": "spark",
    "prometheus_client": "broker",
    "psutil": "spark",
    "py4j": "spark",
    "pyspark": "spark",
    "sqlalchemy": "broker",
    "structlog": "broker",
    "tokenizers": "embedding",
    "uvicorn": "broker",
    "vl_convert": "charts",
}


def explained(error: BaseException) -> LikewiseError | None:
    """The error with a hint for the user, or None if it is a bug, which should show its traceback.

    >>> print(explained(FileExistsError(17, "File exists", "out")))
    out: File exists
      hint: choose another place to write to
    >>> explained(ZeroDivisionError())
    """
    if isinstance(error, LikewiseError):
        return error
    if hasattr(error, "format_message"):
        return _of_the_command_line(error)
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, ModuleNotFoundError):
        return _missing(error)
    if type(error).__module__.split(".")[0] in {"py4j", "pyspark"}:
        return _of_spark(error)
    return None


def _of_the_command_line(error: Any) -> LikewiseError:
    """A wrong option or argument in one line, with the command whose help to read."""
    context = getattr(error, "ctx", None)
    path = "likewise" if context is None else context.command_path
    message = error.format_message()
    message = message[:1].lower() + message[1:]
    return LikewiseError(message.rstrip("."), hint=f"see `{path} --help`")


def _of_the_system(error: OSError) -> LikewiseError:
    problem = error.strerror or str(error) or type(error).__name__
    hint = "check the path and its permissions"
    if isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
        hint = "choose another place to write to"
    elif error.errno == 28:
        hint = "make room on the disk"
    return InputError(problem, source=str(error.filename or "<output>"), hint=hint)


def _missing(error: ModuleNotFoundError) -> LikewiseError | None:
    extra = _EXTRAS.get((error.name or "").split(".")[0])
    if extra is None:
        return None
    return MissingError(f"this needs {error.name}", hint=f"pip install 'likewise[{extra}]'")


def _of_spark(error: BaseException) -> LikewiseError:
    """The first line of Spark's message, without the SQLSTATE code and the Java stack trace."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    message = re.sub(r"\s*SQLSTATE: \w+$", "", lines[0].strip())
    hint = None
    if "PATH_ALREADY_EXISTS" in message:
        hint = "write to a folder that does not exist yet"
    elif "PATH_NOT_FOUND" in message:
        hint = "check the path: it must be one that Spark's workers can read"
    return LikewiseError(f"Spark reports: {message}", hint=hint)
