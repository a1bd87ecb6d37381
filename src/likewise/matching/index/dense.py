"""Profiles with approximation, all scored for every event: right and quick up to some thousands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.language import Profile
from likewise.matching.background import Commonness, least_entries, least_product
from likewise.matching.encoding import Encoded, TupleVocabulary
from likewise.matching.index.dense_kernel import RELATED, UNRELATED, Profiles, Said, fill_rows, score_dense
from likewise.matching.index.group import CODES, TOLERANCE, Hits, ProfileGroup, bound_of, gather
from likewise.matching.index.lists import grown
from likewise.matching.index.terms import Relations
from likewise.matching.settings import Aggregation, Settings
from likewise.semantics import Measure
from likewise.semantics.evidence import SurroundedTerms, Surroundings

ROW_BUDGET = 256 << 20
"""Bytes of rows kept before all are dropped and worked out again as they are needed."""


class DenseGroup(ProfileGroup):
    """Profiles that are all scored for every event.

    A row per event tuple holds its entry with every distinct predicate. It is filled when the tuple
    is first seen, or first seen after the predicates changed, and then only read.
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
        """How many profiles were scored so far, once for each event."""
        return self._compared

    def activate(self, slot: int) -> None:
        """Score a profile from now on."""
        self._active[slot] = None
        self._active_array = np.zeros(0, dtype=np.int32)

    def deactivate(self, slot: int) -> None:
        """Score a profile no longer."""
        self._active.pop(slot, None)
        self._active_array = np.zeros(0, dtype=np.int32)

    def remove(self, slot: int) -> None:
        """Forget a profile."""
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
        # The weakest entry takes away at least what the product lacks: a product below the root cannot be enough.
        self._bound[slot] = sqrt(bound) if settings.aggregation is Aggregation.CAUTIOUS else bound
        self._aggregation[slot] = CODES[settings.aggregation]

    def matrix(self, encoded: Encoded, event: int, conditions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The combined matrix of some conditions with one event of the batch that was matched last."""
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        slots = self._slots[self._context_of(encoded, event)][ids]
        return self._rows[slots, conditions[:, None]]

    def commonness(self, profile: Profile) -> Commonness:
        """How common the answers to a registered profile's predicates are in the stream that is known."""
        if self._rivals.update():
            self.make_room()
        self._keep_common()
        return self._common.some(self.conditions.numbers(profile.predicates))

    def _keep_common(self) -> None:
        """How common the answers to all conditions are, worked out when these or their competitors changed."""
        if self._common_version == self._version:
            return
        records = self.conditions.records[: len(self.conditions)]
        told = (records["attribute_column"] >= 0) | np.isin(records["operator"], (RELATED, UNRELATED))
        sample = self._sample
        if sample is None or not len(sample) or not self._joint:
            self._common = Commonness.unknown(told.tolist())
        else:
            self._common = Commonness.seen(self._shares(sample).tolist(), told.tolist())
        self._bound_jointly()
        self._chance, self._odds = np.array(self._common.chances), np.array(self._common.odds)
        self._common_version = self._version

    def _shares(self, sample: Encoded) -> NDArray[np.float64]:
        """For every condition the share of a sample's events that answer it."""
        slots = self._ensure(sample, 0, np.arange(len(sample)))
        total = np.zeros(len(self.conditions))
        for event in range(len(sample)):
            places = slots[sample.ids[sample.starts[event] : sample.starts[event + 1]]]
            if len(places):
                total += self._rows[places, : len(total)].max(axis=0)
        return total / len(sample)

    def _bound_jointly(self) -> None:
        """What each entry of a profile and their product must reach, now that their commonness is known."""
        self._least = np.zeros(len(self._profiles.fields[0]))
        # What rules a profile out soonest comes first: exact predicates, then those that few events answer.
        rank = [(odds > 0, chance) for odds, chance in zip(self._common.odds, self._common.chances, strict=True)]
        for slot in self._joint:
            ordered = sorted(self._profiles[slot].tolist(), key=rank.__getitem__)
            self._profiles.set(slot, ordered)
            mine, limit = self._common.some(ordered), float(self._limit[slot])
            self._bound[slot] = least_product(limit, mine) * (1 - TOLERANCE)
            begin = int(self._profiles.start[slot])
            self._least[begin : begin + len(mine.odds)] = least_entries(limit, mine)
        self._least *= 1 - TOLERANCE

    def _forget(self) -> None:
        super()._forget()
        self._common_version = -1
        self._attributes.forget()
        self._values.forget()
        self._drop_rows()

    @property
    def _version(self) -> int:
        """Grows whenever rows that were worked out before are no longer right."""
        return self.conditions.version + self._competition.version

    def know(self, sample: Encoded | None, around: Surroundings | None) -> None:
        """Take a sample of the stream, which says how common answers are and which values are nearer to others."""
        self._common_version = -1
        if around is not self._around:
            self._surrounded = None
            self._drop_rows()
        super().know(sample, around)

    def _stream_bits(self, terms: list[str]) -> NDArray[np.float32] | None:
        """What the values of the stream say of these values and every column."""
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
        self._keep_common()
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
        """Rows for all tuples of these events; gives the slots of tuples in this context."""
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
            # Rows of before are all out of date: room for more columns, nothing to copy.
            self._rows = np.zeros((len(self._rows), 2 * len(self.conditions)), dtype=np.float32)
            self._row_version[:] = 0
        self._rows, self._row_version = grown(self._rows, self._used), grown(self._row_version, self._used)
        places = slots[ids].astype(np.int64)
        said, attributes, values = self._said(ids, context)
        records, count = self.conditions.records, len(self.conditions)
        fill_rows(self._rows, places, records, count, said, attributes, values, float(self._doubt))
        self._refine(ids, places)
        self._row_version[places] = self._version

    def _refine(self, ids: NDArray[np.int32], places: NDArray[np.int64]) -> None:
        """What an approach has to add to rows that were just filled."""

    def _said(self, ids: NDArray[np.int32], context: int) -> tuple[Said, NDArray[np.float32], NDArray[np.float32]]:
        words = self._vocabulary
        theme = words.themes[context] if self._thematic else ()
        attribute, value = words.attribute[ids], words.value[ids]
        attribute_row, attributes = self._relate(0, attribute, words.attribute_terms, context, theme)
        textual = words.kind[ids] == 0
        value_row = np.zeros(len(ids), dtype=np.int64)
        value_row[textual], values = self._relate(1, value[textual], words.value_terms, context, theme)
        said = Said(attribute, value, words.kind[ids], words.number[ids], attribute_row, value_row)
        return said, attributes, values

    def _relate(
        self,
        side: int,
        numbers: NDArray[np.int32],
        terms: list[str],
        context: int,
        theme: Sequence[str],
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """For each event term the row of its scores, and the rows, on the side of attributes (0) or values (1)."""
        relations = (self._attributes, self._values)[side]
        if not len(relations.columns):
            return np.zeros(len(numbers), dtype=np.int64), np.zeros((1, 1), dtype=np.float32)
        once, back = np.unique(numbers, return_inverse=True)
        wanted = once.tolist()
        said = [terms[number] for number in wanted]
        places = relations.rows(wanted, said, context=context, theme=theme)
        scores = relations.scores(
            places,
            bits=self._stream_bits(said) if side == 1 else None,
            rivals=self._rivals.competing(side),
            temperature=self._temperature,
        )
        return back.astype(np.int64), scores
