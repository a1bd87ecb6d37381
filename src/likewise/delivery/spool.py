"""What delivery keeps on disk: messages that arrived (a spool), and which batches were delivered (a ledger).

Messages in a spool are numbered in order of arrival and can be read again until they are dropped.

MQTT has no offsets: an acknowledged message is gone from the broker. After a crash Spark reads the same messages
again, so each must be on disk before it is acknowledged. Messages that arrive together share one `fsync`.
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

from likewise.files import write_whole

Message: TypeAlias = tuple[str, bytes, int]
"""Topic, payload, and time of arrival (microseconds since 1970)."""

SEGMENT = 4096
_LENGTH = struct.Struct("<I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, bytes, int]).decode


class Spool:
    """A folder of segment files, each named by the number of its first message; survives a kill at any moment.

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
        """Write a message and return its number; it survives a crash of the process, and after `sync` a power cut."""
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
        """Wait until all appended messages are on disk; returns the number after the last of them."""
        with self._lock:
            file, count = self._file, self.next
            if file is None or count == self.durable:
                return self.durable
            handle = os.dup(file.fileno())
        try:
            # Outside the lock, so that messages can be appended meanwhile; the next sync covers those.
            os.fsync(handle)
        finally:
            os.close(handle)
        with self._lock:
            self.durable = max(self.durable, count)
            return self.durable

    def read(self, start: int, end: int) -> Iterator[Message]:
        """The messages numbered from `start` up to, but not including, `end`."""
        for begin, path in self._segments():
            if begin >= end:
                return
            for number, (_, data) in enumerate(_records(path), begin):
                if start <= number < end:
                    yield _decode(data)

    def forget(self, end: int) -> None:
        """Delete the segments whose messages are all numbered below `end`."""
        with self._lock:
            segments = self._segments()
            for (_, path), (following, _) in pairwise(segments):
                if following <= end:
                    path.unlink(missing_ok=True)

    def skip_to(self, number: int) -> None:
        """Number the next message `number` or higher: if the folder was emptied, Spark's offset is ahead of it."""
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
        """Sync and close the open segment; `sync` only covers the segment that is open."""
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
    """Sync a folder, without which a new file may be gone after a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    """The end position and the bytes of each complete record."""
    place = 0
    try:
        file = path.open("rb")
    except FileNotFoundError:  # deleted by `forget` meanwhile
        return
    with file:
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            data = file.read(length)
            if len(data) < length:
                return
            place += _LENGTH.size + length
            yield place, data


class Ledger:
    """Stores the last delivered batch in a file; batches must come in order.

    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "delivered")
    >>> ledger.add(3)
    >>> ledger.has(2), ledger.has(3), ledger.has(4)
    (True, True, False)
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def has(self, batch: int) -> bool:
        """Whether this batch was delivered already."""
        try:
            return batch <= int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return False

    def add(self, batch: int) -> None:
        """Record a batch; after a crash the file holds the old number or the new one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, str(batch))
