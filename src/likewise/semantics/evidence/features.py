"""The evidence of pairs of terms: one event term beside many subscription terms, in vectorised steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import LIGHT_WEIGHT, SAME_HEAD
from likewise.semantics.adjust.apart import OppositeTerms
from likewise.semantics.evidence.encoder import SentenceEncoder, cosines
from likewise.semantics.evidence.glossary import Glossary
from likewise.semantics.evidence.lexical import RelatedWords, WordLexicon, WordRelation, initials
from likewise.semantics.evidence.other_names import OtherNames
from likewise.semantics.evidence.terms import (
    Reader,
    Reading,
    abbreviates,
    extra_kind,
    is_code,
    is_light,
    turned,
)
from likewise.semantics.measures.base import Prepared
from likewise.semantics.measures.esa import Esa
from likewise.semantics.space.space import Space
from likewise.semantics.text import tokens
from likewise.semantics.wordnet.opposites import Opposites
from likewise.semantics.wordnet.wordnet import WordNet

Floats = NDArray[np.float32]
Codes = NDArray[np.int8]


class PairShape(IntEnum):
    """How the words of two terms overlap; each shape has its own weights."""

    WORD = 0
    APART = 1
    REPLACED = 2
    CONTAINED = 3
    FOREIGN = 4
    SAME = 5
    UNLISTED_WORD = 6
    """Two single words, at least one of which WordNet does not list."""
    SKIPPED = 7
    """Other names that do not make the terms more alike: only the terms as they are written count."""
    DESCRIBED = 8
    """No word in common, and at least one side is a description: `how full the tank is`."""
    DESCRIBED_IN_PART = 9
    """Some words in common, and at least one side is a description."""


class CodesSay(IntEnum):
    """How the codes and numbers of two terms compare."""

    NOTHING = 0
    SAME = 1
    DIFFERENT = 2
    ONE_SIDE = 3


class Exclusion(IntEnum):
    """Whether words of two terms exclude each other; descriptions have more words, so that this says less of them."""

    NO = 0
    YES = 1
    IN_A_DESCRIPTION = 2


class Listed(IntEnum):
    """What the list of other names says of two terms."""

    NOTHING = 0
    APART = 1
    """Both are names of things in the list, and of different things."""


class Spelling(IntEnum):
    """Whether a term was expanded or renamed to be compared, and how."""

    PLAIN = 0
    OTHER_NAME = 1
    GLOSSARY = 2
    UNSURE_NAME = 3
    AMBIGUOUS = 4
    INITIALS = 5


EXTRAS = ("none", *(f"{side} {kind}" for side in ("event", "subscription") for kind in
                    ("light", "turning", "modifier", "head", "name")))  # fmt: skip
"""Which side has extra words, and how they change its meaning."""

HEADS = ("none", "shared", "different")
"""Whether phrases have the same head or, where they share no word, heads that mean the same."""


@dataclass(slots=True)
class Features:
    """The evidence of one event reading against every subscription reading; NaN or code 0 means no evidence."""

    shape: Codes
    embedding: Floats
    esa: Floats
    relation: Codes
    aligned: Floats
    worst_subscription: Floats
    worst_event: Floats
    opposed: Codes
    codes: Codes
    extra: Codes
    head: Codes
    spelling: Codes
    listed: Codes

    @classmethod
    def empty(cls, size: int) -> Features:
        """Features of `size` pairs, without any evidence."""
        codes = [np.zeros(size, np.int8) for _ in range(8)]
        sizes = [np.full(size, np.nan, np.float32) for _ in range(5)]
        return cls(
            shape=codes[0],
            embedding=sizes[0],
            esa=sizes[1],
            relation=codes[1],
            aligned=sizes[2],
            worst_subscription=sizes[3],
            worst_event=sizes[4],
            opposed=codes[2],
            codes=codes[3],
            extra=codes[4],
            head=codes[5],
            spelling=codes[6],
            listed=codes[7],
        )

    def take(self, places: NDArray[np.integer]) -> Features:
        """The features of some of the pairs."""
        return Features(**{one.name: getattr(self, one.name)[places] for one in fields(self)})

    @classmethod
    def concatenate(cls, parts: Sequence[Features]) -> Features:
        """The features of all pairs of several parts."""
        return cls(**{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)})


WordScores = Callable[[Floats, Floats, Codes], Floats]
"""From embedding, ESA and relation of two words to the probability that they mean the same."""


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
        self.spelling = np.array([_spelling(reading) for reading in readings], np.int8)
        self.described = np.array([reading.described for reading in readings], np.bool_)
        self.generic = np.array([reading.generic for reading in readings], np.bool_)
        self.sole = np.array([reading.sole for reading in readings], np.bool_)
        self.roles = np.array([reading.roles for reading in readings], np.int32)
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


def features(side: TermSide, events: TermSide, word_scores: WordScores) -> list[Features]:
    """For each reading of the events' side, its evidence beside every reading of the subscriptions' side."""
    if not side.readings:
        return [Features.empty(0) for _ in events.readings]
    rows = _Rows(side, events, word_scores)
    found = [_row(side, events, at, reading, rows=rows) for at, reading in enumerate(events.readings)]
    for first, last in itertools.pairwise([*events.first.tolist(), len(found)]):
        _exclude_in_all_readings(side, found[first:last], events.sole[first:last])
    return found


def _exclude_in_all_readings(side: TermSide, rows: Sequence[Features], sole: NDArray[np.bool_]) -> None:
    """Let what excludes two terms in one reading count in the others: no way to write them makes opposites agree.

    `rows` has the readings of one event term, and `sole` says which are the only way to spell it out: a short form with
    two meanings may be opposite in the wrong one. Readings with the same words agree whatever the others say.
    """
    for row in rows:
        row.opposed[(row.opposed == 1) & np.isin(row.shape, _IN_SENTENCES)] = Exclusion.IN_A_DESCRIPTION
    certain = [row for row, alone in zip(rows, sole.tolist(), strict=True) if alone]
    apart = _in_any_reading(side, [(row.opposed == 1) & side.sole for row in certain])
    turned_apart = _in_any_reading(side, [np.isin(row.extra, _TURNING) & side.sole for row in certain])
    for row in rows:
        row.opposed[apart & (row.shape != PairShape.SAME)] = 1
        row.shape[turned_apart & np.isin(row.shape, _COMPARED)] = PairShape.SKIPPED


def _in_any_reading(side: TermSide, found: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """For each reading, whether something was found for any reading of its term."""
    anywhere = np.logical_or.reduce(found) if found else np.zeros(len(side.readings), np.bool_)
    return np.asarray(np.logical_or.reduceat(anywhere, side.first)[side.owner], np.bool_)


class _Rows:
    """Evidence that is computed for all event readings at once."""

    def __init__(self, side: TermSide, events: TermSide, word_scores: WordScores) -> None:
        self.words = _words(side, events, word_scores)
        self.embedding = _embedding(side, events)
        self.esa = _roots(side.concepts, events.texts)
        # Terms that are opposites as they are written are opposites by any other name.
        self.opposed = np.zeros((len(events.readings), len(side.readings)), np.bool_)
        for terms in side.opposite_terms:
            for texts in events.versions:
                self.opposed |= terms.opposed(texts)


def _embedding(side: TermSide, events: TermSide) -> Floats | None:
    """The cosine of each pair of readings; single words have their plain vectors."""
    if side.vectors is None:
        return None
    out = _cosines(events.vectors, side.vectors)
    (rows, left), (columns, right) = events.single, side.single
    if len(rows) and len(columns):
        out[np.ix_(rows, columns)] = _cosines(left, right)
    return out


def _row(side: TermSide, events: TermSide, at: int, reading: Reading, *, rows: _Rows) -> Features:
    out = Features.empty(len(side.readings))
    if rows.embedding is not None:
        out.embedding = rows.embedding[at].copy()
    if rows.esa is not None:
        out.esa = np.where(side.known & events.known[at], rows.esa[at], np.float32(np.nan))
    out.relation = side.related_terms.relations(reading.text)
    _forget_phrases(side, reading, out.relation)
    out.opposed = rows.opposed[at].astype(np.int8)
    if street := events.streets.get(at):
        # Oak Avenue is not Maple Street, however near their words are.
        out.opposed[[other for other, name in side.streets.items() if name.isdisjoint(street)]] = 1
    out.codes = _codes(side, reading)
    out.spelling[:] = _spelling(reading)
    np.maximum(out.spelling, side.spelling, out=out.spelling)
    _compare_words(side, events, at, reading, out=out, rows=rows)
    out.opposed[out.shape == PairShape.SAME] = 0
    out.shape[(side.shorthand | reading.shorthand) & ~np.isin(out.shape, _WITH_ALL_WORDS)] = PairShape.SKIPPED
    _mark_things_apart(side, events, at, reading, out=out)
    _mark_short_forms(side, reading, out)
    _skip_idle_names(side, reading, out)
    return out


_WITH_ALL_WORDS = (PairShape.SAME, PairShape.CONTAINED)
"""Shapes in which short forms count as they are written: the other term has them, too."""

_NEAR = (
    WordRelation.SYNONYMS,
    WordRelation.RARE_SYNONYMS,
    WordRelation.DERIVED,
    WordRelation.NARROWER,
    WordRelation.FAR_NARROWER,
)
"""Relations by which a term may well be meant by another although the list has a line for each."""

_IN_SENTENCES = (PairShape.DESCRIBED, PairShape.DESCRIBED_IN_PART)
"""Shapes of descriptions."""

_COMPARED = (PairShape.WORD, PairShape.UNLISTED_WORD, PairShape.APART, PairShape.REPLACED, PairShape.DESCRIBED,
             PairShape.DESCRIBED_IN_PART)  # fmt: skip
"""Shapes in which different names mean different things; a printer and a laser printer are both in the list."""


_TURNING = (EXTRAS.index("event turning"), EXTRAS.index("subscription turning"))
"""Extra words that turn a term into something else: a cleared alarm is no alarm."""

_OTHER_THING = (EXTRAS.index("event head"), EXTRAS.index("subscription head"))
"""Extra words that make a term another thing: a blood pressure cuff is no blood pressure."""


def _mark_things_apart(side: TermSide, events: TermSide, at: int, reading: Reading, *, out: Features) -> None:
    """Mark the pairs that the list of other names has as different things, whole or in the words that differ."""
    if events.things[at]:
        other_thing = np.isin(out.extra, _OTHER_THING)
        apart = side.has_thing & (np.isin(out.shape, _COMPARED) | other_thing) & ~np.isin(out.relation, _NEAR)
        apart[[other for thing in events.things[at] for other in side.of_thing.get(thing, ())]] = False
        out.listed[apart] = Listed.APART
    things = side.sources.names.things
    partly = np.isin(out.shape, (PairShape.REPLACED, PairShape.DESCRIBED_IN_PART)) & (out.listed == 0)
    for other in np.flatnonzero(partly).tolist():
        beside = side.readings[other]
        mine = things(reading.words_beside(beside))
        theirs = things(beside.words_beside(reading)) if mine else mine
        if mine and theirs and mine.isdisjoint(theirs):
            out.listed[other] = Listed.APART


_IDLE = (PairShape.WORD, PairShape.UNLISTED_WORD, PairShape.FOREIGN)
"""Shapes in which another name cannot make words equal; how near two single words are is seen as they are written."""


def _skip_idle_names(side: TermSide, reading: Reading, out: Features) -> None:
    """Let the terms count as they are written where other names cannot say more.

    That is between single words, and where a further word turns one term into something else: a set temperature is a
    temperature setpoint, but does not make it a temperature.
    """
    renamed = side.renamed | (reading.renames is not None)
    out.shape[renamed & np.isin(out.shape, _IDLE)] = PairShape.SKIPPED
    for at in {at for name in reading.original.stems for at in side.written.get(name, ())}:
        if renamed[at] and out.shape[at] != PairShape.SAME and turned(reading.original, side.readings[at].original):
            out.shape[at] = PairShape.SKIPPED


def _forget_phrases(side: TermSide, reading: Reading, relation: Codes) -> None:
    """A phrase that WordNet does not list gives no evidence if WordNet lists a word of it."""
    unlisted = side.unlisted.astype(np.int8) + reading.unlisted
    relation[(relation == WordRelation.ONE_UNLISTED) & (unlisted != 1)] = WordRelation.NO_EVIDENCE
    relation[(relation == WordRelation.BOTH_UNLISTED) & (unlisted != 2)] = WordRelation.NO_EVIDENCE


def _compare_words(side: TermSide, events: TermSide, at: int, reading: Reading, *, out: Features, rows: _Rows) -> None:
    """Fill in the shape, and how well the words agree in which two terms differ."""
    mine = events.flat[events.start[at] : events.start[at] + events.length[at]]
    names = reading.stems
    same = np.zeros(len(side.words), np.bool_)
    same[[at for name in names for at in side.of_stem.get(name, ())]] = True
    scores = rows.words[mine]
    common = side.sums(same.astype(np.float32)).astype(np.int64)
    out.shape = _shapes(side, reading, common)
    if len(names) > 1 and side.words:
        heads = scores[names.index(reading.head), side.head] >= SAME_HEAD
        phrases = (out.shape == PairShape.APART) & (side.length > 1)
        out.head[phrases] = np.where(heads, HEADS.index("shared"), HEADS.index("different"))[phrases]
    _align(side, events, mine, scores=scores, same=same, out=out)
    _parts(side, reading, out)


def _words(side: TermSide, events: TermSide, word_scores: WordScores) -> Floats:
    """The probability that each word of the events (rows) means the same as each word of the other side (columns)."""
    if not (side.words and events.words):
        return np.zeros((len(events.words), max(1, len(side.words))), np.float32)
    missing = np.full((len(events.words), len(side.words)), np.nan, np.float32)
    embedding, roots = missing, missing
    if side.word_vectors is not None:
        embedding = _cosines(events.word_vectors, side.word_vectors)
    elif (found := _roots(side.word_concepts, events.words)) is not None:
        roots = found
    related = np.stack([side.related_words.relations(word) for word in events.words])
    scores = word_scores(embedding.ravel(), roots.ravel(), related.ravel()).reshape(missing.shape)
    if side.opposite_words is not None:
        scores[side.opposite_words.opposed(events.words)] = 0
    # Codes are equal or not; nothing lies between.
    scores[:, side.is_code] = 0
    scores[events.is_code] = 0
    for name in events.of_stem.keys() & side.of_stem.keys():
        scores[np.ix_(events.of_stem[name], side.of_stem[name])] = 1
    return scores


def _shapes(side: TermSide, reading: Reading, common: NDArray[np.int64]) -> Codes:
    length = len(reading.stems)
    out = np.where((side.length == 1) & (length == 1), np.int8(PairShape.WORD), np.int8(PairShape.APART))
    out[common > 0] = PairShape.REPLACED
    out[(common > 0) & ((common == side.length) | (common == length))] = PairShape.CONTAINED
    out[(common == side.length) & (common == length) & (length > 0)] = PairShape.SAME
    described = side.described | reading.described
    out[described & (out == PairShape.APART)] = PairShape.DESCRIBED
    out[described & (out == PairShape.REPLACED)] = PairShape.DESCRIBED_IN_PART
    single = (side.length == 1) & (length == 1)
    marked = side.foreign | reading.foreign
    foreign = marked | ((side.english != reading.english) & (common == 0))
    out[foreign & ~single & (out != PairShape.SAME)] = PairShape.FOREIGN
    out[single & (common == 0) & (side.unlisted | reading.unlisted)] = PairShape.UNLISTED_WORD
    return out.astype(np.int8)


def _align(
    side: TermSide, events: TermSide, mine: NDArray[np.int64], *, scores: Floats, same: NDArray[np.bool_], out: Features
) -> None:
    """Fill in the mean and the minimum of how well each differing word is matched on the other side."""
    if not len(mine) or not side.words:
        return
    best = scores.max(axis=0)
    differ = np.where(same, np.float32(0), side.weight)
    forth, amount = side.sums(best * differ), side.sums(differ)
    least = side.least(np.where(same, np.float32(1), np.maximum(best, 1 - side.weight)))
    back = side.best(scores)
    weight = events.weight[mine][:, None] * (back < 1)
    total = amount + weight.sum(axis=0)
    met = np.divide(forth + (back * weight).sum(axis=0), total, out=np.ones_like(total), where=total > 0)
    out.aligned = met.astype(np.float32)
    out.worst_subscription = least
    out.worst_event = np.maximum(back, 1 - events.weight[mine][:, None]).min(axis=0)


def _parts(side: TermSide, reading: Reading, out: Features) -> None:
    """Fill in what extra words do, and whether phrases that differ in part have the same head.

    Extra words do nothing where WordNet lists both terms as synonyms (laptop, laptop computer), unless the first
    sense of the shorter one is another (alarm, alarm clock).
    """
    entry = side.sources.lexicon.entry
    for at in np.flatnonzero(out.shape == PairShape.CONTAINED).tolist():
        other = side.readings[at]
        longer, shorter, name = (reading, other, "event") if len(reading.stems) > len(other.stems) else (
            other, reading, "subscription")  # fmt: skip
        if out.relation[at] == WordRelation.SYNONYMS:
            if not entry(shorter.text).first.isdisjoint(entry(longer.text).rare):
                continue
            out.relation[at] = WordRelation.RARE_SYNONYMS
        extra = longer.words_beside(shorter)
        after_head = longer.head_beside(shorter.stems) not in shorter.stems
        kind = extra_kind(extra, after_head=after_head, known=side.sources.reader.known)
        if name == "subscription" and longer.codes.issuperset(extra):
            # Pump 3 is a pump, but a subscription to pump 3 is not met by any pump.
            kind = "name"
        out.extra[at] = EXTRAS.index(f"{name} {kind}")
    for at in np.flatnonzero(out.shape == PairShape.REPLACED).tolist():
        out.head[at] = HEADS.index("shared" if side.readings[at].head == reading.head else "different")


def _codes(side: TermSide, reading: Reading) -> Codes:
    out = np.zeros(len(side.readings), np.int8)
    if not reading.codes:
        out[side.has_codes] = CodesSay.ONE_SIDE
        return out
    out[:] = CodesSay.ONE_SIDE
    for at in np.flatnonzero(side.has_codes).tolist():
        out[at] = CodesSay.SAME if side.readings[at].codes == reading.codes else CodesSay.DIFFERENT
    return out


def _spelling(reading: Reading) -> int:
    if reading.literal:
        return Spelling.PLAIN
    if reading.renames:
        return Spelling.UNSURE_NAME if reading.ambiguous else Spelling.OTHER_NAME
    return Spelling.AMBIGUOUS if reading.ambiguous else Spelling.GLOSSARY


def _mark_short_forms(side: TermSide, reading: Reading, out: Features) -> None:
    if not reading.words:
        return
    for at in side.spelled_out(reading):
        out.shape[at], out.spelling[at] = PairShape.SAME, Spelling.INITIALS
    for at in side.shortened(reading):
        out.shape[at], out.spelling[at] = PairShape.SAME, Spelling.AMBIGUOUS


def _first_letters(reading: Reading) -> str:
    return "".join(word[:1] for word in reading.words)


def _cosines(one: Floats | None, other: Floats | None) -> Floats:
    assert one is not None
    assert other is not None
    return cosines(one, other)


def _roots(prepared: Sequence[Prepared], texts: Sequence[str]) -> Floats | None:
    """The mean of the square roots of the cosines in all spaces: cosines of sparse rows crowd near 0."""
    if not prepared:
        return None
    return np.asarray(np.mean([np.sqrt(one.rows(texts)) for one in prepared], axis=0), np.float32)


__all__ = [
    "EXTRAS",
    "HEADS",
    "CodesSay",
    "Exclusion",
    "Features",
    "Listed",
    "PairShape",
    "Sources",
    "Spelling",
    "TermSide",
    "features",
]
