"""Events as they arrive: on an open pipe or in a file that grows, handed on at once and ended by Ctrl-C."""

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
MOST: Final = 100_000
"""Items that may wait: a fast pipe is read no further before they are worked on."""


def is_live(source: str) -> bool:
    """Whether more may come after what is there: a pipe, a terminal or a socket."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if source == "-" else os.stat(source).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def live_source(source: str, *, follow: bool, stopped: Callable[[], bool]) -> BinaryIO:
    """The bytes of a source that goes on."""
    if source == "-":
        # A reader of our own: Python cannot close its stdin while a thread reads it.
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
    """A file that is read to its end and then waited on; one that is replaced or cut is read from its beginning."""

    def __init__(self, path: Path, stopped: Callable[[], bool]) -> None:
        self._path = path
        self._stopped = stopped
        self._file = path.open("rb", buffering=0)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What is there, or what comes; nothing at the end that is asked for."""
        while not self._stopped():
            count = self._file.readinto(buffer)
            if count:
                return count
            self._turn()
            time.sleep(POLL)
        return 0

    def close(self) -> None:
        """Close the file as well."""
        if not self.closed:
            self._file.close()
        super().close()

    def _turn(self) -> None:
        """Begin anew where a log was rotated."""
        mine = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except OSError:
            return
        if (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            self._file.close()
            self._file = self._path.open("rb", buffering=0)
        elif mine.st_size < self._file.tell():
            self._file.seek(0)


def arriving(items: Iterator[Item], *, size: int, stopped: Callable[[], bool]) -> Iterator[list[Item]]:
    """Lists of what has come since the last one, as soon as there is anything.

    >>> list(arriving(iter("abc"), size=3, stopped=lambda: False))[0][0]
    'a'
    """
    waiting: deque[Item] = deque()
    news, over = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for item in items:
                waiting.append(item)
                news.set()
                while len(waiting) > MOST:
                    time.sleep(POLL)
        except BaseException as error:  # raised again by whoever reads
            failures.append(error)
        finally:
            over.set()
            news.set()

    threading.Thread(target=read, daemon=True).start()
    while not (over.is_set() and not waiting):
        news.wait(POLL)
        news.clear()
        while waiting:
            yield [waiting.popleft() for _ in range(min(size, len(waiting)))]
        if stopped():
            return
    if failures:
        raise failures[0]
