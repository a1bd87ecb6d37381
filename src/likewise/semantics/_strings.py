"""Strings: many sorted strings in one mapped file, cut by offsets."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.errors import SpaceError
from likewise.semantics._space_format import HINT_REBUILD


class Strings:
    """Read-only strings, sorted by their UTF-8 bytes."""

    def __init__(self, offsets: NDArray[np.int64], path: Path) -> None:
        size = path.stat().st_size
        if len(offsets) == 0 or offsets[-1] != size:
            raise SpaceError(f"{path} does not fit its offsets", hint=HINT_REBUILD)
        self._offsets = offsets
        with path.open("rb") as stream:
            # An empty file cannot be mapped.
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._at(index).decode()

    def find(self, text: str) -> int:
        """The place of a string by binary search; -1 where it is not."""
        wanted = text.encode()
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._at(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._at(low) == wanted else -1

    def _at(self, index: int) -> bytes:
        return self._bytes[self._offsets[index] : self._offsets[index + 1]]


def join_strings(items: Iterable[bytes]) -> tuple[NDArray[np.int64], bytes]:
    """Offsets and bytes of strings, as `Strings` reads them.

    >>> offsets, joined = join_strings([b"ab", b"c"])
    >>> offsets.tolist(), joined
    ([0, 2, 3], b'abc')
    """
    parts = list(items)
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return offsets, b"".join(parts)
