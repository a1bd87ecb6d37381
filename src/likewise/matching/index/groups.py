"""Groups: which profiles are matched together, and whether they are all scored or indexed.

The approaches hybrid and clustered have their own kinds of groups, since they compare more than single terms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.language import Profile
from likewise.matching.encoding import TEXT, Encoded, TupleVocabulary
from likewise.matching.index.dense import DenseGroup
from likewise.matching.index.dense_kernel import RELATED
from likewise.matching.index.group import Hits, ProfileGroup
from likewise.matching.index.sparse import SparseGroup
from likewise.matching.index.terms import TermColumns
from likewise.matching.settings import Approach, Settings
from likewise.matching.topics import Clusters
from likewise.semantics import Hybrid, Measure, contrasted

MOST_CONTEXTS = 4096
"""Sets of attributes that are cached before the cache is cleared."""


class Ranks:
    """Ranks of attributes within their event [002 eq 14, 15], cached for each set of attributes (context)."""

    def __init__(self, vocabulary: TupleVocabulary, measure: Measure) -> None:
        if not isinstance(measure, Hybrid):
            raise BuildError(
                f"the approach hybrid needs a measure that ranks attributes, and {measure.name} does not",
                hint="give a Hybrid measure",
            )
        self._vocabulary = vocabulary
        self._measure = measure
        self.forget()

    def forget(self) -> None:
        """Drop all contexts."""
        self._contexts: dict[bytes, int] = {}
        self.members: list[NDArray[np.int32]] = []
        self._rows: dict[int, tuple[int, NDArray[np.float32]]] = {}

    @property
    def crowded(self) -> bool:
        """Whether there are more contexts than are cached."""
        return len(self.members) > MOST_CONTEXTS

    def context_of(self, encoded: Encoded, event: int) -> int:
        """The number of an event's set of attributes."""
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        members = np.unique(self._vocabulary.attribute[ids])
        context = self._contexts.setdefault(members.tobytes(), len(self.members))
        if context == len(self.members):
            self.members.append(members)
        return context

    def contexts(self, encoded: Encoded) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Every context of a batch with its events."""
        of = np.array([self.context_of(encoded, event) for event in range(len(encoded))], dtype=np.int64)
        for context in np.unique(of).tolist():
            yield context, np.flatnonzero(of == context)

    def rows(self, context: int, columns: TermColumns) -> NDArray[np.float32]:
        """A row per attribute of the context, in the order of their numbers, and a column per subscribed attribute."""
        version, rows = self._rows.get(context, (-1, np.zeros((0, 0), dtype=np.float32)))
        if version != columns.version:
            published = [self._vocabulary.attribute_terms[number] for number in self.members[context].tolist()]
            scores = self._measure.property_matrix(columns.terms, published)
            rows = np.ascontiguousarray(np.nan_to_num(scores).T)
            self._rows[context] = columns.version, rows
        return rows


class _RankedNames(ProfileGroup):
    """Ranks each attribute within its event [002 eq 14, 15], so a row depends on all attributes of the event."""

    def __init__(self, vocabulary: TupleVocabulary, measure: Measure, **options: Any) -> None:
        self._ranks = Ranks(vocabulary, measure)
        super().__init__(vocabulary, measure, **options)

    def match(self, encoded: Encoded) -> Hits:
        """Every match of a batch."""
        if self._ranks.crowded:
            self._forget()
        return super().match(encoded)

    def _forget(self) -> None:
        self._ranks.forget()
        super()._forget()

    def _context_of(self, encoded: Encoded, event: int) -> int:
        return self._ranks.context_of(encoded, event)

    def _contexts(self, encoded: Encoded) -> Iterator[tuple[int, NDArray[np.int64]]]:
        return self._ranks.contexts(encoded)


class HybridGroup(_RankedNames, DenseGroup):
    """Profiles of the hybrid approach, all scored for every event."""

    def _relate(
        self, side: int, numbers: NDArray[np.int32], terms: list[str], context: int, theme: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        columns = self._attributes.columns
        if side == 1 or not len(columns):
            # Values have no rank: their scores are the same in every context.
            return super()._relate(side, numbers, terms, 0, theme)
        rows = self._ranks.rows(context, columns)
        if self._temperature is not None:
            rows = contrasted(rows, rows[:, self._rivals.competing(0)].max(axis=1, initial=0.0), self._temperature)
        return np.searchsorted(self._ranks.members[context], numbers).astype(np.int64), rows


class HybridIndex(_RankedNames, SparseGroup):
    """Very many profiles of the hybrid approach: found by their values, then verified with ranks."""

    knows_stream = False

    def _name_rows(
        self, names: Sequence[int], terms: Sequence[str], *, context: int, theme: Sequence[str]
    ) -> NDArray[np.int64]:
        if not len(self._names.columns):
            return super()._name_rows(names, terms, context=0, theme=theme)
        return self._names.put(names, self._ranks.rows(context, self._names.columns), context=context)


class ClusteredGroup(DenseGroup):
    """Compares a profile only with events that share a topic with each of its values [004 sec 7.2-7.4]."""

    def __init__(self, vocabulary: TupleVocabulary, measure: Measure, *, clusters: Clusters, **options: Any) -> None:
        self._clusters = clusters
        super().__init__(vocabulary, measure, **options)

    def _refine(self, ids: NDArray[np.int32], places: NDArray[np.int64]) -> None:
        if self._meeting.shape != self._rows.shape:
            room = np.zeros(self._rows.shape, dtype=np.uint8)
            if self._meeting.shape[1] == room.shape[1]:
                room[: len(self._meeting)] = self._meeting
            self._meeting = room
        records = self.conditions.records[: len(self.conditions)]
        terms = self._values.columns.terms
        self._meeting[places, : len(records)] = topics_met(records, ids, self._vocabulary, terms, self._clusters)


class ClusteredIndex(SparseGroup):
    """Very many profiles of the clustered approach: found by near words, then filtered by topics."""

    def __init__(self, vocabulary: TupleVocabulary, measure: Measure, *, clusters: Clusters, **options: Any) -> None:
        self._clusters = clusters
        super().__init__(vocabulary, measure, **options)

    def match(self, encoded: Encoded) -> Hits:
        """Every match of a batch."""
        hits = super().match(encoded)
        pairs = zip(hits.event.tolist(), hits.profile.tolist(), strict=True)
        kept = np.array([self._meets(encoded, *pair) for pair in pairs], dtype=np.bool_)
        return Hits(hits.event[kept], hits.profile[kept], hits.score[kept])

    def _meets(self, encoded: Encoded, event: int, profile: int) -> bool:
        records = self.conditions.records[self._profiles[profile]]
        ids = encoded.ids[encoded.starts[event] : encoded.starts[event + 1]]
        met = topics_met(records, ids, self._vocabulary, self._near.columns.terms, self._clusters)
        return bool(met.any(axis=0).all())


def topics_met(
    records: NDArray[Any], ids: NDArray[np.int32], words: TupleVocabulary, terms: Sequence[str], clusters: Clusters
) -> NDArray[np.uint8]:
    """A row per tuple, a column per condition: whether they share a topic; a number has no topic but its own."""
    out = np.ones((len(ids), len(records)), dtype=np.uint8)
    by_meaning = np.flatnonzero((records["operator"] == RELATED) & (records["value_column"] >= 0))
    if not len(by_meaning):
        return out
    out[:, by_meaning] = words.value[ids][:, None] == records["value"][by_meaning][None, :]
    texts = np.flatnonzero(words.kind[ids] == TEXT)
    if len(texts):
        subscribed = [terms[column] for column in records["value_column"][by_meaning].tolist()]
        published = [words.value_terms[number] for number in words.value[ids[texts]].tolist()]
        out[np.ix_(texts, by_meaning)] = clusters.meet(subscribed, published)
    return out


IDLE = 16
"""The number of groups without profiles that are kept, with their scores of event terms."""

MOVED = 4
"""Profiles that move to the index with each new one, so that no single call has to move all of them."""

MatchGroup: TypeAlias = DenseGroup | SparseGroup
GroupKey: TypeAlias = tuple[Approach, tuple[str, ...], type[MatchGroup]]

_KINDS: dict[str, tuple[type[DenseGroup], type[SparseGroup]]] = {
    "clustered": (ClusteredGroup, ClusteredIndex),
    "hybrid": (HybridGroup, HybridIndex),
}


class Groups(Collection[MatchGroup]):
    """Groups of profiles with one approach and, for the thematic approach, one theme: few are all scored, many are
    indexed."""

    def __init__(self, make: Callable[[GroupKey], MatchGroup], *, dense: int) -> None:
        self._make = make
        self.dense = dense
        self._groups: dict[GroupKey, MatchGroup] = {}
        self._idle: dict[GroupKey, None] = {}
        self._waiting: dict[GroupKey, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[MatchGroup]:
        return iter(self._groups.values())

    def __contains__(self, group: object) -> bool:
        return group in self._groups.values()

    def place(self, slot: int, profile: Profile, settings: Settings) -> MatchGroup:
        """Add a profile to its group; once there is an index, to the index."""
        scored, indexed = _kinds(settings)
        takes = SparseGroup.takes(settings, len(profile.predicates))
        kind = indexed if takes and self._many(_key(settings, profile, scored), indexed) else scored
        key = _key(settings, profile, kind)
        self._idle.pop(key, None)
        if key not in self._groups:
            self._groups[key] = self._make(key)
        group = self._groups[key]
        group.add(slot, profile, settings)
        group.make_room()
        if kind is scored and takes:
            self._waiting.setdefault(key, {})[slot] = None
        return group

    def of(self, approach: Approach) -> MatchGroup | None:
        """A group that compares terms as they are with the measure of this approach, if there is one."""
        kinds = () if approach.base == "thematic" else (SparseGroup, DenseGroup)
        return next((self._groups[approach, (), kind] for kind in kinds if (approach, (), kind) in self._groups), None)

    def _many(self, scored: GroupKey, indexed: type[MatchGroup]) -> bool:
        few, index = self._groups.get(scored), self._groups.get((scored[0], scored[1], indexed))
        return bool(index and index.conditions.used) or (few is not None and few.conditions.used >= self.dense)

    def moving(self, profile: Profile, settings: Settings) -> list[int]:
        """The next profiles to move to the index, now that this one is indexed."""
        waiting = self._waiting.get(_key(settings, profile, _kinds(settings)[0]), {})
        return list(islice(waiting, MOVED))

    def leave(self, group: MatchGroup, slot: int, profile: Profile, settings: Settings) -> None:
        """Remove a profile from its group; a few groups without profiles are kept for later ones."""
        group.remove(slot)
        group.make_room()
        self._waiting.get(_key(settings, profile, type(group)), {}).pop(slot, None)
        if group.conditions.used:
            return
        self._idle[_key(settings, profile, type(group))] = None
        if len(self._idle) > IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest], self._groups[oldest]
            self._waiting.pop(oldest, None)


def _kinds(settings: Settings) -> tuple[type[DenseGroup], type[SparseGroup]]:
    return _KINDS.get(settings.approach.base, (DenseGroup, SparseGroup))


def _key(settings: Settings, profile: Profile, kind: type[MatchGroup]) -> GroupKey:
    theme = tuple(sorted(set(profile.theme))) if settings.approach.base == "thematic" else ()
    return settings.approach, theme, kind
