"""Jiang and Conrath's similarity over WordNet [002 sec 5.3.2]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likewise.events import words
from likewise.semantics._information import InformationContent
from likewise.semantics._measure import Matrix, Shared
from likewise.semantics._phrase import best_of, key, mark_identical, mean_of_best
from likewise.semantics._text import is_word, raw_words
from likewise.semantics._wordnet import WordNet
from likewise.semantics._wordnet_files import PARTS


class JiangConrath:
    """1 / (IC(a) + IC(b) - 2 IC(lcs)), brought to [0, 1] as s / (1 + s).

    A word stands for its most common synset, one for each part of speech, and the best pair counts
    (`senses="all"`: the best pair of all its synsets). A phrase that WordNet lists is one term; any other
    is the mean of its best word pairs. Themes are not used. Synsets that nothing is known to subsume
    together, such as adjectives, are 0 unless they are equal.
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
        # One unit for every synset: untagged ones, four in five, could not be compared otherwise.
        self._information = information or InformationContent.from_senses(self._wordnet, smoothing=1.0)
        self._senses = senses
        self._units = lru_cache(maxsize=65_536)(self._find_units)

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002
        event_theme: Sequence[str] = (),  # noqa: ARG002
    ) -> Matrix:
        """Similarity of every subscription term (row) with every event term (column)."""
        rows, row_sizes = self._flat(subscription_terms)
        columns, column_sizes = self._flat(event_terms)
        units = self._unit_scores(rows, columns)
        scores = mean_of_best(units, row_sizes, column_sizes)
        return mark_identical(scores, subscription_terms, event_terms)

    def reason(
        self,
        subscription_term: str,
        event_term: str,
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002
        event_theme: Sequence[str] = (),  # noqa: ARG002
        limit: int = 5,
    ) -> list[Shared]:
        """The most informative synsets that subsume words of both terms, each with its pair's similarity."""
        best: dict[str, float] = {}
        for left in dict.fromkeys(s for unit in self._units(key_of(subscription_term)) for s in unit):
            for right in dict.fromkeys(s for unit in self._units(key_of(event_term)) for s in unit):
                common = np.intersect1d(self._information.ancestors(left), self._information.ancestors(right))
                if not len(common):
                    continue
                subsumer = int(common[np.argmax(self._information.values[common])])
                score = float(self._scores(np.array([left]), np.array([right]))[0, 0])
                title = self._wordnet.synset(subsumer).title
                best[title] = max(score, best.get(title, 0.0))
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        return [Shared(title, score) for title, score in ranked[:limit] if score > 0]

    def similarity(self, left: int, right: int) -> float:
        """The published value of a pair of synsets, not normalised: infinite for equal ones."""
        distance = self._distances(np.array([left]), np.array([right]))[0, 0]
        return float("inf") if distance == 0 else 1 / float(distance)

    def _flat(self, terms: Sequence[str]) -> tuple[list[tuple[int, ...]], list[int]]:
        """All units of all terms in a row, and how many each term has."""
        units = [self._units(key_of(term)) for term in terms]
        return [unit for found in units for unit in found], [len(found) for found in units]

    def _find_units(self, text: str) -> tuple[tuple[int, ...], ...]:
        whole = self._synsets(text)
        if whole or " " not in text:
            return (whole,) if whole else ()
        return tuple(found for word in text.split(" ") if is_word(word) and (found := self._synsets(word)))

    def _synsets(self, text: str) -> tuple[int, ...]:
        chosen: dict[int, None] = {}
        for part in PARTS:
            senses = self._wordnet.senses(text, part=part)
            kept = senses if self._senses == "all" else senses[:1]
            chosen.update((sense.synset, None) for sense in kept)
        return tuple(chosen)

    def _unit_scores(self, rows: list[tuple[int, ...]], columns: list[tuple[int, ...]]) -> Matrix:
        """Units against units: each distinct synset is compared once."""
        left, left_at = _distinct(rows)
        right, right_at = _distinct(columns)
        scores = self._scores(left, right)[np.ix_(left_at, right_at)]
        return best_of(scores, [len(unit) for unit in rows], [len(unit) for unit in columns])

    def _scores(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> Matrix:
        return (1.0 / (1.0 + self._distances(left, right))).astype(np.float32)

    def _distances(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """IC(a) + IC(b) - 2 IC(lcs); infinite where there is no common subsumer."""
        content = self._information.values
        lowest = self._subsumers(left, right)
        with np.errstate(invalid="ignore"):
            distance = content[left][:, None] + content[right][None, :] - 2 * lowest
        distance[~np.isfinite(distance)] = np.inf
        distance[np.equal.outer(left, right)] = 0.0
        return np.maximum(distance, 0.0)

    def _subsumers(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """The largest information content among the common ancestors of each pair.

        Ancestors are laid over the matrix in rising order of content, so the last one written is the largest.
        """
        parts = self._wordnet.parts()
        same = np.equal.outer(parts[left], parts[right]) & (parts[left] < len(("noun", "verb")))[:, None]
        lowest = np.where(same, 0.0, -np.inf)
        above, below = self._incidence(left), self._incidence(right)
        shared = np.flatnonzero((np.diff(above.indptr) > 0) & (np.diff(below.indptr) > 0))
        for ancestor in shared[np.argsort(self._information.values[shared], kind="stable")]:
            content = self._information.values[ancestor]
            if np.isfinite(content):
                lowest[np.ix_(_column(above, ancestor), _column(below, ancestor))] = content
        return lowest

    def _incidence(self, synsets: NDArray[np.int64]) -> sparse.csc_array:
        """Which synsets (rows, by position) lie below which ancestors (columns)."""
        found = [self._information.ancestors(int(synset)) for synset in synsets]
        columns = np.concatenate([*found, np.empty(0, np.int32)])
        rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
        shape = (len(found), len(self._wordnet))
        return sparse.csc_array((np.ones(len(columns), np.int8), (rows, columns)), shape=shape)


def key_of(term: str) -> str:
    """A term as WordNet lists it: words in lower case, identifiers split.

    >>> key_of("parkingSpace")
    'parking space'
    """
    return " ".join(word for part in words(term) for word in raw_words(part)) or key(term)


def _column(incidence: sparse.csc_array, number: int) -> NDArray[np.int32]:
    rows: NDArray[np.int32] = incidence.indices[incidence.indptr[number] : incidence.indptr[number + 1]]
    return rows


def _distinct(units: list[tuple[int, ...]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    flat = np.array([synset for unit in units for synset in unit], np.int64)
    values, where = np.unique(flat, return_inverse=True)
    return values, where
