"""Profiles with approximation, all scored for every event: exact, and fast up to some thousands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.language import Profile
from likewise.matching.background import Commonness, least_entries, least_product
from likewise.matching.encoding import Encoded, TupleVocabulary
from likewise.matching.index.dense_kernel import Profiles, TupleTerms, fill_rows, score_dense
from likewise.matching.index.group import CODES, TOLERANCE, Hits, ProfileGroup, bound_of, by_meaning, gather
from likewise.matching.index.lists import grown
from likewise.matching.index.sparse_kernel import FLOOR
from likewise.matching.index.terms import Relations
from likewise.matching.settings import Aggregation, Settings
from likewise.semantics import Measure
from likewise.semantics.evidence import SurroundedTerms, Surroundings

ROW_BUDGET = 256 << 20
"""Bytes of rows kept before all are dropped; they are computed again when needed."""


class DenseGroup(ProfileGroup):
    """Profiles that are all scored for every event.

    Each distinct tuple has a row with its entry for every distinct predicate. The row is computed when the tuple is
    first seen, or first seen after the predicates changed; after that it is only read.
    """

    def __init__(self, vocabulary: TupleVocabulary, measure: Measure, **options: Any) -> None:
        super().__init__(vocabulary, measure, **options)
        self._attributes, self._values = (Relations(columns) for columns in self._columns)
        self._bound = np.zeros(16, dtype=np.float64)
        self._aggregation = np.zeros(16, dtype=np.int8)
        self._limit = np.zeros(16, dtype=np.float64)
        self._active: dict[int, None] = {}
        self._active_array: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._compared = np.zeros(1, dtype=np.int64)
        self._common = Commonness.unknown([])
        self._common_version = -1
        self._joint: dict[int, None] = {}
        self._chance, self._odds = np.zeros(0), np.zeros(0)
        self._least = np.zeros(0)
        self._surrounded: tuple[int, SurroundedTerms] | None = None
        self._forget()

    @property
    def compared(self) -> NDArray[np.int64]:
        """How many pairs of event and profile were scored so far."""
        return self._compared

    def activate(self, slot: int) -> None:
        """Score a profile from now on."""
        self._active[slot] = None
        self._active_array = np.zeros(0, dtype=np.int32)

    def deactivate(self, slot: int) -> None:
        """Stop scoring a profile."""
        self._active.pop(slot, None)
        self._active_array = np.zeros(0, dtype=np.int32)

    def remove(self, slot: int) -> None:
        """Remove a profile."""
        super().remove(slot)
        self._joint.pop(slot, None)

    @property
    def _active_count(self) -> int:
        return len(self._active)

    def _enter(self, slot: int, length: int, settings: Settings) -> None:
        self._bound, self._aggregation = grown(self._bound, slot + 1), grown(self._aggregation, slot + 1)
        self._limit = grown(self._limit, slot + 1)
        self._limit[slot] = settings.threshold * (1 - TOLERANCE)
        self._common_version = -1
        if settings.aggregation is Aggregation.JOINT:
            self._joint[slot] = None
        bound = bound_of(settings, length)
        # The weakest entry to the power n is at most the product, so a product below the square root cannot be enough.
        self._bound[slot] = sqrt(bound) if settings.aggregation is Aggregation.CAUTIOUS else bound
        self._aggregation[slot] = CODES[settings.aggregation]

    def matrix(self, encoded: Encoded, event: int, conditions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The combined matrix of some conditions with one event of the batch that was matched last."""
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        slots = self._slots[self._context_of(encoded, event)][ids]
        return self._rows[slots, conditions[:, None]]

    def commonness(self, profile: Profile) -> Commonness:
        """How common answers to a registered profile's predicates are in the known stream."""
        if self._rivals.update():
            self.make_room()
        self._update_commonness()
        return self._common.some(self.conditions.numbers(profile.predicates))

    def _update_commonness(self) -> None:
        """Compute how common answers to all conditions are, if conditions or competitors changed."""
        if self._common_version == self._version:
            return
        compared = by_meaning(self.conditions.records[: len(self.conditions)]).tolist()
        sample = self._sample
        if sample is None or not len(sample) or not self._joint:
            self._common = Commonness.unknown(compared)
        else:
            self._common = Commonness.seen(self._shares(sample).tolist(), compared)
        self._update_joint_bounds()
        self._chance, self._odds = np.array(self._common.chances), np.array(self._common.odds)
        self._common_version = self._version

    def _shares(self, sample: Encoded) -> NDArray[np.float64]:
        """For every condition the share of a sample's events that answer it."""
        slots = self._ensure(sample, 0, np.arange(len(sample)))
        total = np.zeros(len(self.conditions))
        for event in range(len(sample)):
            places = slots[sample.ids[sample.starts[event] : sample.starts[event + 1]]]
            if len(places):
                best = self._rows[places, : len(total)].max(axis=0)
                # What is hardly related is no answer; an index does not even compare it.
                total += np.where(best >= FLOOR, best, 0)
        return total / len(sample)

    def _update_joint_bounds(self) -> None:
        """Set what each entry of a profile and their product must reach, given their commonness."""
        self._least = np.zeros(len(self._profiles.fields[0]))
        # The predicates that rule a profile out soonest come first: exact ones, then those that few events answer.
        rank = [(odds > 0, chance) for odds, chance in zip(self._common.odds, self._common.chances, strict=True)]
        for slot in self._joint:
            ordered = sorted(self._profiles[slot].tolist(), key=rank.__getitem__)
            self._profiles.set(slot, ordered)
            commonness, limit = self._common.some(ordered), float(self._limit[slot])
            self._bound[slot] = least_product(limit, commonness) * (1 - TOLERANCE)
            begin = int(self._profiles.start[slot])
            self._least[begin : begin + len(ordered)] = least_entries(limit, commonness)
        self._least *= 1 - TOLERANCE

    def _forget(self) -> None:
        super()._forget()
        self._common_version = -1
        self._attributes.forget()
        self._values.forget()
        self._drop_rows()

    @property
    def _version(self) -> int:
        """Grows whenever computed rows become out of date."""
        return self.conditions.version + self._competition.version

    def set_stream(self, sample: Encoded | None, around: Surroundings | None) -> None:
        """Set the sample of the stream, and its values, which are evidence about the values compared."""
        self._common_version = -1
        if around is not self._around:
            self._surrounded = None
            self._drop_rows()
        super().set_stream(sample, around)

    def _stream_bits(self, terms: list[str]) -> NDArray[np.float32] | None:
        """The bits that the values of the stream add to these values and every column."""
        if self._around is None:
            return None
        columns = self._columns[1]
        if self._surrounded is None or self._surrounded[0] != columns.version:
            self._surrounded = columns.version, self._around.prepare(columns.terms)
        return self._surrounded[1].bits(terms)

    def _drop_rows(self) -> None:
        self._slots: dict[int, NDArray[np.int32]] = {}
        self._used = 0
        self._rows = np.zeros((64, max(16, len(self.conditions))), dtype=np.float32)
        self._row_version = np.zeros(64, dtype=np.int64)
        self._meeting = np.zeros((1, 0), dtype=np.uint8)

    def _score(self, encoded: Encoded, context: int, events: NDArray[np.int64]) -> Iterator[Hits]:
        if len(self._active_array) != len(self._active):
            self._active_array = np.fromiter(self._active, dtype=np.int32, count=len(self._active))
        self._update_commonness()
        slots = self._ensure(encoded, context, events)
        profiles = Profiles(
            self._profiles.start,
            self._profiles.length,
            self._profiles.fields[0],
            self._bound,
            self._aggregation,
            self._limit,
            self._least,
            self._chance,
            self._odds,
            self._common.meant,
        )
        first = 0
        while first < len(events):
            first, count = score_dense(
                encoded.ids,
                encoded.starts,
                events,
                first,
                slots,
                self._rows,
                self._meeting,
                len(self.conditions),
                self._active_array,
                profiles,
                *self._out,
                self._compared,
            )
            yield self._out.head(count)
            if not count and first < len(events):
                self._out = self._out.doubled()

    def _ensure(self, encoded: Encoded, context: int, events: NDArray[np.int64]) -> NDArray[np.int32]:
        """Compute missing rows for the tuples of these events, and return the slots of tuples in this context."""
        ids = encoded.ids if len(events) == len(encoded) else gather(encoded, events)
        slots = self._slots_of(context)
        places = slots[ids]
        stale = (places < 0) | (self._row_version[places] != self._version)
        if stale.any():
            todo = np.unique(ids[stale])
            if (self._used + len(todo)) * 4 * self._rows.shape[1] > ROW_BUDGET or len(self._slots) * 4 * len(
                self._vocabulary
            ) > ROW_BUDGET:
                self._drop_rows()
                slots, todo = self._slots_of(context), np.unique(ids)
            self._fill(todo, slots, context)
        return slots

    def _slots_of(self, context: int) -> NDArray[np.int32]:
        slots = self._slots.get(context)
        if slots is None:
            slots = np.full(max(64, len(self._vocabulary)), -1, dtype=np.int32)
        slots = self._slots[context] = grown(slots, len(self._vocabulary), fill=-1)
        return slots

    def _fill(self, ids: NDArray[np.int32], slots: NDArray[np.int32], context: int) -> None:
        new = ids[slots[ids] < 0]
        slots[new] = np.arange(self._used, self._used + len(new))
        self._used += len(new)
        if len(self.conditions) > self._rows.shape[1]:
            # All rows are out of date, so there is nothing to copy into the wider table.
            self._rows = np.zeros((len(self._rows), 2 * len(self.conditions)), dtype=np.float32)
            self._row_version[:] = 0
        self._rows, self._row_version = grown(self._rows, self._used), grown(self._row_version, self._used)
        places = slots[ids].astype(np.int64)
        tuples, attributes, values = self._tuple_terms(ids, context)
        records, count = self.conditions.records, len(self.conditions)
        fill_rows(self._rows, places, records, count, tuples, attributes, values, float(self._odds_factor))
        self._refine(ids, places)
        self._row_version[places] = self._version

    def _refine(self, ids: NDArray[np.int32], places: NDArray[np.int64]) -> None:
        """Hook for approaches that extend rows after they are filled."""

    def _tuple_terms(
        self, ids: NDArray[np.int32], context: int
    ) -> tuple[TupleTerms, NDArray[np.float32], NDArray[np.float32]]:
        """The terms of tuples, and the score rows of their attributes and of their values."""
        words = self._vocabulary
        theme = words.themes[context] if self._thematic else ()
        attribute, value = words.attribute[ids], words.value[ids]
        attribute_row, attributes = self._relate(0, attribute, words.attribute_terms, context, theme)
        textual = words.kind[ids] == 0
        value_row = np.zeros(len(ids), dtype=np.int64)
        value_row[textual], values = self._relate(1, value[textual], words.value_terms, context, theme)
        tuples = TupleTerms(attribute, value, words.kind[ids], words.number[ids], attribute_row, value_row)
        return tuples, attributes, values

    def _relate(
        self,
        side: int,
        numbers: NDArray[np.int32],
        terms: list[str],
        context: int,
        theme: Sequence[str],
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """For each event term the number of its score row, and the rows, for attributes (0) or values (1)."""
        relations = (self._attributes, self._values)[side]
        if not len(relations.columns):
            return np.zeros(len(numbers), dtype=np.int64), np.zeros((1, 1), dtype=np.float32)
        distinct, row_of = np.unique(numbers, return_inverse=True)
        wanted = distinct.tolist()
        published = [terms[number] for number in wanted]
        places = relations.rows(wanted, published, context=context, theme=theme)
        scores = relations.scores(
            places,
            bits=self._stream_bits(published) if side == 1 else None,
            rivals=self._rivals.competing(side),
            temperature=self._temperature,
        )
        return row_of.astype(np.int64), scores
