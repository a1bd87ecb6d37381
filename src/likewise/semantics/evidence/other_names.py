"""Names of things: sets of terms that people use for the same thing (`power cut`, `blackout`).

WordNet lists few of them. Every name in a term is replaced by the shortest one of its set, which gives another reading
of the term. Two names of different sets are evidence that two terms mean different things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import islice, product
from typing import NamedTuple, TypeAlias

from likewise.errors import InputError
from likewise.events import normalise
from likewise.semantics.evidence.terms import JOINING, shortens, without_joining_words
from likewise.semantics.text import fold, stem

LONGEST_NAME = 4
"""The maximal number of words of a name."""

MOST_RENAMED = 4
"""The maximal number of readings that renaming adds to a term."""

SHORT = 4
"""Letters of a stem up to which a word is a name only as it is written: `temping` is no other name of `temp`."""

Words: TypeAlias = tuple[str, ...]
NameSet: TypeAlias = tuple[tuple[str, bool], ...]

_ARTICLES = frozenset({"a", "an", "be", "being", "has", "have", "is", "the"})
_LINKING = _ARTICLES | {"and", "as", "at", "by", "can", "could", "did", "do", "does", "for", "from", "in", "into", "it",
                        "of", "per", "to", "will", "with"}  # fmt: skip
"""Words that may be left out of a name without changing what it says."""

_KEPT = 65_536
"""Words whose singular and stem are kept: reading the list repeats few words often."""


class Renamed(NamedTuple):
    """The words of a term with other names replaced, and whether each of these surely means that."""

    words: Words
    sure: bool


class OtherNames:
    """Sets of names for the same thing; each name is replaced by the one with the fewest words.

    A line with one name is a thing without other names. Names of different lines name different things.

    A question mark marks a name that often means something else: within a longer term, it is replaced only if the term
    does not become longer. The order of the words of a name does not count, nor do their endings.

    >>> names = OtherNames.from_text("heart rate; pulse rate; pulse?")
    >>> names.readings(["high", "pulse", "rate"])
    [Renamed(words=('high', 'heart', 'rate'), sure=True)]
    >>> names.readings(["pulse"]), names.readings(["pulse", "generator"])
    ([Renamed(words=('heart', 'rate'), sure=False)], [])
    """

    def __init__(self, sets: Sequence[NameSet] = ()) -> None:
        self.sets = tuple(sets)
        """The sets as they are written: names, and whether each is sure."""
        self._named: dict[Words, list[int]] = {}
        """By name, the places of its sets; places of sets in which it is unsure are negative, and count from 1."""
        self._shortest: list[Words] = [()]
        for place, names in enumerate(sets, start=1):
            read = [(words, place if sure else -place) for name, sure in names if (words := _words(name))]
            shortest = min((words for words, place in read if place > 0), key=len, default=())
            self._shortest.append(shortest)
            for words, signed in read if shortest else ():
                self._named.setdefault(_key(words), []).append(signed)
        self._things = _merged(self._named.values(), len(self._shortest))
        self._read = True

    @classmethod
    def shipped(cls) -> OtherNames:
        """The names that come with Likewise."""
        return _shipped()

    def unread(self) -> OtherNames:
        """The same list without the names by which terms would be read; it still tells things apart."""
        found = copy(self)
        found._read = False
        return found

    @classmethod
    def none(cls) -> OtherNames:
        """No names: terms are read as they are written."""
        return cls()

    @classmethod
    def from_text(cls, text: str, *, source: str = "<text>") -> OtherNames:
        """Parse a set of names a line, divided by semicolons; lines that begin with `#` are comments."""
        sets: list[NameSet] = []
        for number, line in enumerate(text.splitlines(), start=1):
            names = [name.strip() for name in line.split(";")]
            if not line.strip() or line.startswith("#"):
                continue
            if not all(names):
                hint = "write `name; other name`, or one name alone"
                raise InputError(f"not a set of names: {line!r}", source=source, line=number, hint=hint)
            sets.append(tuple((name.rstrip("?"), not name.endswith("?")) for name in names))
        return cls(sets)

    def without(self, names: Iterable[str]) -> OtherNames:
        """The sets without some names, such as those that a user's glossary explains otherwise.

        >>> OtherNames.from_text("petrol; gas; gasoline").without(["gas"]).readings(["gas"])
        []
        """
        dropped = {_key(words) for name in names if (words := _words(name))}
        if dropped.isdisjoint(self._named):
            return self
        kept = (tuple(item for item in found if _key(_words(item[0])) not in dropped) for found in self.sets)
        return OtherNames([found for found in kept if found])

    def __len__(self) -> int:
        return len(self._named)

    def things(self, words: Sequence[str]) -> frozenset[int]:
        """The things that a term may name, by number; empty if the list has no such name.

        >>> names = OtherNames.from_text("petrol; gasoline; gas?\\nnatural gas; gas?")
        >>> names.things(["petrol"]) & names.things(["natural", "gas"]), len(names.things(["gas"]))
        (frozenset(), 2)
        """
        return frozenset(self._things[abs(place)] for place in self._named.get(_key(words), ()) if words)

    def readings(self, words: Sequence[str]) -> list[Renamed]:
        """The words of a term with its other names replaced, sure ones first; empty if there are none."""
        if not self._read:
            return []
        options = list(self._options(words))
        sure = [[renamed for renamed in found if renamed.sure] or [kept] for kept, found in options]
        every = [[*found, kept] if found else [kept] for kept, found in options]
        read: dict[Words, bool] = {}
        for ways in (sure, every):
            for chosen in islice(product(*ways), MOST_RENAMED):
                read.setdefault(_joined(chosen), all(renamed.sure for renamed in chosen))
        read.pop(tuple(words), None)
        return [Renamed(*item) for item in islice(read.items(), MOST_RENAMED)]

    def abbreviated(self, words: Sequence[str], known: Callable[[str], bool]) -> list[Words]:
        """The names of as many words in the same order of which some are shortened: `acc den`, access denied.

        >>> names = OtherNames.from_text("access denied; entry refused")
        >>> names.abbreviated(["acc", "den"], {"access", "denied"}.__contains__)
        [('access', 'denied')]
        """
        if not self._read or not 1 < len(words) <= LONGEST_NAME:
            return []
        names = self._by_letters.get("".join(word[0] for word in words), ())
        return [name for name in names if shortens(words, name, known)][:MOST_RENAMED]

    @cached_property
    def _by_letters(self) -> dict[str, list[Words]]:
        """The sure names of several words by the first letters of these."""
        found: dict[str, dict[Words, None]] = {}
        for names in self.sets:
            for words in (_words(name) for name, sure in names if sure):
                if len(words) > 1:
                    found.setdefault("".join(word[0] for word in words), {})[words] = None
        return {letters: list(names) for letters, names in found.items()}

    def _options(self, words: Sequence[str]) -> Iterator[tuple[Renamed, Sequence[Renamed]]]:
        """The parts of a term, the longest names first: as written, and with other names."""
        at = 0
        while at < len(words):
            for size in range(min(LONGEST_NAME, len(words) - at), 0, -1):
                part = tuple(words[at : at + size])
                places = self._named.get(_key(part), ())
                found = [
                    Renamed(self._shortest[abs(place)], place > 0)
                    for place in places
                    if place > 0 or size == len(words) or len(self._shortest[-place]) <= size
                ]
                if found or size == 1:
                    yield Renamed(part, sure=True), found
                    at += size
                    break


def _merged(named: Iterable[Sequence[int]], count: int) -> list[int]:
    """The thing of each set, where sets that share a sure name are one thing: some things have several lines."""
    same = list(range(count))

    def first(place: int) -> int:
        while same[place] != place:
            place = same[place]
        return place

    for places in named:
        if len(places) > 1:
            sure = [place for place in places if place > 0]
            for place in sure[1:]:
                same[first(place)] = first(sure[0])
    return [first(place) for place in range(count)]


def _words(name: str) -> Words:
    """The content words of a name; none if the words that are left out say something: `at home`, `in use`.

    >>> _words("loss of mains"), _words("at home"), _words("in use")
    (('loss', 'main'), (), ())
    """
    words = [_singular(word) for word in name.split()]
    if JOINING.isdisjoint(words):
        return tuple(words)
    kept = tuple(without_joining_words(words))
    dropped = set(words).difference(kept)
    says_something = dropped - _LINKING if len(kept) > 1 else dropped - _ARTICLES
    return () if says_something else kept


def _key(words: Sequence[str]) -> Words:
    """What the forms of a name have in common."""
    stems = tuple(sorted(map(_stem, words)))
    return (fold(words[0]),) if len(words) == 1 and len(stems[0]) <= SHORT else stems


_singular = lru_cache(_KEPT)(normalise)


@lru_cache(_KEPT)
def _stem(word: str) -> str:
    return stem(fold(word))


def _joined(parts: Sequence[Renamed]) -> Words:
    """The words of all parts, each once."""
    return tuple(dict.fromkeys(word for part in parts for word in part.words))


@lru_cache(maxsize=1)
def _shipped() -> OtherNames:
    text = files("likewise.semantics.evidence").joinpath("other_names.txt").read_text(encoding="utf-8")
    return OtherNames.from_text(text, source="other_names.txt")


__all__ = ["OtherNames", "Renamed"]
