"""The readings of many terms with all that is known of them, prepared for comparison with those of other terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import LIGHT_WEIGHT
from likewise.semantics.adjust.apart import OppositeTerms
from likewise.semantics.evidence.encoder import SentenceEncoder
from likewise.semantics.evidence.glossary import Glossary
from likewise.semantics.evidence.lexical import RelatedWords, WordLexicon, initials
from likewise.semantics.evidence.other_names import OtherNames
from likewise.semantics.evidence.terms import Reader, Reading, abbreviates, is_code, is_light, spelling_of
from likewise.semantics.measures.base import Prepared
from likewise.semantics.measures.esa import Esa
from likewise.semantics.space.space import Space
from likewise.semantics.text import tokens
from likewise.semantics.wordnet.opposites import Opposites
from likewise.semantics.wordnet.wordnet import WordNet

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Sources:
    """Where evidence comes from; a missing source gives no evidence."""

    spaces: tuple[Space, ...] = ()
    encoder: SentenceEncoder | None = None
    wordnet: WordNet | None = None
    glossary: Glossary = field(default_factory=Glossary.shipped)
    names: OtherNames = field(default_factory=OtherNames.shipped)
    relations: bool = True
    """Whether WordNet's relations count; if not, WordNet is only used to recognise English words."""

    @cached_property
    def reader(self) -> Reader:
        """Turns terms into readings."""
        return Reader(self.glossary, self.wordnet, names=self.names)

    @cached_property
    def lexicon(self) -> WordLexicon:
        """WordNet's relations."""
        return WordLexicon(self.wordnet if self.relations else None)

    @cached_property
    def measures(self) -> tuple[Esa, ...]:
        """An ESA measure for each space."""
        return tuple(Esa(space) for space in self.spaces)

    @cached_property
    def opposites(self) -> Opposites | None:
        """Which words are opposites; None without WordNet's files."""
        return Opposites.load()

    def known(self, text: str) -> bool:
        """Whether any space has a word of the text."""
        return any(bool((space.index(tokens(text)) >= 0).any()) for space in self.spaces)


Name = TypeVar("Name", str, int)


def _places(names: Iterable[Iterable[Name]]) -> dict[Name, list[int]]:
    """Where each name occurs, of the names at each place."""
    found: dict[Name, list[int]] = {}
    for at, names_here in enumerate(names):
        for name in names_here:
            found.setdefault(name, []).append(at)
    return found


def _initials(reading: Reading) -> set[str]:
    """The first letters of a reading of several words, with and without its light words."""
    return {initials(reading.words), initials(reading.text.split())} if len(reading.words) > 1 else set()


def _may_be_initials(reading: Reading) -> bool:
    """Whether a reading is one short literal word, so that it can stand for the first letters of another."""
    return len(reading.words) == 1 and reading.literal and 1 < len(reading.words[0]) < 7


class TermSide:
    """The readings of many terms, with their distinct words, prepared for comparison with another side."""

    def __init__(self, terms: Sequence[Sequence[Reading]], sources: Sources) -> None:
        """`terms` has the readings of each term, at least one."""
        self.readings = readings = tuple(reading for found in terms for reading in found)
        self.count = np.array([len(found) for found in terms], np.int64)
        """The number of readings of each term."""
        self.first = np.cumsum(self.count) - self.count
        """The place of each term's first reading."""
        self.owner = np.repeat(np.arange(len(terms)), self.count)
        """The term of each reading."""
        self.sources = sources
        # Words of one stem are the same, but each is compared with others as it is written.
        numbers: dict[str, int] = {}
        self.of_stem: dict[str, list[int]] = {}
        for reading in readings:
            for stemmed, word in zip(reading.stems, reading.words, strict=True):
                if word not in numbers:
                    numbers[word] = len(numbers)
                    self.of_stem.setdefault(stemmed, []).append(numbers[word])
        self.words = list(numbers)
        self.flat = np.array([numbers[word] for reading in readings for word in reading.words], np.int64)
        self.length = np.array([len(reading.stems) for reading in readings], np.int64)
        self.start = np.cumsum(self.length) - self.length
        self.filled = self.length > 0
        heads = (each.words[each.stems.index(each.head)] if each.stems else "" for each in readings)
        self.head = np.array([numbers.get(word, 0) for word in heads], np.int64)
        self.weight = np.ones(len(numbers), np.float32)
        self.weight[[at for name, places in self.of_stem.items() if is_light(name) for at in places]] = LIGHT_WEIGHT
        self.is_code = np.array([is_code(word) for word in numbers], np.bool_)
        self.english = np.array([reading.english for reading in readings], np.bool_)
        self.foreign = np.array([reading.foreign for reading in readings], np.bool_)
        self.renamed = np.array([reading.renames is not None for reading in readings], np.bool_)
        self.shorthand = np.array([reading.shorthand for reading in readings], np.bool_)
        self.unlisted = np.array([reading.unlisted for reading in readings], np.bool_)
        self.spelling = np.array([spelling_of(reading) for reading in readings], np.int8)
        self.described = np.array([reading.described for reading in readings], np.bool_)
        self.generic = np.array([reading.generic for reading in readings], np.bool_)
        self.sole = np.array([reading.sole for reading in readings], np.bool_)
        self.roles = np.array([role for found in terms for role in _roles(found)], np.int32)
        self.has_codes = np.array([bool(reading.codes) for reading in readings], np.bool_)
        self.streets = {at: name for at, name in enumerate(map(sources.reader.street_name, readings)) if name}
        self._owners = _places(_initials(each) for each in readings)
        self._short = _places(each.words if _may_be_initials(each) else () for each in readings)
        self.written = _places(each.original.stems for each in readings)
        self.things = [sources.names.things(reading.words) for reading in readings]
        self.has_thing = np.array(list(map(bool, self.things)), np.bool_)
        self.of_thing = _places(self.things)
        self._with_letters = _places((_first_letters(each),) for each in readings)

    @property
    def texts(self) -> list[str]:
        """The readings as text."""
        return [reading.text for reading in self.readings]

    @cached_property
    def vectors(self) -> Floats | None:
        """The embedding of each reading."""
        if self.sources.encoder is None or self.word_vectors is None:
            return None
        return self.sources.encoder.vectors(self.texts)

    @cached_property
    def word_vectors(self) -> Floats | None:
        """The plain embedding of each word."""
        encoder = self.sources.encoder
        # Readings that are new too are encoded together with the words.
        return None if encoder is None else encoder.plain.vectors([*self.words, *self.texts])[: len(self.words)]

    @cached_property
    def single(self) -> tuple[NDArray[np.int64], Floats | None]:
        """The readings that are single words, and the plain embedding of each."""
        places = np.flatnonzero([" " not in text for text in self.texts])
        encoder = self.sources.encoder
        texts = [self.readings[at].text for at in places.tolist()]
        return places, None if encoder is None else encoder.plain.vectors(texts)

    @cached_property
    def concepts(self) -> list[Prepared]:
        """The readings in every space."""
        return [measure.prepare(self.texts) for measure in self.sources.measures]

    @cached_property
    def word_concepts(self) -> list[Prepared]:
        """The words in every space, needed where there is no embedding."""
        return [measure.prepare(self.words) for measure in self.sources.measures]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether a space has a word of each reading."""
        return np.array([self.sources.known(text) for text in self.texts], np.bool_)

    @cached_property
    def related_words(self) -> RelatedWords:
        """The words, by what WordNet relates to them."""
        return RelatedWords(self.words, self.sources.lexicon)

    @cached_property
    def related_terms(self) -> RelatedWords:
        """The whole readings, by what WordNet relates to them."""
        return RelatedWords(self.texts, self.sources.lexicon)

    @property
    def versions(self) -> list[list[str]]:
        """The readings as text and, if some rename others, the texts that are renamed."""
        originals = [reading.original.text for reading in self.readings]
        return [self.texts] if originals == self.texts else [self.texts, originals]

    @cached_property
    def opposite_terms(self) -> list[OppositeTerms]:
        """The readings, by what is opposite to them."""
        opposites = self.sources.opposites
        return [] if opposites is None else [OppositeTerms(texts, opposites) for texts in self.versions]

    @cached_property
    def opposite_words(self) -> OppositeTerms | None:
        """The words, by what is opposite to them."""
        opposites = self.sources.opposites
        return None if opposites is None else OppositeTerms(self.words, opposites)

    def spelled_out(self, reading: Reading) -> list[int]:
        """The readings whose initials this reading is, or that are its initials."""
        found = self._owners.get(reading.words[0], []) if len(reading.words) == 1 and reading.literal else []
        names = {initials(reading.words), initials(reading.text.split())} if len(reading.words) > 1 else set()
        return [*found, *(at for name in sorted(names) for at in self._short.get(name, []))]

    def shortened(self, reading: Reading) -> list[int]:
        """The readings with the same words in the same order, some of them shortened: `wtr lk`, `water leak`."""
        places = self._with_letters.get(_first_letters(reading), [])
        return [at for at in places if self._is_shortened(reading.words, self.readings[at].words)]

    def _is_shortened(self, one: Sequence[str], other: Sequence[str]) -> bool:
        pairs = [(word, match) for word, match in zip(one, other, strict=True) if word != match]
        return bool(pairs) and all(self._shortens(*pair) or self._shortens(*reversed(pair)) for pair in pairs)

    def _shortens(self, short: str, word: str) -> bool:
        """Only a word that is not English can be a short form, and only of one that is."""
        known = self.sources.reader.known
        return abbreviates(short, word) and not known(short) and known(word)

    def sums(self, weights: Floats) -> Floats:
        """The sum over each reading's words."""
        out = np.zeros(len(self.readings), np.float32)
        if len(self.flat):
            out[self.filled] = np.add.reduceat(weights[self.flat], self.start[self.filled])
        return out

    def least(self, weights: Floats) -> Floats:
        """The least over each reading's words; 1 for a reading without words."""
        out = np.ones(len(self.readings), np.float32)
        if len(self.flat):
            out[self.filled] = np.minimum.reduceat(weights[self.flat], self.start[self.filled])
        return out

    def best(self, rows: Floats) -> Floats:
        """For each row, the greatest over each reading's words."""
        out = np.zeros((len(rows), len(self.readings)), np.float32)
        if len(self.flat):
            out[:, self.filled] = np.maximum.reduceat(rows[:, self.flat], self.start[self.filled], axis=1)
        return out


def _roles(readings: Sequence[Reading]) -> list[int]:
    """The roles of a term's readings; a short form without roles has those of what it stands for."""
    roles = [reading.roles for reading in readings]
    spelled_out = next(filter(None, roles), 0)
    return [own or spelled_out for own in roles]


def _first_letters(reading: Reading) -> str:
    return "".join(word[:1] for word in reading.words)


__all__ = ["Sources", "TermSide"]
