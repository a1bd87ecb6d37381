"""Joint probability: how likely all predicates of a profile are meant, in view of how common their answers are.

Either an event is meant as a whole, or each predicate is answered by chance. Where the stream is known, the chance of a
predicate is the share of its events that answer it: that an event comes from the one country that all events name says
nothing of its other predicates, that it names a rare device says much. Fellegi and Sunter weigh the agreement of
records by the frequency of what they agree on in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.matching.index.dense_kernel import CHANCE, MEANT, joint_score

MEANT_IN_STREAM: Final = 0.02
"""How likely an event of a known stream is taken to be the one that is meant, before anything is compared."""

RAREST: Final = 0.05
MOST_COMMON: Final = 0.95
"""Between these lies the chance of a predicate: a sample tells no more."""


def odds_against(chance: float) -> float:
    """The odds against a predicate in a known stream, before its words are compared.

    Scores were learned where half of the pairs mean the same. Their odds are brought half the way from there to what
    the stream says.
    """
    prior = sqrt((MEANT_IN_STREAM + (1 - MEANT_IN_STREAM) * chance) * 0.5)
    return (1 - prior) / prior


@dataclass(frozen=True, slots=True)
class Commonness:
    """How likely an event is meant at all, and of each predicate its chance and the odds against it.

    Exact predicates tell nothing of the others: they have chance 1 and odds 0.
    """

    meant: float
    chances: tuple[float, ...]
    odds: tuple[float, ...]

    @classmethod
    def unknown(cls, loose: Sequence[bool]) -> Commonness:
        """Of predicates, of which these have a `~`, in a stream that is not known."""
        prior = MEANT + (1 - MEANT) * CHANCE
        chances = tuple(CHANCE if each else 1.0 for each in loose)
        return cls(MEANT, chances, tuple((1 - prior) / prior if each else 0.0 for each in loose))

    @classmethod
    def seen(cls, shares: Sequence[float], loose: Sequence[bool]) -> Commonness:
        """Of predicates that such shares of a stream's events answer."""
        pairs = zip(shares, loose, strict=True)
        kept = [min(max(share, RAREST), MOST_COMMON) if each else 1.0 for share, each in pairs]
        odds = tuple(odds_against(chance) if chance < 1 else 0.0 for chance in kept)
        return cls(MEANT_IN_STREAM, tuple(kept), odds)

    def some(self, places: Sequence[int]) -> Commonness:
        """Of some of the predicates."""
        return Commonness(self.meant, *(tuple(part[at] for at in places) for part in (self.chances, self.odds)))

    @property
    def known(self) -> bool:
        """Whether it is that of a known stream."""
        return self.meant == MEANT_IN_STREAM

    @property
    def base_rate(self) -> float:
        """How likely an event of the stream answers all predicates, before its words are compared."""
        return self.meant + (1 - self.meant) * prod(self.chances)


def joint(probabilities: NDArray[np.float64], commonness: Commonness) -> NDArray[np.float64]:
    """The probability that all predicates (rows) are meant, each of which is so with the given probability.

    Several that are likely make each other likelier; one alone keeps its probability.

    >>> two = Commonness.unknown([True, True])
    >>> joint(np.array([[0.65, 0.65], [1.0, 0.65]]), two).round(3).tolist()
    [0.712, 0.469]
    >>> common, rare = (Commonness.seen([share, 0.1], [True, True]) for share in (0.9, 0.1))
    >>> round(float(joint(np.array([1.0, 0.4]), common)), 2), round(float(joint(np.array([1.0, 0.4]), rare)), 2)
    (0.22, 0.41)
    """
    told = [at for at, odds in enumerate(commonness.odds) if odds > 0]
    exact = [at for at, odds in enumerate(commonness.odds) if odds == 0]
    met: NDArray[np.float64] = probabilities[exact].prod(axis=0)
    if len(told) < 2:
        lone: NDArray[np.float64] = probabilities[told].prod(axis=0)
        return np.asarray(met * lone, np.float64)
    shape = (-1, *(1,) * (probabilities.ndim - 1))
    mine = probabilities[told]
    odds, chances = (np.array(part)[told].reshape(shape) for part in (commonness.odds, commonness.chances))
    whole = (odds * mine).prod(axis=0)
    doubts = (chances * odds * mine + (1 - chances) * (1 - mine)).prod(axis=0)
    found: NDArray[np.float64] = joint_score.py_func(whole, doubts, float(chances.prod()), commonness.meant)
    return np.asarray(met * found, np.float64)


def enough_jointly(others: Sequence[float], limit: float, *, commonness: Commonness) -> float:
    """The probability that the last predicate must have for all to reach a limit; above 1 if none is enough.

    `commonness` is that of the others, then of this one.
    """
    *before, chance = commonness.chances
    *odds_before, odds = commonness.odds
    if odds == 0 or not any(odds_before):
        return limit
    meant, whole, doubts = commonness.meant, odds, 1.0
    for value, its_chance, its_odds in zip(others, before, odds_before, strict=True):
        if its_odds > 0:
            whole *= its_odds * value
            doubts *= its_chance * its_odds * value + (1 - its_chance) * (1 - value)
    rest = commonness.base_rate * whole - limit * (
        meant * whole + (1 - meant) * doubts * (chance * odds - (1 - chance))
    )
    return float(limit * (1 - meant) * doubts * (1 - chance) / rest) if rest > 0 else inf


@lru_cache(maxsize=8192)
def least_entries(limit: float, commonness: Commonness) -> tuple[float, ...]:
    """What each predicate must have for `joint` to reach a limit, if all others were 1.

    >>> [round(each, 3) for each in least_entries(0.5, Commonness.unknown([True, True, False]))]
    [0.429, 0.429, 0.5]
    """
    told = [at for at, odds in enumerate(commonness.odds) if odds > 0]
    ones = [1.0] * (len(told) - 1)
    least = [limit] * len(commonness.odds)
    for at in told:
        order = [*(other for other in told if other != at), at]
        least[at] = enough_jointly(ones, limit, commonness=commonness.some(order))
    return tuple(least)


def least_product(limit: float, commonness: Commonness) -> float:
    """A product of probabilities below which `joint` cannot reach a limit.

    Where all predicates are as common as each other, the score for a given product is greatest where all but one are 1:
    there the product is that one. Else none of them may be below what would do if all others were 1.

    >>> three = Commonness.unknown([True] * 3)
    >>> round(float(joint(np.array([least_product(0.5, three), 1.0, 1.0]), three)), 6)
    0.5
    """
    least = [each for each, odds in zip(least_entries(limit, commonness), commonness.odds, strict=True) if odds > 0]
    if not least:
        return limit
    return prod(least) if commonness.known else least[0]


__all__ = ["Commonness", "enough_jointly", "joint", "least_entries", "least_product"]
