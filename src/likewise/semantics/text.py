"""From text to terms: words and their stems, equality of terms, and scores of phrases from those of words.

A corpus and the terms looked up in it are split in the same way.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import Stemmer
from numpy.typing import NDArray

from likewise.events import words as split_term
from likewise.events import words_in

if TYPE_CHECKING:
    from likewise.semantics.measures.base import Matrix

ING_NOUNS = frozenset(words_in("ing_nouns", package="likewise.semantics"))
"""Nouns that are not stemmed: a stemmer would make `parking` a form of `park`, which is near `energy` because of wind
parks. Unstemmed it is nearer to `garage` than to `energy` [000 sec 3.1]."""

LONGEST_WORD = 40
"""Longer runs of letters are markup, keys or encoded data, not words."""

STOP_WORDS = frozenset(words_in("stop_words", package="likewise.semantics"))
"""English function words, which are left out."""

_WORD = re.compile(r"[a-z0-9]+")
_MARK = re.compile(r"[\u0300-\u036f]+")


def raw_words(text: str) -> list[str]:
    """All runs of Latin letters and digits, in lower case and without accents.

    >>> raw_words("Two cafés, don't-go")
    ['two', 'cafes', 'don', 't', 'go']
    """
    return _WORD.findall(fold(text).lower())


def fold(text: str) -> str:
    """Text without accents and compatibility forms, so that `café` and `cafe` are one word."""
    if text.isascii():
        return text
    return _MARK.sub("", unicodedata.normalize("NFKD", text))


def is_word(word: str) -> bool:
    """Whether a raw word counts: not a stop word, a single letter or an overlong string."""
    return 1 < len(word) <= LONGEST_WORD and word not in STOP_WORDS


def stem(word: str) -> str:
    """The Porter2 stem of one lower-case word; nouns in -ing with a meaning of their own are not stemmed.

    >>> stem("parks"), stem("parked"), stem("parkings")
    ('park', 'park', 'parking')
    """
    noun = word[:-1] if word.endswith("ings") else word
    result: str = noun if noun in ING_NOUNS else _stemmer().stemWord(word)
    return result


@lru_cache(maxsize=65_536)
def tokens(phrase: str) -> tuple[str, ...]:
    """The stems of a term, with identifiers split and without stop words.

    >>> tokens("parkingSpace_occupied")
    ('parking', 'space', 'occupi')
    """
    return tuple(stem(word) for part in split_term(phrase) for word in raw_words(part) if is_word(word))


_local = threading.local()


def _stemmer() -> Stemmer.Stemmer:
    # A stemmer has a cache that threads must not share.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    return _local.stemmer


@lru_cache(maxsize=262_144)
def key(term: str) -> str:
    """The key of a term, equal for equal terms: its stems, or the folded text if it has no word.

    >>> key("ParkingSpaces") == key("parking space")
    True
    >>> key("of") == key("OF"), key("!") == key("?")
    (True, False)
    """
    return " ".join(tokens(term)) or fold(term).strip().casefold()


class TermPlaces:
    """The columns of terms in a matrix, by their keys."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._columns: dict[str, list[int]] = {}
        for column, term in enumerate(terms):
            self._columns.setdefault(key(term), []).append(column)

    def columns(self, term: str) -> list[int]:
        """The columns of a term, in any spelling.

        >>> TermPlaces(["parks", "car"]).columns("Park")
        [0]
        """
        return self._columns.get(key(term), [])

    def mark(self, matrix: Matrix, rows: Sequence[str]) -> Matrix:
        """Set the entries of equal terms to 1, in place.

        >>> TermPlaces(["parks", "car"]).mark(np.zeros((1, 2), np.float32), ["park"]).tolist()
        [[1.0, 0.0]]
        """
        for row, term in enumerate(rows):
            if equal := self.columns(term):
                matrix[row, equal] = 1.0
        return matrix


def mark_identical(matrix: Matrix, subscription_terms: Sequence[str], event_terms: Sequence[str]) -> Matrix:
    """Set the entries of equal terms to 1, in place, for a matrix that is used once."""
    return TermPlaces(event_terms).mark(matrix, subscription_terms)


def best_of(scores: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    """The maximum of each block of a matrix, for blocks of these heights and widths; 0 for an empty block.

    >>> best_of(np.array([[0.25, 0.5], [0.75, 0.0]], np.float32), [2], [1, 1]).tolist()
    [[0.75, 0.5]]
    """
    return _blocks(np.maximum, _blocks(np.maximum, scores, rows).T, columns).T


def mean_of_best(scores: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    """Relatedness of phrases from that of their words [002 sec 5.3.2]: the mean of the best word pairs.

    Each word takes its best partner in the other phrase. The mean of both directions makes it symmetric.

    >>> words = np.array([[1.0, 0.25], [0.5, 0.0]], np.float32)
    >>> mean_of_best(words, [2], [2]).tolist()  # ((1 + 0.5) / 2 + (1 + 0.25) / 2) / 2
    [[0.6875]]
    """
    forth = _mean(_blocks(np.maximum, scores.T, columns).T, rows)
    back = _mean(_blocks(np.maximum, scores, rows).T, columns).T
    return ((forth + back) / 2).astype(np.float32)


def _mean(scores: Matrix, heights: Sequence[int]) -> Matrix:
    sums = _blocks(np.add, scores, heights)
    return (sums / np.maximum(np.asarray(heights, np.float32), 1)[:, None]).astype(np.float32)


def _blocks(fold_with: np.ufunc, scores: Matrix, heights: Sequence[int]) -> Matrix:
    """Reduce runs of rows to one row each; an empty run gives a row of zeros."""
    sizes = np.asarray(heights, np.int64)
    folded = np.zeros((len(sizes), scores.shape[1]), np.float32)
    filled: NDArray[np.bool_] = sizes > 0
    if filled.any() and scores.shape[1]:
        starts = np.cumsum(sizes) - sizes
        folded[filled] = fold_with.reduceat(scores, starts[filled], axis=0)
    return folded
