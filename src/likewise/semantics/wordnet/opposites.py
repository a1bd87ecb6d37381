"""Which words are opposites, by WordNet: what a word says, and what it denies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from likewise.calibration import COMMON_SENSE
from likewise.errors import MissingError
from likewise.events import normalise, words_in
from likewise.semantics.text import STOP_WORDS, fold
from likewise.semantics.wordnet import files
from likewise.semantics.wordnet.wordnet import WordNet

SenseKey: TypeAlias = int | str
"""A synset by its number, or a bare word."""

NEGATIONS = frozenset(words_in("negations", package="likewise.semantics"))
"""Words that turn the next one into its opposite."""

PARTICLES = dict(pair.split(":") for pair in words_in("opposite_particles", package="likewise.semantics"))
"""Opposites that WordNet, which has no prepositions, does not know or seldom means."""

STATES = frozenset({*PARTICLES, *PARTICLES.values()})
"""Stop words that tell states apart: a light is on or off."""


PHRASES_OF_STATES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = tuple(
    (tuple(one.replace("_", " ").split(",")), tuple(other.replace("_", " ").split(",")))
    for one, other in (line.split(":") for line in words_in("states", package="likewise.semantics"))
)
"""Words and phrases of two states of a thing that exclude each other."""


def _exclusive() -> dict[str, frozenset[str]]:
    """By word, the others that it excludes."""
    found: dict[str, set[str]] = {}
    for pair in PHRASES_OF_STATES:
        for one, other in (pair, pair[::-1]):
            for word in one:
                found.setdefault(word, set()).update(other)
    for line in (*words_in("exclusive_words", package="likewise.semantics"), *map(":".join, PARTICLES.items())):
        words = line.split(":")
        for word in words:
            found.setdefault(word, set()).update(other for other in words if other != word)
    return {word: frozenset(others) for word, others in found.items()}


EXCLUSIVE = _exclusive()
"""Sets of words of which no two can be meant, where WordNet has no antonyms."""

ABROAD = {
    fold(word): english
    for english, *words in (line.split(":") for line in words_in("states_abroad", package="likewise.semantics"))
    for word in words
}
"""The English words of which words of other languages have the opposites."""

_STILL = frozenset({"any", "longer", "more"})
"""Words between a negation and the word that it negates: no more motion."""

STEM = 4
"""First letters that derived words share: `arrive` and `arrival`, not `go` and `departure`."""

_ACT = re.compile(r"(?:the )?act of |(?:a person|someone|one) who ")
"""An arrival is an arriving and a buyer buys; a heater is no heating."""
_KEPT = 32_768
_NUMBERS = frozenset({"cardinal", "ordinal"})  # antonyms for WordNet, but "first" is no opposite of "one"
_ADJECTIVE = files.PARTS.index("adj")
_PREFIXES = tuple(tuple(line.split(":")) for line in words_in("opposite_prefixes", package="likewise.semantics"))
"""Pairs of prefixes that make opposites of the same word."""
_DENYING_PREFIXES = ("un", "non", "dis", "de")
_DENYING_PREFIXES_OF_UNKNOWN_WORDS = (*_DENYING_PREFIXES, "in")
"""Of words that WordNet lists, `in` may mean the same with and without: flammable, inflammable."""
_DENIAL = re.compile(
    r"(?:not|without|lacking|having no|with no|free (?:of|from)|devoid of) (?:being |having been |an? |any )?"
    r"(?P<words>[a-z]+(?: or [a-z]+)*)"
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a term, plain or negated ("not open")."""

    text: str
    negated: bool = False

    def __str__(self) -> str:
        return f"not {self.text}" if self.negated else self.text


@dataclass(frozen=True, slots=True)
class Stand:
    """What a word says and what it denies; two words are opposites if one says what the other denies."""

    own: frozenset[SenseKey]
    """Its own meanings: what shares one of them is no opposite."""
    says: frozenset[SenseKey]
    denies: frozenset[SenseKey]

    def opposes(self, other: Stand) -> bool:
        """Whether the two cannot both be meant."""
        if not self.own.isdisjoint(other.own):
            return False
        mine, theirs = self.own | self.says, other.own | other.says
        return not (self.denies.isdisjoint(theirs) and mine.isdisjoint(other.denies))


_NOTHING = Stand(frozenset(), frozenset(), frozenset())


class Opposites:
    """WordNet's antonyms, direct and indirect.

    Direct ones are the antonym pointers of a word's common senses (open, closed). Indirect ones go over the adjective
    that a satellite is similar to (vacant, empty, full), over the verb of which another is a manner (depart, leave,
    arrive), over the act that a noun names (arrival, arrive), over what a definition denies (vacant: "without an
    occupant"), and over prefixes (unplugged, overvoltage). A list of words that exclude each other has what WordNet
    lacks (supply, return).
    """

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._antonym = _edges(wordnet, "!")
        self._head = {
            satellite: [head for head in heads if _NUMBERS.isdisjoint(wordnet.words(head))]
            for satellite, heads in _edges(wordnet, "&", source="adj").items()
        }
        self._general = _edges(wordnet, "@", source="verb")
        self._verb = _edges(wordnet, "+", source="noun", target="verb")
        self.stand = lru_cache(_KEPT)(self._stand)

    @classmethod
    def load(cls) -> Opposites | None:
        """Those of the installed WordNet, shared by the whole process; None where its files are missing."""
        try:
            return _load(files.folder())
        except MissingError:
            return None

    def _stand(self, word: Word) -> Stand:
        """What a word says and denies; asked for as `stand`, which remembers."""
        if word.negated:
            return self._negated(word)
        english = ABROAD.get(fold(word.text))
        if english is None or self._forms(word.text):
            return self._plain(word.text)
        return self._plain(english)

    def opposite(self, one: str, other: str) -> bool:
        """Whether two words are opposites."""
        return one != other and self.stand(Word(one)).opposes(self.stand(Word(other)))

    def _negated(self, word: Word) -> Stand:
        plain = self.stand(Word(word.text))
        return Stand(frozenset({str(word)}), plain.denies | {str(word)}, plain.own | plain.says)

    def _plain(self, text: str) -> Stand:
        if any(map(str.isdigit, text)) or (text in STOP_WORDS and text not in STATES and text not in EXCLUSIVE):
            return _NOTHING
        forms = self._forms(text)
        common = set(self._common(text, forms))
        acts = (sense for sense in common if sense in self._verb and _ACT.match(self._wordnet.synset(sense).gloss))
        verbs = {verb for verb in _follow(acts, self._verb) if _akin(self._wordnet.words(verb), text)}
        poles = common | verbs | set(_follow(self._without_antonym(common), self._head))
        bare = {text, *(form for part in forms for form in forms[part])}
        excluded = (other for word in bare for other in EXCLUSIVE.get(word, ()))
        denied = {*self._names(_follow(common, self._antonym)), *self._denied(common), *excluded}
        for form in bare:
            denied.update(self._without_prefix(form, known=bool(forms)))
            denied.update(_with_opposite_prefix(form))
        # A manner of leaving says that one leaves; it does not deny all that leaving denies.
        manners = _follow(self._without_antonym(common | verbs), self._general)
        # Only what has an antonym can be denied; the rest would fill the memory for nothing.
        says = {sense for sense in (*poles, *manners) if sense in self._antonym}
        denies = frozenset(_follow(poles, self._antonym)) | (denied - bare)
        own = frozenset[SenseKey](bare | common)
        return Stand(own, own if own == bare | says else frozenset[SenseKey](bare | says), denies)

    def _without_antonym(self, senses: Iterable[int]) -> Iterator[int]:
        return (sense for sense in senses if sense not in self._antonym)

    def _names(self, senses: Iterable[int]) -> Iterator[str]:
        """Their words: the other side may mean it in a sense that is rare for it, or write it without a hyphen."""
        for sense in senses:
            yield from (name.replace("-", "") for name in self._wordnet.words(sense))

    def _common(self, text: str, parts: Iterable[str]) -> Iterator[int]:
        """The senses that count, of the parts of speech in which the word is common."""
        senses = {part: self._wordnet.senses(text, part=part) for part in parts}
        total = sum(sense.count for found in senses.values() for sense in found)
        for found in senses.values():
            most = max((sense.count for sense in found), default=0)
            if sum(sense.count for sense in found) >= COMMON_SENSE * total:
                yield from (s.synset for at, s in enumerate(found) if at == 0 or s.count >= max(1, COMMON_SENSE * most))

    def _forms(self, text: str) -> dict[str, list[str]]:
        """The words that this one may be a form of, by part of speech; a dimmer is a thing and not more dim."""
        found = {part: self._wordnet.base_forms(text, part) for part in files.PARTS}
        if text in found["noun"] and text not in (*found["verb"], *found["adj"]):
            found["adj"] = []
        return {part: forms for part, forms in found.items() if forms}

    def _denied(self, senses: Iterable[int]) -> Iterator[str]:
        """The words that the definitions of adjectives deny, and those they are derived from."""
        for sense in senses:
            if self._wordnet.parts()[sense] == _ADJECTIVE:
                for word in denials(self._wordnet.synset(sense).gloss):
                    yield from self._family(word)

    def _family(self, word: str) -> Iterator[str]:
        for form in {word, *(form for forms in self._forms(word).values() for form in forms)}:
            yield form
            for sense in self._wordnet.senses(form):
                for other in self._wordnet.pointers(sense.synset, ["+"]):
                    yield from (name for name in self._wordnet.words(other) if _akin([name], form))

    def _without_prefix(self, text: str, *, known: bool) -> Iterator[str]:
        """The words that a word denies by its prefix: `plug` for `unplug`, `humidifier` for `dehumidifier`."""
        for prefix in _DENYING_PREFIXES if known else _DENYING_PREFIXES_OF_UNKNOWN_WORDS:
            rest = text.removeprefix(prefix)
            if rest != text and len(rest) >= STEM:
                forms = [form for found in self._forms(rest).values() for form in found]
                # WordNet may list neither; a word that it does list is not cut into parts that it does not.
                yield from forms or ([] if known else [rest])


@lru_cache(maxsize=_KEPT)
def words_of(term: str) -> tuple[Word, ...]:
    """The words of a term, each once, those after a negation negated.

    >>> [str(word) for word in words_of("door not closed")]
    ['door', 'not closed']
    >>> [str(word) for word in words_of("no")]
    ['no']
    """
    found: list[Word] = []
    negated = False
    texts = normalise(term).split()
    if len(texts) == 1:
        return (Word(texts[0]),)  # an answer, which denies no other word
    for text in texts:
        if text in NEGATIONS:
            negated = True
        elif not (negated and text in _STILL) and (text not in STOP_WORDS or text in STATES):
            # "room no 112" numbers a room and denies nothing.
            found.append(Word(text, negated and not any(map(str.isdigit, text))))
            negated = False
    return tuple(dict.fromkeys(found))


def denials(gloss: str) -> list[str]:
    """The words that a definition denies at its beginning.

    >>> denials("without an occupant or incumbent; \\"the throne is never vacant\\"")
    ['occupant', 'incumbent']
    """
    first = re.sub(r"^\([^)]*\) *", "", gloss.partition(";")[0].strip())
    found = _DENIAL.match(first)
    words: Iterable[str] = found["words"].split(" or ") if found else ()
    return [word for word in words if word not in STOP_WORDS and not word.endswith("ly")]


def _edges(
    wordnet: WordNet, symbol: str, *, source: str | None = None, target: str | None = None
) -> dict[int, list[int]]:
    """The pointers of one kind, between synsets of some parts of speech."""
    sources, targets = wordnet.edges([symbol])
    for ends, part in ((0, source), (1, target)):
        if part is not None:
            chosen = wordnet.parts()[(sources, targets)[ends]] == files.PARTS.index(part)
            sources, targets = sources[chosen], targets[chosen]
    found: dict[int, list[int]] = {}
    for start, end in zip(sources.tolist(), targets.tolist(), strict=True):
        found.setdefault(start, []).append(end)
    return found


def _follow(senses: Iterable[int], edges: Mapping[int, Sequence[int]]) -> Iterator[int]:
    for sense in senses:
        yield from edges.get(sense, ())


def _with_opposite_prefix(text: str) -> Iterator[str]:
    """The same word with the opposite prefix.

    >>> list(_with_opposite_prefix("overvoltage"))
    ['undervoltage']
    """
    for pair in _PREFIXES:
        for prefix, opposite in (pair, pair[::-1]):
            rest = text.removeprefix(prefix)
            if rest != text and len(rest) >= STEM:
                yield opposite + rest


def _akin(names: Iterable[str], word: str) -> bool:
    return any(name[:STEM] == word[:STEM] for name in names)


@lru_cache(maxsize=2)
def _load(place: Path) -> Opposites:
    return Opposites(WordNet.load(place))
