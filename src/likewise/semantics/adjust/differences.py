"""Phrases compared by the words in which they differ: "increased ozone event" is not "increased noise event"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.calibration import DIFFERING_POWER, DIFFERING_POWERS
from likewise.errors import BuildError
from likewise.events import normalise
from likewise.semantics.adjust.base import Rescaled
from likewise.semantics.measures.base import Matrix, Measure, Prepared
from likewise.semantics.text import key, tokens

_KEPT: Final = 1 << 22
"""Cached scores of words: most phrases use the same few words."""


class Differing(Rescaled):
    """r' = sqrt(r * d^p) for phrases that share some words and differ in others; all other pairs are unchanged.

    d is the relatedness of the differing words: the mean, over the words of the subscription's phrase that the event's
    phrase lacks, of the best relatedness with any word of the event's phrase. The vector of a phrase is the sum of its
    words, so two phrases with two of three words in common are near whatever the third word is, and siblings would
    match each other. If one phrase has all words of the other ("temperature", "room temperature"), nothing changes.
    It is not symmetric.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("ozone event", "noise event"): 0.64, ("ozone", "noise"): 0.0625})
    >>> Differing(table).matrix(["ozone event"], ["noise event"]).round(2).tolist()  # sqrt(0.64 * sqrt(0.0625))
    [[0.4...]]
    """

    def __init__(self, measure: Measure, *, power: float | None = None) -> None:
        super().__init__(measure)
        self.name = measure.name
        """The inner name is kept, since thresholds are chosen by name."""
        self._power = DIFFERING_POWERS.get(measure.name, DIFFERING_POWER) if power is None else power
        if not self._power > 0:
            raise BuildError(f"power {self._power} is not above 0", hint="give a power above 0")

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """Prepare the subscription terms and the words of their phrases."""
        inner = self._measure.prepare(subscription_terms, subscription_theme=subscription_theme)
        phrases = _Phrases(inner.terms)
        if not phrases.words:
            return inner
        words = self._measure.prepare(phrases.words, subscription_theme=subscription_theme)
        return PreparedDiffering(inner, words, phrases, power=self._power)


class _Phrases:
    """The terms of several words, with their words."""

    def __init__(self, terms: Sequence[str]) -> None:
        split = [(column, phrase) for column, term in enumerate(terms) if len(phrase := words_of(term)) > 1]
        numbers: dict[str, int] = {}
        self.words: list[str] = []
        for _, phrase in split:
            for name, word in phrase:
                if name not in numbers:
                    numbers[name] = len(numbers)
                    self.words.append(word)
        self.columns = np.array([column for column, _ in split], np.int64)
        self.lengths = np.array([len(phrase) for _, phrase in split], np.int64)
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._flat = np.array([numbers[name] for _, phrase in split for name, _ in phrase], np.int64)
        self._numbers = numbers

    def shared(self, phrase: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
        """The numbers of a phrase's words that any of these phrases has."""
        return np.array([self._numbers[name] for name, _ in phrase if name in self._numbers], np.int64)

    def sums(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sum of the weights of each phrase's words."""
        return np.add.reduceat(weights[self._flat], self._starts)


class PreparedDiffering:
    """Prepared terms and the words of phrases; `rows` gives a row per event term."""

    def __init__(self, inner: Prepared, words: Prepared, phrases: _Phrases, *, power: float) -> None:
        self._inner = inner
        self._words = words
        self._phrases = phrases
        self._power = np.float32(power)
        self._known: dict[tuple[str, tuple[str, ...]], NDArray[np.float32]] = {}

    @property
    def terms(self) -> tuple[str, ...]:
        return self._inner.terms

    def rows(self, event_terms: Sequence[str], *, event_theme: Sequence[str] = ()) -> Matrix:
        """A row per event term, a column per prepared term."""
        scores = self._inner.rows(event_terms, event_theme=event_theme)
        split = ((row, words_of(term)) for row, term in enumerate(event_terms))
        overlapping = [
            (row, phrase, shared)
            for row, phrase in split
            if len(phrase) > 1 and len(shared := self._phrases.shared(phrase))
        ]
        if not overlapping:
            return scores
        scores = scores.copy()
        related = self._related([word for _, phrase, _ in overlapping for _, word in phrase], tuple(event_theme))
        for row, phrase, shared in overlapping:
            best = np.max([related[word] for _, word in phrase], axis=0)
            self._weigh(scores[row], best, shared, length=len(phrase))
        return scores

    def _related(self, words: Sequence[str], theme: tuple[str, ...]) -> dict[str, NDArray[np.float32]]:
        """The scores of single words with the words of all phrases."""
        known = self._known
        if len(known) * len(self._phrases.words) > _KEPT:
            self._known = known = {}
        wanted = dict.fromkeys(words)
        if missing := [word for word in wanted if (word, theme) not in known]:
            rows = self._words.rows(missing, event_theme=theme)
            known.update(((word, theme), row) for word, row in zip(missing, rows, strict=True))
        return {word: known[word, theme] for word in wanted}

    def _weigh(self, row: Matrix, best: NDArray[np.float32], shared: NDArray[np.int64], *, length: int) -> None:
        """Apply the differing words to the scores of one event term, in place."""
        phrases = self._phrases
        same = np.zeros(len(best), np.float32)
        same[shared] = 1
        common = phrases.sums(same)
        part = np.flatnonzero((common > 0) & (common < phrases.lengths) & (common < length))
        rest = best.copy()
        rest[shared] = 0
        alike = phrases.sums(rest)[part] / (phrases.lengths[part] - common[part])
        columns = phrases.columns[part]
        row[columns] = np.sqrt(row[columns] * np.minimum(alike, 1) ** self._power)


@lru_cache(maxsize=65_536)
def words_of(term: str) -> tuple[tuple[str, str], ...]:
    """The words of a term without stop words: the key of each, and the word as written.

    >>> words_of("Increased noise of the events")
    (('increas', 'increased'), ('nois', 'noise'), ('event', 'event'))
    """
    by_key: dict[str, str] = {}
    for word in normalise(term).split():
        if tokens(word):
            by_key.setdefault(key(word), word)
    return tuple(by_key.items())


__all__ = ["DIFFERING_POWERS", "Differing", "PreparedDiffering"]
