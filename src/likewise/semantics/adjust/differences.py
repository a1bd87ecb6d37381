"""Phrases are as near as what they say differently: "increased ozone event" is not "increased noise event"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from likewise.errors import BuildError
from likewise.events import normalise
from likewise.semantics.adjust.base import Rescaled
from likewise.semantics.measures.base import Matrix, Measure, Prepared
from likewise.semantics.text import key, tokens

POWERS: Final = {"combined": 0.5, "embedding": 0.75, "esa": 0.25, "thematic": 0.25}
"""How much the differing words count, on the scale of each measure: cosines of sparse rows are often near 0."""

_DEFAULT_POWER: Final = 0.5

_KEPT: Final = 1 << 22
"""Scores of words that stay in memory: phrases are made of few words, over and over."""


class Differing(Rescaled):
    """r' = sqrt(r * d^p) where two phrases share words and differ in others; all other pairs are as they were.

    d is how related the differing words are: the mean, over the words of the subscription's phrase that the event's
    has not, of the best relatedness with any word of the event's phrase. A phrase is the sum of its words, so that two
    equal words of three are near whatever the third says, and siblings are taken for each other. Where one phrase has
    all words of the other ("temperature", "room temperature") nothing differs, and nothing changes. It is not
    symmetric.

    >>> from likewise.testing import TableMeasure
    >>> table = TableMeasure({("ozone event", "noise event"): 0.64, ("ozone", "noise"): 0.0625})
    >>> Differing(table).matrix(["ozone event"], ["noise event"]).round(2).tolist()  # sqrt(0.64 * sqrt(0.0625))
    [[0.4...]]
    """

    def __init__(self, measure: Measure, *, power: float | None = None) -> None:
        super().__init__(measure)
        self.name = measure.name
        """What is chosen by name, such as a threshold, stays right."""
        self._power = POWERS.get(measure.name, _DEFAULT_POWER) if power is None else power
        if not self._power > 0:
            raise BuildError(f"differing words cannot count {self._power}", hint="choose a power above 0")

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """The subscription side and, if it has phrases, their words."""
        inner = self._measure.prepare(subscription_terms, subscription_theme=subscription_theme)
        phrases = _Phrases(inner.terms)
        if not phrases.words:
            return inner
        words = self._measure.prepare(phrases.words, subscription_theme=subscription_theme)
        return PreparedDiffering(inner, words, phrases, power=self._power)


class _Phrases:
    """The terms of several words, by the words they have; those of one word never differ in part."""

    def __init__(self, terms: Sequence[str]) -> None:
        split = [(column, found) for column, term in enumerate(terms) if len(found := words_of(term)) > 1]
        numbers: dict[str, int] = {}
        self.words: list[str] = []
        for _, found in split:
            for name, word in found:
                if name not in numbers:
                    numbers[name] = len(numbers)
                    self.words.append(word)
        self.columns = np.array([column for column, _ in split], np.int64)
        self.lengths = np.array([len(found) for _, found in split], np.int64)
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._flat = np.array([numbers[name] for _, found in split for name, _ in found], np.int64)
        self._numbers = numbers

    def shared(self, phrase: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
        """The words of a phrase that some of these have, by number."""
        return np.array([self._numbers[name] for name, _ in phrase if name in self._numbers], np.int64)

    def sums(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The sum of the weights of each phrase's words."""
        return np.add.reduceat(weights[self._flat], self._starts)


class PreparedDiffering:
    """Prepared terms and the words of those that are phrases; `rows` gives a row per event term."""

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
        touching = [
            (row, said, shared) for row, said in split if len(said) > 1 and len(shared := self._phrases.shared(said))
        ]
        if not touching:
            return scores
        scores = scores.copy()
        related = self._related([word for _, said, _ in touching for _, word in said], tuple(event_theme))
        for row, said, shared in touching:
            best = np.max([related[word] for _, word in said], axis=0)
            self._weigh(scores[row], best, shared, length=len(said))
        return scores

    def _related(self, words: Sequence[str], theme: tuple[str, ...]) -> dict[str, NDArray[np.float32]]:
        """The scores of single words with the words of all phrases."""
        known = self._known
        if len(known) * len(self._phrases.words) > _KEPT:
            self._known = known = {}
        wanted = dict.fromkeys(words)
        if missing := [word for word in wanted if (word, theme) not in known]:
            found = self._words.rows(missing, event_theme=theme)
            known.update(((word, theme), row) for word, row in zip(missing, found, strict=True))
        return {word: known[word, theme] for word in wanted}

    def _weigh(self, row: Matrix, best: NDArray[np.float32], shared: NDArray[np.int64], *, length: int) -> None:
        """Bring the differing words into the scores of one event term."""
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
    """The words of a term that have a meaning, each by what makes it the same and as it is written.

    >>> words_of("Increased noise of the events")
    (('increas', 'increased'), ('nois', 'noise'), ('event', 'event'))
    """
    found: dict[str, str] = {}
    for word in normalise(term).split():
        if tokens(word):
            found.setdefault(key(word), word)
    return tuple(found.items())


__all__ = ["POWERS", "Differing", "PreparedDiffering"]
