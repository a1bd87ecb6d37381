"""Integers for the tuples of events: each distinct tuple is analysed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter
from threading import RLock
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.events import Event, EventColumns, Renumbering, Value, normalise, to_datetime, to_instant
from likewise.matching.index.lists import grown

Key = TypeVar("Key")


class Numbers(Generic[Key]):
    """Numbers for keys, assigned on first use and reused later.

    Keys of events are all dropped by `forget`; keys of predicates stay until the last predicate releases them. So
    memory stays bounded, for endless new readings as well as for subscriptions that come and go.

    >>> numbers = Numbers[str]()
    >>> numbers.see("a"), numbers.hold("b"), numbers.see("b"), numbers.hold("b")
    (0, 1, 1, 1)
    >>> numbers.forget()
    >>> numbers.see("c"), numbers.see("d"), numbers.hold("b"), len(numbers)
    (0, 2, 1, 3)
    """

    def __init__(self) -> None:
        self.keys: list[Key | None] = []
        self._held: dict[Key, int] = {}
        self._seen: dict[Key, int] = {}
        self._stale: dict[Key, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """One more than the highest number that is or was in use."""
        return len(self.keys)

    @property
    def held(self) -> int:
        """How many keys predicates hold."""
        return len(self._held)

    def see(self, key: Key) -> int:
        """The number of an event's key, valid until `forget`."""
        number = self._seen.get(key)
        if number is None:
            number = self._held.get(key)
            number = self._seen[key] = self._new(key) if number is None else number
        return number

    def hold(self, key: Key) -> int:
        """The number of a predicate's key, valid until it is released as often as it was held."""
        number = self._held.get(key)
        if number is None:
            number = self._seen.get(key)
            number = self._held[key] = self._new(key) if number is None else number
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Release a held number once."""
        self._uses[number] -= 1
        key = self.keys[number]
        if self._uses[number] or key is None:
            return
        del self._held[key]
        if self._seen.get(key) != number and self._stale.get(key) != number:
            self._give_back(number)

    def forget(self) -> None:
        """Drop the keys that only events have; their numbers are reused little by little."""
        while self._stale:
            self._reclaim()
        self._stale, self._seen = self._seen, {}

    def _new(self, key: Key) -> int:
        # Two old numbers for each new one: done long before the next `forget`, without a pause.
        self._reclaim()
        self._reclaim()
        if self._free:
            number = self._free.pop()
            self.keys[number] = key
            return number
        self.keys.append(key)
        self._uses.append(0)
        return len(self.keys) - 1

    def _reclaim(self) -> None:
        if self._stale:
            key, number = self._stale.popitem()
            if self._held.get(key) != number and self._seen.get(key) != number:
                self._give_back(number)

    def _give_back(self, number: int) -> None:
        self.keys[number] = None
        self._free.append(number)


TEXT: Final = 0
NUMBER: Final = 1
BOOLEAN: Final = 2
TIME: Final = 3

DEFAULT_CAPACITY: Final = 200_000

_AMBIGUOUS: Final = (0, 1)
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
    """A value as a number for ordering: numbers as they are, times in microseconds, NaN for text."""
    if isinstance(value, str):
        return np.nan
    if isinstance(value, datetime):
        return float(to_instant(value))
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def term_of(value: Value) -> str:
    """The term of a value: normalised text, or the canonical spelling of a number, a boolean or a time.

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
    """The kind and the term of a value: two values are equal exactly if these are.

    >>> canonical("Parking_Slots") == canonical("parking slot"), canonical(1) == canonical(True)
    (True, False)
    """
    return kind_of(value), term_of(value)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Events as tuple numbers: those of event i are `ids[starts[i]:starts[i + 1]]`."""

    events: Sequence[Event]
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    themes: NDArray[np.int32]
    generation: int

    def __len__(self) -> int:
        return len(self.starts) - 1


class _Ids(dict[Any, int]):
    """A dict that interns missing keys."""

    __slots__ = ("_intern",)

    def __init__(self, intern: Callable[[Any], int]) -> None:
        super().__init__()
        self._intern = intern

    def __missing__(self, key: Any) -> int:
        return self._intern(key)


class TupleNumbers(ABC):
    """Numbers for tuples of attribute and value, given on first sight; `numbers` is the fast way to a known tuple.

    All tuples of an `_ignored` name have the same number.
    """

    def _forget_numbers(self) -> None:
        self.numbers = _Ids(self._intern)
        self._typed: dict[tuple[str, bool, Value], int] = {}
        self._ignored: set[str] = set()
        self._renumbered = Renumbering()

    @abstractmethod
    def _number_new(self, name: str, value: Value) -> int:
        """The number of a tuple seen for the first time."""

    def starts_and_ids(self, events: Sequence[Event]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The numbers of the tuples of a batch: those of event i are `ids[starts[i]:starts[i + 1]]`.

        From columns, each distinct tuple is looked up once, and no event object is built.
        """
        # `isinstance` would take long for single events: an abstract base checks it in Python.
        if type(events) is EventColumns:
            pairs = events.table.pairs
            return events.offsets, self._renumbered(events.table, events.codes, lambda code: self.numbers[pairs[code]])
        tuples = list(map(_tuples_of, events))
        starts = np.zeros(len(tuples) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, tuples), dtype=np.int64, count=len(tuples)), out=starts[1:])
        pairs_of_all = chain.from_iterable(tuples)
        return starts, np.fromiter(map(self.numbers.__getitem__, pairs_of_all), dtype=np.int32, count=int(starts[-1]))

    def _intern(self, pair: tuple[str, Value]) -> int:
        name, value = pair
        # For a dict 0 equals False and 1 equals True, so these enter the fast dict only where both have one number.
        if isinstance(value, str) or value not in _AMBIGUOUS or name in self._ignored:
            number = self.numbers[pair] = self._number_new(name, value)
            return number
        typed = (name, isinstance(value, bool), value)
        if typed not in self._typed:
            self._typed[typed] = self._number_new(name, value)
        return self._typed[typed]


class TupleVocabulary(TupleNumbers):
    """All tuples seen so far, with the columns that kernels need.

    Tuples that are equal in exact comparison share a `key`; predicates of equality use the same numbers. After more
    than `capacity` tuples all are dropped and numbered anew, and `generation` grows; so memory stays bounded for an
    endless stream of new readings.
    """

    def __init__(self, *, capacity: int = DEFAULT_CAPACITY) -> None:
        self.capacity = capacity
        self.lock = RLock()
        """One lock for all matchers that share this vocabulary."""
        self.generation = 0
        self._attributes: Numbers[str] = Numbers()
        self._values: Numbers[str] = Numbers()
        self._keys: Numbers[tuple[int, int, int]] = Numbers()
        self._themes: _Ids = _Ids(self._intern_theme)
        self.themes: list[tuple[str, ...]] = []
        self._clear()

    def _clear(self) -> None:
        self._forget_numbers()
        self._renumbered_themes = Renumbering()
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
        """One more than the highest attribute number."""
        return len(self._attributes)

    @property
    def attribute_terms(self) -> list[str]:
        """The attributes by their numbers."""
        return self._attributes.keys  # type: ignore[return-value]  # None only for free numbers, which nothing refers to

    @property
    def value_terms(self) -> list[str]:
        """The terms of values by their numbers."""
        return self._values.keys  # type: ignore[return-value]  # None only for free numbers, which nothing refers to

    @property
    def held(self) -> int:
        """How many attributes, values and keys predicates hold."""
        return self._attributes.held + self._values.held + self._keys.held

    @property
    def most_used(self) -> int:
        """The most numbers ever in use at a time, of attributes, values and keys together."""
        return len(self._attributes) + len(self._values) + len(self._keys)

    def encode(self, events: Sequence[Event]) -> Encoded:
        """The tuple numbers of a batch of events."""
        if len(self.pairs) > self.capacity:
            self.forget()
        starts, ids = self.starts_and_ids(events)
        if type(events) is EventColumns:
            known = events.table.themes
            themes = self._renumbered_themes(events.table, events.themes, lambda code: self._themes[known[code]])
        else:
            numbers = map(self._themes.__getitem__, map(_theme_of, events))
            themes = np.fromiter(numbers, dtype=np.int32, count=len(events))
        return Encoded(events, ids, starts, themes, self.generation)

    def forget(self) -> None:
        """Drop all tuples; numbers that predicates hold stay valid."""
        self.generation += 1
        for numbers in (self._attributes, self._values, self._keys):
            numbers.forget()
        self._themes = _Ids(self._intern_theme)
        self.themes = []
        self._clear()

    def hold_attribute(self, attribute: str) -> int:
        """The number of a predicate's attribute, valid until it is released."""
        return self._attributes.hold(normalise(attribute))

    def hold_value(self, value: Value) -> int:
        """The number of a predicate's value of any kind, valid until it is released."""
        return self._values.hold(term_of(value))

    def hold_key(self, attribute: str, value: Value) -> tuple[int, int]:
        """The number of the attribute, and the key of tuples with this attribute and value."""
        number = self.hold_attribute(attribute)
        return number, self._keys.hold((number, kind_of(value), self.hold_value(value)))

    def release_attribute(self, number: int) -> None:
        """Release the attribute of a predicate."""
        self._attributes.release(number)

    def release_value(self, number: int) -> None:
        """Release the value of a predicate."""
        self._values.release(number)

    def release_key(self, number: int) -> None:
        """Release the key of a predicate, with its attribute and value."""
        parts = self._keys.keys[number]
        assert parts is not None
        self._keys.release(number)
        self.release_attribute(parts[0])
        self.release_value(parts[2])

    def _intern_theme(self, theme: tuple[str, ...]) -> int:
        canonical_theme = tuple(sorted({normalise(tag) for tag in theme}))
        if theme != canonical_theme:
            number = self._themes[canonical_theme]
        else:
            number = len(self.themes)
            self.themes.append(theme)
        self._themes[theme] = number
        return number

    def _number_new(self, name: str, value: Value) -> int:
        number = len(self.pairs)
        self.pairs.append((name, value))
        if number >= len(self.key):
            for column in ("key", "attribute", "value", "kind", "number"):
                setattr(self, column, grown(getattr(self, column), number + 1))
        attribute = self._attributes.see(normalise(name))
        term = self._values.see(term_of(value))
        self.attribute[number] = attribute
        self.value[number] = term
        self.kind[number] = kind_of(value)
        self.number[number] = number_of(value)
        self.key[number] = self._keys.see((attribute, kind_of(value), term))
        return number
