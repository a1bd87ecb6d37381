"""The matcher: profiles in, events through, matches out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Options, Profile
from likewise.matching._aggregation import Aggregation
from likewise.matching._approach import Approach, Settings, resolve
from likewise.matching._exact import ExactIndex
from likewise.matching._match import Match
from likewise.matching._vocabulary import Encoded, Vocabulary

DEFAULT_THRESHOLD = 0.5


class Scores(NamedTuple):
    """Every match of a batch in columns: which event, which profile, how well."""

    event: NDArray[np.int32]
    handle: NDArray[np.int32]
    score: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Registration:
    """A profile as the matcher holds it."""

    key: Hashable
    profile: Profile
    settings: Settings


class Matcher:
    """Matches events against many profiles at once.

    >>> from likewise.language import Operator, Predicate
    >>> matcher = Matcher()
    >>> parking = Profile((Predicate("slots", Operator.GT, 0), Predicate("city", Operator.EQ, "Galway")))
    >>> handle = matcher.add(parking, key="parking")
    >>> [match.subscription for match in matcher.match(Event.of({"city": "galway", "slot": 3}))]
    ['parking']
    """

    def __init__(
        self,
        *,
        approach: str | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        aggregation: str | Aggregation | None = None,
        top_k: int = 1,
        distinct: bool = False,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self._approach = None if approach is None else Approach.parse(approach)
        self._threshold = threshold
        self._aggregation = None if aggregation is None else Aggregation(aggregation)
        self._top_k = top_k
        self._distinct = distinct
        self.vocabulary = vocabulary or Vocabulary()
        self._registrations: dict[int, Registration] = {}
        self._next = 0
        self._exact = ExactIndex(self.vocabulary)

    def __len__(self) -> int:
        return len(self._registrations)

    def add(self, profile: Profile, *, options: Options | None = None, key: Hashable = None) -> int:
        """Register a profile, active, and give its handle."""
        settings = resolve(
            profile,
            options or Options(),
            approach=self._approach,
            threshold=self._threshold,
            top_k=self._top_k,
            aggregation=self._aggregation,
            has_measure=False,
        )
        handle = self._next
        self._exact.add(handle, profile)
        self._next += 1
        self._registrations[handle] = Registration(handle if key is None else key, profile, settings)
        return handle

    def remove(self, handle: int) -> None:
        """Forget a profile."""
        self._known(handle)
        self._exact.remove(handle)
        del self._registrations[handle]

    def activate(self, handle: int) -> None:
        """Let a profile take part again."""
        self._known(handle)
        self._exact.activate(handle)

    def deactivate(self, handle: int) -> None:
        """Let a profile rest: it costs nothing until it is active again."""
        self._known(handle)
        self._exact.deactivate(handle)

    def encode(self, events: Sequence[Event]) -> Encoded:
        """Events as numbers, for the batch calls."""
        return self.vocabulary.encode(events)

    def match(self, event: Event) -> list[Match]:
        """Every profile that the event meets, best score first."""
        return self.match_batch((event,))[0]

    def match_batch(self, events: Sequence[Event]) -> list[list[Match]]:
        """The matches of every event, in the order of the events."""
        out: list[list[Match]] = [[] for _ in events]
        for at, handle, score in zip(*map(_plain, self.score_batch(self.encode(events))), strict=True):
            entry = self._registrations[handle]
            out[at].append(
                Match(
                    entry.key,
                    events[at],
                    score,
                    profile=entry.profile,
                    threshold=entry.settings.threshold,
                    top_k=entry.settings.top_k,
                    distinct=self._distinct,
                )
            )
        return out

    def score_batch(self, encoded: Encoded) -> Scores:
        """The scores at or above the thresholds, without building any match."""
        which, handles = self._exact.match(encoded)
        return Scores(which, handles, np.ones(len(which), dtype=np.float32))

    def _known(self, handle: int) -> Registration:
        try:
            return self._registrations[handle]
        except KeyError:
            raise BuildError(f"no profile has the handle {handle}", hint="it may be removed already") from None


def _plain(column: NDArray[Any]) -> list[Any]:
    return list(column.tolist())
