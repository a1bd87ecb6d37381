"""Writes a space folder atomically, with the same bytes for the same content."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from numpy.typing import NDArray

from likewise.errors import SpaceError
from likewise.semantics.space.format import ARRAYS, MANIFEST, Manifest, content_id, describe_file
from likewise.semantics.space.space import join_strings, write_counts, write_titles

MOST = np.iinfo(np.uint16).max
"""The largest frequency that can be stored; higher ones are stored as this."""


class SpaceWriter:
    """Writes a space to a hidden folder beside its final one, and moves it into place at `commit`.

    It is a context manager: leaving it without `commit` removes everything written.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        self.path = Path(os.path.abspath(path))
        self._overwrite = overwrite
        if self.path.exists() and not overwrite:
            raise SpaceError(f"{self.path} already exists", hint="choose another name, or replace it with --overwrite")
        self.folder = self.path.parent / f".{self.path.name}.{uuid.uuid4().hex[:8]}.part"
        self._open: dict[str, _Column] = {}
        self._postings = 0

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        for name in ("concepts", "freq", "df", "term_offsets", "indptr"):
            self._open[name] = _Column(self.folder / f"{name}.npy", ARRAYS[name])
        self._terms = (self.folder / "terms.bin").open("wb")
        self._open["term_offsets"].append(np.zeros(1))
        self._open["indptr"].append(np.zeros(1))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write_concepts(
        self, titles: Sequence[bytes], *, length: NDArray[np.integer], max_freq: NDArray[np.integer]
    ) -> None:
        """Write all concepts, in the order of their ids."""
        self._concepts = len(titles)
        write_titles(self.folder / "titles.parquet", titles)
        self._write_array("length", length)
        self._write_array("max_freq", np.minimum(max_freq, MOST))

    def write_words(self, words: Sequence[bytes], counts: NDArray[np.integer]) -> None:
        """Write all unstemmed words with their counts, sorted by their bytes."""
        self._words = len(words)
        write_counts(self.folder / "words.parquet", words, counts)

    def add_terms(
        self,
        terms: Sequence[bytes],
        *,
        df: NDArray[np.integer],
        sizes: NDArray[np.integer],
        concepts: NDArray[np.integer],
        freq: NDArray[np.integer],
    ) -> None:
        """Write the next terms in the order of their bytes, with the postings of all of them in one run."""
        offsets, joined = join_strings(terms)
        self._open["term_offsets"].append(offsets[1:] + self._terms.tell())
        self._terms.write(joined)
        self._open["df"].append(df)
        self._open["indptr"].append(np.cumsum(sizes, dtype=np.int64) + self._postings)
        self._open["concepts"].append(concepts)
        self._open["freq"].append(np.minimum(freq, MOST))
        self._postings += len(concepts)

    def commit(
        self, *, parameters: Mapping[str, Any], name: str | None = None, extra: Mapping[str, Any] | None = None
    ) -> Manifest:
        """Close the files, write the manifest and move the folder into place."""
        counts = {
            "concepts": self._concepts,
            "terms": self._open["df"].size,
            "postings": self._postings,
            "words": self._words,
        }
        self._close()
        files = {path.name: describe_file(path) for path in sorted(self.folder.iterdir())}
        manifest = Manifest(
            name=name or self.path.name,
            id=content_id(files, counts=counts, parameters=parameters),
            counts=counts,
            parameters=dict(parameters),
            files=files,
            extra=dict(extra or {}),
        )
        (self.folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
        for path in self.folder.iterdir():
            _sync(path)
        self._move()
        return manifest

    def _move(self) -> None:
        _sync(self.folder)
        if self.path.exists() and self._overwrite:
            # A folder cannot be replaced in one step: the old one is renamed, then removed after the new one is there.
            old = self.folder.with_suffix(".old")
            self.path.rename(old)
            self.folder.rename(self.path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self.folder.rename(self.path)
        _sync(self.path.parent)

    def _write_array(self, name: str, values: NDArray[np.integer]) -> None:
        column = _Column(self.folder / f"{name}.npy", ARRAYS[name])
        column.append(values)
        column.close()

    def _close(self) -> None:
        for column in self._open.values():
            column.close()
        if hasattr(self, "_terms"):
            self._terms.close()


class _Column:
    """A growing `.npy` file; its header is rewritten when the length is known."""

    def __init__(self, path: Path, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self.size = 0
        self._stream: IO[bytes] = path.open("wb")
        self._header()

    def append(self, values: NDArray[Any]) -> None:
        self._stream.write(np.ascontiguousarray(values, self._dtype).tobytes())
        self.size += len(values)

    def close(self) -> None:
        if not self._stream.closed:
            with contextlib.closing(self._stream):
                self._stream.seek(0)
                self._header()

    def _header(self) -> None:
        # NumPy pads the header for a growing first dimension, so the rewritten header has the same size.
        header = header_data_from_array_1_0(np.empty(0, self._dtype)) | {"shape": (self.size,)}
        write_array_header_1_0(self._stream, header)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
