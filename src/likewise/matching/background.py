"""The background: what is known of a stream from a sample of its events, and what follows for joint probability.

How likely all predicates of a profile are meant depends on how common their answers are. Either an event is meant as a
whole, or each predicate is answered by chance. Where the stream is known, the chance of a predicate is the share of its
events that answer it: that an event comes from the one country that all events name says nothing of its other
predicates, that it names a rare device says much. Fellegi and Sunter weigh the agreement of records by the frequency of
what they agree on in the same way.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import inf, prod, sqrt
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from likewise.events import Event
from likewise.matching.encoding import term_of
from likewise.matching.index.dense_kernel import CHANCE, MEANT, joint_score
from likewise.semantics import Measure
from likewise.semantics.evidence import Surroundings

if TYPE_CHECKING:
    from likewise.matching.matcher import Matcher


MOST_EVENTS = 256
"""So many events are sample enough; each is compared with every subscription."""

MOST_WORDS = 1024
"""So many distinct values of a sample, those that most events have, are the words of its stream."""


@dataclass(frozen=True, slots=True)
class Background:
    """The first events of a stream, and a version that tells one sample from others.

    Scores depend on it, so everyone who must score alike has to hold the same version.

    >>> background = Background.of([Event.of({"room": "kitchen", "degrees": 21})])
    >>> background.events[0].tuples
    (('room', 'kitchen'), ('degrees', 21))
    """

    events: tuple[Event, ...]
    version: str = ""

    @classmethod
    def of(cls, events: Iterable[Event], *, limit: int = MOST_EVENTS) -> Background:
        """Of the first events of a stream; identity and time are left out, they say nothing of its words."""
        kept = tuple(Event("", tuple(event.tuples)) for event in islice(events, limit))
        digest = hashlib.sha256(msgspec.msgpack.encode([event.tuples for event in kept])).hexdigest()
        return cls(kept, digest[:16])

    def __repr__(self) -> str:
        return f"<Background: {len(self.events)} events, version {self.version}>"


class KnownStream:
    """The events that a matcher takes for its stream, and what their words say of pairs of values.

    Attributes are left out: a stream has few of them, and one that is nearer may well be another name for the same.
    """

    def __init__(self, events: tuple[Event, ...] = ()) -> None:
        self.events = events
        self._around: dict[int, tuple[Measure, Surroundings | None]] = {}

    def values(self) -> list[str]:
        """The distinct text values that most events have."""
        said = Counter(
            term
            for event in self.events
            for term in {term_of(value) for _, value in event.tuples if type(value) is str}
        )
        return sorted(said, key=lambda term: (-said[term], term))[:MOST_WORDS]

    def around(self, measure: Measure | None) -> Surroundings | None:
        """The values of the stream, made ready for evidence; other measures have no use for them."""
        if not self.events or measure is None:
            return None
        if id(measure) not in self._around:
            self._around[id(measure)] = measure, measure.surrounded_by(self.values())
        return self._around[id(measure)][1]


LEARNED_AT = (64, MOST_EVENTS)
"""After so many events of a stream what it says so far becomes the background; after the last, it stays."""


class StreamSample:
    """Collects the first events of a stream, and says after which of them the background changes.

    That depends on nothing but the order of the events, so that the same stream gives the same scores however it is
    cut into batches. Events that are `known` beforehand, such as those of a file, are all there will be.

    >>> sample = StreamSample()
    >>> [len(part) for part in sample.parts([Event.of({"n": n}) for n in range(300)])]
    [64, 192, 44]
    """

    def __init__(self, events: Iterable[Event] = (), *, known: bool = False) -> None:
        self.events: list[Event] = list(islice(events, MOST_EVENTS))
        self.known = known

    @property
    def complete(self) -> bool:
        """Whether all was collected."""
        return self.known or len(self.events) >= LEARNED_AT[-1]

    @property
    def size(self) -> int:
        """Of how many events the background is by now; 0 if there were too few."""
        reached = [mark for mark in LEARNED_AT if mark <= len(self.events)]
        if not reached:
            return 0
        return len(self.events) if self.known else reached[-1]

    def background(self) -> Background:
        """The background by now."""
        return Background.of(self.events[: self.size])

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """The events in parts: all of a part are scored with what is learned before it, and then is time to learn."""
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
    """Keeps the background of a matcher at what its stream has said so far.

    It is only for matchers that score all profiles for every event: the index knows no background, and profiles that
    are so many go without from then on.
    """

    def __init__(self, matcher: Matcher, sample: StreamSample) -> None:
        self.sample = sample
        self._matcher = matcher
        self._learned = 0

    def learn(self) -> None:
        """Give the matcher the background of now; it forgets it by itself when its profiles are too many."""
        size = self.sample.size
        if size != self._learned and not self._matcher.is_indexed:
            self._matcher.learn(self.sample.background(), yielding=True)
            self._learned = size

    def parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """The events in parts, each to be scored before the next is asked for."""
        self.learn()
        for part in self.sample.parts(events):
            yield part
            self.learn()


# Joint probability.


MEANT_IN_STREAM: Final = 0.02
"""How likely an event of a known stream is taken to be the one that is meant, before anything is compared."""

RAREST: Final = 0.05
MOST_COMMON: Final = 0.95
"""Between these lies the chance of a predicate: a sample tells no more."""


def odds_against(chance: float) -> float:
    """The odds against a predicate in a known stream, before its words are compared.

    Scores were learned where half of the pairs mean the same. Their odds are brought half the way from there to what
    the stream says.
    """
    prior = sqrt((MEANT_IN_STREAM + (1 - MEANT_IN_STREAM) * chance) * 0.5)
    return (1 - prior) / prior


@dataclass(frozen=True, slots=True)
class Commonness:
    """How likely an event is meant at all, and of each predicate its chance and the odds against it.

    Exact predicates tell nothing of the others: they have chance 1 and odds 0.
    """

    meant: float
    chances: tuple[float, ...]
    odds: tuple[float, ...]

    @classmethod
    def unknown(cls, loose: Sequence[bool]) -> Commonness:
        """Of predicates, of which these have a `~`, in a stream that is not known."""
        prior = MEANT + (1 - MEANT) * CHANCE
        chances = tuple(CHANCE if each else 1.0 for each in loose)
        return cls(MEANT, chances, tuple((1 - prior) / prior if each else 0.0 for each in loose))

    @classmethod
    def seen(cls, shares: Sequence[float], loose: Sequence[bool]) -> Commonness:
        """Of predicates that such shares of a stream's events answer."""
        pairs = zip(shares, loose, strict=True)
        kept = [min(max(share, RAREST), MOST_COMMON) if each else 1.0 for share, each in pairs]
        odds = tuple(odds_against(chance) if chance < 1 else 0.0 for chance in kept)
        return cls(MEANT_IN_STREAM, tuple(kept), odds)

    def some(self, places: Sequence[int]) -> Commonness:
        """Of some of the predicates."""
        return Commonness(self.meant, *(tuple(part[at] for at in places) for part in (self.chances, self.odds)))

    @property
    def known(self) -> bool:
        """Whether it is that of a known stream."""
        return self.meant == MEANT_IN_STREAM

    @property
    def base_rate(self) -> float:
        """How likely an event of the stream answers all predicates, before its words are compared."""
        return self.meant + (1 - self.meant) * prod(self.chances)


def joint(probabilities: NDArray[np.float64], commonness: Commonness) -> NDArray[np.float64]:
    """The probability that all predicates (rows) are meant, each of which is so with the given probability.

    Several that are likely make each other likelier; one alone keeps its probability.

    >>> two = Commonness.unknown([True, True])
    >>> joint(np.array([[0.65, 0.65], [1.0, 0.65]]), two).round(3).tolist()
    [0.712, 0.469]
    >>> common, rare = (Commonness.seen([share, 0.1], [True, True]) for share in (0.9, 0.1))
    >>> round(float(joint(np.array([1.0, 0.4]), common)), 2), round(float(joint(np.array([1.0, 0.4]), rare)), 2)
    (0.22, 0.41)
    """
    told = [at for at, odds in enumerate(commonness.odds) if odds > 0]
    exact = [at for at, odds in enumerate(commonness.odds) if odds == 0]
    met: NDArray[np.float64] = probabilities[exact].prod(axis=0)
    if len(told) < 2:
        lone: NDArray[np.float64] = probabilities[told].prod(axis=0)
        return np.asarray(met * lone, np.float64)
    shape = (-1, *(1,) * (probabilities.ndim - 1))
    mine = probabilities[told]
    odds, chances = (np.array(part)[told].reshape(shape) for part in (commonness.odds, commonness.chances))
    whole = (odds * mine).prod(axis=0)
    doubts = (chances * odds * mine + (1 - chances) * (1 - mine)).prod(axis=0)
    found: NDArray[np.float64] = joint_score.py_func(whole, doubts, float(chances.prod()), commonness.meant)
    return np.asarray(met * found, np.float64)


def enough_jointly(others: Sequence[float], limit: float, *, commonness: Commonness) -> float:
    """The probability that the last predicate must have for all to reach a limit; above 1 if none is enough.

    `commonness` is that of the others, then of this one.
    """
    *before, chance = commonness.chances
    *odds_before, odds = commonness.odds
    if odds == 0 or not any(odds_before):
        return limit
    meant, whole, doubts = commonness.meant, odds, 1.0
    for value, its_chance, its_odds in zip(others, before, odds_before, strict=True):
        if its_odds > 0:
            whole *= its_odds * value
            doubts *= its_chance * its_odds * value + (1 - its_chance) * (1 - value)
    rest = commonness.base_rate * whole - limit * (
        meant * whole + (1 - meant) * doubts * (chance * odds - (1 - chance))
    )
    return float(limit * (1 - meant) * doubts * (1 - chance) / rest) if rest > 0 else inf


@lru_cache(maxsize=8192)
def least_entries(limit: float, commonness: Commonness) -> tuple[float, ...]:
    """What each predicate must have for `joint` to reach a limit, if all others were 1.

    >>> [round(each, 3) for each in least_entries(0.5, Commonness.unknown([True, True, False]))]
    [0.429, 0.429, 0.5]
    """
    told = [at for at, odds in enumerate(commonness.odds) if odds > 0]
    ones = [1.0] * (len(told) - 1)
    least = [limit] * len(commonness.odds)
    for at in told:
        order = [*(other for other in told if other != at), at]
        least[at] = enough_jointly(ones, limit, commonness=commonness.some(order))
    return tuple(least)


def least_product(limit: float, commonness: Commonness) -> float:
    """A product of probabilities below which `joint` cannot reach a limit.

    Where all predicates are as common as each other, the score for a given product is greatest where all but one are 1:
    there the product is that one. Else none of them may be below what would do if all others were 1.

    >>> three = Commonness.unknown([True] * 3)
    >>> round(float(joint(np.array([least_product(0.5, three), 1.0, 1.0]), three)), 6)
    0.5
    """
    least = [each for each, odds in zip(least_entries(limit, commonness), commonness.odds, strict=True) if odds > 0]
    if not least:
        return limit
    return prod(least) if commonness.known else least[0]
