"""The words of a stream: which mean the same, where they lie on a map, and which nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from likewise.language import Composite, Member, Operator, Predicate, Profile, Subscription, members
from likewise.semantics import Evidence, unknown_words

MOST_TERMS: Final = 110
SAME: Final = 0.5
"""From this score on two words count as the same."""
_ROUNDS: Final = 150
_WORTH: Final = 0.02
"""Less than this is no suggestion for a word that nobody knows."""
_NEAR: Final = 0.3
"""Less than this is no suggestion for a known word."""


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A word on the map."""

    term: str
    count: int
    x: float
    y: float
    cluster: int


@dataclass(frozen=True, slots=True)
class Guess:
    """A word that is not understood, and what it may stand for, the likeliest first."""

    term: str
    meanings: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class WordMap:
    """The words of a stream at one moment."""

    points: list[MapPoint] = field(default_factory=list)
    clusters: list[list[str]] = field(default_factory=list)
    """Words that mean the same, the largest group first; single ones are left out."""
    guesses: list[Guess] = field(default_factory=list)


def word_map(terms: Sequence[tuple[str, int]], asked: Sequence[str], measure: Evidence) -> WordMap:
    """The map of some terms with their counts; `asked` are the words of subscriptions, which may be meant."""
    chosen = [(term, count) for term, count in terms if _is_word(term)][:MOST_TERMS]
    names = [term for term, _ in chosen]
    if len(names) < 2:
        return WordMap()
    scores = measure.matrix(names, names).astype(np.float64)
    same = np.maximum(scores, scores.T)
    groups = clustered(same)
    places = laid_out(_distances(same, names, measure))
    points = [
        MapPoint(term, count, float(x), float(y), int(group))
        for (term, count), (x, y), group in zip(chosen, places, groups, strict=True)
    ]
    return WordMap(points, _listed(names, groups), list(guesses(names, asked, measure)))


def clustered(same: NDArray[np.float64]) -> NDArray[np.int64]:
    """The group of each term: those that are the same on the average (average linkage).

    >>> clustered(np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])).tolist()
    [1, 1, 2]
    """
    apart = 1 - np.clip(same, 0, 1)
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), method="average")
    return np.asarray(fcluster(tree, t=1 - SAME, criterion="distance"), np.int64)


def laid_out(apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places in the plane whose distances are near the given ones: SMACOF from classical scaling [Borg, Groenen 2005].

    >>> places = laid_out(np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0.0]]))
    >>> round(float(np.linalg.norm(places[0] - places[2])), 1)
    2.0
    """
    size = len(apart)
    centre = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-0.5 * centre @ apart**2 @ centre)
    places = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    for _ in range(_ROUNDS):
        now = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = np.divide(apart, now, out=np.zeros_like(apart), where=now > 1e-12)
        pull = -ratio
        pull[np.diag_indices(size)] = ratio.sum(axis=1)
        places = pull @ places / size
    return np.asarray(places, np.float64)


def guesses(terms: Sequence[str], asked: Sequence[str], measure: Evidence) -> Iterator[Guess]:
    """Terms that mean nothing asked for though they may be meant: unknown words first, then near misses."""
    spaces, glossary = measure.sources.spaces, measure.sources.glossary
    unknown = unknown_words(terms, spaces, near=0) if spaces else {}
    wanted = list(dict.fromkeys(asked))
    if not wanted:
        return
    scores = measure.matrix(wanted, list(terms)).T
    found = []
    for row, term in enumerate(terms):
        strange = _has(term, unknown)
        best = np.argsort(-scores[row])[:3]
        least = _WORTH if strange else _NEAR
        meanings = tuple((wanted[at], float(scores[row, at])) for at in best if scores[row, at] >= least)
        understood = bool(meanings) and meanings[0][1] >= SAME
        if not glossary.meanings(term) and not understood and (strange or meanings):
            found.append((not strange, -meanings[0][1] if meanings else 0.0, Guess(term, meanings)))
    yield from (guess for *_, guess in sorted(found, key=lambda one: one[:2]))


def asked_words(subscriptions: Sequence[Subscription]) -> list[str]:
    """The attributes and values that subscriptions name."""
    out: list[str] = []
    for subscription in subscriptions:
        for predicate in _predicates(subscription.body):
            out.append(predicate.attribute)
            if isinstance(predicate.value, str) and predicate.operator is Operator.EQ:
                out.append(predicate.value)
    return list(dict.fromkeys(out))


def _predicates(body: Profile | Composite) -> Iterator[Predicate]:
    if isinstance(body, Profile):
        yield from body.predicates
        return
    for leaf in members(body.root):
        if isinstance(leaf, Member):
            yield from leaf.profile.predicates


def _distances(same: NDArray[np.float64], names: Sequence[str], measure: Evidence) -> NDArray[np.float64]:
    """Half what evidence says, half how far apart the sentence encoder sees them, so that the map has an order."""
    apart = 1 - np.clip(same, 0, 1)
    encoder = measure.sources.encoder
    if encoder is not None:
        vectors = encoder.vectors(list(names)).astype(np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        apart = 0.5 * apart + 0.5 * (1 - np.clip(vectors @ vectors.T, 0, 1))
    np.fill_diagonal(apart, 0)
    return apart


def _listed(names: Sequence[str], groups: NDArray[np.int64]) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for name, group in zip(names, groups.tolist(), strict=True):
        found.setdefault(group, []).append(name)
    return sorted((group for group in found.values() if len(group) > 1), key=len, reverse=True)


def _is_word(term: str) -> bool:
    return any(letter.isalpha() for letter in term) and sum(letter.isdigit() for letter in term) < len(term) / 3


def _has(term: str, words: dict[str, list[str]]) -> bool:
    return any(word.lower() in term.lower() for word in words)
