"""Competitors: a vocabulary that scores are measured against, with a version that tells it from others."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from likewise.errors import InputError
from likewise.events import Event, normalise
from likewise.semantics.text.phrase import key

_VERSION = re.compile(r"# version (\w+)")


@dataclass(frozen=True, slots=True)
class Competitors:
    """The terms that compete, and a version that tells two vocabularies apart.

    Scores depend on them, so everyone who must score alike has to hold the same version.

    >>> Competitors.of(["Spain", "Ireland", "spain"]).terms
    ('Ireland', 'Spain')
    >>> Competitors.of(["b", "a"]).version == Competitors.of(["a", "b"]).version
    True
    """

    terms: tuple[str, ...]
    version: str

    @classmethod
    def of(cls, terms: Iterable[str]) -> Competitors:
        """Each term once, in an order and under a version that depend on nothing but the terms."""
        once: dict[str, str] = {}
        for term in sorted(terms):
            once.setdefault(key(term), term)
        chosen = tuple(once[name] for name in sorted(once))
        digest = hashlib.sha256("\x00".join(sorted(once)).encode()).hexdigest()
        return cls(chosen, digest[:16])

    @classmethod
    def from_events(cls, events: Iterable[Event], *, limit: int | None = 2000) -> Competitors:
        """The words of a sample of events, attributes and text values; of very many those that most events say.

        >>> Competitors.from_events([Event.of({"room": "kitchen", "degrees": 21})]).terms
        ('degree', 'kitchen', 'room')
        """
        said = Counter(term for event in events for term in _terms_of(event))
        most = sorted(said, key=lambda term: (-said[term], term))
        return cls.of(most[:limit])

    @classmethod
    def from_text(cls, text: str, *, source: str = "<text>") -> Competitors:
        """From one term a line; a version in the first line must be that of the terms.

        >>> Competitors.from_text("# version 00\\nroom\\n")
        Traceback (most recent call last):
            ...
        likewise.errors.InputError: <text>:1: the terms are not those of version 00
          hint: make it anew, or delete the line if the change was meant
        """
        lines = [line.strip() for line in text.split("\n")]
        # A backslash stands before a term that would be taken for a comment.
        found = cls.of(line.removeprefix("\\") for line in lines if line and not line.startswith("#"))
        stated = _VERSION.match(lines[0]) if lines else None
        if stated and stated[1] != found.version:
            hint = "make it anew, or delete the line if the change was meant"
            raise InputError(f"the terms are not those of version {stated[1]}", source=source, line=1, hint=hint)
        if not found.terms:
            raise InputError("no terms in it", source=source, hint="likewise vocabulary makes one from events")
        return found

    def to_text(self) -> str:
        """The version, then one term a line.

        >>> Competitors.from_text(Competitors.of(["room", "hall", "#7"]).to_text()).terms
        ('#7', 'hall', 'room')
        """
        terms = (f"\\{term}" if term.startswith(("#", "\\")) else term for term in self.terms)
        return "\n".join([f"# version {self.version}", *terms, ""])

    def union(self, terms: Iterable[str]) -> Competitors:
        """These and more."""
        return Competitors.of([*self.terms, *terms])


def _terms_of(event: Event) -> set[str]:
    names = {normalise(name) for name, _ in event.tuples}
    return (names | {normalise(value) for _, value in event.tuples if isinstance(value, str)}) - {""}
