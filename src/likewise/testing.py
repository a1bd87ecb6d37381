"""Things for tests of code that uses Likewise: a clock to set by hand and a measure to write down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np

from likewise.events import Instant, normalise, to_instant
from likewise.semantics import Matrix, Shared

__all__ = ["ManualClock", "TableMeasure"]


class ManualClock:
    """A clock that stands still until it is moved.

    >>> clock = ManualClock()
    >>> clock.advance(timedelta(seconds=2))
    2000000
    >>> clock()
    2000000
    """

    def __init__(self, start: Instant | datetime = 0) -> None:
        self._now = to_instant(start) if isinstance(start, datetime) else start

    def __call__(self) -> Instant:
        return self._now

    def advance(self, by: timedelta | Instant) -> Instant:
        """Move on by a time span (or microseconds) and give the new time."""
        step = by if isinstance(by, int) else by // timedelta(microseconds=1)
        if step < 0:
            raise ValueError("a clock does not go back")
        self._now += step
        return self._now


class TableMeasure:
    """Relatedness written down pair by pair: the same term is 1, a pair not written down is 0.

    >>> measure = TableMeasure({("laptop", "computer"): 0.5})
    >>> measure.matrix(["laptop", "lamp"], ["computer", "laptops"]).tolist()
    [[0.5, 1.0], [0.0, 0.0]]
    """

    name = "table"
    symmetric = True

    def __init__(self, pairs: Mapping[tuple[str, str], float]) -> None:
        self._pairs = {
            pair: value
            for (left, right), value in pairs.items()
            for pair in ((normalise(left), normalise(right)), (normalise(right), normalise(left)))
        }

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002
        event_theme: Sequence[str] = (),  # noqa: ARG002
    ) -> Matrix:
        """The written values; themes change nothing."""
        rows = [[self._relate(a, b) for b in event_terms] for a in subscription_terms]
        return np.array(rows, dtype=np.float32).reshape(len(subscription_terms), len(event_terms))

    def reason(
        self,
        subscription_term: str,
        event_term: str,
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002
        event_theme: Sequence[str] = (),  # noqa: ARG002
        limit: int = 5,
    ) -> list[Shared]:
        """The pair itself, with its value."""
        value = self._relate(subscription_term, event_term)
        return [Shared(f"{subscription_term} / {event_term}", value)][:limit] if value else []

    def _relate(self, left: str, right: str) -> float:
        a, b = normalise(left), normalise(right)
        return 1.0 if a == b else self._pairs.get((a, b), 0.0)
