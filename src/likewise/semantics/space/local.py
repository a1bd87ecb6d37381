"""A space built in this process: the same job as on Spark, for corpora that one core reads in a minute."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from likewise.semantics.space.assembly import BuildSummary, Progress, SpaceOptions, assemble, by_kind
from likewise.semantics.space.format import Manifest
from likewise.semantics.space.inversion import ARTICLES, POSTINGS, SCHEMA, Inversion
from likewise.semantics.space.weighting import DEFAULT_WEIGHTING, Weighting
from likewise.semantics.space.writer import SpaceWriter

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
    """Build the space of (title, text) pairs, whole or not at all, with the bytes that Spark would give."""
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

    Large corpora go through `likewise space build`, which gives the same space on Spark.
    """
    options = SpaceOptions(weighting=weighting)
    made = build_local(
        documents,
        path,
        corpus="documents",
        format="documents",
        options=options,
        overwrite=overwrite,
        allow_empty=True,
    )
    return made.manifest


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
    while some := list(islice(rest, _BATCH)):
        titles, texts = zip(*some, strict=True)
        nothing = pa.nulls(len(some), pa.string())
        yield pa.record_batch([pa.array(titles), pa.array(texts), nothing, nothing], schema=ARTICLES)
