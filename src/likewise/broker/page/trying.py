"""Trying a subscription: all events that answer it at all, best first, so that a threshold can be moved over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from likewise.broker.intake import gather_lines
from likewise.broker.page.editing import without_threshold
from likewise.broker.page.phrases import many, told_plainly
from likewise.broker.service import Broker
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import LogRecord, now
from likewise.errors import InputError, LikewiseError
from likewise.events import Event, decode_line
from likewise.language import Composite, Profile, Subscription, parse_event, parse_subscription

MOST_EVENTS: Final = 5_000
MOST_PASTED: Final = 500
_MINUTE: Final = 60_000_000


@dataclass(slots=True)
class Answers:
    """Events that say the same in the same words, and how well they answer."""

    score: float
    event: Event
    count: int = 1


@dataclass(slots=True)
class Tried:
    """What a subscription finds among some events."""

    looked: int
    pattern: bool
    threshold: float
    answers: list[Answers] = field(default_factory=list)
    """Of single events, best first."""
    situations: list[dict[str, Any]] = field(default_factory=list)
    """Of a pattern, as `Insight.try_on` gives them."""
    found: int = 0

    def at(self, threshold: float) -> tuple[list[Answers], list[Answers]]:
        """What is found at a threshold, and what is not."""
        taken = [one for one in self.answers if one.score >= threshold - 1e-6]
        return taken, self.answers[len(taken) :]

    def summary(self, threshold: float) -> str:
        """How many are found at a threshold, in words."""
        if not self.looked:
            return "There are no events to try it on."
        if self.pattern:
            return f"{many(self.found, 'situation')} in {many(self.looked, 'event')}"
        count = sum(one.count for one in self.at(threshold)[0])
        return f"{count:,} of {many(self.looked, 'event')} match"


def recent(broker: Broker, namespace: str, minutes: float) -> list[LogRecord]:
    """The events of the last minutes, oldest first."""
    since = now() - int(minutes * _MINUTE)
    found = broker.history.events(namespace, HistoryQuery(before=0, limit=MOST_EVENTS, since=since))
    return found[::-1]


def pasted(text: str) -> list[LogRecord]:
    """Events from a box: JSON lines, or `{type: parking, slots: 3}` line by line."""
    out: list[Event] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if len(out) == MOST_PASTED:
            raise InputError(f"more than {MOST_PASTED} events", hint="publish them instead")
        out.append(_pasted_event(line, number))
    moment = now()
    return [
        LogRecord.of_event(event, namespace="", publisher="", received=moment + number * 1000)
        for number, event in enumerate(out)
    ]


def _pasted_event(line: str, number: int) -> Event:
    try:
        plain = parse_event(line)
    except LikewiseError as error:
        gathered = gather_lines([line.encode()], first=number)
        if not gathered.events:
            reason = gathered.rejected[0].reason if '"' in line else error.message
            raise InputError(
                f"line {number}: {reason}",
                hint='write {type: parking, slots: 3} or {"attributes": {"type": "parking", "slots": 3}}',
            ) from None
        plain = gathered.events[0]
    return plain if plain.id else Event(f"line {number}", plain.tuples, plain.theme, plain.start, plain.end)


def try_text(broker: Broker, namespace: str, text: str, records: Sequence[LogRecord]) -> Tried:
    """What the subscription of a text finds among events; nothing is stored."""
    broker.check_size(text)
    subscription = parse_subscription(text)
    if isinstance(subscription.body, Composite):
        return _try_pattern(broker, namespace, subscription, records)
    matcher = broker.host.tenant(namespace).engine.matcher
    profile, options = subscription.body, subscription.options
    events = [record.to_event() for record in records]
    ranked = matcher.rank(profile, events, options=without_threshold(options))
    grouped: dict[tuple[Any, ...], Answers] = {}
    for match in ranked:
        score = round(float(match.score), 4)
        key = (score, *(name for name, _ in match.event.tuples))
        if key in grouped:
            grouped[key].count += 1
        else:
            grouped[key] = Answers(score, match.event)
    threshold = float(matcher.settings(profile, options).threshold)
    return Tried(len(events), False, threshold, list(grouped.values()))


def _try_pattern(broker: Broker, namespace: str, subscription: Subscription, records: Sequence[LogRecord]) -> Tried:
    found = broker.insight.try_on(namespace, subscription, list(records), limit=30)
    hits = [hit | {"events": [decode_line(bytes(one)) for one in hit["events"]]} for hit in found.hits]
    return Tried(found.events, True, subscription.options.threshold or 0.0, [], hits, found.found)


def verdict(broker: Broker, namespace: str, text: str, event: Event) -> str:
    """Why an event answers, or why not, in one line."""
    subscription = parse_subscription(text)
    if not isinstance(subscription.body, Profile):
        return ""
    matcher = broker.host.tenant(namespace).engine.matcher
    found = matcher.explain(subscription.body, event, options=without_threshold(subscription.options))
    return told_plainly(found)
