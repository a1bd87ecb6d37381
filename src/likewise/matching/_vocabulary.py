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

from likewise.events import Event, Value, normalise, to_datetime, to_instant
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


def term_of(value: Value) -> str:
    """The term of a value: normalised text, or the one spelling of a number, a boolean or a time.

    >>> term_of("Parking_Slots"), term_of(3.0), term_of(True)
    ('parking slot', '3', 'true')
    """
    if isinstance(value, str):
        return normalise(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return to_datetime(to_instant(value)).isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value) if value.bit_length() < 10_000 else hex(value)


def canonical(value: Value) -> tuple[int, str]:
    """What exact comparison compares: the kind and the term.

    >>> canonical("Parking_Slots") == canonical("parking slot"), canonical(1) == canonical(True)
    (True, False)
    """
    return kind_of(value), term_of(value)


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
        self._values: dict[str, int] = {}
        self._keys: dict[tuple[int, int, int], int] = {}
        self._pinned_attributes: dict[str, int] = {}
        self._pinned_values: dict[str, int] = {}
        self._pinned_keys: dict[tuple[int, int, int], int] = {}
        self.attribute_terms: list[str] = []
        self.value_terms: list[str] = []
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
        self.value = np.zeros(1024, dtype=np.int32)
        self.kind = np.zeros(1024, dtype=np.int8)
        self.number = np.zeros(1024, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def attributes(self) -> int:
        """How many attribute numbers are in use."""
        return len(self.attribute_terms)

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
        self._values = dict(self._pinned_values)
        del self.attribute_terms[max(self._attributes.values(), default=-1) + 1 :]
        del self.value_terms[max(self._values.values(), default=-1) + 1 :]
        self._next_key = max(self._keys.values(), default=-1) + 1
        self._themes = _Ids(self._intern_theme)
        self.themes = []
        self._clear()

    def pin_attribute(self, attribute: str) -> int:
        """The number of a predicate's attribute."""
        term = normalise(attribute)
        number = self._pinned_attributes[term] = _number(term, self._attributes, self.attribute_terms)
        return number

    def pin_value(self, value: Value) -> int:
        """The number of a predicate's value, whatever its kind."""
        term = term_of(value)
        number = self._pinned_values[term] = _number(term, self._values, self.value_terms)
        return number

    def pin_key(self, attribute: str, value: Value) -> int:
        """The key that tuples must have to equal this attribute and value."""
        key = (self.pin_attribute(attribute), kind_of(value), self.pin_value(value))
        number = self._pinned_keys[key] = self._key(key)
        return number

    def _key(self, key: tuple[int, int, int]) -> int:
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
            for name_of in ("key", "attribute", "value", "kind", "number"):
                setattr(self, name_of, grown(getattr(self, name_of), number + 1))
        attribute = _number(normalise(name), self._attributes, self.attribute_terms)
        meaning = _number(term_of(value), self._values, self.value_terms)
        self.attribute[number] = attribute
        self.value[number] = meaning
        self.kind[number] = kind_of(value)
        self.number[number] = number_of(value)
        self.key[number] = self._key((attribute, kind_of(value), meaning))
        return number


def _number(term: str, numbers: dict[str, int], terms: list[str]) -> int:
    number = numbers.get(term)
    if number is None:
        number = numbers[term] = len(terms)
        terms.append(term)
    return number
