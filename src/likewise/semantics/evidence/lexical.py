"""How WordNet relates two words or listed phrases, and which words may be abbreviations of others."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import COMMON_SENSE
from likewise.semantics.wordnet.wordnet import WordNet

_KEPT = 100_000
_UP = ("@", "@i", "&")
_STEPS = 5
_VOWELS = frozenset("aeiou")


class WordRelation(IntEnum):
    """How two words are related, weakest first; where several relations hold, the last one counts."""

    NO_EVIDENCE = 0
    ONE_UNLISTED = 1
    BOTH_UNLISTED = 2
    NONE = 3
    COUSINS = 4
    RARE_KIND = 5
    SIBLINGS = 6
    FAR_WIDER = 7
    WIDER = 8
    FAR_NARROWER = 9
    NARROWER = 10
    SHORT = 11
    DERIVED = 12
    RARE_SYNONYMS = 13
    SYNONYMS = 14


DESCRIPTIONS = {
    WordRelation.NO_EVIDENCE: "not in WordNet",
    WordRelation.ONE_UNLISTED: "WordNet lists only one of them",
    WordRelation.BOTH_UNLISTED: "WordNet lists neither; both may be names",
    WordRelation.NONE: "not related in WordNet",
    WordRelation.SIBLINGS: "siblings in WordNet",
    WordRelation.COUSINS: "near in WordNet",
    WordRelation.RARE_KIND: "one is a kind of the other in a rare sense in WordNet",
    WordRelation.FAR_WIDER: "the event's is far wider in WordNet",
    WordRelation.FAR_NARROWER: "the event's is far narrower in WordNet",
    WordRelation.WIDER: "the event's is wider in WordNet",
    WordRelation.NARROWER: "the event's is narrower in WordNet",
    WordRelation.SHORT: "one may be short for the other",
    WordRelation.DERIVED: "derived from each other in WordNet",
    WordRelation.RARE_SYNONYMS: "synonyms in a rare sense in WordNet",
    WordRelation.SYNONYMS: "synonyms in WordNet",
}
"""The relations in words, for explanations."""


@dataclass(frozen=True, slots=True)
class WordEntry:
    """A word in WordNet: its senses, their hypernyms, and what is derived from them."""

    first: frozenset[int]
    """The most common sense of each part of speech."""
    common: frozenset[int]
    rare: frozenset[int]
    """All senses, the common ones too."""
    rare_up: frozenset[int]
    """Hypernyms of all senses."""
    up: frozenset[int]
    further: frozenset[int]
    """Hypernyms of the hypernyms of common senses."""
    far: frozenset[int]
    """Hypernyms two to five steps above common senses."""
    derived: frozenset[int]


_NOTHING = WordEntry(*(frozenset(),) * 8)


class WordLexicon:
    """WordNet entries by word, cached; without WordNet every entry is empty."""

    def __init__(self, wordnet: WordNet | None) -> None:
        self._wordnet = wordnet
        self.entry = lru_cache(_KEPT)(self._entry)

    def _entry(self, word: str) -> WordEntry:
        """The entry of a word; callers use `entry`, which caches it."""
        if self._wordnet is None:
            return _NOTHING
        wordnet = self._wordnet
        first: set[int] = set()
        common: set[int] = set()
        every: set[int] = set()
        for part in ("noun", "verb", "adj", "adv"):
            senses = wordnet.senses(word, part=part)
            most = max((sense.count for sense in senses), default=0)
            every.update(sense.synset for sense in senses)
            first.update(sense.synset for sense in senses[:1])
            # Without counts no sense is known to be rare: a lorry is a truck, although WordNet lists a wagon first.
            least = max(1, COMMON_SENSE * most) if most else 0
            common.update(s.synset for at, s in enumerate(senses) if at == 0 or s.count >= least)
        up, further, *others = self._above(common)
        rare_up = frozenset(over for sense in every for over in wordnet.pointers(sense, _UP))
        far = frozenset().union(further, *others) - up
        derived = {other for sense in common for other in wordnet.pointers(sense, ("+", "\\"))}
        # A vacancy is derived from vacant, which is a kind of empty.
        derived |= {head for sense in derived for head in wordnet.pointers(sense, ("&",))}
        return WordEntry(
            frozenset(first), frozenset(common), frozenset(every), rare_up, up, further, far, frozenset(derived)
        )

    def _above(self, synsets: Iterable[int]) -> list[frozenset[int]]:
        """Hypernyms one step above, two steps above, and so on."""
        assert self._wordnet is not None
        layers = [frozenset(synsets)]
        for _ in range(_STEPS):
            layers.append(frozenset(up for sense in layers[-1] for up in self._wordnet.pointers(sense, _UP)))
        return layers[1:]

    def __bool__(self) -> bool:
        return self._wordnet is not None


class RelatedWords:
    """Words or phrases of the subscription side, indexed by synset so that related ones are found quickly."""

    def __init__(self, words: Sequence[str], lexicon: WordLexicon) -> None:
        self.words = tuple(words)
        self._lexicon = lexicon
        self._entries = [lexicon.entry(word) for word in words]
        self._known = np.array([bool(entry.rare) for entry in self._entries], np.bool_)
        self._by = {
            name: _index(getattr(entry, name) for entry in self._entries)
            for name in ("common", "rare", "rare_up", "up", "further", "far", "derived")
        }
        self._spelled: dict[str, list[int]] = defaultdict(list)
        self._skeletons: dict[str, list[int]] = defaultdict(list)
        for at, word in enumerate(words):
            self._spelled[word].append(at)
            if word:
                self._skeletons[_consonants(word)].append(at)
        self._ordered = sorted(self._spelled)

    def relations(self, word: str) -> NDArray[np.int8]:
        """How a word of an event is related to each of these words."""
        entry = self._lexicon.entry(word)
        out = np.full(len(self.words), np.int8(WordRelation.NO_EVIDENCE))
        if self._lexicon:
            known = self._known if entry.rare else ~self._known
            out[:] = WordRelation.ONE_UNLISTED
            out[known] = WordRelation.NONE if entry.rare else WordRelation.BOTH_UNLISTED
        if entry.rare:
            self._raise(out, WordRelation.COUSINS, ("up", entry.further), ("further", entry.up | entry.further))
            self._raise(out, WordRelation.RARE_KIND, ("rare_up", entry.rare), ("rare", entry.rare_up))
            self._raise(out, WordRelation.SIBLINGS, ("up", entry.up))
            self._raise(out, WordRelation.FAR_WIDER, ("far", entry.common))
            self._raise(out, WordRelation.FAR_NARROWER, ("common", entry.far))
            self._raise(out, WordRelation.WIDER, ("up", entry.common))
            self._raise(out, WordRelation.NARROWER, ("common", entry.up))
            self._raise(out, WordRelation.DERIVED, ("derived", entry.common), ("common", entry.derived))
            self._raise(out, WordRelation.RARE_SYNONYMS, ("rare", entry.rare))
            self._raise(out, WordRelation.SYNONYMS, ("common", entry.common))
        self._mark_short(out, word)
        return out

    def _raise(self, out: NDArray[np.int8], relation: WordRelation, *ways: tuple[str, Iterable[int]]) -> None:
        for name, synsets in ways:
            index = self._by[name]
            for synset in synsets:
                for at in index.get(synset, ()):
                    out[at] = relation

    def _mark_short(self, out: NDArray[np.int8], word: str) -> None:
        """Mark pairs of which one may abbreviate the other; a word that WordNet lists is no abbreviation."""
        unknown = not self._lexicon.entry(word).rare
        for at in self._spelled_alike(word) if word else ():
            other = self.words[at]
            if out[at] <= WordRelation.BOTH_UNLISTED and (
                (not self._known[at] and is_short(other, word)) or (unknown and is_short(word, other))
            ):
                out[at] = WordRelation.SHORT

    def _spelled_alike(self, word: str) -> Iterator[int]:
        """The words that begin with this word, that it begins with, or that have its consonants."""
        yield from self._skeletons.get(_consonants(word), ())
        for size in range(3, len(word)):
            yield from self._spelled.get(word[:size], ())
        for place in range(bisect_right(self._ordered, word), len(self._ordered)):
            if not self._ordered[place].startswith(word):
                return
            yield from self._spelled[self._ordered[place]]


def is_short(short: str, word: str) -> bool:
    """Whether `short` may abbreviate a word: a prefix of it, or its consonants.

    >>> is_short("humid", "humidity"), is_short("enrgy", "energy"), is_short("rim", "room")
    (True, True, False)
    """
    if not 2 < len(short) < len(word) or " " in word or not short.isalpha():
        return False
    if word.startswith(short):
        return True
    if short[0] != word[0] or len(short) < len(_consonants(word)) - 1:
        return False
    return _consonants(short) == _consonants(word) and _within(short, word)


def initials(words: Sequence[str]) -> str:
    """The first letters of the words.

    >>> initials(["estimated", "time", "of", "arrival"])
    'etoa'
    """
    return "".join(word[0] for word in words)


def _consonants(word: str) -> str:
    return word[0] + "".join(letter for letter in word[1:] if letter not in _VOWELS)


def _within(short: str, word: str) -> bool:
    letters = iter(word)
    return all(letter in letters for letter in short)


def _index(sets: Iterable[frozenset[int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for at, synsets in enumerate(sets):
        for synset in synsets:
            found[synset].append(at)
    return dict(found)


__all__ = ["DESCRIPTIONS", "RelatedWords", "WordEntry", "WordLexicon", "WordRelation", "initials", "is_short"]
