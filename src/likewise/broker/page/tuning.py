"""Tuning by labels: the threshold that fits what people said, and its effect before it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from likewise.broker.page.editing import with_threshold, without_threshold
from likewise.broker.page.labels import Judgement, judgements
from likewise.broker.page.trying import recent, try_text
from likewise.broker.service import Broker
from likewise.errors import BuildError
from likewise.language import Profile, parse_subscription

LEAST = 3
"""Labels without which nothing is proposed."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How a threshold does on labels."""

    threshold: float
    found: int
    """Right ones that it finds."""
    wrong: int
    """Wrong ones that it finds."""
    missed: int
    """Right ones that it leaves out."""

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        whole = 2 * self.found + self.wrong + self.missed
        return 2 * self.found / whole if whole else 0.0

    def words(self) -> str:
        """In words, without the threshold.

        >>> Fit(0.5, 8, 1, 2).words()
        'finds 8 of 10 right ones and 1 wrong one'
        """
        right = self.found + self.missed
        wrong = "no wrong one" if not self.wrong else f"{self.wrong} wrong one{'s' if self.wrong > 1 else ''}"
        return f"finds {self.found} of {right} right one{'s' if right != 1 else ''} and {wrong}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another threshold for a subscription, and what it would change."""

    name: str
    labels: int
    now: Fit
    then: Fit
    text: str
    """The subscription with the threshold of `then`."""
    hour: tuple[int, int]
    """Matches in the last hour, now and then."""

    @property
    def is_better(self) -> bool:
        """Whether it is worth a change."""
        return self.then.f1 > self.now.f1 + 1e-9


def propose(broker: Broker, namespace: str, name: str) -> Proposal:
    """The threshold of the best F1 on the labels; of equally good ones the nearest to the present one."""
    entry, said = broker.history.entry(namespace, name), judgements(broker, namespace, name)
    subscription = parse_subscription(entry.text)
    if not isinstance(subscription.body, Profile):
        raise BuildError("patterns have no score of their own to tune", hint="tune the subscriptions they stand on")
    if len(said) < LEAST or not any(one.right for one in said):
        raise BuildError(
            f"{name} has {len(said)} labels; {LEAST} are needed, one of them right",
            hint="use the thumbs on Now and on Why",
        )
    matcher = broker.host.tenant(namespace).engine.matcher
    scores = _scores(broker, namespace, entry.text, said)
    present = float(matcher.settings(subscription.body, subscription.options).threshold)
    best = best_fit(scores, present)
    text = with_threshold(entry.text, best.threshold)
    tried = try_text(broker, namespace, entry.text, recent(broker, namespace, 60.0))
    hour = tuple(sum(one.count for one in tried.at(limit)[0]) for limit in (present, best.threshold))
    return Proposal(name, len(said), fit(scores, present), best, text, (hour[0], hour[1]))


def _scores(broker: Broker, namespace: str, text: str, said: Sequence[Judgement]) -> list[tuple[float, bool]]:
    subscription = parse_subscription(text)
    assert isinstance(subscription.body, Profile)
    matcher = broker.host.tenant(namespace).engine.matcher
    options = without_threshold(subscription.options)
    ranked = matcher.rank(subscription.body, [one.event for one in said], options=options)
    reached = {id(match.event): float(match.score) for match in ranked}
    return [(reached.get(id(one.event), 0.0), one.right) for one in said]


def fit(scores: Sequence[tuple[float, bool]], threshold: float) -> Fit:
    """How a threshold does on scores with their truth.

    >>> fit([(0.9, True), (0.6, False), (0.4, True)], 0.5)
    Fit(threshold=0.5, found=1, wrong=1, missed=1)
    """
    taken = [right for score, right in scores if score >= threshold - 1e-6]
    right = sum(truth for _, truth in scores)
    return Fit(threshold, sum(taken), len(taken) - sum(taken), right - sum(taken))


def best_fit(scores: Sequence[tuple[float, bool]], present: float) -> Fit:
    """The best threshold: halfway between the scores that it parts, or the present one if none is better.

    >>> best_fit([(0.9, True), (0.6, False), (0.4, False)], 0.5).threshold
    0.75
    """
    places = sorted({score for score, _ in scores if score > 0})
    between = [(low + high) / 2 for low, high in zip([0.0, *places], places, strict=False)]
    tried = [fit(scores, present), *(fit(scores, max(0.01, floor(place * 1e4) / 1e4)) for place in between)]
    return max(tried, key=lambda one: (round(one.f1, 9), -abs(one.threshold - present)))
