"""What every measure offers: whole matrices of relatedness, and the reason for one pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float32]
"""Relatedness in [0, 1]: a row per subscription term, a column per event term."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One concept that both terms share, and the part of the score that it carries."""

    concept: str
    weight: float
    kind: str = ""
    """Which evidence it is, where terms are weighed by evidence."""


@runtime_checkable
class Measure(Protocol):
    """Relatedness of terms, given the themes of both sides [000 sec 4.3].

    The same normalised term on both sides is 1; terms without any known word are 0 to all others.
    """

    @property
    def name(self) -> str:
        """The name by which users choose it."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether swapping the sides, with their themes, gives the transposed matrix."""
        ...

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
    ) -> Matrix:
        """Relatedness of every subscription term (row) with every event term (column)."""
        ...

    def reason(
        self,
        subscription_term: str,
        event_term: str,
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
        limit: int = 5,
    ) -> list[Shared]:
        """The strongest concepts that carry the score of one pair, strongest first."""
        ...


class Prepared(Protocol):
    """The subscription side of a measure, made ready for many event terms that come later."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The subscription terms, in the order of the columns."""
        ...

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """A row per event term, a column per subscription term: the transposed `matrix`."""
        ...


@runtime_checkable
class Preparable(Protocol):
    """A measure with a prepared form of its own."""

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """The subscription side, made ready."""
        ...


def prepare(measure: Measure, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
    """The subscription side of any measure: its own prepared form, or its matrix asked for again."""
    if isinstance(measure, Preparable):
        return measure.prepare(subscription_terms, subscription_theme=subscription_theme)
    return _Unprepared(measure, tuple(subscription_terms), tuple(subscription_theme))


class Preparing(ABC):
    """A measure that is all in its prepared form: its matrix is the prepared rows, turned."""

    @abstractmethod
    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """The subscription side, made ready."""

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),
        event_theme: Sequence[str] = (),
    ) -> Matrix:
        """Relatedness of every subscription term (row) with every event term (column)."""
        prepared = self.prepare(subscription_terms, subscription_theme=subscription_theme)
        return np.ascontiguousarray(prepared.rows(event_terms, event_theme=event_theme).T)


@runtime_checkable
class Parting(Protocol):
    """A measure that holds some terms apart, however related they are."""

    def apart(self, subscription_term: str, event_term: str) -> str:
        """Why two terms are held apart, in words; empty if they are not."""
        ...


def apart(measure: Measure, subscription_term: str, event_term: str) -> str:
    """Why a measure holds two terms apart, however related they are; empty if it does not."""
    return measure.apart(subscription_term, event_term) if isinstance(measure, Parting) else ""


@dataclass(frozen=True, slots=True)
class _Unprepared:
    measure: Measure
    terms: tuple[str, ...]
    theme: tuple[str, ...]

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        scores = self.measure.matrix(self.terms, event_terms, subscription_theme=self.theme, event_theme=event_theme)
        return np.ascontiguousarray(scores.T)
