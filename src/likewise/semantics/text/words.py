"""From text to stemmed words: the same cut for a corpus and for the terms that are looked up in it."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

import Stemmer

from likewise.events import words as split_term
from likewise.events import words_in

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
