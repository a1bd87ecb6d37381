"""Tuples as numbers: which simple profile each answers, and its key where patterns join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite.plan.conditions import NUMBER, comparable
from likewise.events import Event, EventColumns, Renumbering, Value, normalise

_MOST_TUPLES: Final = 1 << 20
_MOST_KEYS: Final = 1 << 20
_AMBIGUOUS: Final = (0, 1)
_tuples_of = attrgetter("tuples")


class EncodedTuples(NamedTuple):
    """Tuple numbers of a batch: those of event i stand at `ids[starts[i]:starts[i + 1]]`."""

    starts: NDArray[np.int64]
    ids: NDArray[np.int32]


class _TupleIds(dict[tuple[str, Value], int]):
    """Numbers of tuples; one that is new is looked at once."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self._columns = columns

    def __missing__(self, pair: tuple[str, Value]) -> int:
        return self._columns.look(pair)


class Columns:
    """Number 0 is for all tuples that no pattern asks about."""

    def __init__(self) -> None:
        self._predicates: dict[tuple[str, Any], int] = {}
        self._next = 0
        self._joins: dict[str, int] = {}
        self._terms: set[str] = set()
        self._keys: dict[Any, int] = {}
        self._next_key = 1
        self._anchors: Counter[Any] = Counter()
        self._clear()

    def _clear(self) -> None:
        self.numbers = _TupleIds(self)
        self._renumbered = Renumbering()
        self.joining: dict[int, int] = {}
        self.answered = [-1]
        self._names: dict[str, str | None] = {}
        self._typed: dict[tuple[str, bool, Value], int] = {}
        self._count = 1
        self.predicate_of = np.full(64, -1, np.int32)
        self.attribute_of = np.full(64, -1, np.int32)
        self.key_of = np.full(64, -1, np.int32)
        self.anchor_of = np.zeros(64, np.bool_)

    @property
    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Of each tuple number: which predicate it answers, which attribute it joins by, and the key."""
        return self.predicate_of, self.attribute_of, self.key_of

    def predicate(self, attribute: str, value: Value) -> int:
        """The number of an equality."""
        term = normalise(attribute)
        key = (term, comparable(value))
        number = self._predicates.get(key)
        if number is None:
            number = self._predicates[key] = self.number()
            self._learn(term)
        return number

    def number(self) -> int:
        """A number for a profile that something else answers."""
        self._next += 1
        return self._next - 1

    def join(self, attribute: str) -> int:
        """The number of an attribute by which patterns join."""
        number = self._joins.get(attribute)
        if number is None:
            number = self._joins[attribute] = len(self._joins)
            self._learn(attribute)
        return number

    def anchor(self, value: Value) -> None:
        """Some profile that the matcher answers can only match events that have this value, under any name."""
        canon = comparable(value)
        self._anchors[canon] += 1
        if self._anchors[canon] == 1:
            self._forget()

    def unanchor(self, value: Value) -> None:
        """That profile is gone."""
        canon = comparable(value)
        self._anchors[canon] -= 1
        if not self._anchors[canon]:
            del self._anchors[canon]

    @property
    def joins(self) -> int:
        """How many attributes patterns join by."""
        return len(self._joins)

    def _learn(self, term: str) -> None:
        self._terms.add(term)
        self._forget()

    def _forget(self) -> None:
        """What was of no interest may be now."""
        if self.numbers or self._typed or self._names:
            self._clear()

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """The tuples of a batch as numbers."""
        if isinstance(events, EventColumns):
            pairs = events.table.pairs
            return EncodedTuples(
                events.offsets, self._renumbered(events.table, events.codes, lambda c: self.numbers[pairs[c]])
            )
        tuples = list(map(_tuples_of, events))
        starts = np.zeros(len(tuples) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, tuples), np.int64, count=len(tuples)), out=starts[1:])
        return EncodedTuples(starts, self.ids(chain.from_iterable(tuples), int(starts[-1])))

    def ids(self, pairs: Iterable[tuple[str, Value]], count: int) -> NDArray[np.int32]:
        """The numbers of many tuples."""
        return np.fromiter(map(self.numbers.__getitem__, pairs), np.int32, count=count)

    def look(self, pair: tuple[str, Value]) -> int:
        """The number of a tuple seen for the first time."""
        name, value = pair
        known = self._names.get(name, "")
        if known == "":
            term = normalise(name)
            known = self._names[name] = term if term in self._terms else None
        if known is None and not self._anchors:
            self.numbers[pair] = 0
            return 0
        # 0, 1, False and True are equal for a dict: those never enter the fast one.
        if isinstance(value, str) or value not in _AMBIGUOUS:
            number = self.numbers[pair] = self._number(known, value)
            return number
        typed = (name, isinstance(value, bool), value)
        if typed not in self._typed:
            self._typed[typed] = self._number(known, value)
        return self._typed[typed]

    def _number(self, term: str | None, value: Value) -> int:
        # Numbers are what changes most, and need no normalising.
        canon = (NUMBER, value) if type(value) is int or type(value) is float else comparable(value)
        predicate = -1 if term is None else self._predicates.get((term, canon), -1)
        attribute = -1 if term is None else self._joins.get(term, -1)
        anchor = canon in self._anchors
        if predicate < 0 and attribute < 0 and not anchor:
            return 0
        number = self._count
        self._count += 1
        if number >= len(self.key_of):
            self._grow()
        self.predicate_of[number], self.attribute_of[number], self.anchor_of[number] = predicate, attribute, anchor
        self.key_of[number] = self._key(canon) if attribute >= 0 else -1
        self.answered.append(predicate)
        if attribute >= 0:
            self.joining[number] = attribute
        return number

    def _grow(self) -> None:
        columns = (self.predicate_of, self.attribute_of, self.key_of)
        self.predicate_of, self.attribute_of, self.key_of = (
            np.concatenate((column, np.full_like(column, -1))) for column in columns
        )
        self.anchor_of = np.concatenate((self.anchor_of, np.zeros_like(self.anchor_of)))

    def _key(self, canon: Any) -> int:
        key = self._keys.get(canon)
        if key is None:
            key = self._keys[canon] = self._next_key
            self._next_key += 1
        return key

    def keys(self, pairs: Iterable[tuple[str, Value]], attribute: int) -> list[int]:
        """The join keys of one event."""
        numbers = [self.numbers[pair] for pair in pairs]
        return [int(self.key_of[number]) for number in numbers if self.attribute_of[number] == attribute]

    def trim(self) -> None:
        """Forget the numbers of tuples if they are many; those that come again are looked at again."""
        if len(self.numbers) > _MOST_TUPLES:
            self._clear()

    @property
    def crowded(self) -> bool:
        """Whether there are so many join keys that unused ones should be dropped."""
        return len(self._keys) > _MOST_KEYS

    def retain(self, live: set[int]) -> None:
        """Forget all join keys but those that someone waits with."""
        self._keys = {canon: key for canon, key in self._keys.items() if key in live}
        self._clear()
