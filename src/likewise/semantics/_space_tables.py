"""The tables of a space that are read seldom: titles of concepts, counts of words. Parquet, packed small."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.errors import SpaceError
from likewise.semantics._space_format import HINT_REBUILD

GROUP = 8192
"""Titles that are unpacked together when one of them is asked for."""


class Titles:
    """Titles by concept id, unpacked a group at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._group = lru_cache(maxsize=64)(self._read_group)

    def __getitem__(self, concept: int) -> str:
        if concept < 0:
            raise IndexError(concept)
        title: str = self._group(concept // GROUP)[concept % GROUP].as_py()
        return title

    @cached_property
    def _file(self) -> pq.ParquetFile:
        return _open(self._path)

    def _read_group(self, group: int) -> pa.Array:
        if group >= self._file.num_row_groups:
            raise IndexError(group * GROUP)
        return self._file.read_row_group(group).column("title").combine_chunks()


def read_counts(path: Path) -> dict[str, int]:
    """Words and how often each stands in the corpus."""
    table = _open(path).read()
    return dict(zip(table.column("word").to_pylist(), table.column("count").to_pylist(), strict=True))


def write_titles(path: Path, titles: Sequence[bytes]) -> None:
    """Titles in the order of concept ids."""
    _write(path, {"title": _strings(titles)})


def write_counts(path: Path, words: Sequence[bytes], counts: NDArray[np.integer]) -> None:
    """Words, sorted, and their counts."""
    _write(path, {"word": _strings(words), "count": pa.array(counts, pa.int64())})


def _strings(items: Sequence[bytes]) -> pa.Array:
    return pa.array(items, pa.binary()).cast(pa.string())


def _write(path: Path, columns: dict[str, pa.Array]) -> None:
    # Neighbours in sorted order share their beginnings, which this encoding stores once.
    first = next(iter(columns))
    pq.write_table(
        pa.table(columns),
        path,
        row_group_size=GROUP,
        compression="zstd",
        use_dictionary=False,
        column_encoding={first: "DELTA_BYTE_ARRAY"},
        write_statistics=False,
    )


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True)
    except (OSError, pa.ArrowInvalid) as error:
        raise SpaceError(f"{path} cannot be read: {error}", hint=HINT_REBUILD) from error
