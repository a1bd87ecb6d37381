"""Terms that count as unrelated although they are near in every space: different codes, and opposites.

Codes are not words: "desk 112c" is not more similar to "desk 113a" than to any other desk. Opposites never mean the
same: "increased noise" is not "decreased noise".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from likewise.events import normalise
from likewise.semantics.adjust.base import Parted, PreparedParted
from likewise.semantics.measures.base import Measure, Prepared
from likewise.semantics.wordnet.opposites import Opposites, SenseKey, Word, words_of


class Coded(Parted):
    """A measure in which terms with different codes are unrelated; all other pairs are unchanged.

    A code is a word with a digit, such as a number, a room, a model or a formula. Codes are either equal or different;
    their distance in a space means nothing. A term without a code is compared by meaning with any other.

    >>> codes("Room 112"), codes("kitchen")
    (frozenset({'112'}), frozenset())
    """

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> PreparedCoded:
        """Prepare the subscription terms and their codes."""
        return PreparedCoded(self._measure.prepare(subscription_terms, subscription_theme=subscription_theme))

    def _difference(self, subscription_term: str, event_term: str) -> str:
        subscribed, published = codes(subscription_term), codes(event_term)
        if not subscribed or not published or subscribed == published:
            return ""
        return f"{' '.join(sorted(subscribed))} and {' '.join(sorted(published))} are different codes"


class PreparedCoded(PreparedParted):
    """Prepared terms with their codes."""

    def __init__(self, inner: Prepared) -> None:
        super().__init__(inner)
        self._same: dict[frozenset[str], list[int]] = defaultdict(list)
        for at, own in enumerate(map(codes, inner.terms)):
            self._same[own].append(at)
        self._coded = np.ones(len(inner.terms), np.bool_)
        self._coded[self._same.pop(frozenset(), [])] = False

    def _apart(self, event_terms: Sequence[str]) -> NDArray[np.bool_]:
        apart = np.zeros((len(event_terms), len(self.terms)), np.bool_)
        for row, published in enumerate(map(codes, event_terms)):
            if published:
                apart[row] = self._coded
                apart[row, self._same.get(published, [])] = False
        return apart


def codes(term: str) -> frozenset[str]:
    """The words of a term that have a digit in them."""
    return frozenset(word for word in normalise(term).split() if any(map(str.isdigit, word)))


_KEPT = 4096
"""The number of event words for which the opposite words of subscriptions are cached."""


class Opposed(Parted):
    """A measure in which terms with opposite words are unrelated; all other pairs are unchanged.

    Spaces and embeddings put opposites close together, because they are used of the same things. A subscriber to one
    of them does not want the other. Words that both terms have are ignored, and equal terms are never opposites.
    Without WordNet's files nothing changes, so processes that must give the same scores all need the files, or none.

    >>> from likewise.testing import TableMeasure
    >>> nearby = TableMeasure({("increased noise", "decreased noise"): 0.9})
    >>> Opposed(nearby).matrix(["increased noise"], ["decreased noise"]).tolist()
    [[0.0]]
    """

    def __init__(self, measure: Measure, *, opposites: Opposites | None = None) -> None:
        super().__init__(measure)
        self._opposites = Opposites.load() if opposites is None else opposites

    def prepare(self, subscription_terms: Sequence[str], *, subscription_theme: Sequence[str] = ()) -> Prepared:
        """Prepare the subscription terms and the opposites of their words."""
        inner = self._measure.prepare(subscription_terms, subscription_theme=subscription_theme)
        return inner if self._opposites is None else PreparedOpposed(inner, self._opposites)

    def _difference(self, subscription_term: str, event_term: str) -> str:
        pair = self._pair(subscription_term, event_term)
        return "" if pair is None else f"{pair[0]} and {pair[1]} are opposites"

    def _pair(self, subscription_term: str, event_term: str) -> tuple[Word, Word] | None:
        if self._opposites is None:
            return None
        subscribed, published = words_of(subscription_term), words_of(event_term)
        stand = self._opposites.stand
        pairs = (
            (word, other)
            for word in subscribed
            for other in published
            if word not in published and other not in subscribed
        )
        return next((pair for pair in pairs if stand(pair[0]).opposes(stand(pair[1]))), None)


class PreparedOpposed(PreparedParted):
    """Prepared terms by the words they have."""

    def __init__(self, inner: Prepared, opposites: Opposites) -> None:
        super().__init__(inner)
        self._index = OppositeTerms(inner.terms, opposites)

    def _apart(self, event_terms: Sequence[str]) -> NDArray[np.bool_]:
        return self._index.opposed(event_terms)


class OppositeTerms:
    """Finds which of many terms have a word that is opposite to one of another term."""

    def __init__(self, terms: Sequence[str], opposites: Opposites) -> None:
        self._size, self._opposites = len(terms), opposites
        columns: dict[Word, list[int]] = defaultdict(list)
        for column, term in enumerate(terms):
            for word in words_of(term):
                columns[word].append(column)
        self._columns = {word: tuple(places) for word, places in columns.items()}
        self._saying: dict[SenseKey, list[Word]] = defaultdict(list)
        self._denying: dict[SenseKey, list[Word]] = defaultdict(list)
        for word in self._columns:
            stand = opposites.stand(word)
            # Most words have only themselves as a meaning: they are found by their own text.
            said = (stand.own | stand.says) - {word.text}
            for index, meanings in ((self._saying, said), (self._denying, stand.denies)):
                for meaning in meanings:
                    index[meaning].append(word)
        self._found = lru_cache(_KEPT)(self._opposites_of)

    def opposed(self, event_terms: Sequence[str]) -> NDArray[np.bool_]:
        """Which prepared terms (columns) have an opposite word of each event term (row)."""
        opposed = np.zeros((len(event_terms), self._size), np.bool_)
        for row, term in enumerate(event_terms):
            words = words_of(term)
            for word in words:
                for other in self._found(word):
                    if other not in words:
                        shared = set(self._columns.get(word, ()))
                        opposed[row, [at for at in self._columns[other] if at not in shared]] = True
        return opposed

    def _opposites_of(self, word: Word) -> list[Word]:
        """The prepared words that are opposites of a word, found by an index of meanings."""
        stand = self._opposites.stand(word)
        themselves = (Word(meaning) for meaning in stand.denies if isinstance(meaning, str))
        near = [other for other in themselves if other in self._columns]
        near += [other for meaning in stand.denies for other in self._saying.get(meaning, ())]
        near += [other for meaning in stand.own | stand.says for other in self._denying.get(meaning, ())]
        return [other for other in dict.fromkeys(near) if stand.opposes(self._opposites.stand(other))]
