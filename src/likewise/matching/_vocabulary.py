"""Numbers for the tuples of events: each distinct tuple is looked at once, then it is an integer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from likewise.events import Event, Value, normalise, to_instant
from likewise.matching._lists import grown

TEXT: Final = 0
NUMBER: Final = 1
BOOLEAN: Final = 2
TIME: Final = 3

DEFAULT_CAPACITY: Final = 200_000

_tuples_of = attrgetter("tuples")
_theme_of = attrgetter("theme")


def kind_of(value: Value) -> int:
    """Text, number, boolean or time; a boolean is not a number.

    >>> [kind_of(value) for value in ("a", 1, 1.0, True)]
    [0, 1, 1, 2]
    """
    if isinstance(value, str):
        return TEXT
    if isinstance(value, bool):
        return BOOLEAN
    return TIME if isinstance(value, datetime) else NUMBER


def number_of(value: Value) -> float:
    """Where a value stands in order: numbers as they are, times in microseconds, text nowhere (NaN)."""
    if isinstance(value, str):
        return np.nan
    if isinstance(value, datetime):
        return float(to_instant(value))
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def canonical(value: Value) -> tuple[int, Any]:
    """What exact comparison compares: the kind, and the normalised text or the number.

    >>> canonical("Parking_Slots") == canonical("parking slot"), canonical(1) == canonical(True)
    (True, False)
    """
    kind = kind_of(value)
    return kind, normalise(str(value)) if kind == TEXT else number_of(value) if kind != NUMBER else value


@dataclass(frozen=True, slots=True)
class Encoded:
    """Events as tuple numbers: those of event i stand at `ids[starts[i]:starts[i + 1]]`."""

    events: Sequence[Event]
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    themes: NDArray[np.int32]
    generation: int

    def __len__(self) -> int:
        return len(self.starts) - 1


class _Ids(dict[Any, int]):
    """A dict that asks the vocabulary for what it does not hold."""

    __slots__ = ("_intern",)

    def __init__(self, intern: Any) -> None:
        super().__init__()
        self._intern = intern

    def __missing__(self, key: Any) -> int:
        return int(self._intern(key))


class Vocabulary:
    """All tuples seen so far and, for each, what kernels need to know of it.

    A tuple's `key` is shared by tuples that are the same for exact comparison; predicates of
    equality get theirs from the same numbering. When more than `capacity` tuples were seen, all are
    forgotten and numbered anew (`generation` counts that), so an endless stream of new readings
    cannot fill the memory.
    """

    def __init__(self, *, capacity: int = DEFAULT_CAPACITY) -> None:
        self.capacity = capacity
        self.generation = 0
        self._attributes: dict[str, int] = {}
        self._keys: dict[tuple[int, int, Any], int] = {}
        self._pinned_attributes: dict[str, int] = {}
        self._pinned_keys: dict[tuple[int, int, Any], int] = {}
        self._next_attribute = 0
        self._next_key = 0
        self._themes: _Ids = _Ids(self._intern_theme)
        self.themes: list[tuple[str, ...]] = []
        self._clear()

    def _clear(self) -> None:
        self._fast: _Ids = _Ids(self._intern)
        self._typed: dict[tuple[str, bool, Value], int] = {}
        self.pairs: list[tuple[str, Value]] = []
        self.key = np.zeros(1024, dtype=np.int32)
        self.attribute = np.zeros(1024, dtype=np.int32)
        self.kind = np.zeros(1024, dtype=np.int8)
        self.number = np.zeros(1024, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def attributes(self) -> int:
        """How many attribute numbers are in use."""
        return self._next_attribute

    @property
    def keys(self) -> int:
        """How many keys are in use."""
        return self._next_key

    def encode(self, events: Sequence[Event]) -> Encoded:
        """The tuple numbers of a batch of events."""
        if len(self.pairs) > self.capacity:
            self.forget()
        tuples = list(map(_tuples_of, events))
        starts = np.zeros(len(tuples) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, tuples), dtype=np.int64, count=len(tuples)), out=starts[1:])
        ids = np.fromiter(
            map(self._fast.__getitem__, chain.from_iterable(tuples)), dtype=np.int32, count=int(starts[-1])
        )
        themes = np.fromiter(map(self._themes.__getitem__, map(_theme_of, events)), dtype=np.int32, count=len(tuples))
        return Encoded(events, ids, starts, themes, self.generation)

    def forget(self) -> None:
        """Drop every tuple; numbers that predicates use stay as they are."""
        self.generation += 1
        self._attributes = dict(self._pinned_attributes)
        self._keys = dict(self._pinned_keys)
        self._next_attribute = max(self._attributes.values(), default=-1) + 1
        self._next_key = max(self._keys.values(), default=-1) + 1
        self._themes = _Ids(self._intern_theme)
        self.themes = []
        self._clear()

    def pin_attribute(self, attribute: str) -> int:
        """The number of a predicate's attribute."""
        term = normalise(attribute)
        number = self._attribute(term)
        self._pinned_attributes[term] = number
        return number

    def pin_key(self, attribute: str, value: Value) -> int:
        """The key that tuples must have to equal this attribute and value."""
        key = (self.pin_attribute(attribute), *canonical(value))
        number = self._key(key)
        self._pinned_keys[key] = number
        return number

    def _attribute(self, term: str) -> int:
        number = self._attributes.get(term)
        if number is None:
            number = self._attributes[term] = self._next_attribute
            self._next_attribute += 1
        return number

    def _key(self, key: tuple[int, int, Any]) -> int:
        number = self._keys.get(key)
        if number is None:
            number = self._keys[key] = self._next_key
            self._next_key += 1
        return number

    def _intern_theme(self, theme: tuple[str, ...]) -> int:
        canonical_theme = tuple(sorted({normalise(tag) for tag in theme}))
        if theme != canonical_theme:
            number = self._themes[canonical_theme]
        else:
            number = len(self.themes)
            self.themes.append(theme)
        self._themes[theme] = number
        return number

    def _intern(self, pair: tuple[str, Value]) -> int:
        name, value = pair
        # 0, 1, False and True are equal for a dict: those never enter the fast one.
        ambiguous = not isinstance(value, str | datetime) and value in (0, 1)
        if not ambiguous:
            self._fast[pair] = len(self.pairs)
            return self._add(name, value)
        typed = (name, isinstance(value, bool), value)
        number = self._typed.get(typed)
        if number is None:
            number = self._typed[typed] = self._add(name, value)
        return number

    def _add(self, name: str, value: Value) -> int:
        number = len(self.pairs)
        self.pairs.append((name, value))
        if number >= len(self.key):
            self.key, self.attribute = grown(self.key, number + 1), grown(self.attribute, number + 1)
            self.kind, self.number = grown(self.kind, number + 1), grown(self.number, number + 1)
        attribute = self._attribute(normalise(name))
        self.attribute[number] = attribute
        self.kind[number] = kind_of(value)
        self.number[number] = number_of(value)
        self.key[number] = self._key((attribute, *canonical(value)))
        return number
