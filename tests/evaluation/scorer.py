"""The scores of a matcher in plain NumPy, independent of its kernels.

The same words, the product of attribute and value, the best tuple for each predicate, one mean over predicates. Here
every predicate is an equality of terms, and all of them are approximate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from likewise.events import Event, normalise
from likewise.language import Predicate, Profile
from likewise.matching import Commonness, joint
from likewise.matching.index.sparse_kernel import FLOOR
from likewise.semantics import Measure, contrasted

Terms = tuple[list[str], list[str]]


class Choice(NamedTuple):
    """How scores are combined: the temperature of contrast, bits for attributes, and events as background."""

    joint: bool = False
    temperature: float | None = None
    bits: float = 0.0
    background: int = 0


def defined(
    events: Sequence[Event], profiles: Sequence[Profile], measure: Measure, choice: Choice, *, alone: bool = False
) -> np.ndarray:
    """A row per profile, a column per event; alone, only a profile's own terms compete."""
    if alone:
        return np.concatenate([defined(events, [profile], measure, choice) for profile in profiles])
    wanted = _terms([(p.attribute, p.value) for profile in profiles for p in profile.predicates])
    published = _terms([pair for event in events for pair in event.tuples])
    measures = (measure.for_attributes(), measure)
    sides = [_related(*side, choice) for side in zip(measures, wanted, published, strict=True)]
    sides[0] = sides[0] / (sides[0] + (1 - sides[0]) * 2.0**-choice.bits)
    best = [[[_best(p, event, sides, wanted, published) for event in events] for p in q.predicates] for q in profiles]
    return np.stack([_one_score(np.array(rows), choice) for rows in best])


def _terms(pairs: Sequence[tuple[str, object]]) -> Terms:
    return sorted({normalise(name) for name, _ in pairs}), sorted({normalise(str(value)) for _, value in pairs})


def _related(measure: Measure, mine: list[str], theirs: list[str], choice: Choice) -> np.ndarray:
    scores = measure.matrix(mine, theirs)
    if choice.temperature is None:
        return scores
    return contrasted(scores.T, scores.max(axis=0), choice.temperature).T


def _best(predicate: Predicate, event: Event, sides: Sequence[np.ndarray], wanted: Terms, said: Terms) -> float:
    names = sides[0][wanted[0].index(normalise(predicate.attribute))]
    values = sides[1][wanted[1].index(normalise(str(predicate.value)))]
    return max(
        names[said[0].index(normalise(name))] * values[said[1].index(normalise(str(value)))]
        for name, value in event.tuples
    )


def _one_score(best: np.ndarray, choice: Choice) -> np.ndarray:
    """The scores of one profile, from those of its predicates (rows) in every event."""
    if not choice.joint:
        return best.prod(axis=0) ** (1 / len(best))
    told = [True] * len(best)
    seen = best[:, : choice.background]
    shares = np.where(seen >= FLOOR, seen, 0).mean(axis=1).tolist() if choice.background else []
    return joint(best, Commonness.seen(shares, told) if shares else Commonness.unknown(told))
