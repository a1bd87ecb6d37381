"""Space: the terms x concepts vector space of one corpus, memory-mapped from its folder."""

from __future__ import annotations

import html
import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likewise.calibration import LENGTH_POWER
from likewise.errors import BuildError, LikewiseError, SpaceError
from likewise.semantics.space.format import ARRAYS, HINT_REBUILD, MANIFEST, Manifest, check_files, read_manifest
from likewise.semantics.text import tokens

# Weights from raw frequencies, chosen when rows are read, so that one space serves all weightings.


Weighting: TypeAlias = Literal["augmented", "log"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
DEFAULT_WEIGHTING: Weighting = "log"


def term_frequency(
    freq: NDArray[np.uint16],
    *,
    weighting: Weighting,
    max_freq: NDArray[np.uint16],
    length: NDArray[np.uint32],
) -> NDArray[np.float32]:
    """Weights of postings, before idf; `max_freq` and `length` are those of each posting's concept.

    `augmented` is 0.5 + 0.5 f / maxf [000 eq 2]; `log` is (1 + log f) / length^p, which damps long concepts.

    >>> one = np.array([1, 3], np.uint16)
    >>> top, words = np.array([4, 4], np.uint16), np.array([16, 16], np.uint32)
    >>> term_frequency(one, weighting="augmented", max_freq=top, length=words).tolist()
    [0.625, 0.875]
    """
    f = freq.astype(np.float32)
    if weighting == "augmented":
        return (0.5 + 0.5 * f / max_freq).astype(np.float32)
    if weighting == "log":
        damped = np.power(length, -LENGTH_POWER, dtype=np.float32)
        return ((1 + np.log(f)) * damped).astype(np.float32)
    raise BuildError(f"unknown weighting {weighting!r}", hint=f"choose {' or '.join(WEIGHTINGS)}")


def inverse_document_frequency(df: NDArray[np.integer], concepts: int) -> NDArray[np.float32]:
    """log(N / df) [000 eq 3]; 0 for a term in no concept.

    >>> inverse_document_frequency(np.array([1, 4, 0]), 4)
    array([1.3862944, 0.       , 0.       ], dtype=float32)
    """
    return np.where(df > 0, np.log(concepts / np.maximum(df, 1)), 0).astype(np.float32)


class Strings:
    """Read-only strings in one mapped file, sorted by their UTF-8 bytes and split by offsets."""

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
        """The place of a string, by binary search; -1 if it is not found."""
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


# Tables that are rarely read, as compressed Parquet: titles of concepts, counts of words.


GROUP = 8192
"""Titles that are decompressed together."""


class Titles:
    """Titles by concept id, decompressed a group at a time."""

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
    """Words and how often each occurs in the corpus."""
    table = _open(path).read()
    return dict(zip(table.column("word").to_pylist(), table.column("count").to_pylist(), strict=True))


def write_titles(path: Path, titles: Sequence[bytes]) -> None:
    """Write titles in the order of concept ids."""
    _write(path, {"title": _strings(titles)})


def write_counts(path: Path, words: Sequence[bytes], counts: NDArray[np.integer]) -> None:
    """Write sorted words and their counts."""
    _write(path, {"word": _strings(words), "count": pa.array(counts, pa.int64())})


def _strings(items: Sequence[bytes]) -> pa.Array:
    return pa.array(items, pa.binary()).cast(pa.string())


def _write(path: Path, columns: dict[str, pa.Array]) -> None:
    # Sorted strings share prefixes, which this encoding stores once.
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


SpaceRows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]
"""Raw postings: where each row starts and ends, concept ids, frequencies."""


class Space:
    """A read-only distributional space [000 sec 4.2]; opening is fast, pages are loaded when needed."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self.manifest = manifest
        arrays = {name: _map(folder / f"{name}.npy", dtype) for name, dtype in ARRAYS.items()}
        self.indptr: NDArray[np.int64] = arrays["indptr"]
        self.df: NDArray[np.int32] = arrays["df"]
        """The number of concepts that contain each term, before any pruning."""
        self.length: NDArray[np.uint32] = arrays["length"]
        """The number of words of each concept."""
        self.max_freq: NDArray[np.uint16] = arrays["max_freq"]
        self._concepts: NDArray[np.int32] = arrays["concepts"]
        self._freq: NDArray[np.uint16] = arrays["freq"]
        self._terms = Strings(arrays["term_offsets"], folder / "terms.bin")
        self._titles = Titles(folder / "titles.parquet")
        self._check()

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Space:
        """Map the space of a folder; `verify` also compares all checksums.

        Raises `SpaceError` for a folder that is missing, corrupt, incomplete or of another version.
        """
        folder = Path(path)
        manifest = read_manifest(folder)
        check_files(folder, manifest, verify=verify)
        return cls(folder, manifest)

    def __repr__(self) -> str:
        return f"<Space {self.name}: {self.terms:,} terms, {self.concepts:,} concepts, {self.postings:,} postings>"

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self))}</code>"

    @property
    def path(self) -> Path:
        return self._folder

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def id(self) -> str:
        """The version of the content: spaces with equal ids are equal."""
        return self.manifest.id

    @property
    def concepts(self) -> int:
        return len(self.length)

    @property
    def terms(self) -> int:
        return len(self.df)

    @property
    def postings(self) -> int:
        return len(self._concepts)

    @property
    def weighting(self) -> Weighting:
        """The weighting that the builder chose as this space's default."""
        chosen: Weighting = self.manifest.parameters["weighting"]
        return chosen

    @cached_property
    def idf(self) -> NDArray[np.float32]:
        """log(N / df) of every term [000 eq 3]."""
        return inverse_document_frequency(self.df, self.concepts)

    @cached_property
    def word_counts(self) -> Mapping[str, int]:
        """How often each unstemmed word occurs in the corpus, for information content [002]."""
        return MappingProxyType(read_counts(self._folder / "words.parquet"))

    def title(self, concept: int) -> str:
        """The title of a concept's article, or the lemmas of its synset."""
        return self._titles[concept]

    def term(self, term_id: int) -> str:
        """The stem with this id."""
        return self._terms[term_id]

    def index(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Term ids of stemmed words; -1 for unknown words."""
        return np.fromiter((self._terms.find(word) for word in words), np.int64, len(words))

    def rows(self, term_ids: Sequence[int] | NDArray[np.integer]) -> SpaceRows:
        """Raw postings of these terms, in this order; an empty row for an id of -1."""
        spans = [(int(self.indptr[t]), int(self.indptr[t + 1])) if t >= 0 else (0, 0) for t in term_ids]
        indptr = np.zeros(len(spans) + 1, np.int64)
        np.cumsum([end - start for start, end in spans], out=indptr[1:])
        concepts = np.empty(indptr[-1], np.int32)
        freq = np.empty(indptr[-1], np.uint16)
        for row, (start, end) in enumerate(spans):
            concepts[indptr[row] : indptr[row + 1]] = self._concepts[start:end]
            freq[indptr[row] : indptr[row + 1]] = self._freq[start:end]
        return indptr, concepts, freq

    def span(self, first: int, last: int) -> SpaceRows:
        """Raw postings of the terms from `first` to before `last`, without copying."""
        start, end = self.indptr[first], self.indptr[last]
        return self.indptr[first : last + 1] - start, self._concepts[start:end], self._freq[start:end]

    def term_matrix(
        self,
        term_ids: Sequence[int] | NDArray[np.integer],
        *,
        weighting: Weighting | None = None,
        pruning: int | None = None,
        idf: bool = True,
    ) -> csr_matrix[np.float32]:
        """Weighted rows of single terms; `pruning` keeps the strongest postings of each."""
        ids = np.asarray(term_ids, np.int64)
        indptr, concepts, freq = self.rows(ids)
        weights = term_frequency(
            freq,
            weighting=weighting or self.weighting,
            max_freq=self.max_freq[concepts],
            length=self.length[concepts],
        )
        if pruning is not None:
            keep = strongest(weights, indptr, limit=pruning)
            weights, concepts = weights[keep], concepts[keep]
            indptr = np.concatenate([[0], np.cumsum(keep)])[indptr]
        if idf:
            weights *= np.repeat(np.where(ids >= 0, self.idf[ids], np.float32(0)), np.diff(indptr))
        return csr_matrix((weights, concepts, indptr), shape=(len(ids), self.concepts))

    def matrix(
        self,
        phrases: Sequence[str],
        *,
        weighting: Weighting | None = None,
        pruning: int | None = None,
        idf: bool = True,
    ) -> csr_matrix[np.float32]:
        """Rows of phrases: a phrase is the sum of its words' weighted rows [000 sec 4.2]."""
        incidence, term_ids = self.incidence(phrases)
        words = self.term_matrix(term_ids, weighting=weighting, pruning=pruning, idf=idf)
        result = csr_matrix(incidence @ words)
        result.sort_indices()
        return result

    def tf_matrix(
        self, phrases: Sequence[str], *, weighting: Weighting | None = None, pruning: int | None = None
    ) -> csr_matrix[np.float32]:
        """Rows of phrases without idf, for projections that compute their own."""
        return self.matrix(phrases, weighting=weighting, pruning=pruning, idf=False)

    def incidence(self, phrases: Sequence[str]) -> tuple[csr_matrix[np.float32], NDArray[np.int64]]:
        """How often each known term occurs in each phrase: a matrix phrases x terms, and the ids of the terms."""
        stems_of = [tokens(phrase) for phrase in phrases]
        vocabulary = sorted({token for stems in stems_of for token in stems})
        ids = self.index(vocabulary)
        known = [token for token, term_id in zip(vocabulary, ids, strict=True) if term_id >= 0]
        column = {token: number for number, token in enumerate(known)}
        cells = [(row, column[token]) for row, stems in enumerate(stems_of) for token in stems if token in column]
        at = np.array(cells, np.int64).reshape(-1, 2)
        ones = np.ones(len(cells), np.float32)
        return csr_matrix((ones, (at[:, 0], at[:, 1])), shape=(len(phrases), len(known))), ids[ids >= 0]

    def _check(self) -> None:
        lengths = {
            "concepts": {len(self.length), len(self.max_freq)},
            "terms": {len(self.df), len(self.indptr) - 1, len(self._terms)},
            "postings": {len(self._concepts), len(self._freq), int(self.indptr[-1]) if len(self.indptr) else -1},
        }
        for name, counts in lengths.items():
            if counts != {self.manifest.counts.get(name)}:
                raise SpaceError(f"{self._folder}: the number of {name} differs between files", hint=HINT_REBUILD)


def strongest(weights: NDArray[np.float32], indptr: NDArray[np.int64], *, limit: int) -> NDArray[np.bool_]:
    """Which entries are among the `limit` largest of their row; ties go to the earlier entry.

    >>> strongest(np.array([1, 3, 2, 5], np.float32), np.array([0, 3, 4]), limit=2).tolist()
    [False, True, True, True]
    """
    keep = np.ones(len(weights), np.bool_)
    for row in np.flatnonzero(np.diff(indptr) > limit):
        start, end = indptr[row], indptr[row + 1]
        weak = np.argsort(-weights[start:end], kind="stable")[limit:]
        keep[start + weak] = False
    return keep


def _map(path: Path, dtype: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SpaceError(f"{path} cannot be mapped: {error}", hint=HINT_REBUILD) from error
    if array.ndim != 1 or array.dtype != np.dtype(dtype):
        raise SpaceError(f"{path} has {array.dtype}{array.shape}, expected one dimension of {dtype}", hint=HINT_REBUILD)
    # A plain view, since slicing np.memmap is slow.
    return array.view(np.ndarray)


# The folder of spaces.


def spaces_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of spaces: `LIKEWISE_SPACES`, or `likewise/spaces` in the user's cache folder."""
    if chosen := environment.get("LIKEWISE_SPACES"):
        return Path(chosen)
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "likewise" / "spaces"


def space_path(name_or_path: str | Path) -> Path:
    """The path of a space: a plain name is in the folder of spaces, anything with a separator is a path."""
    text = os.fspath(name_or_path)
    bare = isinstance(name_or_path, str) and Path(text).name == text and text not in {".", ".."}
    return spaces_folder() / text if bare else Path(text)


def find_space(name_or_path: str | Path, *, verify: bool = False) -> Space:
    """Open a space by its name in the folder of spaces, by its path, or by a folder of that name here."""
    path = space_path(name_or_path)
    here = Path(name_or_path)
    if not path.is_dir() and (here / MANIFEST).is_file():
        path = here
    if not path.is_dir():
        raise SpaceError(f"no space {str(name_or_path)!r}", hint=_suggest(path))
    return Space.open(path, verify=verify)


def list_spaces(folder: Path | None = None) -> list[tuple[Path, Manifest | LikewiseError]]:
    """All spaces in a folder (by default the folder of spaces), each with its manifest or its error."""
    root = folder or spaces_folder()
    spaces: list[tuple[Path, Manifest | LikewiseError]] = []
    for path in sorted(root.iterdir()) if root.is_dir() else []:
        if path.is_dir() and not path.name.startswith("."):
            try:
                spaces.append((path, read_manifest(path)))
            except SpaceError as error:
                spaces.append((path, error))
    return spaces


def _suggest(path: Path) -> str:
    names = [folder.name for folder, manifest in list_spaces(path.parent) if isinstance(manifest, Manifest)]
    if names:
        return f"there are: {', '.join(names)}"
    return f"build one: `likewise space build --corpus wordnet --out {path.name}`"
