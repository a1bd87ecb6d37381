"""WordNet: synsets, their words, glosses and pointers, and the senses of a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.semantics.wordnet import files
from likewise.semantics.wordnet.files import PARTS, WordNetTables

HYPERNYMS = ("@", "@i")
"""Pointers to the more general synset: of a kind, and of an instance."""

# WordNet's rules of detachment: an ending, and its replacement in the base form.
_DETACHMENTS: dict[int, tuple[tuple[str, str], ...]] = {
    0: (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    1: (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    2: (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    3: (),
}


@dataclass(frozen=True, slots=True)
class Synset:
    """One meaning: the words that share it, and its gloss."""

    id: int
    part: str
    offset: int
    words: tuple[str, ...]
    gloss: str

    @property
    def title(self) -> str:
        """The name of the synset in explanations.

        >>> Synset(7, "noun", 2084071, ("dog", "domestic dog"), "a member of the genus Canis").title
        'dog, domestic dog (noun)'
        """
        return f"{', '.join(self.words[:3])} ({self.part})"


@dataclass(frozen=True, slots=True)
class Sense:
    """One sense of a word, and how often it was tagged in WordNet's concordance."""

    synset: int
    count: int


class WordNet:
    """All of WordNet 3.0; `WordNet.load()` reads it once per process."""

    def __init__(self, tables: WordNetTables) -> None:
        self._tables = tables
        self._words = tables.words.split("\n")
        self._kinds = {symbol: code for code, symbol in enumerate(tables.kinds.split("\t"))}
        self._lemmas = {lemma: number for number, lemma in enumerate(tables.lemmas.split("\n"))}

    @classmethod
    def load(cls, place: Path | None = None) -> WordNet:
        """Load WordNet from a folder, by default the installed one."""
        return _load(place or files.folder())

    def __len__(self) -> int:
        """The number of synsets."""
        return len(self._tables.part)

    def synset(self, number: int) -> Synset:
        """The synset of a number from 0 to the length."""
        return Synset(
            number,
            PARTS[self._tables.part[number]],
            int(self._tables.offset[number]),
            tuple(self._words[number].split("\t")),
            self._glosses[number],
        )

    def synsets(self) -> Iterator[Synset]:
        """All synsets, in file order."""
        return map(self.synset, range(len(self)))

    def words(self, number: int) -> tuple[str, ...]:
        """The words of a synset."""
        return tuple(self._words[number].split("\t"))

    def at(self, part: str, offset: int) -> int:
        """The number of the synset at an offset of a data file."""
        start, stop = np.searchsorted(self._tables.part, [PARTS.index(part), PARTS.index(part) + 1])
        place = int(start + np.searchsorted(self._tables.offset[start:stop], offset))
        if place >= stop or self._tables.offset[place] != offset:
            raise KeyError((part, offset))
        return place

    def senses(self, word: str, *, part: str | None = None) -> list[Sense]:
        """The senses of a word in its base or an inflected form, most common first within a part of speech."""
        codes = range(len(PARTS)) if part is None else (PARTS.index(part),)
        senses = [sense for code in codes for sense in self._senses(word.lower().replace("_", " "), code)]
        return list({sense.synset: sense for sense in senses}.values())

    def base_forms(self, word: str, part: str) -> list[str]:
        """The words listed in WordNet of which this may be a form, itself first."""
        code = PARTS.index(part)
        known = [word, *self._exceptions.get((code, word), ())]
        if len(known) == 1:
            known += [_detach(word, ending) for ending in _DETACHMENTS[code] if word.endswith(ending[0])]
        return list(dict.fromkeys(form for form in known if form and f"{code}{form}" in self._lemmas))

    def pointers(self, number: int, symbols: Sequence[str] | None = None) -> list[int]:
        """The synsets that a synset points to, by all pointers or by some, such as `HYPERNYMS`."""
        # A synset has few pointers: plain lists are faster than arrays here.
        start, stop = self._tables.pointer_bounds[number], self._tables.pointer_bounds[number + 1]
        targets: list[int] = self._tables.pointer_target[start:stop].tolist()
        if symbols is None:
            return targets
        codes = {self._kinds[symbol] for symbol in symbols if symbol in self._kinds}
        kinds = self._tables.pointer_kind[start:stop].tolist()
        return [target for target, kind in zip(targets, kinds, strict=True) if kind in codes]

    def edges(self, symbols: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """All pointers of some kinds at once: source and target synsets."""
        codes = [self._kinds[symbol] for symbol in symbols if symbol in self._kinds]
        sources = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self._tables.pointer_bounds))
        chosen = np.isin(self._tables.pointer_kind, codes)
        return sources[chosen], self._tables.pointer_target[chosen]

    def parts(self) -> NDArray[np.uint8]:
        """The part of speech of each synset, as a position in noun, verb, adj, adv."""
        return self._tables.part

    def tagged(self) -> NDArray[np.int64]:
        """How often each synset was tagged, all its words together."""
        counts = np.bincount(self._tables.sense_synset, self._tables.sense_count, minlength=len(self))
        return counts.astype(np.int64)

    def lemmas(self) -> Iterator[str]:
        """All words and phrases listed, once for each part of speech."""
        return (lemma[1:] for lemma in self._lemmas)

    def _senses(self, word: str, code: int) -> Iterator[Sense]:
        for form in self.base_forms(word, PARTS[code]):
            number = self._lemmas[f"{code}{form}"]
            start, stop = self._tables.sense_bounds[number], self._tables.sense_bounds[number + 1]
            pairs = zip(self._tables.sense_synset[start:stop], self._tables.sense_count[start:stop], strict=True)
            yield from (Sense(int(synset), int(count)) for synset, count in pairs)

    @cached_property
    def _glosses(self) -> list[str]:
        return self._tables.glosses.split("\n")

    @cached_property
    def _exceptions(self) -> dict[tuple[int, str], list[str]]:
        cells = (line.split("\t") for line in self._tables.exceptions.split("\n") if line)
        return {(int(part), inflected): bases for part, inflected, *bases in cells}


def _detach(word: str, ending: tuple[str, str]) -> str:
    suffix, base = ending
    return word[: len(word) - len(suffix)] + base


@lru_cache(maxsize=2)
def _load(place: Path) -> WordNet:
    return WordNet(files.read(place))
