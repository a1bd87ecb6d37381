"""The vocabulary of a stream: groups of terms with the same meaning, a map, and suggestions for unknown terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from likewise.language import Operator, Subscription, profiles_of
from likewise.semantics import Evidence, unknown_words

MOST_TERMS: Final = 110
SAME: Final = 0.5
"""Minimum score of two terms with the same meaning."""
_ROUNDS: Final = 150
_WORTH: Final = 0.02
"""Minimum score of a suggestion for an unknown term."""
_NEAR: Final = 0.3
"""Minimum score of a suggestion for a known term."""


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A term on the map."""

    term: str
    count: int
    x: float
    y: float
    cluster: int


@dataclass(frozen=True, slots=True)
class MeaningSuggestion:
    """A term that matches no subscription, and its possible meanings, the likeliest first."""

    term: str
    meanings: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class WordMap:
    """The map, groups and suggestions for the terms of a stream."""

    points: list[MapPoint] = field(default_factory=list)
    clusters: list[list[str]] = field(default_factory=list)
    """Terms with the same meaning, the largest group first; single terms are omitted."""
    suggestions: list[MeaningSuggestion] = field(default_factory=list)


def word_map(terms: Sequence[tuple[str, int]], subscribed: Sequence[str], measure: Evidence) -> WordMap:
    """Build the map of terms with their counts; `subscribed` are the terms of subscriptions."""
    chosen = [(term, count) for term, count in terms if _is_word(term)][:MOST_TERMS]
    names = [term for term, _ in chosen]
    if len(names) < 2:
        return WordMap()
    scores = measure.matrix(names, names).astype(np.float64)
    same = np.maximum(scores, scores.T)
    groups = cluster_terms(same)
    places = layout(_distances(same, names, measure))
    points = [
        MapPoint(term, count, float(x), float(y), int(group))
        for (term, count), (x, y), group in zip(chosen, places, groups, strict=True)
    ]
    return WordMap(points, _members(names, groups), list(suggestions(names, subscribed, measure)))


def cluster_terms(same: NDArray[np.float64]) -> NDArray[np.int64]:
    """The group of each term, by average linkage of the scores.

    >>> cluster_terms(np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])).tolist()
    [1, 1, 2]
    """
    distances = 1 - np.clip(same, 0, 1)
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform(distances, checks=False), method="average")
    return np.asarray(fcluster(tree, t=1 - SAME, criterion="distance"), np.int64)


def layout(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions in the plane that approximate the given distances: SMACOF after classical scaling [Borg, Groenen 2005].

    >>> places = layout(np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0.0]]))
    >>> round(float(np.linalg.norm(places[0] - places[2])), 1)
    2.0
    """
    size = len(distances)
    centre = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    places = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    for _ in range(_ROUNDS):
        current = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = np.divide(distances, current, out=np.zeros_like(distances), where=current > 1e-12)
        pull = -ratio
        pull[np.diag_indices(size)] = ratio.sum(axis=1)
        places = pull @ places / size
    return np.asarray(places, np.float64)


def suggestions(terms: Sequence[str], subscribed: Sequence[str], measure: Evidence) -> Iterator[MeaningSuggestion]:
    """Suggest meanings for terms that match no subscribed term: unknown terms first, then near misses."""
    spaces, glossary = measure.sources.spaces, measure.sources.glossary
    unknown = unknown_words(terms, spaces, near=0) if spaces else {}
    wanted = list(dict.fromkeys(subscribed))
    if not wanted:
        return
    scores = measure.matrix(wanted, list(terms)).T
    candidates = []
    for row, term in enumerate(terms):
        is_unknown = _has(term, unknown)
        best = np.argsort(-scores[row])[:3]
        least = _WORTH if is_unknown else _NEAR
        meanings = tuple((wanted[at], float(scores[row, at])) for at in best if scores[row, at] >= least)
        understood = bool(meanings) and meanings[0][1] >= SAME
        if not glossary.meanings(term) and not understood and (is_unknown or meanings):
            candidates.append((not is_unknown, -meanings[0][1] if meanings else 0.0, MeaningSuggestion(term, meanings)))
    yield from (suggestion for *_, suggestion in sorted(candidates, key=lambda candidate: candidate[:2]))


def subscribed_words(subscriptions: Sequence[Subscription]) -> list[str]:
    """The attributes and values of subscriptions."""
    terms: list[str] = []
    for subscription in subscriptions:
        for predicate in (predicate for profile in profiles_of(subscription.body) for predicate in profile.predicates):
            terms.append(predicate.attribute)
            if isinstance(predicate.value, str) and predicate.operator is Operator.EQ:
                terms.append(predicate.value)
    return list(dict.fromkeys(terms))


def _distances(same: NDArray[np.float64], names: Sequence[str], measure: Evidence) -> NDArray[np.float64]:
    """Distances for the map: the mean of the evidence distance and the distance of the sentence embeddings."""
    distances = 1 - np.clip(same, 0, 1)
    encoder = measure.sources.encoder
    if encoder is not None:
        vectors = encoder.vectors(list(names)).astype(np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        distances = 0.5 * distances + 0.5 * (1 - np.clip(vectors @ vectors.T, 0, 1))
    np.fill_diagonal(distances, 0)
    return distances


def _members(names: Sequence[str], groups: NDArray[np.int64]) -> list[list[str]]:
    by_group: dict[int, list[str]] = {}
    for name, group in zip(names, groups.tolist(), strict=True):
        by_group.setdefault(group, []).append(name)
    return sorted((group for group in by_group.values() if len(group) > 1), key=len, reverse=True)


def _is_word(term: str) -> bool:
    return any(letter.isalpha() for letter in term) and sum(letter.isdigit() for letter in term) < len(term) / 3


def _has(term: str, words: dict[str, list[str]]) -> bool:
    return any(word.lower() in term.lower() for word in words)
