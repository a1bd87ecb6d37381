"""The readings of a term, each with its words, codes, head, and whether it is English."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise, words_in
from likewise.events import words as split_term
from likewise.semantics.evidence.glossary import ExtraWords, Glossary, extra_words
from likewise.semantics.text import STOP_WORDS, fold, stem
from likewise.semantics.wordnet.opposites import NEGATIONS, STATES
from likewise.semantics.wordnet.wordnet import WordNet

if TYPE_CHECKING:
    from likewise.semantics.evidence.other_names import OtherNames

_KEPT = 200_000
MOST_READINGS = 10
"""The maximal number of readings of one term."""

FOREIGN_WORDS = frozenset(words_in("joining_words", package="likewise.semantics"))
"""Articles, prepositions and conjunctions of French, German, Spanish and Italian that are not English words."""

_NUMBER_WORDS = {
    word: number
    for number, *same in (line.split(":") for line in words_in("number_words", package="likewise.semantics"))
    for word in same
}
_NUMBERED = re.compile(r"\b(?P<word>[^\W\d_]{4,})(?P<number>\d+[a-z]?)\b")
_LETTERED = frozenset(words_in("lettered_words", package="likewise.semantics"))
_STREETS_FIRST = frozenset(map(fold, words_in("streets_first", package="likewise.semantics")))
_STREETS_LAST = frozenset(map(fold, words_in("streets_last", package="likewise.semantics")))
_STREET_ENDINGS = tuple(words_in("streets_in_one_word", package="likewise.semantics"))
_SHORTEST_NAME = 3
"""Letters before the ending of a street name in one word."""
_DESCRIBING = frozenset(words_in("describing_words", package="likewise.semantics"))
_RANK = re.compile(r"(\d+)(?:st|nd|rd|th)")
_ELIDED = re.compile(r"\b(?:l|d|n|s|c|qu|dell|all|nell|dall|sull)['’](?=\w)")
JOINING = STOP_WORDS | FOREIGN_WORDS
"""Words that only join others, in all languages that are recognised."""
_WORDS_OF_ROLES = dict(line.split(":") for line in words_in("roles", package="likewise.semantics"))
ROLES = {name: 1 << at for at, name in enumerate(_WORDS_OF_ROLES)}
"""The bit of each role of attributes: what, where, who, when, a unit, a figure, and so on."""
_ROLES_OF_WORDS: dict[str, int] = {}
for _name, _words in _WORDS_OF_ROLES.items():
    for _word in _words.split(","):
        _ROLES_OF_WORDS[normalise(_word)] = _ROLES_OF_WORDS.get(normalise(_word), 0) | ROLES[_name]
_IDENTIFYING = frozenset({"code", "id", "identifier", "name", "no", "number", "ref", "reference", "serial"})
_UNITS = frozenset({"unit", "uom"})
_MEASURING = frozenset({"code", "eng", "engineering", "measure", "measured", "measurement", "symbol", "uom"})
"""Words that make a unit one of measurement, and no thing or part of a building."""
_CLASSIFYING = frozenset({"category", "class", "description", "kind", "label", "message", "text", "type"})
"""Words of an attribute that names what kind of thing it is: a device type may be meant by a device."""
_VOWELS = frozenset("aeiou")
_ALWAYS = NEGATIONS | {"above", "after", "before", "below", "done", "down", "few", "less", "many", "more", "off", "on",
                       "out", "over", "too", "under", "up"}  # fmt: skip
"""Particles that distinguish states anywhere in a term; other particles do so only at its end."""


class Spelling(IntEnum):
    """Whether a term was expanded or renamed to be compared, and how."""

    PLAIN = 0
    OTHER_NAME = 1
    GLOSSARY = 2
    UNSURE_NAME = 3
    AMBIGUOUS = 4
    INITIALS = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a term, with or without abbreviations expanded."""

    text: str
    words: tuple[str, ...]
    """The content words as written, without repetition."""
    stems: tuple[str, ...]
    codes: frozenset[str]
    foreign: bool
    """Whether its words show that it is not English."""
    unlisted: bool
    """Whether WordNet lists none of its words: it is a name, or not English."""
    literal: bool
    """Whether this is the term as written."""
    ambiguous: bool = False
    """Whether the abbreviation or name that was replaced may well mean something else."""
    renames: Reading | None = None
    """The reading in which names were replaced by shorter ones, if this is such a reading."""
    shorthand: bool = False
    """Whether it has words that are not common English and that other readings of the term spell out."""
    sole: bool = True
    """Whether there is no other way to spell out its short forms and names."""

    @property
    def original(self) -> Reading:
        """The reading with names as they are written."""
        return self.renames or self

    @property
    def english(self) -> bool:
        """Whether it may be English; if not, WordNet is not asked."""
        return not (self.foreign or self.unlisted)

    @property
    def described(self) -> bool:
        """Whether it describes a thing, as *how full the tank is* does, and does not name it."""
        return not self.foreign and not _DESCRIBING.isdisjoint(self.original.text.split())

    @property
    def generic(self) -> bool:
        """Whether it says little, as `type` and `event name` do."""
        return bool(self.stems) and _stemmed_words().generic.issuperset(self.stems)

    @property
    def roles(self) -> int:
        """What an attribute of this name tells of an event, as the bits of its roles; 0 if that is not known."""
        named = self.original.words
        if not _UNITS.isdisjoint(named) and not _MEASURING.isdisjoint(named):
            return ROLES["unit"]
        found = 0
        for word in reversed(self.words):
            if word not in _IDENTIFYING or len(self.words) == 1:
                found |= _ROLES_OF_WORDS.get(word, 0)
                if word not in _CLASSIFYING:
                    break
        return found

    def words_beside(self, other: Reading) -> list[str]:
        """The words that another reading does not have."""
        return [word for word, stemmed in zip(self.words, self.stems, strict=True) if stemmed not in other.stems]

    @property
    def head(self) -> str:
        """The stem of the head noun: the last one that is neither light nor a number."""
        return self.head_beside(())

    def head_beside(self, shared: Container[str]) -> str:
        """The head if the `shared` stems do not count as light: `monitor` in `computer monitor`, beside `monitor`."""
        light = _stemmed_words().light
        named = [stem for stem in self.stems if stem not in self.codes] or self.stems
        heavy = (stem for stem in reversed(named) if stem not in light or stem in shared)
        return next(heavy, named[-1] if named else "")


class Reader:
    """Turns terms into readings, using a glossary, other names, and WordNet to recognise English words."""

    def __init__(self, glossary: Glossary, wordnet: WordNet | None, *, names: OtherNames | None = None) -> None:
        self.glossary = glossary
        self._names = names
        self._wordnet = wordnet
        self.readings = lru_cache(_KEPT)(self._readings)
        self.known = lru_cache(_KEPT)(self._known)

    def _readings(self, term: str) -> tuple[Reading, ...]:
        """All readings of a term, the literal one first; callers use `readings`, which caches them."""
        spelled = _NUMBERED.sub(self._divided, normalise(term))
        first, *others = self.glossary.readings(spelled)
        plain = self._reading(first, literal=True)
        also_word = self._wordnet is not None and all(word.isalpha() and self.known(word) for word in plain.words)
        sole = len(others) == 1
        spelled_out = [self._reading(text, literal=False, ambiguous=also_word, sole=sole) for text in others]
        if others and any(word in self.glossary.entries and not self._common(word) for word in plain.words):
            plain = replace(plain, shorthand=True, sole=False)
        readings = {reading.text: reading for reading in (plain, *self._shortened(plain), *spelled_out)}
        for reading in [reading for reading in readings.values() if not reading.shorthand]:
            for renamed in self._renamed(reading):
                readings.setdefault(renamed.text, renamed)
        return tuple(islice(readings.values(), MOST_READINGS))

    def _shortened(self, plain: Reading) -> Iterator[Reading]:
        """The names of things for which a term may be short."""
        if self._names is None or self._wordnet is None or plain.foreign:
            return
        found = self._names.abbreviated(plain.words, self._is_word)
        for words in found:
            yield self._reading(" ".join(words), literal=False, ambiguous=len(found) > 1, sole=False)

    def _is_word(self, word: str) -> bool:
        """Whether a word is English, and no short form: WordNet lists `acc`, too."""
        return self.known(word) and word not in self.glossary.entries

    def _renamed(self, reading: Reading) -> Iterator[Reading]:
        """The reading with the shortest names of things."""
        if self._names is None or reading.foreign:
            return
        for words, sure in self._names.readings(reading.words):
            text, sole = " ".join(words), reading.sole and sure
            ambiguous = reading.ambiguous or not sure
            yield self._reading(text, literal=False, ambiguous=ambiguous, renames=reading, sole=sole)

    def street_name(self, reading: Reading) -> frozenset[str]:
        """The stems that name a street, empty for all other terms.

        Kinds of streets are not names: phrases that WordNet lists (main road), and adjectives (busy road).
        """
        words = [fold(word) for word in reading.words]
        if len(words) == 1:
            ending = next((ending for ending in _STREET_ENDINGS if words[0].endswith(ending)), words[0])
            name = words[0].removesuffix(ending)
            return frozenset({name} if len(name) >= _SHORTEST_NAME else ())
        if words and words[-1] in _STREETS_LAST:
            named = slice(0, -1)
        elif words and words[0] in _STREETS_FIRST:
            named = slice(1, None)
        else:
            return frozenset()
        return frozenset() if self._is_kind(reading.text, reading.words[named]) else frozenset(reading.stems[named])

    def _is_kind(self, text: str, words: Iterable[str]) -> bool:
        if self._wordnet is None:
            return False
        senses = self._wordnet.senses
        adjectives = (senses(word, part="adj") and not senses(word, part="noun") for word in words)
        return bool(senses(text)) or all(adjectives)

    def _divided(self, match: re.Match[str]) -> str:
        """`pump3` as `pump 3`; names and formulas such as `covid19` and `co2` stay whole."""
        return f"{match['word']} {match['number']}" if self.known(match["word"]) else match[0]

    def _reading(
        self,
        text: str,
        *,
        literal: bool,
        ambiguous: bool = False,
        renames: Reading | None = None,
        sole: bool = True,
    ) -> Reading:
        found: dict[str, str] = {}
        words = content_words(text)
        # A second at the end is a unit of time.
        numbered = words[:-1] if words[-1:] == ["second"] else words
        words[: len(numbered)] = map(digits_of, numbered)
        for word in words:
            found.setdefault(stem(fold(word)), word)
        codes = frozenset(filter(is_code, words))
        plain = [word for word in words if word not in codes]
        unlisted = bool(plain) and not any(map(self.known, plain))
        foreign = self._is_foreign(text)
        return Reading(
            text,
            tuple(found.values()),
            tuple(found),
            codes,
            foreign,
            unlisted,
            literal,
            ambiguous=ambiguous,
            renames=renames,
            sole=sole,
        )

    def _is_foreign(self, text: str) -> bool:
        """Whether a term has a particle of another language, or a non-ASCII word that is not English."""
        words = split_term(text)
        if len(words) > 1 and not FOREIGN_WORDS.isdisjoint(words):
            return True
        return any(not word.isascii() and not self.known(word) for word in words)

    def _common(self, word: str) -> bool:
        """Whether a word is common English: WordNet lists `temp` and `max`, too, but has no text with them."""
        return self.known(word) and (self._wordnet is None or any(sense.count for sense in self._wordnet.senses(word)))

    def _known(self, word: str) -> bool:
        """Whether a word is English; without WordNet, every ASCII word counts as English."""
        if self._wordnet is None:
            return word.isascii()
        return word in STOP_WORDS or bool(self._wordnet.senses(word))


_FIGURES = sum(bit for name, bit in ROLES.items() if name.startswith("figure"))
_WHAT = ROLES["what"]
_SAID = _WHAT | ROLES["state"]
_EXCLUSIVE = _SAID | sum(ROLES[name] for name in ("where", "who", "when", "unit"))
"""Roles of which an attribute has one; only a type may say a state, too."""
_ANYTHING = ROLES["thing"] | _FIGURES
"""Roles that exclude none: a thing may be a place or a type, and a figure may be called anything."""


def shared_roles(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether attributes have a role in common, such as `room` and `location`."""
    return np.asarray(one & other != 0, np.bool_)


def figures(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether one attribute says that it is a figure, and the other is one too: `value` and `percent`."""
    figure = ROLES["figure"]
    either = ((one & figure != 0) & (other & _FIGURES != 0)) | ((other & figure != 0) & (one & _FIGURES != 0))
    return np.asarray(either, np.bool_)


def roles_apart(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether the roles of two attributes exclude each other, as those of a place and a type do."""
    # What is measured may be a figure, but it is no place.
    both = np.where(one & _WHAT, one & ~_FIGURES, one) | np.where(other & _WHAT, other & ~_FIGURES, other)
    mine, theirs = (np.where(roles & _SAID, roles | _SAID, roles) & _EXCLUSIVE for roles in (one, other))
    apart = (mine & theirs == 0) & (one & other == 0) & (both & _ANYTHING == 0)
    return np.asarray(apart & (mine != 0) & (theirs != 0), np.bool_)


def is_code(word: str) -> bool:
    """Whether a word is a code: it has a digit, or is a single letter as in `gate B`.

    >>> [is_code(word) for word in ("12", "b12", "b", "gate")]
    [True, True, True, False]
    """
    return len(word) == 1 or any(map(str.isdigit, word))


def digits_of(word: str) -> str:
    """A number or a rank in digits; any other word as it is.

    >>> [digits_of(word) for word in ("b12", "2nd", "second", "two", "floor")]
    ['b12', '2', '2', '2', 'floor']
    """
    rank = _RANK.fullmatch(word)
    return _NUMBER_WORDS.get(word, word) if rank is None else rank[1]


def content_words(text: str) -> list[str]:
    """The words of a normalised term without articles, prepositions and conjunctions.

    >>> content_words("time of departure"), content_words("lights on"), content_words("no fault")
    (['time', 'departure'], ['light', 'on'], ['no', 'fault'])
    >>> content_words("phase a current"), content_words("car in a tunnel")
    (['phase', 'a', 'current'], ['car', 'tunnel'])
    >>> content_words("régions de l'irlande")
    ['région', 'irlande']
    """
    return without_joining_words(split_term(_ELIDED.sub(" ", text)))


def without_joining_words(words: Sequence[str]) -> list[str]:
    """The words without articles, prepositions and conjunctions; all of them if there are no others."""
    kept = [
        word
        for at, word in enumerate(words)
        if word not in JOINING
        or word in _ALWAYS
        or (at == len(words) - 1 and at and (word in STATES or word in _NUMBER_WORDS or is_code(word)))
        or (word == "a" and at and words[at - 1] in _LETTERED)
    ]
    return kept or list(words)


def extra_kind(extra: Sequence[str], *, after_head: bool, known: Callable[[str], bool]) -> str:
    """How extra words change a term: hardly, into something else, to a named one, or to a kind of it.

    >>> [extra_kind([word], after_head=True, known=str.islower) for word in ("reading", "drill", "station", "Alsa")]
    ['light', 'turning', 'head', 'name']
    >>> extra_kind(["laser"], after_head=False, known=str.islower)
    'modifier'

    Numbers and codes identify one of a kind: pump 3 is a pump.
    """
    light, turning, _ = _stemmed_words()
    stems = {stem(fold(word)) for word in extra}
    if stems & turning:
        return "turning"
    if stems <= light:
        return "light"
    if not all(is_code(word) or known(word) for word in extra):
        return "name"
    return "head" if after_head else "modifier"


def turned(one: Reading, other: Reading) -> bool:
    """Whether one reading has all words of the other, and one that turns it into something else."""
    longer, shorter = sorted((set(one.stems), set(other.stems)), key=len, reverse=True)
    return longer > shorter and not _stemmed_words().turning.isdisjoint(longer - shorter)


@lru_cache(maxsize=1)
def _stemmed_words() -> ExtraWords:
    return ExtraWords(*(frozenset(map(stem, words)) for words in extra_words()))


def is_light(stemmed: str) -> bool:
    """Whether a stem adds little to a term."""
    return stemmed in _stemmed_words().light


def abbreviates(short: str, word: str) -> bool:
    """Whether a short form has letters of a word in order, as makers of devices shorten names.

    It is the word without its vowels (`lk`, `leak`), or it leaves out at least two letters and has the word's first
    letters (`gar`, `garage`), its first consonants (`elv`, `elevator`) or some consonants up to the last one (`pkg`,
    `parking`).

    >>> [abbreviates(*pair) for pair in (("lk", "leak"), ("elv", "elevator"), ("evt", "event"), ("pkg", "parking"))]
    [True, True, True, True]
    >>> [abbreviates(*pair) for pair in (("lk", "lamp"), ("do", "door"), ("leap", "leak"), ("pm", "pump"))]
    [False, False, False, False]
    """
    consonants = [letter for letter in word[1:] if letter not in _VOWELS]
    if short[:1] != word[:1] or len(short) < 2 or not consonants:
        return False
    if list(short[1:]) == consonants:
        return len(short) < len(word)
    if not 3 <= len(short) <= len(word) - 2:
        return False
    rest = iter(consonants)
    ordered = all(letter in rest for letter in short[1:])
    first = list(short[1:]) == consonants[: len(short) - 1]
    return word.startswith(short) or (ordered and (first or short[-1] == consonants[-1]))


def shortens(short: Sequence[str], words: Sequence[str], known: Callable[[str], bool]) -> bool:
    """Whether a term has the words of another in the same order, at least one of them shortened.

    Only a word that is not English can be a short form, and only of one that is.
    """
    pairs = [(word, other) for word, other in zip(short, words, strict=True) if word != other]
    return bool(pairs) and all(abbreviates(*pair) and not known(pair[0]) and known(pair[1]) for pair in pairs)


def spelling_of(reading: Reading) -> Spelling:
    """How a reading was expanded or renamed."""
    if reading.literal:
        return Spelling.PLAIN
    if reading.renames:
        return Spelling.UNSURE_NAME if reading.ambiguous else Spelling.OTHER_NAME
    return Spelling.AMBIGUOUS if reading.ambiguous else Spelling.GLOSSARY


__all__ = [
    "JOINING",
    "MOST_READINGS",
    "ROLES",
    "Reader",
    "Reading",
    "Spelling",
    "abbreviates",
    "content_words",
    "digits_of",
    "extra_kind",
    "figures",
    "is_code",
    "is_light",
    "roles_apart",
    "shared_roles",
    "shortens",
    "spelling_of",
    "turned",
]
