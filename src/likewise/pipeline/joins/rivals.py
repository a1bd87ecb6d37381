"""Competition in a join: rivals of a pair, one-to-one assignment, and margins.

Two terms may share a word and still differ: a coffee machine is a machine, and so is a washing machine. In a join, the
right side lists the alternatives, so the score of a pair is lowered if another term of the right fits the left term
nearly as well, or better. Terms of the right that mean the same are not rivals. The right side also determines which
words of a left term count: in a column of devices, *lobby fan F3* is a fan, because the code identifies one fan and
the first word is its location. If the right side has a *lobby clock*, *lobby* stays. A term of a dictionary is not
taken apart: a *sewing machine* is not just any machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from likewise.errors import BuildError
from likewise.events import normalise
from likewise.semantics import Evidence, Matrix, Measure, Prepared, Shared, Themes, tokens
from likewise.semantics.nearest import NearestTerms, Pairs

MARGIN: Final = 2.0
"""The bits that a pair must be ahead of its rivals to keep its score."""
SLOPE: Final = 3.0
"""Bits lost for each missing bit."""
RIVALS: Final = 4
"""The number of best terms of the right for a left term that count as rivals."""
DROPPED: Final = 0.5
"""Bits lost for each leading word that is left out."""
MOST_DROPPED: Final = 2
"""Leading words that are left out, at most."""
LONGEST: Final = 3
"""Words of a term that is not taken apart, at most."""
FOLLOWED: Final = 9.0
"""Bits lost if other words follow a term of the right with which a name begins. Of the 13 bits of the same term, enough
are left to be likely; a *coffee machine cleaner* has a better reading where the right has one."""
BEHIND: Final = 3.0
"""Bits lost if what is meant stands behind a comma."""
MOST_READINGS: Final = 6
"""Readings of a name, at most."""
_SEPARATOR: Final = re.compile(r"[,;()\[\]|]|\s[-–]\s")
_PLACING: Final = frozenset({"at", "behind", "beside", "by", "for", "from", "in", "near", "on", "under", "with"})
"""Words after which a name says where or what for."""
_EDGE: Final = 1e-4
_WEAK: Final = -4.0
"""Pairs with fewer bits never join, so whether they mean the same is not computed."""

Bits = NDArray[np.float64]


# The words of a name that count: without codes and leading words that the right side does not use.


class NameReading(NamedTuple):
    """One way to read a name, and the bits that it costs."""

    text: str
    cost: float


class NameReader:
    """Finds the readings of a name that the terms of a right side allow.

    >>> reader = NameReader(["fan", "water heater", "motor M7", "floor lamp"])
    >>> [reading.text for reading in reader.readings("lobby fan F3")]
    ['lobby fan', 'fan']
    >>> [reading.text for reading in reader.readings("water fan M7")], [r.text for r in reader.readings("X-17")]
    (['water fan M7'], ['X-17'])
    >>> [reading.text for reading in reader.readings("floor lamp dark grey, lobby fan side")]
    ['floor lamp dark grey', 'floor lamp']
    """

    def __init__(self, terms: Sequence[str], *, is_term: Callable[[str], bool] = lambda _: False) -> None:
        """`is_term` returns whether a phrase is a term of its own."""
        self._is_term = is_term
        self._used = frozenset(stem for term in terms for stem in tokens(term))
        self._codes = frozenset(word.lower() for term in terms for word in term.split() if _is_code(word))
        self._terms = frozenset(found for term in terms if len(found := tuple(tokens(term))) > 1)

    def readings(self, name: str) -> list[NameReading]:
        """What stands before a comma or bracket, without codes; then parts of it, at a cost."""
        first, *others = [part.strip() for part in _SEPARATOR.split(name) if part.strip()] or [name]
        found = {reading.text: reading for reading in reversed(self._readings(first))}
        if others and self._used.isdisjoint(tokens(first)):
            # `lobby, fan`: what is meant may also stand behind the comma.
            for part in others:
                for text, cost in self._readings(part):
                    found.setdefault(text, NameReading(text, cost + BEHIND))
        return sorted(found.values(), key=lambda reading: reading.cost)[:MOST_READINGS]

    def _readings(self, name: str) -> list[NameReading]:
        """The name without codes, then without its first words, without what follows, and the term it begins with."""
        parts = name.split()
        words = parts if len(parts) > 1 else normalise(name).split()
        kept = [word for word in words if not _is_code(word) or word.lower() in self._codes]
        # The rest of `X-17` has no meaning.
        if not any(len(word) > (1 if len(parts) > 1 else 2) for word in kept):
            return [NameReading(name, 0.0)]
        found = [NameReading(name if len(kept) == len(words) else " ".join(kept), 0.0)]
        placed = next((at for at, word in enumerate(kept) if at and word.lower() in _PLACING), len(kept))
        if placed < len(kept):
            found.append(NameReading(" ".join(kept[:placed]), DROPPED))
        for count in range(1, min(MOST_DROPPED, placed - 1) + 1):
            if not self._used.isdisjoint(tokens(kept[count - 1])):
                break
            if not self._is_within(kept, count):
                found.append(NameReading(" ".join(kept[count:placed]), DROPPED * count))
        return [*found, *self._begun(kept)]

    def _begun(self, words: Sequence[str]) -> Iterator[NameReading]:
        """The term of the right, of several words, with which a name begins: `mobile phone sales team`."""
        for start in range(min(MOST_DROPPED + 1, len(words))):
            for end in range(len(words) - 1, start + 1, -1):
                if tuple(tokens(" ".join(words[start:end]))) in self._terms:
                    yield NameReading(" ".join(words[start:end]), FOLLOWED)
                    return

    def _is_within(self, words: Sequence[str], cut: int) -> bool:
        """Whether a cut would take a term apart."""
        return any(
            self._is_term(" ".join(words[start:end]))
            for start in range(cut)
            for end in range(cut + 1, min(start + LONGEST, len(words)) + 1)
        )


class ReadNames:
    """Several names by their readings: each distinct text is scored once."""

    def __init__(self, reader: NameReader, names: Sequence[str]) -> None:
        listed = [reader.readings(name) for name in names]
        places: dict[str, int] = {}
        self._place = np.zeros((len(names), MOST_READINGS), np.int64)
        self._cost = np.full((len(names), MOST_READINGS), np.inf)
        for row, readings in enumerate(listed):
            for at, (text, cost) in enumerate(readings):
                self._place[row, at] = places.setdefault(text, len(places))
                self._cost[row, at] = cost
        self.texts = list(places)
        self.whole = np.array(
            [readings[0].text == name for name, readings in zip(names, listed, strict=True)], np.bool_
        )
        """Whether nothing is left out of the first reading."""

    @property
    def first(self) -> NDArray[np.int64]:
        """The place of the first reading of each name among the texts."""
        return self._place[:, 0]

    def best(self, bits: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each name the bits of its best reading, from those of the texts."""
        found = bits[self._place[:, 0]]
        for at in range(1, self._place.shape[1]):
            rows = np.flatnonzero(np.isfinite(self._cost[:, at]))
            other = bits[self._place[rows, at]] - self._cost[rows, at, None]
            found[rows] = np.maximum(found[rows], other)
        return found


def _is_code(word: str) -> bool:
    return any(map(str.isdigit, word))


def _terms_of(measure: Measure) -> Callable[[str], bool]:
    """A test whether a phrase is a term of its own, by WordNet if the evidence uses it."""
    wordnet = measure.sources.wordnet if isinstance(measure, Evidence) else None
    if wordnet is None:
        return lambda _: False
    return lambda phrase: bool(wordnet.base_forms(phrase.lower(), "noun"))


def scoring(measure: Measure, *, rivals: bool) -> Measure:
    """The measure of a join: evidence is adjusted among rivals if these are known; other measures are unchanged."""
    return AmongRivals(measure) if rivals and isinstance(measure, Evidence) else measure


class AmongRivals(Measure):
    """A measure whose probabilities depend on the other terms of the subscription's side.

    For a pair of b bits, and a best rival of r: b - SLOPE max(0, r - b + MARGIN). A rival loses the bits
    log2(1 - s) where s is the probability that it means the same. The same term stays 1, and 0 stays 0.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("coffee machine", "espresso maker"): 0.8, ("washing machine", "espresso maker"): 0.6})
    >>> scores = AmongRivals(table).matrix(["coffee machine", "washing machine"], ["espresso maker"])
    >>> [round(float(score), 2) for score in scores[:, 0]]
    [0.54, 0.0]
    """

    name = "evidence"
    symmetric = False

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        ready = self._measure.prepare(subscription_terms, subscription_theme=subscription_theme)
        return _Ranged(self._measure, ready, tuple(subscription_theme))

    def _reasons(self, mine: str, theirs: str, themes: Themes, limit: int) -> list[Shared]:
        asked = {"subscription_theme": themes.subscription, "event_theme": themes.event}
        return self._measure.reason(mine, theirs, **asked, limit=limit)


class _Ranged:
    """The right side of a join, prepared."""

    def __init__(self, measure: Measure, ready: Prepared, theme: tuple[str, ...]) -> None:
        self._measure = measure
        self._ready = ready
        self._theme = theme
        self._reader = NameReader(ready.terms, is_term=_terms_of(measure))
        self._same: dict[tuple[int, int], float] = {}

    @property
    def terms(self) -> tuple[str, ...]:
        return self._ready.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        if not event_terms or not self.terms:
            return self._ready.rows(event_terms, event_theme=event_theme)
        names = ReadNames(self._reader, event_terms)
        scores = self._ready.rows(names.texts, event_theme=event_theme)
        bits = names.best(_bits(scores))
        found = _probability(bits - SLOPE * np.maximum(0.0, self._rivals(bits) - bits + MARGIN))
        first = scores[names.first]
        same = (first >= 1) & names.whole[:, None]
        # A pair without any common reading stays 0.
        found[np.isneginf(names.best(np.where(scores > 0, 0.0, -np.inf)))] = 0
        return np.where(same, first, found).astype(np.float32)

    def _rivals(self, bits: Bits) -> Bits:
        """For each pair the bits of its best rival."""
        count = bits.shape[1]
        if count == 1:
            return np.full(bits.shape, -np.inf)
        # Ties go by position, so that every run has the same rivals.
        order = bits - np.arange(count) * 1e-9
        size = min(RIVALS, count)
        best = np.argpartition(-order, size - 1, axis=1)[:, :size]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(order, best, 1), axis=1), 1)
        top = np.take_along_axis(bits, best, 1)
        rivals = np.repeat(top[:, :1], count, axis=1)
        others = top[:, None, :] + self._apart(best, top)
        np.put_along_axis(rivals, best, others.max(axis=2), 1)
        return rivals

    def _apart(self, best: NDArray[np.int64], top: Bits) -> Bits:
        """For each of the best terms, the bits that each other one loses as its rival; the term itself loses all."""
        rows, size = best.shape
        lost = np.zeros((rows, size, size))
        lost[:, np.arange(size), np.arange(size)] = -np.inf
        strong = (top[:, :, None] > _WEAK) & (top[:, None, :] > _WEAK) & np.triu(np.ones((size, size), np.bool_), 1)
        row, first, second = np.nonzero(strong)
        keys = list(zip(best[row, first].tolist(), best[row, second].tolist(), strict=True))
        self._learn(keys)
        lost[row, first, second] = lost[row, second, first] = [self._same[key] for key in keys]
        return lost

    def _learn(self, keys: list[tuple[int, int]]) -> None:
        """Compute how far two terms of the right are from meaning the same, in bits and in both directions."""
        new = [key for key in dict.fromkeys(keys) if key not in self._same]
        if not new:
            return
        # All pairs at once: a row of many pairs costs hardly more than a single pair.
        places, at = np.unique(np.array(new), return_inverse=True)
        terms = [self.terms[place] for place in places.tolist()]
        themes = {"subscription_theme": self._theme, "event_theme": self._theme}
        scores = self._measure.matrix(terms, terms, **themes)
        first, second = at.reshape(len(new), 2).T
        same = np.minimum(scores[first, second], scores[second, first]).astype(np.float64)
        self._same |= dict(zip(new, np.log2(np.maximum(1.0 - same, _EDGE)).tolist(), strict=True))


def _bits(scores: Matrix) -> Bits:
    inside = np.clip(scores.astype(np.float64), _EDGE, 1 - _EDGE)
    return np.asarray(np.log2(inside / (1 - inside)))


def _probability(bits: Bits) -> Bits:
    return np.asarray(1 / (1 + np.exp2(-np.clip(bits, -100, 100))))


# One-to-one assignment, and margins.


CELLS: Final = 50_000_000
"""Scores of competing terms, at most, that are in memory together."""

Places = NDArray[np.int64]


def one_to_one(pairs: Pairs) -> Pairs:
    """The pairs with the greatest sum of scores in which no term comes twice, in the order of the left.

    Terms that are not connected by pairs do not compete, so each connected group is solved separately.

    >>> scores = np.array([0.9, 0.8, 0.7], np.float32)
    >>> found = one_to_one(Pairs(np.array([0, 0, 1]), np.array([0, 1, 0]), scores))
    >>> found.left.tolist(), found.right.tolist()
    ([0, 1], [1, 0])
    """
    kept = [places for group in _groups(pairs) for places in (_settled(pairs, group),)]
    chosen = np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)
    return pairs.at(chosen[np.argsort(pairs.left[chosen], kind="stable")])


def _groups(pairs: Pairs) -> Iterator[Places]:
    """The places of pairs whose terms are connected."""
    if not len(pairs.left):
        return
    left, right = int(pairs.left.max()) + 1, int(pairs.right.max()) + 1
    edges = (np.ones(len(pairs.left), np.int8), (pairs.left, left + pairs.right))
    _, labels = connected_components(coo_array(edges, shape=(left + right, left + right)), directed=False)
    owner = labels[pairs.left]
    order = np.argsort(owner, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)


def _settled(pairs: Pairs, group: Places) -> Places:
    if len(group) == 1:
        return group
    rows, row = np.unique(pairs.left[group], return_inverse=True)
    columns, column = np.unique(pairs.right[group], return_inverse=True)
    if len(rows) * len(columns) > CELLS:
        raise BuildError(
            f"{len(rows):,} and {len(columns):,} terms compete for each other, too many to settle",
            hint="give a higher threshold",
        )
    scores, where = np.zeros((len(rows), len(columns))), np.full((len(rows), len(columns)), -1)
    scores[row, column], where[row, column] = pairs.relatedness[group], group
    found = where[linear_sum_assignment(scores, maximize=True)]
    return found[found >= 0]


def margins(pairs: Pairs, two_best: Pairs) -> NDArray[np.float64]:
    """The score of each pair minus that of the best other partner of its left term, if there is one.

    It is negative for a pair that is not the best. `two_best` are the two best partners of every left term.

    >>> best = Pairs(np.array([0, 0]), np.array([4, 7]), np.array([0.75, 0.5], np.float32))
    >>> margins(best, best).tolist()
    [0.25, -0.25]
    """
    count = int(max(pairs.left.max(initial=-1), two_best.left.max(initial=-1))) + 1
    first, second = np.zeros(count), np.zeros(count)
    partner = np.full(count, -1)
    begins = np.flatnonzero(np.diff(two_best.left, prepend=-1))
    owners = two_best.left[begins]
    first[owners], partner[owners] = two_best.relatedness[begins], two_best.right[begins]
    later = np.setdiff1d(np.arange(len(two_best.left)), begins)
    second[two_best.left[later]] = two_best.relatedness[later]
    rival = np.where(partner[pairs.left] == pairs.right, second[pairs.left], first[pairs.left])
    return np.asarray(pairs.relatedness.astype(np.float64) - rival, np.float64)


def margins_of(near: NearestTerms, pairs: Pairs, left: list[str]) -> NDArray[np.float64]:
    """The margins of pairs for some left terms; `near` finds the two best partners of each."""
    return margins(pairs, near.pairs(left))
