"""Atomic file writes: content goes to a temporary file, which replaces the target once it is complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from likewise.errors import InputError

__all__ = ["decoded", "named_errors", "read_whole", "whole_file", "write_whole"]

_FULL = 28


@contextmanager
def whole_file(path: Path | str) -> Iterator[BinaryIO]:
    """Open a file that replaces the target when the block ends; on any error the old content stays.

    A symbolic link is followed. Devices and pipes are written directly.

    >>> with whole_file("/dev/null") as file:
    ...     file.write(b"gone")
    4
    """
    target = Path(os.path.realpath(path))
    with named_errors(path):
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        part = _beside(target)
        try:
            with part.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, part)
            part.replace(target)
        except BaseException:  # leave no partial file, even on Ctrl-C
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def write_whole(path: Path | str, content: str | bytes) -> None:
    """Replace a file's content atomically."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def read_whole(path: Path | str) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", source=str(path), hint="check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", source=str(path), hint="give the path of a file") from None
    return decoded(raw, str(path))


def decoded(raw: bytes, source: str) -> str:
    """Decode UTF-8 bytes, with or without a byte order mark; the error names the line."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8 text", source=source, line=line, hint="save the file as UTF-8") from None


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.part")


@contextmanager
def named_errors(path: Path | str) -> Iterator[None]:
    """Turn system errors while writing into an `InputError` that names the path."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        target = Path(os.path.realpath(path))
        if error.filename is not None and Path(str(error.filename)) not in (Path(path), target, _beside(target)):
            raise
        hint = "make room on the disk" if error.errno == _FULL else "choose another place to write to"
        raise InputError(f"cannot be written: {error.strerror or error}", source=str(path), hint=hint) from None
