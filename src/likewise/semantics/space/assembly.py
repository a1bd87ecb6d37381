"""Writes the files of a space from the rows of an inverted index, chunk by chunk.

The rows come from this process or from the workers of a Spark job; the same articles give the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.errors import BuildError, InputError, SpaceError
from likewise.semantics.space.format import REJECTED as REJECTED_FILE
from likewise.semantics.space.format import Manifest
from likewise.semantics.space.inversion import ARTICLES, CONCEPT, POSTINGS, REJECTED, SCHEMA, TALLY, WORD, Inversion
from likewise.semantics.space.space import DEFAULT_WEIGHTING, WEIGHTINGS, Weighting, strongest, term_frequency
from likewise.semantics.space.writer import SpaceWriter

_POSTINGS_A_CHUNK = 4_000_000
_MOST_REJECTED = 10_000


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """How a space is built; the manifest records all of it."""

    weighting: Weighting = DEFAULT_WEIGHTING
    min_df: int = 1
    prune: int | None = None
    min_words: int | None = None
    sample: float = 1.0

    def __post_init__(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise BuildError(f"unknown weighting {self.weighting!r}", hint=f"choose {' or '.join(WEIGHTINGS)}")
        if not 0 < self.sample <= 1:
            raise BuildError(f"sample {self.sample} is not a share of the corpus", hint="e.g. --sample 0.1")
        for name, least in (("min_df", 1), ("prune", 1), ("min_words", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise BuildError(f"--{name.replace('_', '-')} {value} is below {least}", hint=f"give at least {least}")

    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """The result of a build."""

    path: Path
    manifest: Manifest
    words: int
    dropped: dict[str, int]
    rejected: int
    duplicates: int
    seconds: float

    @property
    def words_per_second(self) -> float:
        return self.words / self.seconds if self.seconds else 0.0


Progress = Callable[[str], None]
"""Receives the name of each stage as it begins."""


class IndexRows(Protocol):
    """The rows of an inverted index, from this process or from Spark."""

    def facts(self) -> Mapping[int, list[pa.Table]]:
        """All rows except the postings, by kind."""
        ...

    def postings(self, chunks: int) -> Iterator[pa.Table]:
        """The postings in the order of their terms, in about this number of chunks."""
        ...


def assemble(
    index: IndexRows,
    writer: SpaceWriter,
    *,
    corpus: str,
    format: str,
    options: SpaceOptions,
    report: Progress,
    allow_empty: bool = False,
) -> BuildSummary:
    """Write the space of an index; `corpus` and `format` go into its manifest."""
    started = time.monotonic()
    facts = index.facts()
    counted = {name.decode(): int(count) for name, count in zip(*sum_by_name(facts[TALLY]), strict=True)}
    concepts = Concepts.gather(facts[CONCEPT])
    dropped = {name.partition(": ")[2]: n for name, n in sorted(counted.items()) if name.startswith("dropped: ")}
    rejected = counted.get("rejected", 0)
    if not allow_empty:
        _check_corpus(corpus, concepts, dropped=dropped, rejected=rejected)
    report("writing words")
    writer.write_concepts(concepts.titles, length=concepts.length, max_freq=concepts.max_freq)
    writer.write_words(*sum_by_name(facts[WORD]))
    if rejected:
        _write_rejected(facts[REJECTED], writer.folder / REJECTED_FILE)
    report("sorting terms")
    postings = PostingWriter(writer, concepts, options.weighting, min_df=options.min_df, prune=options.prune)
    postings.write(index.postings(1 + concepts.postings // _POSTINGS_A_CHUNK))
    report("sealing")
    words = counted.get("words", 0)
    extra = {"words": words, "dropped": dropped, "rejected": rejected, "duplicates": concepts.duplicates}
    manifest = writer.commit(parameters={"corpus": corpus, "format": format, **options.parameters()}, extra=extra)
    return BuildSummary(
        writer.path,
        manifest,
        words=words,
        dropped=dropped,
        rejected=rejected,
        duplicates=concepts.duplicates,
        seconds=time.monotonic() - started,
    )


def by_kind(tables: Iterable[pa.Table]) -> dict[int, list[pa.Table]]:
    """Rows of an index by kind, without postings."""
    facts: dict[int, list[pa.Table]] = {CONCEPT: [], WORD: [], REJECTED: [], TALLY: []}
    for table in tables:
        for kind, rows in facts.items():
            rows.append(table.filter(pc.field("kind") == kind))
    return facts


Number = TypeVar("Number", np.int64, np.uint16)


@dataclass(frozen=True, slots=True)
class Concepts:
    """All concepts in the order of their ids: by title, then by the hash of their content."""

    titles: list[bytes]
    length: NDArray[np.int64]
    max_freq: NDArray[np.int64]
    postings: int
    duplicates: int
    keys: NDArray[np.int64]
    """Sorted content hashes, and `ids` of the concepts that have them."""
    ids: NDArray[np.int64]

    @classmethod
    def gather(cls, tables: Iterable[pa.Table]) -> Concepts:
        """Number the concepts; articles with equal title and text count once."""
        table = _concat(tables)
        keys = _numbers(table.column("keys"), np.int64)
        facts = _numbers(table.column("values"), np.int64).reshape(-1, 3)
        _, first = np.unique(keys, return_index=True)
        titles = table.column("name").take(pa.array(first)).to_pylist()
        order = sorted(range(len(first)), key=lambda at: (titles[at], int(keys[first[at]])))
        chosen = first[order]
        ids = np.empty(len(order), np.int64)
        ids[order] = np.arange(len(order))
        return cls(
            titles=[titles[at] for at in order],
            length=facts[chosen, 0],
            max_freq=facts[chosen, 1],
            postings=int(facts[chosen, 2].sum()),
            duplicates=len(keys) - len(first),
            keys=keys[first],
            ids=ids,
        )

    def find(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of content hashes."""
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        if len(keys) and not np.array_equal(self.keys[places], keys):
            raise SpaceError(
                "some postings have no concept: the corpus changed during the build",
                hint="start the build again",
            )
        return self.ids[places]


@dataclass(slots=True)
class _Run:
    """Postings of consecutive terms; the last term may continue in the next chunk."""

    names: list[bytes] = field(default_factory=list)
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    keys: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    freq: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16))

    @classmethod
    def read(cls, table: pa.Table) -> _Run:
        keys = table.column("keys").combine_chunks()
        return cls(
            names=table.column("name").to_pylist(),
            sizes=np.diff(_offsets(keys)) // 8,
            keys=_numbers(table.column("keys"), np.int64),
            freq=_numbers(table.column("values"), np.uint16),
        )

    def joined(self, other: _Run) -> _Run:
        return _Run(
            self.names + other.names,
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.freq, other.freq]),
        )

    def split(self) -> tuple[_Run, _Run]:
        """All terms except the last, and the last."""
        rows = len(self.names)
        while rows and self.names[rows - 1] == self.names[-1]:
            rows -= 1
        cut = int(self.sizes[:rows].sum())
        return (
            _Run(self.names[:rows], self.sizes[:rows], self.keys[:cut], self.freq[:cut]),
            _Run(self.names[rows:], self.sizes[rows:], self.keys[cut:], self.freq[cut:]),
        )


@dataclass(frozen=True, slots=True)
class PostingWriter:
    """Writes terms that come in sorted chunks."""

    writer: SpaceWriter
    concepts: Concepts
    weighting: Weighting
    min_df: int = 1
    prune: int | None = None

    def write(self, tables: Iterable[pa.Table]) -> None:
        """Write all chunks; raises an error if a posting was lost or duplicated."""
        rest, seen = _Run(), 0
        for table in tables:
            complete, rest = rest.joined(_Run.read(table)).split()
            seen += self._write(complete)
        seen += self._write(rest)
        if seen != self.concepts.postings:
            raise SpaceError(
                f"the index has {seen} postings, but {self.concepts.postings} were counted", hint="build it again"
            )

    def _write(self, run: _Run) -> int:
        if not run.names:
            return 0
        first = np.array([True, *(a != b for a, b in zip(run.names[1:], run.names, strict=False))])
        term_of_row = np.cumsum(first) - 1
        terms = [name for name, new in zip(run.names, first, strict=True) if new]
        pairs = np.repeat(term_of_row, run.sizes) << 32 | self.concepts.find(run.keys)
        # A duplicate article gives the same pair twice, with the same frequency.
        pairs, places = np.unique(pairs, return_index=True)
        self._write_terms(terms, term=pairs >> 32, concepts=pairs & 0xFFFFFFFF, freq=run.freq[places])
        return len(pairs)

    def _write_terms(
        self, terms: list[bytes], *, term: NDArray[np.int64], concepts: NDArray[np.int64], freq: NDArray[np.uint16]
    ) -> None:
        df = np.bincount(term, minlength=len(terms))
        frequent = df >= self.min_df
        keep = frequent[term]
        if self.prune is not None:
            keep &= self._strong(df, concepts, freq)
        sizes = np.bincount(term[keep], minlength=len(terms))
        self.writer.add_terms(
            [name for name, wanted in zip(terms, frequent, strict=True) if wanted],
            df=df[frequent],
            sizes=sizes[frequent],
            concepts=concepts[keep],
            freq=freq[keep],
        )

    def _strong(
        self, df: NDArray[np.int64], concepts: NDArray[np.int64], freq: NDArray[np.uint16]
    ) -> NDArray[np.bool_]:
        weights = term_frequency(
            freq,
            weighting=self.weighting,
            max_freq=np.minimum(self.concepts.max_freq[concepts], 65_535).astype(np.uint16),
            length=self.concepts.length[concepts].astype(np.uint32),
        )
        return strongest(weights, np.concatenate([[0], np.cumsum(df)]), limit=self.prune or 0)


def sum_by_name(tables: Iterable[pa.Table]) -> tuple[list[bytes], NDArray[np.int64]]:
    """Distinct names and the sums of their int64 values."""
    table = _concat(tables)
    counted = pa.table({"name": table.column("name"), "count": _numbers(table.column("values"), np.int64)})
    totals = counted.group_by("name").aggregate([("count", "sum")]).sort_by("name")
    return totals.column("name").to_pylist(), totals.column("count_sum").to_numpy()


def _concat(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *tables]).combine_chunks()


def _numbers(column: pa.ChunkedArray, dtype: type[Number]) -> NDArray[Number]:
    """All byte strings of a column as one array of numbers."""
    parts = []
    for chunk in column.chunks:
        bounds = _offsets(chunk)
        data = chunk.buffers()[2]
        parts.append(np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data else np.zeros(0, np.uint8))
    return np.concatenate(parts or [np.zeros(0, np.uint8)]).view(dtype)


def _offsets(array: pa.Array) -> NDArray[np.integer]:
    wide = pa.types.is_large_binary(array.type)
    offsets = np.frombuffer(array.buffers()[1], np.int64 if wide else np.int32)
    return offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _write_rejected(tables: list[pa.Table], path: Path) -> None:
    columns = {"title": "name", "reason": "keys"}
    table = pa.concat_tables(tables).sort_by([("name", "ascending"), ("keys", "ascending")]).slice(0, _MOST_REJECTED)
    texts = {
        name: [cell.decode(errors="replace") for cell in table.column(source).to_pylist()]
        for name, source in columns.items()
    }
    pq.write_table(pa.table(texts), path)


def _check_corpus(corpus: str, concepts: Concepts, *, dropped: dict[str, int], rejected: int) -> None:
    left_out = ", ".join(f"{count} {why}" for why, count in {**dropped, "broken": rejected}.items() if count)
    if not concepts.titles:
        raise InputError(
            f"no article with English words found ({left_out or 'the corpus is empty'})",
            source=corpus,
            hint="check --format, --title-field, --text-field and --min-words",
        )
    if rejected > len(concepts.titles):
        raise InputError(
            f"{rejected} records are broken and only {len(concepts.titles)} are good",
            source=corpus,
            hint="check --format, --title-field and --text-field",
        )


# Building in this process.


_BATCH = 2_000


def build_local(
    documents: Iterable[tuple[str, str]],
    path: str | Path,
    *,
    corpus: str,
    format: str,
    options: SpaceOptions | None = None,
    overwrite: bool = False,
    report: Progress = lambda _: None,
    allow_empty: bool = False,
) -> BuildSummary:
    """Build a space from (title, text) pairs in this process, atomically, with the same bytes as on Spark."""
    options = options or SpaceOptions()
    options = replace(options, min_words=options.min_words or 1)
    started = time.monotonic()
    with SpaceWriter(path, overwrite=overwrite) as writer:
        report("reading")
        batches = Inversion(options.min_words or 1)(_batches(documents))
        rows = _LocalRows(pa.Table.from_batches(batches, SCHEMA))
        summary = assemble(
            rows, writer, corpus=corpus, format=format, options=options, report=report, allow_empty=allow_empty
        )
        return replace(summary, seconds=time.monotonic() - started)


def write_space(
    path: str | Path,
    documents: Iterable[tuple[str, str]],
    *,
    weighting: Weighting = DEFAULT_WEIGHTING,
    overwrite: bool = False,
) -> Manifest:
    """Build a space from (title, text) pairs; for tests and small vocabularies.

    For large corpora use `likewise space build`, which builds the same space on Spark.
    """
    options = SpaceOptions(weighting=weighting)
    summary = build_local(
        documents,
        path,
        corpus="documents",
        format="documents",
        options=options,
        overwrite=overwrite,
        allow_empty=True,
    )
    return summary.manifest


@dataclass(frozen=True, slots=True)
class _LocalRows:
    """The rows of an index in memory."""

    table: pa.Table

    def facts(self) -> dict[int, list[pa.Table]]:
        return by_kind([self.table.filter(pc.field("kind") != POSTINGS)])

    def postings(self, chunks: int) -> Iterator[pa.Table]:
        rows = self.table.filter(pc.field("kind") == POSTINGS).sort_by("name")
        size = max(1, -(-len(rows) // chunks))
        return (rows.slice(start, size).combine_chunks() for start in range(0, len(rows), size))


def _batches(documents: Iterable[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    rest = iter(documents)
    while batch := list(islice(rest, _BATCH)):
        titles, texts = zip(*batch, strict=True)
        empty = pa.nulls(len(batch), pa.string())
        yield pa.record_batch([pa.array(titles), pa.array(texts), empty, empty], schema=ARTICLES)
