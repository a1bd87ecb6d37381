"""From text to terms: words and their stems, when two terms are the same, and how words make a phrase.

The same cut serves a corpus and the terms that are looked up in it.
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
"""A stemmer would make `parking` a kind of `park`. Kept whole, it is nearer to `garage` than to `energy` [000 sec 3.1];
otherwise a wind park, which makes energy, speaks for parking."""

LONGEST_WORD = 40
"""Longer runs of letters are markup, keys or encoded data, not words."""

STOP_WORDS = frozenset(words_in("stop_words", package="likewise.semantics"))
"""English words that join others and name nothing."""

_WORD = re.compile(r"[a-z0-9]+")
_MARK = re.compile(r"[\u0300-\u036f]+")


def raw_words(text: str) -> list[str]:
    """All runs of Latin letters and digits in lower case, accents folded away.

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
    """Whether a raw word counts: not a stop word, not a lone letter, not a key of 64 hex digits."""
    return 1 < len(word) <= LONGEST_WORD and word not in STOP_WORDS


def stem(word: str) -> str:
    """The Porter2 stem of one lower-case word; nouns in -ing with a meaning of their own stay whole.

    >>> stem("parks"), stem("parked"), stem("parkings")
    ('park', 'park', 'parking')
    """
    noun = word[:-1] if word.endswith("ings") else word
    result: str = noun if noun in ING_NOUNS else _stemmer().stemWord(word)
    return result


@lru_cache(maxsize=65_536)
def tokens(phrase: str) -> tuple[str, ...]:
    """The stems of a term: identifiers split, stop words out.

    >>> tokens("parkingSpace_occupied")
    ('parking', 'space', 'occupi')
    """
    return tuple(stem(word) for part in split_term(phrase) for word in raw_words(part) if is_word(word))


_local = threading.local()


def _stemmer() -> Stemmer.Stemmer:
    # A stemmer keeps a cache that threads must not share.
    if not hasattr(_local, "stemmer"):
        _local.stemmer = Stemmer.Stemmer("english")
    return _local.stemmer


@lru_cache(maxsize=262_144)
def key(term: str) -> str:
    """What makes two terms the same: their stems, or the bare text where there is no word.

    >>> key("ParkingSpaces") == key("parking space")
    True
    >>> key("of") == key("OF"), key("!") == key("?")
    (True, False)
    """
    return " ".join(tokens(term)) or fold(term).strip().casefold()


# What all measures do alike with terms.


class TermPlaces:
    """Terms as the columns of a matrix, found again by what makes them the same."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._columns: dict[str, list[int]] = {}
        for column, term in enumerate(terms):
            self._columns.setdefault(key(term), []).append(column)

    def columns(self, term: str) -> list[int]:
        """Where a term stands, in any spelling.

        >>> TermPlaces(["parks", "car"]).columns("Park")
        [0]
        """
        return self._columns.get(key(term), [])

    def mark(self, matrix: Matrix, rows: Sequence[str]) -> Matrix:
        """Set the entries of equal terms to 1, in place: every measure's identity.

        >>> TermPlaces(["parks", "car"]).mark(np.zeros((1, 2), np.float32), ["park"]).tolist()
        [[1.0, 0.0]]
        """
        for row, term in enumerate(rows):
            if equal := self.columns(term):
                matrix[row, equal] = 1.0
        return matrix


def mark_identical(matrix: Matrix, subscription_terms: Sequence[str], event_terms: Sequence[str]) -> Matrix:
    """Set the entries of equal terms to 1, in place, for a matrix that is asked for once."""
    return TermPlaces(event_terms).mark(matrix, subscription_terms)


def best_of(scores: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    """The maximum of each block, the blocks having these heights and widths (0 where a block is empty).

    >>> best_of(np.array([[0.25, 0.5], [0.75, 0.0]], np.float32), [2], [1, 1]).tolist()
    [[0.75, 0.5]]
    """
    return _blocks(np.maximum, _blocks(np.maximum, scores, rows).T, columns).T


def mean_of_best(scores: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    """Relatedness of phrases from that of their words [002 sec 5.3.2]: the mean of the maximal word pairs.

    Each word takes its best partner in the other phrase; both directions are averaged, so it is symmetric.

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
    """Fold runs of rows into one row each; an empty run is a row of zeros."""
    sizes = np.asarray(heights, np.int64)
    folded = np.zeros((len(sizes), scores.shape[1]), np.float32)
    filled: NDArray[np.bool_] = sizes > 0
    if filled.any() and scores.shape[1]:
        starts = np.cumsum(sizes) - sizes
        folded[filled] = fold_with.reduceat(scores, starts[filled], axis=0)
    return folded
