"""Builds an inverted index of articles, batch by batch, in this process or in a Spark worker.

An article is one row, so its words are counted where it is read. Only runs of postings of a term are shuffled, never
single occurrences. Every distinct word is stemmed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.semantics.text import is_word, raw_words, stem

if TYPE_CHECKING:
    from collections.abc import Sequence

POSTINGS, CONCEPT, WORD, REJECTED, TALLY = range(5)
"""Kinds of rows in the table that a worker returns; see `SCHEMA`."""

SCHEMA = pa.schema([("kind", pa.int8()), ("name", pa.binary()), ("keys", pa.binary()), ("values", pa.binary())])
"""POSTINGS: stem, concept keys (int64), frequencies (uint16). CONCEPT: title, key, (words, most, distinct) as int64.
WORD: word, empty, count (int64). REJECTED: title, reason, empty. TALLY: name, empty, count (int64)."""

ARTICLES = pa.schema([(name, pa.string()) for name in ("title", "text", "skip", "flaw")])
"""The input: `skip` is why a record is left out on purpose, `flaw` how it is damaged."""

SPARK_SCHEMA = "kind tinyint, name binary, keys binary, values binary"

FLUSH_WORDS = 2_000_000
LEXICON_WORDS = 1_000_000
PIECE = 1 << 20
MOST = np.iinfo(np.uint16).max
SHOWN = 200


@dataclass(frozen=True, slots=True)
class Inversion:
    """The work of one worker, with its options."""

    min_words: int = 1

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of `SCHEMA` from batches with the columns title, text, skip and flaw."""
        index = ArticleIndex(self.min_words)
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("title", "text", "skip", "flaw"))
            for title, text, skip, flaw in zip(*columns, strict=True):
                index.add(title, text, skip=skip, flaw=flaw)
                if index.full:
                    yield from index.flush()
        yield from index.flush()
        yield from index.close()


class Lexicon(dict[str, int]):
    """Numbers of raw words, in order of appearance, each with the number of its stem, or -1 for words left out."""

    def __init__(self) -> None:
        super().__init__()
        self.stems: dict[str, int] = {}
        self.term_of: list[int] = []

    def __missing__(self, word: str) -> int:
        term = -1
        if is_word(word):
            term = self.stems.setdefault(stem(word), len(self.stems))
        self.term_of.append(term)
        self[word] = number = len(self.term_of) - 1
        return number


class ArticleIndex:
    """Postings of the articles since the last flush, and counts over all articles."""

    def __init__(self, min_words: int) -> None:
        self._min_words = min_words
        self._lexicon = Lexicon()
        self._term_of = np.zeros(0, np.int64)
        self._word_totals = np.zeros(0, np.int64)
        self._tallies: Counter[str] = Counter()
        self._clear()

    def _clear(self) -> None:
        self._titles: list[bytes] = []
        self._keys: list[bytes] = []
        self._words: list[NDArray[np.int32]] = []
        self._pending = 0
        self._rejected: list[tuple[bytes, bytes]] = []

    @property
    def full(self) -> bool:
        return self._pending >= FLUSH_WORDS

    def add(self, title: str | None, text: str | None, *, skip: str | None = None, flaw: str | None = None) -> None:
        """Add one article, or record why it is left out."""
        if skip is not None:
            self._tallies[f"dropped: {skip}"] += 1
            return
        if flaw is None and not text:
            flaw = "no text"
        if flaw is None and not title:
            flaw = "no title"
        if flaw is not None or title is None or text is None:
            self._tallies["rejected"] += 1
            self._rejected.append((_bytes((title or "")[:SHOWN]), _bytes((flaw or "")[:SHOWN])))
            return
        self._count(title, text)

    def _count(self, title: str, text: str) -> None:
        numbers = np.concatenate([self._numbers(piece) for piece in pieces(text)])
        self._titles.append(_bytes(title))
        self._keys.append(blake2b(_bytes(f"{title}\0{text}"), digest_size=8).digest())
        self._words.append(numbers)
        self._pending += len(numbers) + 1

    def _numbers(self, text: str) -> NDArray[np.int32]:
        return np.fromiter(map(self._lexicon.__getitem__, raw_words(text)), np.int32)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Concepts and postings of the pending articles."""
        if self._rejected:
            names, reasons = zip(*self._rejected, strict=True)
            yield _rows(REJECTED, names, keys=reasons)
        if self._titles:
            yield from self._invert()
        self._clear()
        if len(self._lexicon) > LEXICON_WORDS:
            # A worker may read a whole dump, so its memory must stay bounded.
            yield from self._close_words()

    def _invert(self) -> Iterator[pa.RecordBatch]:
        self._drop_short()
        if not self._words:
            return
        words = np.concatenate(self._words)
        articles = np.repeat(np.arange(len(self._words)), [len(numbers) for numbers in self._words])
        self._tallies["words"] += len(words)
        self._add_words(words)
        terms = self._terms(words)
        kept = terms >= 0
        pairs, freq = _count_sorted(terms[kept] << 32 | articles[kept])
        term, article = pairs >> 32, pairs & 0xFFFFFFFF
        facts = np.zeros((len(self._words), 3), np.int64)
        facts[:, 0] = np.bincount(articles[kept], minlength=len(facts))
        np.maximum.at(facts[:, 1], article, freq)
        facts[:, 2] = np.bincount(article, minlength=len(facts))
        yield _rows(CONCEPT, self._titles, keys=self._keys, values=[row.tobytes() for row in facts])
        yield self._posting_rows(term, article, freq)

    def _drop_short(self) -> None:
        kept = [int((self._terms(numbers) >= 0).sum()) >= self._min_words for numbers in self._words]
        self._tallies["dropped: short"] += kept.count(False)
        self._titles = list(compress(self._titles, kept))
        self._keys = list(compress(self._keys, kept))
        self._words = list(compress(self._words, kept))

    def _terms(self, words: NDArray[np.int32]) -> NDArray[np.int64]:
        """The numbers of the words' stems, -1 for words left out."""
        if len(self._term_of) < len(self._lexicon):
            self._term_of = np.array(self._lexicon.term_of, np.int64)
        return self._term_of[words]

    def _posting_rows(
        self, term: NDArray[np.int64], article: NDArray[np.int64], freq: NDArray[np.int64]
    ) -> pa.RecordBatch:
        starts = np.flatnonzero(np.diff(term, prepend=-1))
        bounds = np.append(starts, len(term))
        stems = list(self._lexicon.stems)
        keys = np.frombuffer(b"".join(self._keys), "<i8")[article]
        return pa.record_batch(
            [
                pa.array(np.full(len(starts), POSTINGS, np.int8)),
                pa.array([_bytes(stems[number]) for number in term[starts]], pa.binary()),
                _cut(keys, bounds),
                _cut(np.minimum(freq, MOST).astype("<u2"), bounds),
            ],
            schema=SCHEMA,
        )

    def _add_words(self, words: NDArray[np.int32]) -> None:
        counts = np.bincount(words, minlength=len(self._lexicon))
        counts[: len(self._word_totals)] += self._word_totals
        self._word_totals = counts

    def close(self) -> Iterator[pa.RecordBatch]:
        """Word counts and tallies of all articles."""
        yield from self._close_words()
        tallies = sorted((name, count) for name, count in self._tallies.items() if count)
        if tallies:
            yield _rows(TALLY, [_bytes(name) for name, _ in tallies], values=[_int64(count) for _, count in tallies])

    def _close_words(self) -> Iterator[pa.RecordBatch]:
        totals = self._word_totals
        counted = np.array(self._lexicon.term_of[: len(totals)], np.int64) >= 0
        used = np.flatnonzero(counted & (totals > 0))
        if len(used):
            words = list(self._lexicon)
            yield pa.record_batch(
                [
                    pa.array(np.full(len(used), WORD, np.int8)),
                    pa.array([_bytes(words[number]) for number in used], pa.binary()),
                    _cut(np.zeros(0, np.int64), np.zeros(len(used) + 1, np.int64)),
                    _cut(totals[used], np.arange(len(used) + 1)),
                ],
                schema=SCHEMA,
            )
        self._lexicon = Lexicon()
        self._term_of = np.zeros(0, np.int64)
        self._word_totals = np.zeros(0, np.int64)


def pieces(text: str) -> Iterator[str]:
    """A long text in pieces of about a megabyte, split between words, so that memory stays bounded."""
    start = 0
    while len(text) - start > PIECE:
        end = text.find(" ", start + PIECE)
        if end < 0 or end - start > 2 * PIECE:
            end = start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _count_sorted(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values.sort()
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    return values[starts], np.diff(np.append(starts, len(values)))


def _cut(values: NDArray[np.generic], bounds: NDArray[np.integer]) -> pa.Array:
    """Slices of one array as byte strings, without copying each slice."""
    offsets = (bounds * values.itemsize).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(values.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def _rows(
    kind: int, names: Sequence[bytes], *, keys: Sequence[bytes] | None = None, values: Sequence[bytes] | None = None
) -> pa.RecordBatch:
    empty = [b""] * len(names)
    columns = [pa.array(list(cells or empty), pa.binary()) for cells in (names, keys, values)]
    return pa.record_batch([pa.array(np.full(len(names), kind, np.int8)), *columns], schema=SCHEMA)


def _int64(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
