"""A group: profiles that are matched together, with each distinct predicate stored once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import normalise
from likewise.language import Operator, Predicate, Profile, Range
from likewise.matching.background import Commonness, least_product
from likewise.matching.competition import Competition, Rivals
from likewise.matching.definition import bounds
from likewise.matching.encoding import TEXT, Encoded, TupleVocabulary, kind_of, term_of
from likewise.matching.index.dense_kernel import (
    CAUTIOUS,
    CONDITION,
    GEOMETRIC,
    JOINT,
    MEAN,
    PRODUCT,
    RELATED,
    UNRELATED,
)
from likewise.matching.index.exact_kernel import DIFFER, EQUAL, WITHIN
from likewise.matching.index.lists import Lists, grown
from likewise.matching.index.terms import Move, TermColumns
from likewise.matching.settings import Aggregation, Settings
from likewise.semantics import Measure
from likewise.semantics.evidence import Surroundings, shifted

_FIELDS = ("operator", "attribute", "attribute_column", "value", "value_column", "kind", "low", "high")

COLUMNS = ("attribute_column", "value_column")


class ConditionTable:
    """The distinct predicates of a group's profiles, each stored once.

    `version` grows with every new predicate: rows computed before lack its column.
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
        """How many numbers there are, free ones included."""
        return len(self._predicates)

    @property
    def used(self) -> int:
        """How many predicates are in use."""
        return len(self._numbers)

    def add(self, predicate: Predicate) -> int:
        """The number of a predicate, counted as used once more."""
        number = self._numbers.get(predicate)
        if number is None:
            number = self._append(predicate)
        self._uses[number] += 1
        return number

    def numbers(self, predicates: Sequence[Predicate]) -> list[int]:
        """The numbers of predicates that were added."""
        return [self._numbers[predicate] for predicate in predicates]

    def add_all(self, predicates: Sequence[Predicate]) -> list[int]:
        """The numbers of a profile's predicates; on an error none of them is counted."""
        numbers: list[int] = []
        try:
            numbers.extend(self.add(predicate) for predicate in predicates)
        except BaseException:  # also on an interrupt, no predicate of the profile stays counted
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
            self._release_terms(number)
            self._predicates[number] = None
            self._free.append(number)

    def _release_terms(self, number: int) -> None:
        """Release the attribute, value and columns of a predicate."""
        record = self.records[number]
        self._vocabulary.release_attribute(int(record["attribute"]))
        if record["value"] >= 0:
            self._vocabulary.release_value(int(record["value"]))
        for columns, field in zip((self._attributes, self._values), COLUMNS, strict=True):
            if record[field] >= 0:
                columns.release(int(record[field]))

    def moved(self, field: str, move: Move) -> None:
        """Update the columns of terms that moved."""
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
        if predicate.operator not in (Operator.EQ, Operator.NE):
            kind, low, high = bounds(predicate)
            return (WITHIN, *self._attribute(predicate), -1, -1, kind, low, high)
        if isinstance(predicate.value, Range):
            raise BuildError(f"{predicate.attribute!r} cannot equal a range", hint="use `in` with a range")
        equal = predicate.operator is Operator.EQ
        value, kind = self._vocabulary.hold_value(predicate.value), kind_of(predicate.value)
        if not predicate.value_approximate:
            return (EQUAL if equal else DIFFER, *self._attribute(predicate), value, -1, kind, math.nan, math.nan)
        column = self._values.add(term_of(predicate.value)) if kind == TEXT else -1
        operator = RELATED if equal else UNRELATED
        return (operator, *self._attribute(predicate), value, column, kind, math.nan, math.nan)

    def _attribute(self, predicate: Predicate) -> tuple[int, int]:
        number = self._vocabulary.hold_attribute(predicate.attribute)
        approximate = predicate.attribute_approximate
        return number, self._attributes.add(normalise(predicate.attribute)) if approximate else -1


def by_meaning(records: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a measure compares the attribute or the value of each of these conditions."""
    operator = records["operator"]
    found: NDArray[np.bool_] = (records["attribute_column"] >= 0) | (operator == RELATED) | (operator == UNRELATED)
    return found


TOLERANCE = 1e-6
"""Scores are 32-bit: a score that is below the threshold by no more than this reaches it."""

CODES = {
    Aggregation.PRODUCT: PRODUCT,
    Aggregation.GEOMETRIC: GEOMETRIC,
    Aggregation.MEAN: MEAN,
    Aggregation.CAUTIOUS: CAUTIOUS,
    Aggregation.JOINT: JOINT,
}


class Hits(NamedTuple):
    """Event, profile and score of every match."""

    event: NDArray[np.int32]
    profile: NDArray[np.int32]
    score: NDArray[np.float32]

    @classmethod
    def room(cls, size: int = 4096) -> Hits:
        """Empty arrays for `size` hits."""
        return cls(np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.float32))

    def head(self, count: int) -> Hits:
        """A copy of the first `count` hits."""
        return Hits(self.event[:count].copy(), self.profile[:count].copy(), self.score[:count].copy())

    def doubled(self) -> Hits:
        """Arrays of twice the size."""
        return Hits(*(grown(part, 2 * len(part)) for part in self))


def bound_of(settings: Settings, length: int) -> float:
    """What the product of a profile's entries must reach; for the mean their sum, and for the cautious mean the
    product of each entry times the weakest."""
    limit = settings.threshold
    if settings.aggregation is Aggregation.MEAN:
        return limit * length - TOLERANCE
    if settings.aggregation is Aggregation.JOINT:
        commonness = Commonness.unknown([True] * (length - settings.exact))
        return least_product(limit, commonness) * (1 - TOLERANCE)
    powers = {Aggregation.PRODUCT: 1, Aggregation.CAUTIOUS: 2 * length}
    return float(limit ** powers.get(settings.aggregation, length) * (1 - TOLERANCE))


class ProfileGroup(ABC):
    """Profiles that share a measure, a theme and a contrast; subclasses differ in how they find matches."""

    def __init__(
        self,
        vocabulary: TupleVocabulary,
        measure: Measure,
        *,
        theme: Sequence[str] = (),
        thematic: bool = False,
        temperature: float | None = None,
        competition: Competition | None = None,
        attribute_bits: float = 0.0,
    ) -> None:
        self._vocabulary = vocabulary
        self.measure = measure
        self._thematic = thematic
        self._temperature = temperature
        self._odds_factor = np.float32(2.0**-attribute_bits)
        self._competition = competition if competition is not None and temperature is not None else Competition()
        self._columns = (TermColumns(measure.for_attributes(), theme=theme), TermColumns(measure, theme=theme))
        attributes, values = self._columns
        self.conditions = ConditionTable(vocabulary, attributes=attributes, values=values)
        self._profiles = Lists(np.int32)
        self._rivals = Rivals(self._competition, self._columns)
        self._sample: Encoded | None = None
        self._around: Surroundings | None = None
        self._out = Hits.room()
        self._generation = vocabulary.generation

    @property
    @abstractmethod
    def compared(self) -> NDArray[np.int64]:
        """How many profiles were compared in full so far."""

    def add(self, slot: int, profile: Profile, settings: Settings) -> None:
        """Add a profile under a number chosen by the caller, and activate it."""
        conditions = self.conditions.add_all(profile.predicates)
        self._profiles.set(slot, conditions)
        self._enter(slot, len(conditions), settings)
        self.activate(slot)
        for columns in self._columns:
            columns.keep_up()

    def remove(self, slot: int) -> None:
        """Remove a profile."""
        self.deactivate(slot)
        for number in self._profiles[slot].tolist():
            self.conditions.release(number)
        self._profiles.clear(slot)

    def best_rivals(self, side: int, terms: Sequence[str]) -> dict[str, float]:
        """The best score of each attribute (0) or value (1) of an event with any competitor."""
        if self._rivals.update():
            self.make_room()
        competing, best = self._rivals.competing(side), np.zeros(len(terms), np.float32)
        for part in self._columns[side].slices() if terms else ():
            rivals = np.flatnonzero(competing[part.begin : part.end])
            scores = np.nan_to_num(part.ready.rows(terms))
            if side == 1 and self._around is not None:
                scores = shifted(scores, self._around.prepare(part.ready.terms).bits(terms))
            best = np.maximum(best, scores[:, rivals].max(axis=1, initial=0.0))
        return dict(zip(terms, best.tolist(), strict=True))

    @abstractmethod
    def activate(self, slot: int) -> None:
        """Match a profile from now on."""

    @abstractmethod
    def deactivate(self, slot: int) -> None:
        """Stop matching a profile."""

    def set_stream(self, sample: Encoded | None, around: Surroundings | None) -> None:
        """Set the sample of the stream, and its values, which are evidence about the values compared."""
        self._sample, self._around = sample, around

    def make_room(self) -> None:
        """Free some columns, if many are no longer needed."""
        for side, columns in enumerate(self._columns):
            for move in columns.make_room():
                self.conditions.moved(COLUMNS[side], move)
                self._rivals.moved(side, move)
                self._rename(side, move)

    def match(self, encoded: Encoded) -> Hits:
        """Every match of a batch."""
        if not (self._active_count and len(encoded)):
            return self._out.head(0)
        if encoded.generation != self._generation:
            self._forget()
        if self._rivals.update():
            self.make_room()
        parts = [part for context, events in self._contexts(encoded) for part in self._score(encoded, context, events)]
        return parts[0] if len(parts) == 1 else Hits(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @abstractmethod
    def matrix(self, encoded: Encoded, event: int, conditions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The combined matrix of some conditions with one event of the batch that was matched last."""

    @property
    @abstractmethod
    def _active_count(self) -> int:
        """How many profiles are active."""

    @abstractmethod
    def _enter(self, slot: int, length: int, settings: Settings) -> None:
        """Store the settings of a profile with `length` conditions."""

    @abstractmethod
    def _score(self, encoded: Encoded, context: int, events: NDArray[np.int64]) -> Iterator[Hits]:
        """The matches of some events of a batch, all of one context."""

    def _forget(self) -> None:
        """Drop everything computed for event tuples."""
        self._generation = self._vocabulary.generation

    def _rename(self, side: int, move: Move) -> None:  # noqa: B027 - only some subclasses store columns
        """Update the columns of terms that moved."""

    def _context_of(self, encoded: Encoded, event: int) -> int:
        return int(encoded.themes[event]) if self._thematic else 0

    def _contexts(self, encoded: Encoded) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The events by theme for thematic groups, else all together."""
        if not self._thematic:
            yield 0, np.arange(len(encoded))
            return
        for theme in np.unique(encoded.themes).tolist():
            yield theme, np.flatnonzero(encoded.themes == theme)


def gather(encoded: Encoded, events: NDArray[np.int64]) -> NDArray[np.int32]:
    """The tuples of some events."""
    lengths = encoded.starts[events + 1] - encoded.starts[events]
    offsets = np.repeat(encoded.starts[events] - np.cumsum(lengths) + lengths, lengths)
    return encoded.ids[offsets + np.arange(int(lengths.sum()))]
