"""Suggestions of theme tags for the terms of events or subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import STRONGEST_POSTINGS
from likewise.semantics.measures.base import Matrix
from likewise.semantics.measures.esa import Esa
from likewise.semantics.space.space import Space
from likewise.semantics.space.vectors import Vectors, unit
from likewise.semantics.space.vocabulary import Vocabulary
from likewise.semantics.text import tokens

CANDIDATES = 400
MOST_TERMS = 500
"""The number of terms used, the most frequent ones; more do not change the suggestions."""

SMALLEST_BASIS = 5
"""The least number of concepts of a tag; with fewer, terms cannot be compared within it."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tag, the shares of the text's meaning and of the space that it keeps, and its nearest terms and concepts."""

    tag: str
    covers: float
    background: float
    terms: tuple[str, ...]
    concepts: tuple[str, ...]

    @property
    def lift(self) -> float:
        """The share of the text divided by the share of the space that the tag keeps."""
        return self.covers / self.background


def suggest(space: Space, terms: Mapping[str, float], *, limit: int = 8) -> list[Suggestion]:
    """Suggest tags for terms of events or of a subscription, given with their frequencies.

    The text is a mass over concepts: the sum of its terms' unit vectors. A theme keeps the concepts that contain any of
    its tags [000 Algorithm 1]. So candidates are words whose concepts have much of this mass, by p log(p / q) with p
    the share of the mass and q the share of all concepts. Of these, tags are chosen by the sum of the square roots of
    their cosines with the terms (without terms that contain the tag), reduced for tags similar to one already chosen.
    """
    chosen = dict(nlargest(MOST_TERMS, terms.items(), key=lambda item: (item[1], item[0])))
    mass = _mass(space, chosen)
    if not mass.any():
        return []
    vocabulary = Vocabulary(space)
    numbers = _candidates(vocabulary, mass)
    words = vocabulary.surfaces(numbers)
    esa = Esa(space)
    support = esa.matrix(words, list(chosen)) * _foreign(words, list(chosen))
    best = _diverse(np.sqrt(support).sum(axis=1), np.sqrt(esa.matrix(words, words)), limit)
    return [
        _explain(space, words[at], int(numbers[at]), mass, dict(zip(chosen, support[at], strict=True))) for at in best
    ]


def _mass(space: Space, terms: Mapping[str, float]) -> NDArray[np.float32]:
    """The distribution of the text's meaning over concepts; all 0 if no term is known."""
    # The logarithm of frequencies, so that one busy sensor does not become the whole theme.
    weights = np.log1p(np.fromiter(terms.values(), np.float32, len(terms)))
    rows = unit(Vectors(space, pruning=STRONGEST_POSTINGS).rows(list(terms)))
    mass = np.asarray(rows.T @ weights, np.float32)
    return mass / mass.sum() if mass.any() else mass


def _candidates(vocabulary: Vocabulary, mass: NDArray[np.float32]) -> NDArray[np.int64]:
    space = vocabulary.space
    value = worth(vocabulary.overlap(mass), space.df / space.concepts)
    value[space.df < SMALLEST_BASIS] = 0
    best = np.argsort(-value, kind="stable")[:CANDIDATES]
    return np.array([at for at in best if value[at] > 0 and space.term(int(at)).isalpha()], np.int64)


def _foreign(words: list[str], terms: list[str]) -> Matrix:
    """1 where a word is not part of a term, else 0."""
    stems_of = [set(tokens(term)) for term in terms]
    foreign = [[not stems & set(tokens(word)) for stems in stems_of] for word in words]
    return np.array(foreign, np.float32).reshape(len(words), len(terms))


def _diverse(scores: NDArray[np.float32], alike: Matrix, limit: int) -> list[int]:
    """The best by score, where each score is reduced by the similarity to the nearest one already chosen."""
    penalty = np.zeros_like(scores)
    chosen: list[int] = []
    while len(chosen) < min(limit, len(scores)):
        value = scores * (1 - penalty)
        value[chosen] = 0
        best = int(np.argmax(value))
        if value[best] <= 0:
            break
        chosen.append(best)
        penalty = np.maximum(penalty, alike[best])
    return chosen


def _explain(
    space: Space, tag: str, number: int, mass: NDArray[np.float32], support: Mapping[str, float]
) -> Suggestion:
    concepts = space.rows([number])[1]
    strongest = concepts[np.argsort(-mass[concepts], kind="stable")[:3]]
    near = nlargest(3, support.items(), key=lambda item: (item[1], item[0]))
    return Suggestion(
        tag=tag,
        covers=float(mass[concepts].sum()),
        background=len(concepts) / space.concepts,
        terms=tuple(term for term, score in near if score > 0),
        concepts=tuple(space.title(int(at)) for at in strongest),
    )


def worth(share: NDArray[np.floating], background: NDArray[np.floating]) -> NDArray[np.float64]:
    """p log(p / q), or 0 where p or q is 0.

    >>> worth(np.array([0.5, 0.0]), np.array([0.125, 0.1])).round(3).tolist()  # 0.5 log 4
    [0.693, 0.0]
    """
    ratio = np.divide(share, background, out=np.ones(len(share)), where=(share > 0) & (background > 0))
    return np.asarray(share * np.log(ratio), np.float64)
