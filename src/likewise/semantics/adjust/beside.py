"""Scores seen beside those of other terms: the terms that compete, contrast among them, and rank among a background.

Contrast: a pair counts by how much closer it is than the pairs it competes with. Rank: what a lone subscription can be
measured by, when nobody competes with it.
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

from likewise.errors import BuildError, InputError
from likewise.events import Event, normalise
from likewise.semantics.adjust.base import Rescaled
from likewise.semantics.measures.base import Matrix, Measure, Prepared
from likewise.semantics.text import TermPlaces, key

_VERSION = re.compile(r"# version (\w+)")


@dataclass(frozen=True, slots=True)
class Competitors:
    """The terms that compete, and a version that tells two vocabularies apart.

    Scores depend on them, so everyone who must score alike has to hold the same version.

    >>> Competitors.of(["Spain", "Ireland", "spain"]).terms
    ('Ireland', 'Spain')
    >>> Competitors.of(["b", "a"]).version == Competitors.of(["a", "b"]).version
    True
    """

    terms: tuple[str, ...]
    version: str

    @classmethod
    def of(cls, terms: Iterable[str]) -> Competitors:
        """Each term once, in an order and under a version that depend on nothing but the terms."""
        once: dict[str, str] = {}
        for term in sorted(terms):
            once.setdefault(key(term), term)
        chosen = tuple(once[name] for name in sorted(once))
        digest = hashlib.sha256("\x00".join(sorted(once)).encode()).hexdigest()
        return cls(chosen, digest[:16])

    @classmethod
    def from_events(cls, events: Iterable[Event], *, limit: int | None = 2000) -> Competitors:
        """The words of a sample of events, attributes and text values; of very many those that most events say.

        >>> Competitors.from_events([Event.of({"room": "kitchen", "degrees": 21})]).terms
        ('degree', 'kitchen', 'room')
        """
        said = Counter(term for event in events for term in _terms_of(event))
        most = sorted(said, key=lambda term: (-said[term], term))
        return cls.of(most[:limit])

    @classmethod
    def from_text(cls, text: str, *, source: str = "<text>") -> Competitors:
        """From one term a line; a version in the first line must be that of the terms.

        >>> Competitors.from_text("# version 00\\nroom\\n")
        Traceback (most recent call last):
            ...
        likewise.errors.InputError: <text>:1: the terms are not those of version 00
          hint: make it anew, or delete the line if the change was meant
        """
        lines = [line.strip() for line in text.split("\n")]
        # A backslash stands before a term that would be taken for a comment.
        found = cls.of(line.removeprefix("\\") for line in lines if line and not line.startswith("#"))
        stated = _VERSION.match(lines[0]) if lines else None
        if stated and stated[1] != found.version:
            hint = "make it anew, or delete the line if the change was meant"
            raise InputError(f"the terms are not those of version {stated[1]}", source=source, line=1, hint=hint)
        if not found.terms:
            raise InputError("no terms in it", source=source, hint="likewise vocabulary makes one from events")
        return found

    def to_text(self) -> str:
        """The version, then one term a line.

        >>> Competitors.from_text(Competitors.of(["room", "hall", "#7"]).to_text()).terms
        ('#7', 'hall', 'room')
        """
        terms = (f"\\{term}" if term.startswith(("#", "\\")) else term for term in self.terms)
        return "\n".join([f"# version {self.version}", *terms, ""])

    def union(self, terms: Iterable[str]) -> Competitors:
        """These and more."""
        return Competitors.of([*self.terms, *terms])


def _terms_of(event: Event) -> set[str]:
    names = {normalise(name) for name, _ in event.tuples}
    return (names | {normalise(value) for _, value in event.tuples if isinstance(value, str)}) - {""}


class Beside(Rescaled):
    """Another measure, and the terms that its scores are seen beside."""

    suffix: ClassVar[str]
    """What the name of the measure inside gets."""

    def __init__(self, measure: Measure, others: Competitors) -> None:
        super().__init__(measure)
        self.name = f"{measure.name}+{self.suffix}"
        self._others = others
        self._prepared: dict[tuple[str, ...], Prepared] = {}

    def _beside(self, theme: tuple[str, ...]) -> Prepared:
        """The other terms within a theme, made ready once."""
        if theme not in self._prepared:
            self._prepared[theme] = self._measure.prepare(self._others.terms, subscription_theme=theme)
        return self._prepared[theme]


TEMPERATURES = {"combined": 0.01, "embedding": 0.05, "esa": 0.005, "thematic": 0.005}
"""How sharply each measure's scores are contrasted, on the scale of its own scores; chosen by matching quality."""

_DEFAULT_TEMPERATURE = 0.02


class Contrast(Beside):
    """r' = r * softmax_tau(r over competitors) / max of it, over any measure.

    The quotient of the two softmax values is exp((r - r_max) / tau), where r_max is the best score that
    the event term has with any competitor or with the subscription term itself: only the maximum of the
    competitors' column is needed. The best partner keeps its score, and identity stays 1. The sides are
    not alike, so it is not symmetric. Without competitors it is the measure itself.
    """

    suffix = "contrast"

    def __init__(self, measure: Measure, competitors: Competitors, *, temperature: float | None = None) -> None:
        self._tau = TEMPERATURES.get(measure.name, _DEFAULT_TEMPERATURE) if temperature is None else temperature
        if not self._tau > 0:
            raise BuildError(f"the temperature of a contrast cannot be {self._tau}", hint="choose a number above 0")
        super().__init__(measure, competitors)

    @property
    def temperature(self) -> float:
        """Differences of scores much larger than this decide; much smaller ones do not count."""
        return self._tau

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedContrast:
        """The subscription side and, once for each theme, the competitors, made ready."""
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
    """Scores (a row per event term) against the best score of that event term's competitors.

    >>> contrasted(np.array([[0.5, 0.25]], np.float32), np.array([0.5], np.float32), 0.1).round(2).astype(str).tolist()
    [['0.5', '0.02']]
    """
    best = np.maximum(scores, rival[:, None])
    # In double precision: NumPy's single precision differs in the last digit by the length of an array.
    return np.asarray(scores * np.exp((scores - best).astype(np.float64) / tau), np.float32)


PATIENCE = 10.0
"""So many nearer terms halve a side's say: a term has about that many synonyms and relatives that do not count."""

OWN_SIDE = 0.2
"""The subscription side's share of the exponent; the rest is the event side's."""

_TIE = np.float32(1e-5)  # scores that differ by rounding only are the same


class Ranked(Beside):
    """r' = r * (1 + n_e / k)^-2(1-w) * (1 + n_s / k)^-2w, over any measure.

    n_e is how many terms of the vocabulary are nearer to the event term than the subscription term is, n_s how
    many are nearer to the subscription term than the event term is. The vocabulary is that of the events seen, so
    it works for a subscription that is alone, where contrast has no competitors; contrast over it serves both. The
    ranks do not depend on the scale of the measure. Identity stays 1; without a vocabulary it is the measure itself.
    It is not symmetric. Scores depend on the vocabulary, so everyone who must score alike has to hold the same version.
    """

    suffix = "rank"

    def __init__(
        self,
        measure: Measure,
        vocabulary: Competitors,
        *,
        patience: float = PATIENCE,
        own_side: float = OWN_SIDE,
    ) -> None:
        if not (patience > 0 and 0 <= own_side <= 1):
            raise BuildError(
                f"terms cannot be ranked with patience {patience} and an own side of {own_side}",
                hint="patience is above 0, own_side from 0 to 1",
            )
        super().__init__(measure, vocabulary)
        self._patience = patience
        self._own_side = own_side

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedRanked:
        """The subscription side and, once for each theme, the vocabulary, made ready."""
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
        # What the measure calls the same stays the same.
        return np.where(scores >= 1, scores, scores * ranked).astype(np.float32)

    def _around_own(self, theme: tuple[str, ...]) -> Matrix:
        """A row per subscription term: its scores with the vocabulary, as terms of an event, in order."""
        if theme not in self._of_own:
            scores = self._own.rows(self._vocabulary.terms, event_theme=theme)
            self._of_own[theme] = self._ordered(np.ascontiguousarray(scores.T), self.terms)
        return self._of_own[theme]

    def _ordered(self, around: Matrix, terms: Sequence[str]) -> Matrix:
        """Each row in order, with 0 where a term meets itself in the vocabulary: nothing else can be as near."""
        ordered = around.copy()
        for row, term in enumerate(terms):
            ordered[row, self._names.columns(term)] = 0
        ordered.sort(axis=1)
        return ordered


def nearer(ordered: Matrix, scores: Matrix) -> NDArray[np.int64]:
    """For every row, how many of its surroundings, given in order, are above each of its scores.

    It is a binary search in all rows at once.

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
