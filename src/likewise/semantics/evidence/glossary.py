"""Abbreviations, units and other names: what a short form stands for, from the shipped list and the user's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from likewise.errors import InputError
from likewise.events import normalise
from likewise.files import read_whole

MOST_READINGS = 6
"""The maximal number of readings of one term, including the literal one."""

LONGEST_ENTRY = 3
"""The maximal number of words of an entry that is found within a longer term."""

_MOST_COMBINATIONS = 1024
"""Combinations of meanings that are sorted; few terms have more."""

_SEPARATORS = re.compile(r"[./:|#()\[\]]+")
_NUMBERED = re.compile(r"(?P<name>[^\W\d_]{2,})(?P<number>\d+[a-z]?)")
"""A short form with a number behind it, as in `temp2` and `rm203b`."""

_ALONE = frozenset({"a", "am", "at", "do", "e", "in", "is", "it", "no", "on", "or", "out", "pm", "s"})
"""Short forms that are ordinary words inside a phrase; they are expanded only as whole terms."""


@dataclass(frozen=True)
class Glossary:
    """Short forms and what each may stand for, the likeliest first.

    >>> glossary = Glossary.from_text("sat = supply air temperature")
    >>> glossary.meanings("SAT")
    ('supply air temperature',)
    """

    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def shipped(cls) -> Glossary:
        """The abbreviations and units that come with Likewise."""
        return _shipped()

    @classmethod
    def from_file(cls, path: Path | str) -> Glossary:
        """Read a user's glossary."""
        return cls.from_text(read_whole(path), source=str(path))

    @classmethod
    def from_text(cls, text: str, *, source: str = "<text>") -> Glossary:
        """Parse lines `short = meaning; another meaning`; a short form has one line, and cycles are refused.

        >>> Glossary.from_text("temp = temperature\\ntemp = temporary")
        Traceback (most recent call last):
            ...
        likewise.errors.InputError: <text>:2: 'temp' has two lines
          hint: give all meanings in one line, divided by semicolons
        """
        found: dict[str, tuple[str, ...]] = {}
        lines: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            bare = line.strip()
            if not bare or bare.startswith("#"):
                continue
            short, sign, rest = bare.partition("=")
            name = normalise(short)
            meanings = tuple(normalise(part) for part in rest.split(";") if part.strip())
            if not sign or not name or not meanings:
                hint = "write `short = meaning; another meaning`"
                raise InputError(f"not an entry: {bare!r}", source=source, line=number, hint=hint)
            if name in found:
                hint = "give all meanings in one line, divided by semicolons"
                raise InputError(f"{name!r} has two lines", source=source, line=number, hint=hint)
            found[name], lines[name] = meanings, number
        _refuse_cycles(found, lines, source=source)
        return cls(found)

    @property
    def shorts(self) -> tuple[str, ...]:
        """Every short form."""
        return tuple(self.entries)

    def meanings(self, short: str) -> tuple[str, ...]:
        """What a short form may stand for."""
        return self.entries.get(normalise(short), ())

    def extended(self, other: Glossary) -> Glossary:
        """These entries and those of another glossary, which takes precedence.

        >>> Glossary.shipped().extended(Glossary.from_text("occ = occasion")).meanings("occ")
        ('occasion',)
        """
        return Glossary({**self.entries, **other.entries})

    def readings(self, term: str) -> tuple[str, ...]:
        """A normalised term, and the same with short forms expanded.

        >>> Glossary.shipped().readings("rm temp")[:2]
        ('rm temp', 'room temperature')
        """
        whole = self.entries.get(term.rstrip("."), ())
        if whole:
            return (term, *whole)[:MOST_READINGS]
        return (term, *self._spelled(term))[:MOST_READINGS]

    def _spelled(self, term: str) -> Iterator[str]:
        words = [part for word in term.split() for part in self._parts(word)]
        if len(words) < 2:
            return
        options = list(self._options(words))
        if not any(self._is_entry(part, found) for part, found in options):
            return
        for chosen in islice(_likeliest_first([found for _, found in options]), MOST_READINGS):
            if (spelled := " ".join(chosen)) != term:
                yield spelled

    def _parts(self, word: str) -> Iterator[str]:
        """The parts of an identifier: `ahu1.ra` is `ahu 1 ra`. Entries such as `km/h` and `co2` stay whole."""
        if word in self.entries:
            yield word
            return
        for part in _SEPARATORS.split(word):
            numbered = _NUMBERED.fullmatch(part)
            if numbered and part not in self.entries and numbered["name"] in self.entries:
                yield from numbered.groups()
            elif part:
                yield part

    def _options(self, words: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """The parts of a term, the longest ones that have an entry first, and what each may stand for."""
        at = 0
        while at < len(words):
            for size in range(min(LONGEST_ENTRY, len(words) - at), 0, -1):
                part = " ".join(words[at : at + size]).rstrip(".")
                found = () if part in _ALONE else self.entries.get(part, ())
                if found or size == 1:
                    yield part, found or (words[at],)
                    at += size
                    break

    @staticmethod
    def _is_entry(part: str, found: Sequence[str]) -> bool:
        return len(found) > 1 or found[0] != part


def _likeliest_first(options: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """One meaning for each part, combinations of likelier meanings first.

    >>> list(_likeliest_first([["position", "positive"], ["temperature", "temporary"]]))[:2]
    [('position', 'temperature'), ('position', 'temporary')]
    """
    ranks = product(*(range(len(meanings)) for meanings in options))
    for chosen in sorted(islice(ranks, _MOST_COMBINATIONS), key=sum):
        yield tuple(meanings[rank] for meanings, rank in zip(options, chosen, strict=True))


def _refuse_cycles(entries: Mapping[str, tuple[str, ...]], lines: Mapping[str, int], *, source: str) -> None:
    for short in entries:
        trail, word = [short], entries[short][0]
        while word in entries and len(trail) <= len(entries):
            trail.append(word)
            if word == short:
                hint = "what a short form stands for is written out"
                said = " = ".join(trail)
                raise InputError(f"a circle: {said}", source=source, line=lines[short], hint=hint)
            word = entries[word][0]


class ExtraWords(NamedTuple):
    """Words that add little to a term, words that change it into something else, and words that say little alone."""

    light: frozenset[str]
    turning: frozenset[str]
    generic: frozenset[str]


@lru_cache(maxsize=1)
def extra_words() -> ExtraWords:
    """The words of `extra_words.txt`."""
    found: dict[str, set[str]] = {part: set() for part in ExtraWords._fields}
    part = ExtraWords._fields[0]
    for line in _data("extra_words.txt").splitlines():
        if line.startswith("["):
            part = line.strip("[]")
        elif line and not line.startswith("#"):
            found[part].add(line)
    return ExtraWords(*(frozenset(found[part]) for part in ExtraWords._fields))


@lru_cache(maxsize=1)
def lists_version() -> str:
    """A digest of all shipped lists of words and of the adaptation of the sentence encoder.

    With equal weights, equal versions give equal scores.
    """
    digest = blake2b(digest_size=8)
    for name in ("evidence", "words"):
        folder = files("likewise.semantics").joinpath(name)
        for item in sorted(folder.iterdir(), key=lambda item: item.name):
            if item.name.endswith((".txt", ".npz")):
                digest.update(item.name.encode() + item.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _shipped() -> Glossary:
    return Glossary.from_text(_data("abbreviations.txt"), source="abbreviations.txt")


def _data(name: str) -> str:
    return files("likewise.semantics.evidence").joinpath(name).read_text(encoding="utf-8")


__all__ = ["ExtraWords", "Glossary", "extra_words", "lists_version"]
