"""Where the hits of a batch come from: from whoever composes, or from a matcher in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.composite.encoding import Columns, EncodedTuples
from likewise.composite.general.pool import Answer, Pool, mapped_values
from likewise.composite.hits import HitColumns
from likewise.events import Event, EventColumns
from likewise.matching import EventScores, Matcher

if TYPE_CHECKING:
    from likewise.composite.compiled.patterns import FlatPatterns


class HitSource(Protocol):
    """What a batch asks for its hits."""

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """The tuples of the events as numbers."""
        ...

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns | None:
        """The hits that a dictionary of tuples does not tell; None if there can be none."""
        ...

    def answers(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterable[tuple[int, list[Answer]]]:
        """The events that match a profile of the general path, in order, with what they match."""
        ...


class GivenHits:
    """Hits that came with the events."""

    def __init__(self, pool: Pool, columns: Columns, hits: HitColumns) -> None:
        self._pool = pool
        self._columns = columns
        self._hits = hits

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """Only for the keys by which patterns join: the hits are known."""
        self._columns.trim()
        return self._columns.encode(events)

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns:  # noqa: ARG002 - not needed by this kind
        """All of them."""
        return self._hits

    def answers(
        self,
        events: Sequence[Event],  # noqa: ARG002 - not needed by this kind
        encoded: EncodedTuples,  # noqa: ARG002 - not needed by this kind
        scored: HitColumns | None,  # noqa: ARG002 - not needed by this kind
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Those of the general path."""
        by_handle = self._pool.by_handle
        for at, rows in groupby(self._hits.rows(), key=itemgetter(0)):
            found: list[Answer] = []
            for _, profile, probability, mapped in rows:
                entry = by_handle.get(profile)
                if entry is not None and not any(entry is other[0] for other in found):
                    found.append((entry, probability, mapped))
            if found:
                yield at, found


class MatchedHits:
    """Hits that a matcher finds; `known` are its scores of these very events, where it was asked before."""

    def __init__(
        self, pool: Pool, columns: Columns, matcher: Matcher, flat: FlatPatterns | None, known: HitColumns | None = None
    ) -> None:
        self._pool = pool
        self._columns = columns
        self._matcher = matcher
        self._flat = flat
        self._known = known

    def encode(self, events: Sequence[Event]) -> EncodedTuples:
        """Tuples tell which simple profiles they answer, and the keys by which patterns join."""
        self._columns.trim()
        return self._columns.encode(events)

    def scored(self, events: Sequence[Event], encoded: EncodedTuples) -> HitColumns | None:
        """What the matcher says, asked once and only about events that may match."""
        if self._known is not None:
            return self._known
        if self._pool.by_handle:
            return self._score(events, None)
        if self._flat is not None and self._flat.asks_matcher:
            return self._score(events, self._flat.promising(encoded))
        return None

    def _score(self, events: Sequence[Event], some: NDArray[np.int64] | None) -> HitColumns:
        chosen = events
        if some is not None:
            chosen = events.take(some) if isinstance(events, EventColumns) else [events[at] for at in some.tolist()]
        event, handle, score = self._matcher.score_batch(self._matcher.encode(chosen))
        at = event if some is None else some[event]
        return HitColumns(at, handle, self._matcher.probabilities(handle, score))

    def answers(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterator[tuple[int, list[Answer]]]:
        """By dictionary and by matcher; where names of attributes are matched by meaning, with what they stand for."""
        pool = self._pool
        at, hits, meaning = -1, list[Answer](), False
        for event, code, sure in self._rows(events, encoded, scored):
            if event != at:
                if hits:
                    yield at, self._mapped(events[at], hits) if meaning else hits
                at, hits, meaning = event, [], False
            entry = pool.by_number.get(code) if code >= 0 else pool.by_handle.get(~code)
            # An event may say the same twice.
            if entry is not None and not (hits and any(entry is hit[0] for hit in hits)):
                hits.append((entry, sure, None))
                meaning = meaning or entry.by_meaning
        if hits:
            yield at, self._mapped(events[at], hits) if meaning else hits

    def _mapped(self, event: Event, hits: list[Answer]) -> list[Answer]:
        """The same hits with what other names of the event stand for; they are scored already."""
        asked = [(entry.handle, sure) for entry, sure, _ in hits if entry.by_meaning]
        handle, sure = np.array([one[0] for one in asked], np.int32), np.array([one[1] for one in asked], np.float32)
        scores = EventScores(np.zeros(len(asked), np.int32), handle, sure)
        [matches] = self._matcher.matches_of(self._matcher.encode([event]), scores)
        found = {id(match.subscription[0]): match for match in matches if isinstance(match.subscription, tuple)}
        told = ((entry, sure, found.get(id(entry))) for entry, sure, _ in hits)
        return [
            (entry, sure, None if match is None else mapped_values(entry.profile, event, match))
            for entry, sure, match in told
            if match is not None or not entry.by_meaning
        ]

    def _rows(
        self, events: Sequence[Event], encoded: EncodedTuples, scored: HitColumns | None
    ) -> Iterator[tuple[int, int, float]]:
        """Event, number of a simple profile or complement of the matcher's handle, and how sure; by event."""
        predicate = self._columns.predicate_of[encoded.ids]
        where = np.flatnonzero(predicate >= 0)
        event, code = np.searchsorted(encoded.starts, where, side="right") - 1, predicate[where]
        if not self._pool.by_handle:
            return zip(event.tolist(), code.tolist(), repeat(1.0))
        if scored is None:
            scored = self._known or self._score(events, None)
        sure = np.concatenate((np.ones(len(where)), scored.probability))
        event, code = np.concatenate((event, scored.event)), np.concatenate((code, ~scored.profile))
        order = np.argsort(event, kind="stable")
        return zip(event[order].tolist(), code[order].tolist(), sure[order].tolist(), strict=True)
