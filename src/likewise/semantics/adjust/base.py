"""Measures that scale another measure's scores, such as by how they stand beside those of other terms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from likewise.semantics.competitors import Competitors
from likewise.semantics.measures.base import Measure, Prepared, Preparing, Shared, apart, prepare


class Rescaled(Preparing):
    """Another measure with other scores; its reasons are those of the measure inside, scaled with the score.

    The sides are not alike, so it is not symmetric.
    """

    symmetric = False

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def reason(
        self,
        subscription_term: str,
        event_term: str,
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
        limit: int = 5,
    ) -> list[Shared]:
        """The measure's own reasons, scaled to the score."""
        themes = {"subscription_theme": subscription_theme, "event_theme": event_theme}
        before = float(self._measure.matrix([subscription_term], [event_term], **themes)[0, 0])
        after = float(self.matrix([subscription_term], [event_term], **themes)[0, 0])
        shared = self._measure.reason(subscription_term, event_term, limit=limit, **themes)
        return [Shared(each.concept, each.weight * after / before) for each in shared] if before > 0 else []


class Beside(Rescaled):
    """Another measure, and the terms that its scores are seen beside."""

    suffix: ClassVar[str]
    """What the name of the measure inside gets."""

    def __init__(self, measure: Measure, others: Competitors) -> None:
        super().__init__(measure)
        self._others = others
        self._prepared: dict[tuple[str, ...], Prepared] = {}

    @property
    def name(self) -> str:
        return f"{self._measure.name}+{self.suffix}"

    def _beside(self, theme: tuple[str, ...]) -> Prepared:
        """The other terms within a theme, made ready once."""
        if theme not in self._prepared:
            self._prepared[theme] = prepare(self._measure, self._others.terms, subscription_theme=theme)
        return self._prepared[theme]


# Measures that hold some terms apart, however related another measure finds them.


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
