"""The words of a name that count in a join: a name without codes and leading words that the right side does not use.

In a column of devices, *lobby fan F3* is a fan: the code identifies one fan, the first word is its location. Whether
a word counts depends on the right side: if it has a *lobby clock*, *lobby* stays. A term of a dictionary is not taken
apart: a *sewing machine* is not just any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise
from likewise.semantics import tokens

DROPPED: Final = 0.5
"""Bits lost for each leading word that is left out."""
MOST_DROPPED: Final = 2
"""Leading words that are left out, at most."""
LONGEST: Final = 3
"""Words of a term that is not taken apart, at most."""


class NameReading(NamedTuple):
    """One way to read a name, and the bits that it costs."""

    text: str
    cost: float


class NameReader:
    """Finds the readings of a name that the terms of a right side allow.

    >>> reader = NameReader(["fan", "water heater", "motor M7"])
    >>> [reading.text for reading in reader.readings("lobby fan F3")]
    ['lobby fan', 'fan']
    >>> [reading.text for reading in reader.readings("water fan M7")], [r.text for r in reader.readings("X-17")]
    (['water fan M7'], ['X-17'])
    """

    def __init__(self, terms: Sequence[str], *, is_term: Callable[[str], bool] = lambda _: False) -> None:
        """`is_term` returns whether a phrase is a term of its own."""
        self._is_term = is_term
        self._used = frozenset(stem for term in terms for stem in tokens(term))
        self._codes = frozenset(word.lower() for term in terms for word in term.split() if _is_code(word))

    def readings(self, name: str) -> list[NameReading]:
        """The name without codes, then without its first words, one after the other."""
        parts = name.split()
        words = parts if len(parts) > 1 else normalise(name).split()
        kept = [word for word in words if not _is_code(word) or word.lower() in self._codes]
        # The rest of `X-17` has no meaning.
        if not any(len(word) > (1 if len(parts) > 1 else 2) for word in kept):
            return [NameReading(name, 0.0)]
        found = [NameReading(name if len(kept) == len(words) else " ".join(kept), 0.0)]
        for count in range(1, min(MOST_DROPPED, len(kept) - 1) + 1):
            if not self._used.isdisjoint(tokens(kept[count - 1])):
                break
            if not self._is_within(kept, count):
                found.append(NameReading(" ".join(kept[count:]), DROPPED * count))
        return found

    def _is_within(self, words: Sequence[str], cut: int) -> bool:
        """Whether a cut would take a term apart."""
        return any(
            self._is_term(" ".join(words[start:end]))
            for start in range(cut)
            for end in range(cut + 1, min(start + LONGEST, len(words)) + 1)
        )


class ReadNames:
    """Several names by their readings: each distinct text is scored once."""

    def __init__(self, reader: NameReader, names: Sequence[str]) -> None:
        listed = [reader.readings(name) for name in names]
        places: dict[str, int] = {}
        self._place = np.zeros((len(names), MOST_DROPPED + 1), np.int64)
        self._cost = np.full((len(names), MOST_DROPPED + 1), np.inf)
        for row, readings in enumerate(listed):
            for at, (text, cost) in enumerate(readings):
                self._place[row, at] = places.setdefault(text, len(places))
                self._cost[row, at] = cost
        self.texts = list(places)
        self.whole = np.array(
            [readings[0].text == name for name, readings in zip(names, listed, strict=True)], np.bool_
        )
        """Whether nothing is left out of the first reading."""

    @property
    def first(self) -> NDArray[np.int64]:
        """The place of the first reading of each name among the texts."""
        return self._place[:, 0]

    def best(self, bits: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each name the bits of its best reading, from those of the texts."""
        found = bits[self._place[:, 0]]
        for at in range(1, self._place.shape[1]):
            rows = np.flatnonzero(np.isfinite(self._cost[:, at]))
            other = bits[self._place[rows, at]] - self._cost[rows, at, None]
            found[rows] = np.maximum(found[rows], other)
        return found


def _is_code(word: str) -> bool:
    return any(map(str.isdigit, word))
