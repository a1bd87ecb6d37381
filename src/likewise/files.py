"""Files that are written whole: beside their place first, and moved into it when nothing is missing."""

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
    """A file to write; it takes its place when the block ends, and on any error the old content stays.

    A link keeps pointing to the file that is replaced. Devices and pipes are written as they are.

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
        except BaseException:  # whatever it was, no half file stays
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def write_whole(path: Path | str, content: str | bytes) -> None:
    """Replace a file's content, or leave it as it was."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def read_whole(path: Path | str) -> str:
    """The text of a file in UTF-8, with or without a mark of byte order."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", source=str(path), hint="check the path") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {why}", source=str(path), hint="give the path of a file") from None
    return decoded(raw, str(path))


def decoded(raw: bytes, source: str) -> str:
    """Bytes of a source as text in UTF-8, with or without a mark of byte order; the error names the line."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8 text", source=source, line=line, hint="save the file as UTF-8") from None


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.part")


@contextmanager
def named_errors(path: Path | str) -> Iterator[None]:
    """Errors of the system while writing name the path: a full disk does not say which file was too much."""
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
