"""What every measure offers: whole matrices of relatedness, and the reason for one pair."""

from __future__ import annotations

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
