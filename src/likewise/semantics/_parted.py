"""Measures that hold some terms apart, however related another measure finds them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from likewise.semantics._measure import Measure, Preparing, Shared, apart


class Parted(Preparing):
    """Another measure, except for terms that are held apart; what they are is for the kinds of it to say."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    @property
    def name(self) -> str:
        """That of the measure inside: what is chosen by name, such as a temperature, stays right."""
        return self._measure.name

    @property
    def symmetric(self) -> bool:
        return self._measure.symmetric

    @abstractmethod
    def _difference(self, subscription_term: str, event_term: str) -> str:
        """What holds two terms apart, in words; empty if nothing does."""

    def apart(self, subscription_term: str, event_term: str) -> str:
        """What holds two terms apart; else what the measure inside says."""
        told = self._difference(subscription_term, event_term)
        return told or apart(self._measure, subscription_term, event_term)

    def reason(
        self,
        subscription_term: str,
        event_term: str,
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
        limit: int = 5,
    ) -> list[Shared]:
        """The measure's own reasons; none for terms that are held apart."""
        if self._difference(subscription_term, event_term):
            return []
        return self._measure.reason(
            subscription_term,
            event_term,
            subscription_theme=subscription_theme,
            event_theme=event_theme,
            limit=limit,
        )
