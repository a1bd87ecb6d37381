"""Jiang and Conrath's similarity over WordNet [002 sec 5.3.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from likewise.events import words
from likewise.semantics.measures.base import Matrix, Measure, Shared, Themes
from likewise.semantics.text import TermPlaces, best_of, is_word, key, mean_of_best, raw_words
from likewise.semantics.wordnet.files import PARTS
from likewise.semantics.wordnet.information import InformationContent, SynsetGroup, SynsetTaxonomy
from likewise.semantics.wordnet.wordnet import WordNet


class JiangConrath(Measure):
    """1 / (IC(a) + IC(b) - 2 IC(lcs)), scaled to [0, 1] as s / (1 + s).

    A word has its most common synset of each part of speech (`senses="all"`: all its synsets); the best pair counts.
    A phrase that WordNet lists is one term; for any other it is the mean of the best word pairs. Themes are not used.
    Synsets without a common subsumer, such as adjectives, have 0 unless they are equal.
    """

    name = "jiang-conrath"
    symmetric = True

    def __init__(
        self,
        *,
        wordnet: WordNet | None = None,
        information: InformationContent | None = None,
        senses: Literal["first", "all"] = "first",
    ) -> None:
        self._wordnet = wordnet or WordNet.load()
        # A count of one for every synset, since four in five are untagged and could not be compared otherwise.
        self._information = information or InformationContent.from_senses(self._wordnet, smoothing=1.0)
        self._taxonomy = SynsetTaxonomy(self._information)
        self._senses = senses
        self._units = lru_cache(maxsize=65_536)(self._find_units)

    def prepare(
        self,
        subscription_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
    ) -> PreparedJiangConrath:
        """Look up the synsets of the subscription terms and all their hypernyms."""
        return PreparedJiangConrath(self, subscription_terms)

    def _reasons(self, subscribed: str, published: str, themes: Themes, limit: int) -> list[Shared]:
        """The most informative synsets that subsume words of both terms, each with its pair's similarity."""
        left, right = self.side([subscribed]).group, self.side([published]).group
        scores = _similarity(self._taxonomy.distances(left, right))
        best: dict[str, float] = {}
        for row, column in np.argwhere(scores > 0):
            subsumer = self._taxonomy.subsumer(int(left.synsets[row]), int(right.synsets[column]))
            if subsumer is not None:
                title = self._wordnet.synset(subsumer).title
                best[title] = max(float(scores[row, column]), best.get(title, 0.0))
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        return [Shared(title, score) for title, score in ranked[:limit]]

    def similarity(self, left: int, right: int) -> float:
        """The value of a pair of synsets as published, not scaled; infinite for equal synsets."""
        distance = self._taxonomy.distances(self._taxonomy.group([left]), self._taxonomy.group([right]))[0, 0]
        return float("inf") if distance == 0 else 1 / float(distance)

    def side(self, terms: Sequence[str]) -> _Side:
        """Terms as units (words, or phrases that WordNet lists) and their synsets."""
        units_of = [self._units(key_of(term)) for term in terms]
        units = [unit for own in units_of for unit in own]
        flat = np.array([synset for unit in units for synset in unit], np.int64)
        synsets, where = np.unique(flat, return_inverse=True)
        return _Side(self._taxonomy.group(synsets), where, list(map(len, units)), list(map(len, units_of)))

    def compare(self, left: _Side, right: _Side) -> Matrix:
        """The similarity of all pairs of terms; each distinct pair of synsets is compared once."""
        scores = _similarity(self._taxonomy.distances(left.group, right.group))
        units = best_of(scores[np.ix_(left.where, right.where)], left.synsets, right.synsets)
        return mean_of_best(units, left.units, right.units)

    def _find_units(self, text: str) -> tuple[tuple[int, ...], ...]:
        synsets = self._synsets(text)
        if synsets or " " not in text:
            return (synsets,) if synsets else ()
        return tuple(own for word in text.split(" ") if is_word(word) and (own := self._synsets(word)))

    def _synsets(self, text: str) -> tuple[int, ...]:
        chosen: dict[int, None] = {}
        for part in PARTS:
            senses = self._wordnet.senses(text, part=part)
            kept = senses if self._senses == "all" else senses[:1]
            chosen.update((sense.synset, None) for sense in kept)
        return tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Side:
    """Distinct synsets, the place among them of each unit's synsets, and the sizes of units and terms."""

    group: SynsetGroup
    where: NDArray[np.int64]
    synsets: list[int]
    units: list[int]


class PreparedJiangConrath:
    """Subscription terms with their synsets; `rows` gives a row per event term."""

    def __init__(self, measure: JiangConrath, terms: Sequence[str]) -> None:
        self.terms = tuple(terms)
        self._names = TermPlaces(terms)
        self._measure = measure
        self._side = measure.side(terms)

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Similarity of every event term (row) with every prepared term (column)."""
        scores = self._measure.compare(self._measure.side(event_terms), self._side)
        return self._names.mark(scores, event_terms)


def key_of(term: str) -> str:
    """A term as WordNet lists it: words in lower case, identifiers split.

    >>> key_of("parkingSpace")
    'parking space'
    """
    return " ".join(word for part in words(term) for word in raw_words(part)) or key(term)


def _similarity(distances: NDArray[np.float64]) -> Matrix:
    return np.asarray(1.0 / (1.0 + distances), np.float32)
