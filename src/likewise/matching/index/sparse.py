"""Very many profiles with approximation: an event is compared only with candidates found by its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.language import Profile
from likewise.matching.background import Commonness, watched_entry
from likewise.matching.encoding import TEXT, Encoded, TupleVocabulary
from likewise.matching.index.dense_kernel import RELATED, UNRELATED
from likewise.matching.index.exact_kernel import EQUAL, EventTuples
from likewise.matching.index.group import CODES, TOLERANCE, Hits, ProfileGroup, bound_of, by_meaning, gather
from likewise.matching.index.lists import Lists, grown
from likewise.matching.index.sparse_kernel import (
    FLOOR,
    PROFILE,
    CandidatePostings,
    NearNames,
    NearTerms,
    SparseTables,
    StreamTables,
    chances_of,
    fill_matrix,
    match_sparse,
)
from likewise.matching.index.terms import STRONG, Move, Neighbours, Relations
from likewise.matching.settings import Aggregation, Settings
from likewise.semantics import Measure
from likewise.semantics.evidence import Surroundings

SELECTIVE = 0.35
"""The score that a watched condition must reach, if the threshold allows: few terms are that near."""


LOW = 0.05
"""A score that a watched condition should at least have to reach: many terms are nearer than that."""

SAFELY = 0.999
"""Bounds are lowered by this factor, since entries are 32-bit."""

UNSURE = 256
"""Profiles of one event that are compared in full at a time, because terms that are hardly related matter to them."""


def access_of(settings: Settings, length: int) -> tuple[int, float]:
    """How many conditions to watch, and the score that one of them must reach for the profile to match.

    If k conditions are all below b, the product is below b**k. So if the product must reach b**k, one of them reaches
    b. With more watched conditions b is higher, and fewer events reach it. For the cautious mean, where the weakest
    of n conditions counts n times more, it is b**(k + n).

    >>> from likewise.matching.settings import Approach
    >>> access_of(Settings(Approach("approximate"), 0.5, 1, Aggregation.GEOMETRIC), 2)
    (2, 0.4999...)
    """
    bound = bound_of(settings, length)
    if settings.aggregation is Aggregation.MEAN:
        return length, max(bound / length, 0.0)
    if settings.aggregation is Aggregation.JOINT:
        count = length - settings.exact
        entries = (watched_entry(settings.threshold, count, count, known=known) for known in (False, True))
        return count, SAFELY * min(entries)
    extra = length if settings.aggregation is Aggregation.CAUTIOUS else 0
    for k in range(1, length):
        if (least := bound ** (1 / (k + extra))) >= SELECTIVE:
            return k, least
    return length, float(bound ** (1 / (length + extra)))


class SparseGroup(ProfileGroup):
    """Profiles that are found by their rarest predicates.

    From threshold and aggregation follows a score that at least one of a few watched predicates must reach. Those are
    listed under the column of their value. An event's values have short lists of near columns; the profiles found
    there are verified in full. Relatedness below `FLOOR` counts as 0.
    """

    knows_stream = True
    """Whether a sample of the stream counts: only where a term has the same scores in all contexts."""

    def __init__(self, vocabulary: TupleVocabulary, measure: Measure, **options: Any) -> None:
        super().__init__(vocabulary, measure, **options)
        names, values = self._columns
        self._names, self._near = Relations(names), Neighbours(values)
        self._records = np.zeros(16, dtype=PROFILE)
        # What a watched condition must reach, in an unknown and in a known stream.
        self._access = np.zeros((16, 2), dtype=np.float32)
        self._by_meaning, self._by_value, self._by_name = (Lists(np.int32, np.int32, np.float32) for _ in range(3))
        self._active = 0
        self._least = np.ones(2)
        self._seen = np.zeros(16, dtype=np.int64)
        self._clock = np.zeros(2, dtype=np.int64)
        self._candidates = np.zeros(16, dtype=np.int32)
        self._unsure = np.zeros(UNSURE, dtype=np.int32)
        self._known = 0
        self._chance, self._chance_stamp = np.zeros(16), np.zeros(16, dtype=np.int64)
        self._stamp = 0
        self._sample_version: tuple[int, ...] = ()
        self._forget()

    @staticmethod
    def takes(settings: Settings, length: int) -> bool:
        """Whether a profile's threshold is high enough for an index that ignores low relatedness."""
        # A threshold at the floor itself is high enough: bounds are a millionth lower, because of TOLERANCE.
        return access_of(settings, length)[1] >= 0.999 * FLOOR

    @property
    def compared(self) -> NDArray[np.int64]:
        """How many candidates were verified so far."""
        return self._clock[1:]

    def activate(self, slot: int) -> None:
        """Add a profile to the lists of its watched conditions."""
        self._records["active"][slot] = True
        self._active += 1
        # The watched conditions come first, so that `deactivate` finds them again.
        watched = self._choose(slot)
        rest = self._profiles[slot].tolist()
        for number in watched:
            rest.remove(number)
        self._profiles.set(slot, [*watched, *rest])
        self._records["start"][slot] = self._profiles.start[slot]
        self._records["watched"][slot] = len(watched)
        self._least = np.minimum(self._least, self._access[slot])
        for number in watched:
            postings, at, attribute = self._place(number)
            postings.append(at, attribute, slot, self._access[slot, self._known])

    def _choose(self, slot: int) -> list[int]:
        """The conditions to watch: those that the fewest events reach."""
        ranked = sorted(set(self._profiles[slot].tolist()), key=self._expected_candidates)
        if self._records[slot]["aggregation"] != CODES[Aggregation.JOINT]:
            return ranked[: int(self._records[slot]["watched"])]
        loose = dict(zip(ranked, by_meaning(self.conditions.records[ranked]).tolist(), strict=True))
        exact = [number for number in ranked if not loose[number]]
        every = [number for number in ranked if loose[number]]
        # Those that are found by their attribute only are watched if the others are not enough.
        watched = [number for number in every if self._place(number)[0] is not self._by_name]
        limit, count = float(self._records[slot]["limit"]), sum(loose[n] for n in self._profiles[slot].tolist())
        if not watched or watched_entry(limit, len(watched), count, known=True) < LOW:
            watched = every
        if exact and (not every or self._expected_candidates(exact[0]) <= sum(map(self._expected_candidates, watched))):
            self._access[slot] = SAFELY
            return exact[:1]
        size = count if watched == every else len(watched)
        self._access[slot] = [SAFELY * watched_entry(limit, size, count, known=known) for known in (False, True)]
        return watched

    def deactivate(self, slot: int) -> None:
        """Remove a profile from all lists."""
        self._records["active"][slot] = False
        self._active -= 1
        for number in self._profiles[slot][: int(self._records[slot]["watched"])].tolist():
            postings, at, _ = self._place(number)
            postings.discard(at, slot, field=1)

    @property
    def _active_count(self) -> int:
        return self._active

    def _enter(self, slot: int, length: int, settings: Settings) -> None:
        if slot >= len(self._records):
            self._records, self._access = grown(self._records, slot + 1), grown(self._access, slot + 1)
            self._seen, self._candidates = grown(self._seen, slot + 1), grown(self._candidates, slot + 1)
        watched, access = access_of(settings, length)
        self._access[slot] = access
        limit, how = settings.threshold * (1 - TOLERANCE), CODES[settings.aggregation]
        least = (0.0, 0.0)
        if settings.aggregation is Aggregation.JOINT:
            unknown, in_stream = (watched_entry(settings.threshold, 1, watched, known=known) for known in (False, True))
            least = (SAFELY * unknown, SAFELY * in_stream)
            self._chance = grown(self._chance, len(self.conditions))
            self._chance_stamp = grown(self._chance_stamp, len(self.conditions))
            # Their numbers may have belonged to other conditions.
            self._chance_stamp[self._profiles[slot]] = 0
        self._records[slot] = (0, bound_of(settings, length), limit, *least, length, watched, how, False)

    def set_stream(self, sample: Encoded | None, around: Surroundings | None) -> None:
        """Set the sample of the stream, and its values, which are evidence about the values compared."""
        super().set_stream(sample, around)
        self._sample_version = ()
        if around is not self._near.around:
            self._near.surround(around)
            self._near_of.clear()
        known = int(self.knows_stream and not self._thematic and sample is not None and len(sample) > 0)
        if known != self._known:
            self._known = known
            for postings in (self._by_meaning, self._by_value, self._by_name):
                postings.fields[2][:] = self._access[postings.fields[1], known]

    def commonness(self, profile: Profile) -> Commonness:
        """How common answers to a registered profile's predicates are in the known stream."""
        conditions = self.conditions.numbers(profile.predicates)
        compared = by_meaning(self.conditions.records[conditions]).tolist()
        if not self._known or self._sample is None:
            return Commonness.unknown(compared)
        if self._rivals.update():
            self.make_room()
        tables = self._tables_of(self._sample, 0, np.arange(len(self._sample)))
        return Commonness.seen(chances_of(np.array(conditions, np.int32), tables).tolist(), compared)

    def _rename(self, side: int, move: Move) -> None:
        """Move the postings of terms that moved; list 0 by name is for exact attributes."""
        for old, new in zip(move.old.tolist(), move.new.tolist(), strict=True):
            self._by_meaning.rename(old, new) if side else self._by_name.rename(old + 1, new + 1)
        if not side:
            for postings in (self._by_meaning, self._by_value, self._by_name):
                attribute = postings.fields[0]
                attribute[:] = np.where(attribute >= 0, move.table[np.maximum(attribute, 0)], attribute)

    def matrix(self, encoded: Encoded, event: int, conditions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The combined matrix of some conditions with one event of the batch that was matched last."""
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        tables = self._tables[self._context_of(encoded, event)]
        out = np.zeros((len(conditions), len(ids)), dtype=np.float32)
        fill_matrix(out, conditions.astype(np.int32), ids, tables)
        return out

    def _place(self, number: int) -> tuple[Lists, int, int]:
        """The list of a watched condition, its number there, and the attribute that it asks for."""
        record = self.conditions.records[number]
        column, value_column = int(record["attribute_column"]), int(record["value_column"])
        attribute = column if column >= 0 else -int(record["attribute"]) - 1
        operator = int(record["operator"])
        if operator == RELATED and value_column >= 0:
            return self._by_meaning, value_column, attribute
        if operator in (RELATED, EQUAL):
            return self._by_value, int(record["value"]), attribute
        return self._by_name, column + 1, attribute

    def _expected_candidates(self, number: int) -> float:
        """How many candidates an event is likely to find in a condition's list."""
        postings, at, _ = self._place(number)
        return len(postings[at]) * (1000 if postings is self._by_name else 1) + (postings is self._by_name)

    def _forget(self) -> None:
        super()._forget()
        self._names.forget()
        self._near.forget()
        self._name_rival = np.zeros(64, dtype=np.float32)
        self._name_of: dict[int, NDArray[np.int32]] = {}
        self._near_of: dict[int, NDArray[np.int32]] = {}
        self._tables: dict[int, SparseTables] = {}

    def _score(self, encoded: Encoded, context: int, events: NDArray[np.int64]) -> Iterator[Hits]:
        tables = self._tables[context] = self._tables_of(encoded, context, events)
        first = 0
        while first < len(events):
            first, count, unsure = match_sparse(
                encoded.ids,
                encoded.starts,
                events,
                first,
                tables,
                _postings(self._by_meaning),
                _postings(self._by_value),
                _postings(self._by_name),
                self._seen,
                self._clock,
                self._candidates,
                self._unsure,
                self._out.event,
                self._out.profile,
                self._out.score,
            )
            yield self._out.head(count)
            if unsure:
                self._complete(encoded, int(events[first]), self._unsure[:unsure], context)
                tables = self._tables[context] = self._tables_of(encoded, context, events)
            elif not count and first < len(events):
                self._out = self._out.doubled()

    def _tables_of(self, encoded: Encoded, context: int, events: NDArray[np.int64]) -> SparseTables:
        words, near, strong = self._vocabulary, self._near.lists, self._near.strong
        name_of, near_of = self._ensure(encoded, context, events)
        return SparseTables(
            EventTuples(words.key, words.attribute, words.kind, words.number),
            words.value,
            NearNames(name_of, self._names.table, self._name_rival),
            NearTerms(
                near_of,
                near.start,
                near.length,
                near.fields[0],
                near.fields[1],
                strong.start,
                strong.length,
                strong.fields[0],
                strong.fields[1],
                self._near.rival,
            ),
            self.conditions.records,
            self._records,
            self._profiles.fields[0],
            float(self._least[self._known]),
            bool(self._least[self._known] >= STRONG),
            self._temperature or 0.0,
            float(self._odds_factor),
            self._stream_tables(),
        )

    def _stream_tables(self) -> StreamTables:
        if not self._known or self._sample is None:
            return StreamTables(False, _NO_IDS, _NO_STARTS, self._chance, self._chance_stamp, 0)
        return StreamTables(True, self._sample.ids, self._sample.starts, self._chance, self._chance_stamp, self._stamp)

    def _complete(self, encoded: Encoded, event: int, profiles: NDArray[np.int32], context: int) -> None:
        """List the values of an event with all values of these profiles, however little they are related."""
        words = self._vocabulary
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        values = np.unique(words.value[ids[words.kind[ids] == TEXT]]).tolist()
        records = self.conditions.records[np.concatenate([self._profiles[slot] for slot in profiles.tolist()])]
        columns = records["value_column"][np.isin(records["operator"], (RELATED, UNRELATED))]
        self._near.complete(
            self._near_of[context if self._thematic else 0][values],
            [words.value_terms[number] for number in values],
            np.unique(columns[columns >= 0]),
            theme=words.themes[context] if self._thematic else (),
        )

    def _ensure(
        self, encoded: Encoded, context: int, events: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Compute missing rows and neighbours for the terms of these events, and of the sample of the stream."""
        if self._known and self._sample is not None and encoded is not self._sample:
            version = (self._rivals.version, *(columns.version for columns in self._columns))
            if version != self._sample_version:
                self._ensure(self._sample, 0, np.arange(len(self._sample)))
                self._sample_version = version
                self._stamp += 1
        words = self._vocabulary
        ids = np.unique(encoded.ids if len(events) == len(encoded) else gather(encoded, events))
        theme = words.themes[context] if self._thematic else ()
        name_of = self._name_of[context] = _room(self._name_of.get(context), len(words.attribute_terms))
        names = np.unique(words.attribute[ids]).tolist()
        places = self._name_rows(names, [words.attribute_terms[n] for n in names], context=context, theme=theme)
        name_of[names] = places
        self._contest_names(places)
        if not self._thematic:
            # Without themes the scores of a value are the same in every context.
            context = 0
        near_of = self._near_of[context] = _room(self._near_of.get(context), len(words.value_terms))
        values = np.unique(words.value[ids[words.kind[ids] == TEXT]]).tolist()
        lists = self._near.rows(values, [words.value_terms[n] for n in values], context=context, theme=theme)
        near_of[values] = lists
        if self._temperature:
            self._near.contest(lists, self._rivals.competing(1), self._rivals.version)
        return name_of, near_of

    def _name_rows(
        self, names: Sequence[int], terms: Sequence[str], *, context: int, theme: Sequence[str]
    ) -> NDArray[np.int64]:
        """The places of an event's attributes in the table of names."""
        return self._names.rows(names, terms, context=context, theme=theme)

    def _contest_names(self, places: NDArray[np.int64]) -> None:
        self._name_rival = grown(self._name_rival, len(self._names.table))
        if self._temperature:
            scores = self._names.table[np.ix_(places, np.flatnonzero(self._rivals.competing(0)))]
            self._name_rival[places] = scores.max(axis=1, initial=0.0)


_NO_IDS = np.zeros(0, dtype=np.int32)
_NO_STARTS = np.zeros(1, dtype=np.int64)


def _postings(lists: Lists) -> CandidatePostings:
    return CandidatePostings(lists.start, lists.length, lists.fields[0], lists.fields[1], lists.fields[2])


def _room(places: NDArray[np.int32] | None, size: int) -> NDArray[np.int32]:
    return grown(np.zeros(64, dtype=np.int32) if places is None else places, size)
