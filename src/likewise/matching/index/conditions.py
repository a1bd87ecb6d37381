"""Conditions: the distinct predicates of a group of profiles, as columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import normalise
from likewise.language import Operator, Predicate, Range
from likewise.matching.definition import bounds
from likewise.matching.encoding import TEXT, TupleVocabulary, kind_of, term_of
from likewise.matching.index.dense_kernel import CONDITION, RELATED, UNRELATED
from likewise.matching.index.exact_kernel import DIFFER, EQUAL, WITHIN
from likewise.matching.index.lists import grown
from likewise.matching.index.terms import Move, TermColumns

_FIELDS = ("operator", "attribute", "attribute_column", "value", "value_column", "kind", "low", "high")

COLUMNS = ("attribute_column", "value_column")


class ConditionTable:
    """Each distinct predicate once, however many profiles share it.

    `version` changes when rows worked out before no longer say all, that is, with a new predicate.
    """

    def __init__(self, vocabulary: TupleVocabulary, *, attributes: TermColumns, values: TermColumns) -> None:
        self._vocabulary = vocabulary
        self._attributes = attributes
        self._values = values
        self._numbers: dict[Predicate, int] = {}
        self._uses = np.zeros(16, dtype=np.int32)
        self.records: NDArray[Any] = np.zeros(16, dtype=CONDITION)
        self._predicates: list[Predicate | None] = []
        self._free: list[int] = []
        self.version = 1

    def __len__(self) -> int:
        """How many numbers are given out, free ones included."""
        return len(self._predicates)

    @property
    def used(self) -> int:
        """How many predicates are in use."""
        return len(self._numbers)

    def uses(self, number: int) -> int:
        """How many profiles have this predicate."""
        return int(self._uses[number])

    def add(self, predicate: Predicate) -> int:
        """The number of a predicate, counted as used once more."""
        number = self._numbers.get(predicate)
        if number is None:
            number = self._append(predicate)
        self._uses[number] += 1
        return number

    def numbers(self, predicates: Sequence[Predicate]) -> list[int]:
        """The numbers of predicates that are there."""
        return [self._numbers[predicate] for predicate in predicates]

    def add_all(self, predicates: Sequence[Predicate]) -> list[int]:
        """The numbers of a profile's predicates; on an error none of them is counted."""
        numbers: list[int] = []
        try:
            numbers.extend(self.add(predicate) for predicate in predicates)
        except BaseException:  # whatever it was, nothing stays half counted
            for number in numbers:
                self.release(number)
            raise
        return numbers

    def release(self, number: int) -> None:
        """Count a predicate as used once less; with the last use its number is free for another."""
        self._uses[number] -= 1
        if not self._uses[number]:
            predicate = self._predicates[number]
            assert predicate is not None
            del self._numbers[predicate]
            self._let_go(number)
            self._predicates[number] = None
            self._free.append(number)

    def _let_go(self, number: int) -> None:
        """Release all that a predicate held."""
        record = self.records[number]
        self._vocabulary.release_attribute(int(record["attribute"]))
        if record["value"] >= 0:
            self._vocabulary.release_value(int(record["value"]))
        for columns, field in zip((self._attributes, self._values), COLUMNS, strict=True):
            if record[field] >= 0:
                columns.release(int(record[field]))

    def moved(self, field: str, move: Move) -> None:
        """Write the new columns of terms in place of their old ones."""
        column = self.records[field][: len(self)]
        column[:] = move.table[column]

    def _append(self, predicate: Predicate) -> int:
        record = self._compile(predicate)
        if self._free:
            number = self._free.pop()
        else:
            number = len(self._predicates)
            self._predicates.append(None)
            self.records, self._uses = grown(self.records, number + 1), grown(self._uses, number + 1)
        for field, value in zip(_FIELDS, record, strict=True):
            self.records[field][number] = value
        self._predicates[number] = predicate
        self._numbers[predicate] = number
        self.version += 1
        return number

    def _compile(self, predicate: Predicate) -> Sequence[float]:
        words = self._vocabulary
        if predicate.operator not in (Operator.EQ, Operator.NE):
            kind, low, high = bounds(predicate)
            return (WITHIN, *self._attribute(predicate), -1, -1, kind, low, high)
        if isinstance(predicate.value, Range):
            raise BuildError(f"{predicate.attribute!r} cannot equal a range", hint="use `in` with a range")
        equal = predicate.operator is Operator.EQ
        value, kind = words.hold_value(predicate.value), kind_of(predicate.value)
        if not predicate.value_approximate:
            return (EQUAL if equal else DIFFER, *self._attribute(predicate), value, -1, kind, math.nan, math.nan)
        column = self._values.add(term_of(predicate.value)) if kind == TEXT else -1
        operator = RELATED if equal else UNRELATED
        return (operator, *self._attribute(predicate), value, column, kind, math.nan, math.nan)

    def _attribute(self, predicate: Predicate) -> tuple[int, int]:
        number = self._vocabulary.hold_attribute(predicate.attribute)
        loose = predicate.attribute_approximate
        return number, self._attributes.add(normalise(predicate.attribute)) if loose else -1
