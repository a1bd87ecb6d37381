"""A labelled pair of terms for learning evidence."""

from __future__ import annotations

import random
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

HELD_OUT: Final = 5
"""One concept in this number is held out for testing."""

SEEN: Final = 4
"""WordNet's relations are visible for one concept of WordNet in this number."""

LABELS: Final = {
    "synonym": 1.0,
    "label": 0.85,
    "narrower": 0.55,
    "modified": 0.85,
    "related": 0.35,
    "wider": 0.15,
    "light": 0.95,
    "short": 0.97,
    "short, also a word": 0.7,
    "other name": 0.95,
    "unsure name": 0.7,
    "description": 0.95,
    "described twice": 0.9,
    "described beside": 0.03,
    "nearest beside": 0.08,
    "beside": 0.05,
    "state in other words": 0.8,
    "beside in this state": 0.02,
    "beside with this quantity": 0.02,
    "other state": 0.05,
    "state alone": 0.05,
    "thing alone": 0.15,
    "thing in a state": 0.55,
    "part of it": 0.1,
    "quantity of a thing": 0.55,
    "with a quantity": 0.2,
    "numbered": 0.97,
    "one number": 0.4,
    "named": 0.55,
}
"""How often a pair of a kind means the same; 0 for all others. Alternative labels are often not synonyms."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A subscription's term and an event's term, with the kind and source of the pair."""

    subscription: str
    event: str
    kind: str
    source: str
    concept: str

    @property
    def label(self) -> float:
        """The probability that both mean the same, from 0 to 1."""
        return LABELS.get(self.kind, 0.0)

    @property
    def held_out(self) -> bool:
        """Whether its concept is held out for testing; this depends on the concept's name only."""
        return self._number % HELD_OUT == 0

    @property
    def blind(self) -> bool:
        """Whether WordNet's relations are hidden, as for three of four concepts from WordNet.

        If all were visible, these relations would always be right; if none, they would be learned only from labels of
        thesauri, which are often not synonyms.
        """
        return self.source.startswith("WordNet") and self._number // HELD_OUT % SEEN != 0

    @property
    def _number(self) -> int:
        return int(sha256(f"{self.source} {self.concept}".encode()).hexdigest(), 16)


def either(one: str, other: str, rng: random.Random) -> tuple[str, str]:
    """Both terms in random order."""
    return (one, other) if rng.random() < 0.5 else (other, one)


__all__ = ["LABELS", "Pair", "either"]
