"""A match: a subscription, an event, a score, and the mappings that explain it."""

from __future__ import annotations

import html
from collections.abc import Callable, Hashable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Profile
from likewise.matching.definition import combined_matrix
from likewise.matching.explain import Explanation
from likewise.matching.mapping import Mapping, mappings_of
from likewise.matching.settings import Aggregation, Approach


class Match:
    """One subscription met by one event; mappings are worked out when asked for."""

    def __init__(
        self,
        subscription: Hashable,
        event: Event,
        score: float,
        *,
        profile: Profile,
        threshold: float = 0.0,
        approach: Approach | None = None,
        aggregation: Aggregation | None = None,
        power: float = 1.0,
        matrix: NDArray[np.floating] | None = None,
        top_k: int = 1,
        distinct: bool = False,
        explain: Callable[[Match], Explanation] | None = None,
    ) -> None:
        self.subscription = subscription
        self.event = event
        self.score = score
        self.probability = min(1.0, score**power)
        self.profile = profile
        self.threshold = threshold
        self.approach = approach
        self.aggregation = aggregation
        self.top_k = top_k
        self.distinct = distinct
        self._matrix = matrix
        self._explain = explain

    def __repr__(self) -> str:
        return f"Match({self.subscription!r}, event={self.event.id!r}, score={self.score:.3f})"

    def _repr_html_(self) -> str:
        why = "" if self._explain is None else f"<pre>{html.escape(self.explain().text())}</pre>"
        return f"<b>{html.escape(repr(self))}</b>{why}"

    @cached_property
    def matrix(self) -> NDArray[np.floating]:
        """Combined similarity matrix: a row per predicate, a column per tuple."""
        return combined_matrix(self.profile, self.event) if self._matrix is None else self._matrix

    @cached_property
    def mappings(self) -> tuple[Mapping, ...]:
        """The most probable mappings, best first."""
        return mappings_of(
            self.profile.predicates, self.event.tuples, self.matrix, k=self.top_k, distinct=self.distinct
        )

    @property
    def mapping(self) -> Mapping | None:
        """The best mapping; None where a mean forgave a predicate that nothing answers."""
        return self.mappings[0] if self.mappings else None

    def explain(self) -> Explanation:
        """Why it matches: every predicate with what answers it, how well, and what both share."""
        if self._explain is None:
            raise BuildError("this match was made without a matcher", hint="use Matcher.explain")
        return self._explain(self)
