"""The words of the stream as evidence: how many of them are nearer to a term than the other term is.

If other words of the stream are nearer to a term than its partner is, the pair is likely a pair of siblings. Only the
rank counts here, not the distance. Words that are very near to the subscription's term are not counted on its side:
they are other makers' words for the same thing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import NEARER_EVENT, NEARER_SUBSCRIPTION, NEAREST, OTHER_WORDS
from likewise.semantics.evidence.encoder import cosines, on_grid
from likewise.semantics.evidence.side import Sources, TermSide

Floats = NDArray[np.float32]

MOST = 64
"""Ranks beyond this are treated as equal."""

PAIRS = 1 << 13
"""Pairs that are ranked at a time."""

KEPT = 50_000
"""Terms whose nearest words are cached."""

_TIE = np.float32(1e-4)  # scores that differ only by rounding are equal


class Surroundings:
    """The words of the stream, and how near each is to a term: by embedding or, without one, by the spaces."""

    def __init__(self, terms: Sequence[str], sources: Sources) -> None:
        self.sources = sources
        self.words = self.read(terms)
        self._places: dict[frozenset[str], list[int]] = {}
        for reading, at in zip(self.words.side.readings, self.words.side.owner.tolist(), strict=True):
            self._places.setdefault(frozenset(reading.stems), []).append(at)
        self._around: OrderedDict[str, Floats] = OrderedDict()
        spoken = [reading.english for reading in self.words.literal if not reading.codes]
        self.abroad = 2 * sum(spoken) < len(spoken)
        """Whether most of the words are not English."""

    def __len__(self) -> int:
        return len(self.words.terms)

    def read(self, terms: Sequence[str]) -> ReadTerms:
        """Terms with all their readings."""
        return ReadTerms(terms, self.sources)

    def prepare(self, subscription_terms: Sequence[str]) -> SurroundedTerms:
        """Subscription terms, prepared for ranking against event terms."""
        return SurroundedTerms(self, subscription_terms)

    def around(self, terms: Sequence[str]) -> Floats:
        """For each term, the similarities of the nearest other words of the stream, in ascending order."""
        new = [term for term in dict.fromkeys(terms) if term not in self._around]
        if new:
            read = self.read(new)
            near = nearness(self.words, read)
            for reading, row in zip(read.side.readings, read.side.owner.tolist(), strict=True):
                near[row, self._places.get(frozenset(reading.stems), [])] = -1
            keep = min(MOST, near.shape[1])
            nearest = np.sort(np.partition(near, near.shape[1] - keep, axis=1)[:, near.shape[1] - keep :], axis=1)
            self._around.update(zip(new, nearest, strict=True))
        found = np.array([self._around[term] for term in terms], np.float32)
        while len(self._around) > KEPT:
            self._around.popitem(last=False)
        return found.reshape(len(terms), min(MOST, len(self)))


class ReadTerms:
    """Terms with all their readings: a short form is as near to a word as what it stands for."""

    def __init__(self, terms: Sequence[str], sources: Sources) -> None:
        self.terms = tuple(terms)
        readings = [sources.reader.readings(term) for term in terms]
        self.literal = [found[0] for found in readings]
        self.side = TermSide(readings, sources)

    @property
    def english(self) -> NDArray[np.bool_]:
        """Whether each term as written may be English."""
        return np.array([reading.english for reading in self.literal], np.bool_)


class SurroundedTerms:
    """Subscription terms with the stream's nearest words; `bits` gives a row per event term."""

    def __init__(self, surroundings: Surroundings, terms: Sequence[str]) -> None:
        self._surroundings = surroundings
        self._read = surroundings.read(terms)
        around = surroundings.around(terms)
        self._around = np.sort(np.where(around < OTHER_WORDS, around, np.float32(-1)), axis=1)

    def ranks(self, event_terms: Sequence[str]) -> tuple[Floats, Floats]:
        """log2(1 + n), where n words of the stream are nearer: to the event term, and to the subscription term.

        Words of one language are nearer to each other than to any of another. So where most of a stream is not English,
        its words are not counted as nearer to the event's term if only one of the two terms is.
        """
        events = self._surroundings.read(event_terms)
        near = nearness(self._read, events)
        theirs = nearer(self._surroundings.around(event_terms), near)
        if self._surroundings.abroad:
            theirs[events.english[:, None] != self._read.english] = 0
        return theirs, nearer(self._around, near.T).T

    def bits(self, event_terms: Sequence[str]) -> Floats:
        """The bits of the stream's words for every event term (row) with every prepared term (column)."""
        return self._weigh(*self.ranks(event_terms))

    def bits_of(self, event_terms: Sequence[str], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """The bits of some pairs only, as places of event terms (rows) and of prepared terms (columns)."""
        events, out = self._surroundings.read(event_terms), np.zeros(len(rows), np.float32)
        around = self._surroundings.around(event_terms)
        for start in range(0, len(rows), PAIRS):
            row, column = rows[start : start + PAIRS], columns[start : start + PAIRS]
            near = nearness_of(self._read, events, row, column)
            theirs, mine = nearer_of(around[row], near), nearer_of(self._around[column], near)
            if self._surroundings.abroad:
                theirs[events.english[row] != self._read.english[column]] = 0
            out[start : start + PAIRS] = self._weigh(theirs, mine)
        return out

    def _weigh(self, theirs: Floats, mine: Floats) -> Floats:
        return np.asarray(NEAREST - NEARER_EVENT * theirs - NEARER_SUBSCRIPTION * mine, np.float32)


def nearness(terms: ReadTerms, events: ReadTerms) -> Floats:
    """How near each of `events` (row) is to each of `terms` (column), by the nearest of their readings."""
    if not (terms.terms and events.terms):
        return np.zeros((len(events.terms), len(terms.terms)), np.float32)
    near = _readings_near(terms.side, events.side)
    for row, reading in enumerate(events.side.readings):
        near[row, terms.side.shortened(reading)] = 1
    by_term = np.maximum.reduceat(near, terms.side.first, axis=1)
    return np.asarray(np.maximum.reduceat(by_term, events.side.first, axis=0), np.float32)


def _readings_near(side: TermSide, events: TermSide) -> Floats:
    if side.vectors is not None and events.vectors is not None:
        return cosines(events.vectors, side.vectors)
    if not side.concepts:
        return np.zeros((len(events.readings), len(side.readings)), np.float32)
    return np.asarray(np.mean([np.sqrt(one.rows(events.texts)) for one in side.concepts], axis=0), np.float32)


def nearness_of(terms: ReadTerms, events: ReadTerms, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
    """How near some of `events` (rows) are to some of `terms` (columns), pair by pair."""
    if not len(rows) or terms.side.vectors is None or events.side.vectors is None:
        return nearness(terms, events)[rows, columns]
    # Every reading of a pair's event term with every reading of its other term.
    count = events.side.count[rows] * terms.side.count[columns]
    start = np.cumsum(count) - count
    number = np.arange(int(count.sum())) - np.repeat(start, count)
    width = np.repeat(terms.side.count[columns], count)
    row = np.repeat(events.side.first[rows], count) + number // width
    column = np.repeat(terms.side.first[columns], count) + number % width
    near = on_grid(np.einsum("ij,ij->i", events.side.vectors[row], terms.side.vectors[column]))
    for reading in np.unique(row).tolist():
        shortened = terms.side.shortened(events.side.readings[reading])
        if shortened:
            near[(row == reading) & np.isin(column, shortened)] = 1
    return np.asarray(np.maximum.reduceat(near, start), np.float32)


def nearer_of(around: Floats, near: Floats) -> Floats:
    """log2(1 + n), where n of the similarities of each row are above the entry of that row.

    >>> nearer_of(np.array([[0.1, 0.5, 0.9]], np.float32), np.array([0.5], np.float32)).tolist()
    [1.0]
    """
    count = (around > (near + _TIE)[:, None]).sum(axis=1)
    return np.asarray(np.log2(1 + count, dtype=np.float64), np.float32)


def nearer(around: Floats, near: Floats) -> Floats:
    """log2(1 + n), where n of the sorted similarities of each row are above each of its entries.

    >>> [log] = nearer(np.array([[0.1, 0.5, 0.9]], np.float32), np.array([[0.2, 0.5, 0.95]], np.float32))
    >>> [round(float(each), 2) for each in log]
    [1.58, 1.0, 0.0]
    """
    out = np.zeros(near.shape, np.float32)
    for row, ordered in enumerate(around):
        out[row] = len(ordered) - np.searchsorted(ordered, near[row] + _TIE, side="right")
    return np.asarray(np.log2(1 + out, dtype=np.float64), np.float32)


def shifted(scores: Floats, bits: Floats) -> Floats:
    """Probabilities with so many bits added to their odds; 0 and 1 stay.

    >>> shifted(np.array([0.0, 0.5, 1.0], np.float32), np.array([1.0, -1.0, -1.0], np.float32)).round(3).tolist()
    [0.0, 0.3330000042915344, 1.0]
    """
    exact = scores.astype(np.float64)
    return np.asarray(exact / (exact + (1.0 - exact) * np.exp2(-bits.astype(np.float64))), np.float32)


__all__ = ["MOST", "SurroundedTerms", "Surroundings", "nearer", "nearness", "shifted"]
