"""Event tuples as numbers: which equality predicate each satisfies, and its join key."""

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

_MAX_TUPLES: Final = 1 << 20
_MAX_KEYS: Final = 1 << 20
_AMBIGUOUS: Final = (0, 1)
_tuples_of = attrgetter("tuples")


class EncodedTuples(NamedTuple):
    """Tuple numbers of a batch: those of event i are `ids[starts[i]:starts[i + 1]]`."""

    starts: NDArray[np.int64]
    ids: NDArray[np.int32]


class _TupleIds(dict[tuple[str, Value], int]):
    """Numbers by tuple; a new tuple is numbered on first access."""

    def __init__(self, encoder: TupleEncoder) -> None:
        super().__init__()
        self._encoder = encoder

    def __missing__(self, pair: tuple[str, Value]) -> int:
        return self._encoder.number_new(pair)


class TupleEncoder:
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

    def number_new(self, pair: tuple[str, Value]) -> int:
        """Number a tuple seen for the first time."""
        name, value = pair
        known = self._names.get(name, "")
        if known == "":
            term = normalise(name)
            known = self._names[name] = term if term in self._terms else None
        if known is None and not self._anchors:
            self.numbers[pair] = 0
            return 0
        # As dict keys, 0 equals False and 1 equals True: keep these apart by type.
        if isinstance(value, str) or value not in _AMBIGUOUS:
            number = self.numbers[pair] = self._number(known, value)
            return number
        typed = (name, isinstance(value, bool), value)
        if typed not in self._typed:
            self._typed[typed] = self._number(known, value)
        return self._typed[typed]

    def _number(self, term: str | None, value: Value) -> int:
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
