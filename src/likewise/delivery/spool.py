"""A spool: messages numbered and kept on disk from their arrival until they are no longer asked for.

MQTT has no offsets: an acknowledged message is gone from the broker. Spark must be able to ask again for the same
messages after a crash, so each is on disk before it is acknowledged. Messages that arrive together share one wait for
the disk.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec

Message: TypeAlias = tuple[str, bytes, int]
"""Topic, payload, and when it arrived (microseconds since 1970)."""

SEGMENT = 4096
_LENGTH = struct.Struct("<I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, bytes, int]).decode


class Spool:
    """A folder of segments, each named by the number of its first message; safe against a kill at any time.

    >>> import tempfile
    >>> spool = Spool(tempfile.mkdtemp())
    >>> spool.append(("topic", b"payload", 0))
    0
    >>> spool.durable, spool.sync(), list(spool.read(0, 1))
    (0, 1, [('topic', b'payload', 0)])
    >>> spool.close()
    """

    def __init__(self, folder: str | Path, *, segment: int = SEGMENT) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._segment = segment
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._begin = 0
        self.next = self._recover()
        self.durable = self.next

    def append(self, message: Message) -> int:
        """Keep a message and give its number; it survives the process from now on, and the power after `sync`."""
        data = _encode(message)
        with self._lock:
            if self._file is None or self.next - self._begin >= self._segment:
                self._roll()
            assert self._file is not None
            self._file.write(_LENGTH.pack(len(data)) + data)
            self._file.flush()
            self.next += 1
            return self.next - 1

    def sync(self) -> int:
        """Wait until all that was appended is on the disk; gives how many messages are."""
        with self._lock:
            file, count = self._file, self.next
            if file is None or count == self.durable:
                return self.durable
            handle = os.dup(file.fileno())
        try:
            # Not under the lock: more may be appended meanwhile, and waits for the next time.
            os.fsync(handle)
        finally:
            os.close(handle)
        with self._lock:
            self.durable = max(self.durable, count)
            return self.durable

    def read(self, start: int, end: int) -> Iterator[Message]:
        """The messages with the numbers from `start` up to, not including, `end`."""
        for begin, path in self._segments():
            if begin >= end:
                return
            for number, (_, data) in enumerate(_records(path), begin):
                if start <= number < end:
                    yield _decode(data)

    def forget(self, end: int) -> None:
        """Drop the segments that hold nothing from `end` on."""
        with self._lock:
            segments = self._segments()
            for (_, path), (following, _) in pairwise(segments):
                if following <= end:
                    path.unlink(missing_ok=True)

    def skip_to(self, number: int) -> None:
        """Number the next message no lower than this: the folder was emptied, but Spark has counted on."""
        with self._lock:
            if number > self.next:
                self.next = self.durable = number
                self._roll()

    def close(self) -> None:
        """Close the open segment."""
        with self._lock:
            if self._file is not None:
                self._end()
                self._file = None

    def _roll(self) -> None:
        if self._file is not None:
            self._end()
        self._begin = self.next
        self._file = (self.folder / f"{self.next:020}.spool").open("ab")
        _sync_folder(self.folder)

    def _end(self) -> None:
        """Close a segment, of which nothing may be missing from the disk: who syncs later looks at the next one."""
        assert self._file is not None
        os.fsync(self._file.fileno())
        self._file.close()
        self.durable = max(self.durable, self.next)

    def _segments(self) -> list[tuple[int, Path]]:
        return sorted((int(path.stem), path) for path in self.folder.glob("*.spool"))

    def _recover(self) -> int:
        segments = self._segments()
        if not segments:
            return 0
        begin, path = segments[-1]
        ends = [place for place, _ in _records(path)]
        with path.open("r+b") as file:
            # A message cut off by a crash was never acknowledged: the broker sends it again.
            file.truncate(ends[-1] if ends else 0)
            os.fsync(file.fileno())
        return begin + len(ends)


def _sync_folder(folder: Path) -> None:
    """A new file is there after a power cut only if its folder says so."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Where each whole record ends, and its bytes."""
    place = 0
    try:
        file = path.open("rb")
    except FileNotFoundError:  # forgotten while it was about to be read
        return
    with file:
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            data = file.read(length)
            if len(data) < length:
                return
            place += _LENGTH.size + length
            yield place, data
