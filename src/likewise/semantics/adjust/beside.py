"""Scores relative to those of other terms: contrast with competitors, and rank among a background.

Contrast scales a pair by how much closer it is than the pairs it competes with. Rank does the same for a single
subscription, which has no competitors.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import CONTRAST_TEMPERATURE, CONTRAST_TEMPERATURES, RANK_PATIENCE, RANK_SUBSCRIPTION_SHARE
from likewise.errors import BuildError, InputError
from likewise.events import Event, normalise
from likewise.semantics.adjust.base import Rescaled
from likewise.semantics.measures.base import Matrix, Measure, Prepared
from likewise.semantics.text import TermPlaces, key

_VERSION = re.compile(r"# version (\w+)")


@dataclass(frozen=True, slots=True)
class Competitors:
    """The competing terms, with a version.

    Scores depend on them: processes that must give the same scores need the same version.

    >>> Competitors.of(["Spain", "Ireland", "spain"]).terms
    ('Ireland', 'Spain')
    >>> Competitors.of(["b", "a"]).version == Competitors.of(["a", "b"]).version
    True
    """

    terms: tuple[str, ...]
    version: str

    @classmethod
    def of(cls, terms: Iterable[str]) -> Competitors:
        """The distinct terms; their order and version depend on the terms only."""
        by_key: dict[str, str] = {}
        for term in sorted(terms):
            by_key.setdefault(key(term), term)
        distinct = tuple(by_key[name] for name in sorted(by_key))
        digest = hashlib.sha256("\x00".join(sorted(by_key)).encode()).hexdigest()
        return cls(distinct, digest[:16])

    @classmethod
    def from_events(cls, events: Iterable[Event], *, limit: int | None = 2000) -> Competitors:
        """The attributes and text values of a sample of events; at most `limit`, the most common ones.

        >>> Competitors.from_events([Event.of({"room": "kitchen", "degrees": 21})]).terms
        ('degree', 'kitchen', 'room')
        """
        counts = Counter(term for event in events for term in _terms_of(event))
        by_frequency = sorted(counts, key=lambda term: (-counts[term], term))
        return cls.of(by_frequency[:limit])

    @classmethod
    def from_text(cls, text: str, *, source: str = "<text>") -> Competitors:
        """Read one term a line; a version in the first line is checked.

        >>> Competitors.from_text("# version 00\\nroom\\n")
        Traceback (most recent call last):
            ...
        likewise.errors.InputError: <text>:1: the terms are not those of version 00
          hint: write the file again, or delete this line if the terms were changed on purpose
        """
        lines = [line.strip() for line in text.split("\n")]
        # A backslash escapes a term that would be read as a comment.
        vocabulary = cls.of(line.removeprefix("\\") for line in lines if line and not line.startswith("#"))
        stated = _VERSION.match(lines[0]) if lines else None
        if stated and stated[1] != vocabulary.version:
            hint = "write the file again, or delete this line if the terms were changed on purpose"
            raise InputError(f"the terms are not those of version {stated[1]}", source=source, line=1, hint=hint)
        if not vocabulary.terms:
            hint = "`likewise vocabulary` writes the terms of events"
            raise InputError("the vocabulary has no terms", source=source, hint=hint)
        return vocabulary

    def to_text(self) -> str:
        """The version, then one term a line.

        >>> Competitors.from_text(Competitors.of(["room", "hall", "#7"]).to_text()).terms
        ('#7', 'hall', 'room')
        """
        terms = (f"\\{term}" if term.startswith(("#", "\\")) else term for term in self.terms)
        return "\n".join([f"# version {self.version}", *terms, ""])

    def union(self, terms: Iterable[str]) -> Competitors:
        """These terms and more."""
        return Competitors.of([*self.terms, *terms])


def _terms_of(event: Event) -> set[str]:
    names = {normalise(name) for name, _ in event.tuples}
    return (names | {normalise(value) for _, value in event.tuples if isinstance(value, str)}) - {""}


class Beside(Rescaled):
    """Another measure, with the terms that its scores are compared with."""

    suffix: ClassVar[str]
    """The suffix added to the name of the inner measure."""

    def __init__(self, measure: Measure, others: Competitors) -> None:
        super().__init__(measure)
        self.name = f"{measure.name}+{self.suffix}"
        self._others = others
        self._prepared: dict[tuple[str, ...], Prepared] = {}

    def _beside(self, theme: tuple[str, ...]) -> Prepared:
        """The other terms within a theme, prepared once."""
        if theme not in self._prepared:
            self._prepared[theme] = self._measure.prepare(self._others.terms, subscription_theme=theme)
        return self._prepared[theme]


class Contrast(Beside):
    """r' = r * softmax_tau(r over competitors) / max of it, over any measure.

    The quotient of the two softmax values is exp((r - r_max) / tau), where r_max is the best score of the event term
    with any competitor or with the subscription term itself: only the maximum over the competitors is needed. The best
    partner keeps its score, and equal terms keep 1. It is not symmetric. Without competitors nothing changes.
    """

    suffix = "contrast"

    def __init__(self, measure: Measure, competitors: Competitors, *, temperature: float | None = None) -> None:
        self._tau = (
            CONTRAST_TEMPERATURES.get(measure.name, CONTRAST_TEMPERATURE) if temperature is None else temperature
        )
        if not self._tau > 0:
            raise BuildError(f"temperature {self._tau} is not above 0", hint="give a number above 0")
        super().__init__(measure, competitors)

    @property
    def temperature(self) -> float:
        """The difference of scores that matters: much smaller ones change little."""
        return self._tau

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedContrast:
        """Prepare the subscription terms and, once for each theme, the competitors."""
        theme = tuple(subscription_theme)
        competitors = own = self._beside(theme)
        if tuple(subscription_terms) != competitors.terms:
            own = self._measure.prepare(subscription_terms, subscription_theme=theme)
        return PreparedContrast(own, competitors, self._tau)


class PreparedContrast:
    """Subscription terms and competitors, both prepared; `rows` gives a row per event term."""

    def __init__(self, own: Prepared, competitors: Prepared, tau: float) -> None:
        self._own = own
        self._competitors = competitors
        self._tau = tau

    @property
    def terms(self) -> tuple[str, ...]:
        return self._own.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Contrasted score of every event term (row) with every prepared term (column)."""
        scores = self._own.rows(event_terms, event_theme=event_theme)
        rivals = (
            scores if self._own is self._competitors else self._competitors.rows(event_terms, event_theme=event_theme)
        )
        return contrasted(scores, rivals.max(axis=1, initial=0.0), self._tau)


def contrasted(scores: Matrix, rival: NDArray[np.float32], tau: float) -> Matrix:
    """Contrast scores (a row per event term) with the best score of a competitor in that row.

    >>> contrasted(np.array([[0.5, 0.25]], np.float32), np.array([0.5], np.float32), 0.1).round(2).astype(str).tolist()
    [['0.5', '0.02']]
    """
    best = np.maximum(scores, rival[:, None])
    # In double precision, since the last digit of NumPy's single precision depends on the length of an array.
    return np.asarray(scores * np.exp((scores - best).astype(np.float64) / tau), np.float32)


_TIE = np.float32(1e-5)  # scores that differ by rounding only are equal


class Ranked(Beside):
    """r' = r * (1 + n_e / k)^-2(1-w) * (1 + n_s / k)^-2w, over any measure.

    n_e is how many terms of the vocabulary are nearer to the event term than the subscription term is, n_s how many are
    nearer to the subscription term than the event term is. The vocabulary comes from events, so it also works for a
    single subscription, where contrast has no competitors; both can be combined. Ranks do not depend on the scale of
    the measure. Equal terms keep 1; without a vocabulary nothing changes. It is not symmetric. Scores depend on the
    vocabulary: processes that must give the same scores need the same version.
    """

    suffix = "rank"

    def __init__(
        self,
        measure: Measure,
        vocabulary: Competitors,
        *,
        patience: float = RANK_PATIENCE,
        own_side: float = RANK_SUBSCRIPTION_SHARE,
    ) -> None:
        if not (patience > 0 and 0 <= own_side <= 1):
            raise BuildError(
                f"patience {patience} and own_side {own_side} are out of range",
                hint="give a patience above 0 and an own_side from 0 to 1",
            )
        super().__init__(measure, vocabulary)
        self._patience = patience
        self._own_side = own_side

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedRanked:
        """Prepare the subscription terms and, once for each theme, the vocabulary."""
        theme = tuple(subscription_theme)
        own = self._measure.prepare(subscription_terms, subscription_theme=theme)
        return PreparedRanked(own, self._beside(theme), patience=self._patience, own_side=self._own_side)


class PreparedRanked:
    """Subscription terms and vocabulary, both prepared; `rows` gives a row per event term."""

    def __init__(self, own: Prepared, vocabulary: Prepared, *, patience: float, own_side: float) -> None:
        self._own = own
        self._vocabulary = vocabulary
        self._patience = np.float32(patience)
        self._own_side = own_side
        self._names = TermPlaces(vocabulary.terms)
        self._of_own: dict[tuple[str, ...], Matrix] = {}

    @property
    def terms(self) -> tuple[str, ...]:
        return self._own.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """Ranked score of every event term (row) with every prepared term (column)."""
        scores = self._own.rows(event_terms, event_theme=event_theme)
        around = self._ordered(self._vocabulary.rows(event_terms, event_theme=event_theme), event_terms)
        event_side = 1 + nearer(around, scores) / self._patience
        own_side = 1 + nearer(self._around_own(tuple(event_theme)), scores.T).T / self._patience
        ranked = event_side ** (-2 * (1 - self._own_side)) * own_side ** (-2 * self._own_side)
        # Equal terms keep 1.
        return np.where(scores >= 1, scores, scores * ranked).astype(np.float32)

    def _around_own(self, theme: tuple[str, ...]) -> Matrix:
        """A row per subscription term: its sorted scores with the vocabulary as event terms."""
        if theme not in self._of_own:
            scores = self._own.rows(self._vocabulary.terms, event_theme=theme)
            self._of_own[theme] = self._ordered(np.ascontiguousarray(scores.T), self.terms)
        return self._of_own[theme]

    def _ordered(self, around: Matrix, terms: Sequence[str]) -> Matrix:
        """Each row sorted, with 0 for the term itself in the vocabulary, which is always nearest."""
        ordered = around.copy()
        for row, term in enumerate(terms):
            ordered[row, self._names.columns(term)] = 0
        ordered.sort(axis=1)
        return ordered


def nearer(ordered: Matrix, scores: Matrix) -> NDArray[np.int64]:
    """For every row, how many of its sorted neighbours are above each of its scores.

    This is a binary search in all rows at once.

    >>> nearer(np.array([[0.1, 0.5, 0.9]], np.float32), np.array([[0.2, 0.5, 0.95]], np.float32)).tolist()
    [[2, 1, 0]]
    """
    size = ordered.shape[1]
    low, high = np.zeros(scores.shape, np.int64), np.full(scores.shape, size, np.int64)
    if size:
        sought, rows = scores + _TIE, np.arange(len(ordered))[:, None]
        for _ in range(size.bit_length()):
            middle = (low + high) // 2
            below = (low < high) & (ordered[rows, np.minimum(middle, size - 1)] <= sought)
            low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
    above: NDArray[np.int64] = size - low
    return above
