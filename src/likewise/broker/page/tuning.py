"""Tune a threshold with relevance labels, and show its effect before it is applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from likewise.broker.page.editing import with_threshold, without_threshold
from likewise.broker.page.labels import Judgement, judgements
from likewise.broker.page.phrases import counted
from likewise.broker.page.preview import preview_text, recent_events
from likewise.broker.service import Broker
from likewise.errors import BuildError
from likewise.language import Profile, parse_subscription

LEAST = 3
"""Minimum number of labels for a proposal."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The quality of a threshold on labels."""

    threshold: float
    found: int
    """Relevant events that match."""
    wrong: int
    """Irrelevant events that match."""
    missed: int
    """Relevant events that do not match."""

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = 2 * self.found + self.wrong + self.missed
        return 2 * self.found / total if total else 0.0

    def words(self) -> str:
        """The quality in words, without the threshold.

        >>> Fit(0.5, 8, 1, 2).words()
        'finds 8 of 10 right events and 1 wrong event'
        """
        right = self.found + self.missed
        wrong = counted(self.wrong, "wrong event") if self.wrong else "no wrong event"
        return f"finds {self.found} of {counted(right, 'right event')} and {wrong}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed threshold for a subscription, and its effect."""

    name: str
    labels: int
    current: Fit
    proposed: Fit
    text: str
    """The subscription with the proposed threshold."""
    hour: tuple[int, int]
    """Number of matches in the last hour, with the current and with the proposed threshold."""

    @property
    def is_better(self) -> bool:
        """Whether the proposed threshold has a better F1."""
        return self.proposed.f1 > self.current.f1 + 1e-9


def propose(broker: Broker, namespace: str, name: str) -> Proposal:
    """Propose the threshold with the best F1 on the labels; on a tie, the one closest to the current threshold."""
    entry, labels = broker.history.entry(namespace, name), judgements(broker, namespace, name)
    subscription = parse_subscription(entry.text)
    if not isinstance(subscription.body, Profile):
        raise BuildError(
            "a pattern has no threshold to tune", hint="tune a subscription for one of its members instead"
        )
    if len(labels) < LEAST or not any(label.right for label in labels):
        raise BuildError(
            f"{name} has {counted(len(labels), 'label')}; tuning needs {LEAST}, at least one of them right",
            hint="rate matches with the thumbs on Now, or with Yes and No on Why",
        )
    matcher = broker.host.tenant(namespace).engine.matcher
    scores = _scores(broker, namespace, entry.text, labels)
    current = float(matcher.settings(subscription.body, subscription.options).threshold)
    best = best_fit(scores, current)
    text = with_threshold(entry.text, best.threshold)
    preview = preview_text(broker, namespace, entry.text, recent_events(broker, namespace, 60.0))
    hour = tuple(sum(group.count for group in preview.at(limit)[0]) for limit in (current, best.threshold))
    return Proposal(name, len(labels), fit(scores, current), best, text, (hour[0], hour[1]))


def _scores(broker: Broker, namespace: str, text: str, labels: Sequence[Judgement]) -> list[tuple[float, bool]]:
    subscription = parse_subscription(text)
    assert isinstance(subscription.body, Profile)
    matcher = broker.host.tenant(namespace).engine.matcher
    options = without_threshold(subscription.options)
    ranked = matcher.rank(subscription.body, [label.event for label in labels], options=options)
    by_event = {id(match.event): float(match.score) for match in ranked}
    return [(by_event.get(id(label.event), 0.0), label.right) for label in labels]


def fit(scores: Sequence[tuple[float, bool]], threshold: float) -> Fit:
    """The quality of a threshold on scores with their labels.

    >>> fit([(0.9, True), (0.6, False), (0.4, True)], 0.5)
    Fit(threshold=0.5, found=1, wrong=1, missed=1)
    """
    matching = [right for score, right in scores if score >= threshold - 1e-6]
    found, right = sum(matching), sum(label for _, label in scores)
    return Fit(threshold, found, len(matching) - found, right - found)


def best_fit(scores: Sequence[tuple[float, bool]], current: float) -> Fit:
    """The best threshold: halfway between two scores, or the current one if none is better.

    >>> best_fit([(0.9, True), (0.6, False), (0.4, False)], 0.5).threshold
    0.75
    """
    values = sorted({score for score, _ in scores if score > 0})
    between = [(low + high) / 2 for low, high in zip([0.0, *values], values, strict=False)]
    fits = [fit(scores, current), *(fit(scores, max(0.01, floor(middle * 1e4) / 1e4)) for middle in between)]
    return max(fits, key=lambda candidate: (round(candidate.f1, 9), -abs(candidate.threshold - current)))
