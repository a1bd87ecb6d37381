"""Event tuples as numbers: which equality predicate each satisfies, and its join key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.composite.plan.conditions import NUMBER, comparable
from likewise.events import Event, Value, normalise
from likewise.matching import TupleNumbers

_MAX_TUPLES: Final = 1 << 20
_MAX_KEYS: Final = 1 << 20


class EncodedTuples(NamedTuple):
    """Tuple numbers of a batch: those of event i are `ids[starts[i]:starts[i + 1]]`."""

    starts: NDArray[np.int64]
    ids: NDArray[np.int32]


class TupleEncoder(TupleNumbers):
    """Numbers event tuples; 0 stands for all tuples that no pattern refers to."""

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
        self._forget_numbers()
        self.joining: dict[int, int] = {}
        self.answered = [-1]
        self._names: dict[str, str | None] = {}
        self._count = 1
        self.predicate_of = np.full(64, -1, np.int32)
        self.attribute_of = np.full(64, -1, np.int32)
        self.key_of = np.full(64, -1, np.int32)
        self.anchor_of = np.zeros(64, np.bool_)

    @property
    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """By tuple number: the predicate it satisfies, the attribute it joins by, and its key."""
        return self.predicate_of, self.attribute_of, self.key_of

    def predicate(self, attribute: str, value: Value) -> int:
        """The number of an equality predicate."""
        term = normalise(attribute)
        key = (term, comparable(value))
        number = self._predicates.get(key)
        if number is None:
            number = self._predicates[key] = self.number()
            self._learn(term)
        return number

    def number(self) -> int:
        """A new number, for a profile that is not a single equality."""
        self._next += 1
        return self._next - 1

    def join(self, attribute: str) -> int:
        """The number of a join attribute."""
        number = self._joins.get(attribute)
        if number is None:
            number = self._joins[attribute] = len(self._joins)
            self._learn(attribute)
        return number

    def anchor(self, value: Value) -> None:
        """Register a value that an event must have, under any name, to match some profile of the matcher."""
        canon = comparable(value)
        self._anchors[canon] += 1
        if self._anchors[canon] == 1:
            self._forget()

    def unanchor(self, value: Value) -> None:
        """Undo one `anchor` call."""
        canon = comparable(value)
        self._anchors[canon] -= 1
        if not self._anchors[canon]:
            del self._anchors[canon]

    @property
    def joins(self) -> int:
        """The number of join attributes."""
        return len(self._joins)

    def _learn(self, term: str) -> None:
        self._terms.add(term)
        self._forget()

    def _forget(self) -> None:
        """Drop all numbers: tuples numbered 0 may be relevant now."""
        if self.numbers or self._typed or self._names:
            self._clear()

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """Number the tuples of a batch."""
        return EncodedTuples(*self.starts_and_ids(events))

    def _number_new(self, name: str, value: Value) -> int:
        term = self._names.get(name, "")
        if term == "":
            normal = normalise(name)
            term = self._names[name] = normal if normal in self._terms else None
        if term is None and not self._anchors:
            # Readings vary most, and few patterns join by them.
            self._ignored.add(name)
            return 0
        # Numbers vary most and need no normalising.
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
        """The join keys of one event for an attribute."""
        numbers = [self.numbers[pair] for pair in pairs]
        return [int(self.key_of[number]) for number in numbers if self.attribute_of[number] == attribute]

    def trim(self) -> None:
        """Forget all tuple numbers if there are too many."""
        if len(self.numbers) > _MAX_TUPLES:
            self._clear()

    @property
    def crowded(self) -> bool:
        """Whether there are too many join keys, so unused ones should be dropped."""
        return len(self._keys) > _MAX_KEYS

    def retain(self, live: set[int]) -> None:
        """Forget all join keys but these, which waiting instances use."""
        self._keys = {canon: key for canon, key in self._keys.items() if key in live}
        self._clear()
