"""The background: a sample of a stream's events, and what follows from it for the joint probability.

The probability that an event answers all predicates of a profile depends on how common their answers are. Either the
event is meant as a whole, or each predicate is answered by chance. With a known stream, the chance of a predicate is
the share of events that answer it: a country that all events name is no evidence for the other predicates, a rare
device is strong evidence. Record linkage weighs the agreement of records by the frequency of their values in the same
way (Fellegi and Sunter).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import inf, prod, sqrt
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from likewise.calibration import CHANCE, LEAST_CHANCE, MEANT, MEANT_IN_STREAM, MOST_CHANCE
from likewise.events import Event
from likewise.matching.encoding import term_of
from likewise.matching.index.dense_kernel import joint_score
from likewise.semantics import Measure
from likewise.semantics.evidence import Surroundings

if TYPE_CHECKING:
    from likewise.matching.matcher import Matcher


MOST_EVENTS = 256
"""The size of a sample; each of its events is compared with every subscription."""

MOST_WORDS = 1024
"""The number of distinct values kept from a sample, the most common ones."""


@dataclass(frozen=True, slots=True)
class Background:
    """The first events of a stream, with a version.

    Scores depend on it: processes that must give the same scores need the same version.

    >>> background = Background.of([Event.of({"room": "kitchen", "degrees": 21})])
    >>> background.events[0].tuples
    (('room', 'kitchen'), ('degrees', 21))
    """

    events: tuple[Event, ...]
    version: str = ""

    @classmethod
    def of(cls, events: Iterable[Event], *, limit: int = MOST_EVENTS) -> Background:
        """The background of the first events of a stream, without their ids and times."""
        kept = tuple(Event("", tuple(event.tuples)) for event in islice(events, limit))
        digest = hashlib.sha256(msgspec.msgpack.encode([event.tuples for event in kept])).hexdigest()
        return cls(kept, digest[:16])

    def __repr__(self) -> str:
        return f"<Background: {len(self.events)} events, version {self.version}>"


class KnownStream:
    """The sample of events that a matcher uses, and its values as evidence about pairs of values.

    Attributes are left out: a stream has few of them, and a nearer one may well be another name for the same.
    """

    def __init__(self, events: tuple[Event, ...] = ()) -> None:
        self.events = events
        self._around: dict[int, tuple[Measure, Surroundings | None]] = {}

    def values(self) -> list[str]:
        """The most common distinct text values."""
        counts = Counter(
            term
            for event in self.events
            for term in {term_of(value) for _, value in event.tuples if type(value) is str}
        )
        return sorted(counts, key=lambda term: (-counts[term], term))[:MOST_WORDS]

    def around(self, measure: Measure | None) -> Surroundings | None:
        """The values of the stream prepared for a measure; None for measures that do not use them."""
        if not self.events or measure is None:
            return None
        if id(measure) not in self._around:
            self._around[id(measure)] = measure, measure.surrounded_by(self.values())
        return self._around[id(measure)][1]


LEARNED_AT = (64, MOST_EVENTS)
"""Numbers of events after which a stream's events so far become its background; after the last it stays the same."""


class StreamSample:
    """Collects the first events of a stream and determines after which of them the background changes.

    This depends on the order of the events only, so that the same stream gives the same scores in batches of any size.
    A sample `known` beforehand, such as that of a file, does not grow.

    >>> sample = StreamSample()
    >>> [len(part) for part in sample.parts([Event.of({"n": n}) for n in range(300)])]
    [64, 192, 44]
    """

    def __init__(self, events: Iterable[Event] = (), *, known: bool = False) -> None:
        self.events: list[Event] = list(islice(events, MOST_EVENTS))
        self.known = known

    @property
    def complete(self) -> bool:
        """Whether the sample will not grow any more."""
        return self.known or len(self.events) >= LEARNED_AT[-1]

    @property
    def size(self) -> int:
        """The number of events in the current background; 0 while there are too few."""
        reached = [mark for mark in LEARNED_AT if mark <= len(self.events)]
        if not reached:
            return 0
        return len(self.events) if self.known else reached[-1]

    def background(self) -> Background:
        """The current background."""
        return Background.of(self.events[: self.size])

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """Split the events where the background changes; each part is scored with the background before it."""
        start = 0
        while not self.complete and start < len(events):
            mark = next(mark for mark in LEARNED_AT if mark > len(self.events))
            part = events[start : start + mark - len(self.events)]
            self.events += part
            yield part
            start += len(part)
        if start < len(events):
            yield events[start:] if start else events


class StreamLearner:
    """Updates the background of a matcher as its stream goes on."""

    def __init__(self, matcher: Matcher, sample: StreamSample) -> None:
        self.sample = sample
        self._matcher = matcher
        self._learned = 0

    def learn(self) -> None:
        """Give the matcher the current background."""
        size = self.sample.size
        if size != self._learned:
            self._matcher.learn(self.sample.background())
            self._learned = size

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """Split the events where the background changes; the caller scores each part before it takes the next."""
        self.learn()
        for part in self.sample.parts(events):
            yield part
            self.learn()


# Joint probability.


def odds_against(chance: float) -> float:
    """The prior odds against a predicate in a known stream.

    Scores were learned on data where half of the pairs mean the same. The prior is the geometric mean of that half
    and the share in the stream.
    """
    prior = sqrt((MEANT_IN_STREAM + (1 - MEANT_IN_STREAM) * chance) * 0.5)
    return (1 - prior) / prior


@dataclass(frozen=True, slots=True)
class Commonness:
    """The prior probability that an event is meant, and for each predicate its chance and the odds against it.

    Exact predicates do not change how likely the others are: they have chance 1 and odds 0.
    """

    meant: float
    chances: tuple[float, ...]
    odds: tuple[float, ...]

    @classmethod
    def unknown(cls, by_meaning: Sequence[bool]) -> Commonness:
        """The defaults for an unknown stream; `by_meaning` marks the predicates that are not exact."""
        prior = MEANT + (1 - MEANT) * CHANCE
        chances = tuple(CHANCE if loose else 1.0 for loose in by_meaning)
        return cls(MEANT, chances, tuple((1 - prior) / prior if loose else 0.0 for loose in by_meaning))

    @classmethod
    def seen(cls, shares: Sequence[float], by_meaning: Sequence[bool]) -> Commonness:
        """For a known stream, from the share of its events that answer each predicate."""
        pairs = zip(shares, by_meaning, strict=True)
        chances = tuple(min(max(share, LEAST_CHANCE), MOST_CHANCE) if loose else 1.0 for share, loose in pairs)
        odds = tuple(odds_against(chance) if chance < 1 else 0.0 for chance in chances)
        return cls(MEANT_IN_STREAM, chances, odds)

    def some(self, places: Sequence[int]) -> Commonness:
        """The commonness of some of the predicates, in this order."""
        return Commonness(self.meant, *(tuple(part[at] for at in places) for part in (self.chances, self.odds)))

    @property
    def known(self) -> bool:
        """Whether it comes from a known stream."""
        return self.meant == MEANT_IN_STREAM

    @property
    def base_rate(self) -> float:
        """The prior probability that an event answers all predicates."""
        return self.meant + (1 - self.meant) * prod(self.chances)


def joint(probabilities: NDArray[np.float64], commonness: Commonness) -> NDArray[np.float64]:
    """The probability that all predicates (rows) are answered, given the probability of each alone.

    Several likely predicates make each other more likely; a single one keeps its probability.

    >>> two = Commonness.unknown([True, True])
    >>> joint(np.array([[0.65, 0.65], [1.0, 0.65]]), two).round(3).tolist()
    [0.712, 0.469]
    >>> common, rare = (Commonness.seen([share, 0.1], [True, True]) for share in (0.9, 0.1))
    >>> round(float(joint(np.array([1.0, 0.4]), common)), 2), round(float(joint(np.array([1.0, 0.4]), rare)), 2)
    (0.22, 0.41)
    """
    by_meaning = [at for at, odds in enumerate(commonness.odds) if odds > 0]
    exact = [at for at, odds in enumerate(commonness.odds) if odds == 0]
    exact_product: NDArray[np.float64] = probabilities[exact].prod(axis=0)
    if len(by_meaning) < 2:
        single: NDArray[np.float64] = probabilities[by_meaning].prod(axis=0)
        return np.asarray(exact_product * single, np.float64)
    shape = (-1, *(1,) * (probabilities.ndim - 1))
    entries = probabilities[by_meaning]
    odds, chances = (np.array(part)[by_meaning].reshape(shape) for part in (commonness.odds, commonness.chances))
    if_meant = (odds * entries).prod(axis=0)
    by_chance = (chances * odds * entries + (1 - chances) * (1 - entries)).prod(axis=0)
    score: NDArray[np.float64] = joint_score.py_func(if_meant, by_chance, float(chances.prod()), commonness.meant)
    return np.asarray(exact_product * score, np.float64)


def enough_jointly(others: Sequence[float], limit: float, *, commonness: Commonness) -> float:
    """The probability that the last predicate needs for the joint probability to reach a limit; may be above 1.

    `commonness` has the other predicates first, then this one.
    """
    *before, chance = commonness.chances
    *odds_before, odds = commonness.odds
    if odds == 0 or not any(odds_before):
        return limit
    meant, if_meant, by_chance = commonness.meant, odds, 1.0
    for value, its_chance, its_odds in zip(others, before, odds_before, strict=True):
        if its_odds > 0:
            if_meant *= its_odds * value
            by_chance *= its_chance * its_odds * value + (1 - its_chance) * (1 - value)
    rest = commonness.base_rate * if_meant - limit * (
        meant * if_meant + (1 - meant) * by_chance * (chance * odds - (1 - chance))
    )
    return float(limit * (1 - meant) * by_chance * (1 - chance) / rest) if rest > 0 else inf


@lru_cache(maxsize=8192)
def least_entries(limit: float, commonness: Commonness) -> tuple[float, ...]:
    """The probability that each predicate needs for `joint` to reach a limit if all others were 1.

    >>> [round(entry, 3) for entry in least_entries(0.5, Commonness.unknown([True, True, False]))]
    [0.429, 0.429, 0.5]
    """
    by_meaning = [at for at, odds in enumerate(commonness.odds) if odds > 0]
    ones = [1.0] * (len(by_meaning) - 1)
    least = [limit] * len(commonness.odds)
    for at in by_meaning:
        order = [*(other for other in by_meaning if other != at), at]
        least[at] = enough_jointly(ones, limit, commonness=commonness.some(order))
    return tuple(least)


def least_product(limit: float, commonness: Commonness) -> float:
    """A product of probabilities below which `joint` cannot reach a limit.

    If all predicates are equally common, the score for a given product is highest where all but one are 1, so the bound
    is the least entry. Otherwise it is the product of the least entries.

    >>> three = Commonness.unknown([True] * 3)
    >>> round(float(joint(np.array([least_product(0.5, three), 1.0, 1.0]), three)), 6)
    0.5
    """
    entries = zip(least_entries(limit, commonness), commonness.odds, strict=True)
    least = [entry for entry, odds in entries if odds > 0]
    if not least:
        return limit
    return prod(least) if commonness.known else least[0]


@lru_cache(maxsize=8192)
def watched_entry(limit: float, watched: int, count: int, *, known: bool) -> float:
    """The probability that one of `watched` of `count` predicates must reach for `joint` to reach a limit.

    In a `known` stream, however common their answers are: the bound is least where each answer is as rare or as common
    as can be.

    >>> round(watched_entry(0.5, 2, 2, known=False), 3), round(watched_entry(0.5, 1, 2, known=False), 3)
    (0.672, 0.429)
    >>> round(watched_entry(0.5, 2, 2, known=True), 3)
    0.217
    """
    if count < 2:
        return limit
    if not known:
        return _entry_of_some(limit, watched, Commonness.unknown([True] * count))
    mixed = [
        [0.0] * rare + [1.0] * (watched - rare) + [0.0] * others + [1.0] * (count - watched - others)
        for rare in range(watched + 1)
        for others in range(count - watched + 1)
    ]
    return min(_entry_of_some(limit, watched, Commonness.seen(shares, [True] * count)) for shares in mixed)


def _entry_of_some(limit: float, watched: int, commonness: Commonness) -> float:
    """The probability with which the first `watched` predicates reach a limit together if all others were 1."""
    low, high = 0.0, 1.0
    entries = np.ones(len(commonness.odds))
    for _ in range(40):
        middle = (low + high) / 2
        entries[:watched] = middle
        low, high = (low, middle) if joint(entries, commonness) >= limit else (middle, high)
    return low
