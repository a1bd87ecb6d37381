"""Vocabulary: all words of a space, to find the nearest words of a term, and unknown words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import STRONGEST_POSTINGS
from likewise.events import words as split_term
from likewise.semantics.measures.esa import Esa
from likewise.semantics.space.space import Space, term_frequency
from likewise.semantics.space.vectors import Vectors
from likewise.semantics.text import is_word, raw_words, stem

CHUNK = 2_000_000
"""Postings that are processed together."""

RARE = 3
"""Words in fewer concepts than this are left out: their vectors describe those concepts, not the word."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A word of the vocabulary and how related it is."""

    word: str
    score: float


class Vocabulary:
    """The words of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def nearest(self, term: str, *, limit: int = 10, rare: int = RARE) -> list[Neighbour]:
        """The words with the largest cosine to a term, without the term's own words.

        One pass over all postings finds candidates, which the measure `esa` then scores.
        """
        query = Vectors(self.space, pruning=STRONGEST_POSTINGS).rows([term])
        _, own = self.space.incidence([term])
        if not query.nnz:
            return []
        cosines = self._cosines(query.toarray()[0])
        cosines[self.space.df < rare] = 0
        cosines[own] = 0
        best = _largest(cosines, 4 * limit + 50)
        words = self.surfaces(best)
        scores = Esa(self.space).matrix([term], words)[0]
        order = np.lexsort((np.arange(len(words)), -scores))[:limit]
        return [Neighbour(words[at], float(scores[at])) for at in order if scores[at] > 0]

    def overlap(self, mass: NDArray[np.float32]) -> NDArray[np.float64]:
        """For every word, the sum of a mass over the concepts that contain it."""
        total = np.zeros(self.space.terms)
        for first, last, concepts, _ in self._chunks():
            total[first:last] = _sums(mass[concepts], self.space.indptr[first : last + 1])
        return total

    def surfaces(self, ids: Sequence[int] | NDArray[np.integer]) -> list[str]:
        """The most frequent unstemmed word of each stem, or the stem itself."""
        stems = [self.space.term(int(number)) for number in ids]
        starts = {root[:3] for root in stems}
        wanted = set(stems)
        best: dict[str, tuple[int, str]] = {}
        for word, count in self.space.word_counts.items():
            if word[:3] in starts and (root := stem(word)) in wanted:
                best[root] = max(best.get(root, (0, "")), (count, word))
        return [best.get(root, (0, root))[1] for root in stems]

    def _cosines(self, query: NDArray[np.float32]) -> NDArray[np.float64]:
        products, squares = np.zeros(self.space.terms), np.zeros(self.space.terms)
        for first, last, concepts, freq in self._chunks():
            weights = term_frequency(
                freq,
                weighting=self.space.weighting,
                max_freq=self.space.max_freq[concepts],
                length=self.space.length[concepts],
            )
            bounds = self.space.indptr[first : last + 1]
            products[first:last] = _sums(weights * query[concepts], bounds)
            squares[first:last] = _sums(weights * weights, bounds)
        lengths = np.sqrt(squares) * np.linalg.norm(query)
        cosines: NDArray[np.float64] = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return cosines

    def _chunks(self) -> Iterator[tuple[int, int, NDArray[np.int32], NDArray[np.uint16]]]:
        """First and last term, concepts and frequencies of runs of postings."""
        first = 0
        while first < self.space.terms:
            reach = np.searchsorted(self.space.indptr, self.space.indptr[first] + CHUNK, side="right") - 1
            last = int(max(first + 1, min(reach, self.space.terms)))
            _, concepts, freq = self.space.span(first, last)
            yield first, last, concepts, freq
            first = last


def _sums(values: NDArray[np.floating], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of each row; an empty row is 0."""
    running = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    places = bounds - bounds[0]
    return np.asarray(running[places[1:]] - running[places[:-1]], np.float64)


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Places of the largest positive values, largest first."""
    places = np.flatnonzero(values > 0)
    if len(places) > count:
        places = places[np.argpartition(-values[places], count)[:count]]
    return places[np.lexsort((places, -values[places]))]


def unknown_words(terms: Iterable[str], spaces: Sequence[Space], *, near: int = 2) -> dict[str, list[str]]:
    """The words of terms that no space knows, as written, each with the known words of most similar spelling.

    Numbers and codes are left out.
    """
    unknown: dict[str, list[str]] = {}
    for term in terms:
        for part in split_term(term):
            for word in filter(_is_name, raw_words(part)):
                written = part if part.lower() == word else word
                if written not in unknown and all(space.index([stem(word)])[0] < 0 for space in spaces):
                    unknown[written] = _similar(word, spaces, near) if near else []
    return unknown


def _is_name(word: str) -> bool:
    return word.isalpha() and is_word(word)


def _similar(word: str, spaces: Sequence[Space], count: int) -> list[str]:
    beginning = word[:1]
    known = {other for space in spaces for other in space.word_counts if other[:1] == beginning}
    return get_close_matches(word, sorted(known), n=count, cutoff=0.8)
