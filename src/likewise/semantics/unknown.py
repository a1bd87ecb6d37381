"""Words that no space knows, with the known ones that look most like them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from likewise.events import words as split_term
from likewise.semantics.text.words import is_word, raw_words, stem

if TYPE_CHECKING:
    from likewise.semantics.space.space import Space


def unknown_words(terms: Iterable[str], spaces: Sequence[Space], *, near: int = 2) -> dict[str, list[str]]:
    """Each word of the terms that none of the spaces knows, as it was written, with its nearest known words.

    Numbers and codes are no words to know.
    """
    found: dict[str, list[str]] = {}
    for term in terms:
        for part in split_term(term):
            for word in filter(_is_name, raw_words(part)):
                written = part if part.lower() == word else word
                if written not in found and all(space.index([stem(word)])[0] < 0 for space in spaces):
                    found[written] = _similar(word, spaces, near) if near else []
    return found


def _is_name(word: str) -> bool:
    return word.isalpha() and is_word(word)


def _similar(word: str, spaces: Sequence[Space], count: int) -> list[str]:
    beginning = word[:1]
    known = {other for space in spaces for other in space.word_counts if other[:1] == beginning}
    return get_close_matches(word, sorted(known), n=count, cutoff=0.8)
