"""Live input: an open pipe or a growing file, processed as it arrives and ended by Ctrl-C."""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from likewise.errors import BuildError, InputError

Item = TypeVar("Item")

POLL: Final = 0.05
MAX_WAITING: Final = 100_000
"""Items read ahead at most; then reading pauses until they are processed."""


def is_live(source: str) -> bool:
    """Whether the source is a pipe, a terminal or a socket, where more may arrive at any time."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if source == "-" else os.stat(source).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def live_source(source: str, *, follow: bool, stopped: Callable[[], bool]) -> BinaryIO:
    """Open a live source for reading bytes."""
    if source == "-":
        # Not sys.stdin: Python cannot close that while a thread reads it.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if follow and Path(source).is_dir():
        raise BuildError(f"{source} is a folder", hint="--follow takes a file")
    if not follow:
        return open(source, "rb")
    try:
        return io.BufferedReader(Followed(Path(source), stopped))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=source, hint="check the path") from None


class Followed(io.RawIOBase):
    """A file that is read to its end and then polled; if it is replaced or truncated, reading starts over."""

    def __init__(self, path: Path, stopped: Callable[[], bool]) -> None:
        self._path = path
        self._stopped = stopped
        self._file = path.open("rb", buffering=0)

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there, or wait for more; return 0 once stopped."""
        while not self._stopped():
            count = self._file.readinto(buffer)
            if count:
                return count
            self._check_rotation()
            time.sleep(POLL)
        return 0

    def close(self) -> None:
        """Close the file as well."""
        if not self.closed:
            self._file.close()
        super().close()

    def _check_rotation(self) -> None:
        """Start over if the file was rotated or truncated."""
        opened = os.fstat(self._file.fileno())
        try:
            current = self._path.stat()
        except OSError:
            return
        if (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino):
            self._file.close()
            self._file = self._path.open("rb", buffering=0)
        elif opened.st_size < self._file.tell():
            self._file.seek(0)


def arriving(items: Iterator[Item], *, size: int, stopped: Callable[[], bool]) -> Iterator[list[Item]]:
    """Lists of the items that arrived since the last list, each as soon as there is an item.

    >>> list(arriving(iter("abc"), size=3, stopped=lambda: False))[0][0]
    'a'
    """
    waiting: deque[Item] = deque()
    arrived, ended = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for item in items:
                waiting.append(item)
                arrived.set()
                while len(waiting) > MAX_WAITING:
                    time.sleep(POLL)
        except BaseException as error:  # raised again in the consumer's thread
            failures.append(error)
        finally:
            ended.set()
            arrived.set()

    threading.Thread(target=read, daemon=True).start()
    while not (ended.is_set() and not waiting):
        arrived.wait(POLL)
        arrived.clear()
        while waiting:
            yield [waiting.popleft() for _ in range(min(size, len(waiting)))]
        if stopped():
            return
    if failures:
        raise failures[0]
