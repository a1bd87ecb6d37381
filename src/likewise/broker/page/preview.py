"""Preview a subscription: score all events, best first, so that the user can choose a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from likewise.broker.intake import parse_lines
from likewise.broker.page.editing import without_threshold
from likewise.broker.page.phrases import counted, plain_summary
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
class MatchGroup:
    """Events with the same score and the same attribute names, shown as one row."""

    score: float
    event: Event
    count: int = 1


@dataclass(slots=True)
class Preview:
    """The events that a subscription would find."""

    events: int
    pattern: bool
    threshold: float
    groups: list[MatchGroup] = field(default_factory=list)
    """Scored events of a single subscription, best first."""
    situations: list[dict[str, Any]] = field(default_factory=list)
    """Detections of a pattern, as `Insight.try_on` returns them."""
    found: int = 0

    def at(self, threshold: float) -> tuple[list[MatchGroup], list[MatchGroup]]:
        """The groups that match at a threshold, and those that do not."""
        matching = [group for group in self.groups if group.score >= threshold - 1e-6]
        return matching, self.groups[len(matching) :]

    def summary(self, threshold: float) -> str:
        """How many events match at a threshold, in words."""
        if not self.events:
            return "There are no events to try it on."
        if self.pattern:
            return f"{counted(self.found, 'situation')} in {counted(self.events, 'event')}"
        count = sum(group.count for group in self.at(threshold)[0])
        return f"{count:,} of {counted(self.events, 'event')} match"


def recent_events(broker: Broker, namespace: str, minutes: float) -> list[LogRecord]:
    """The events of the last minutes, oldest first."""
    since = now() - int(minutes * _MINUTE)
    records = broker.history.events(namespace, HistoryQuery(before=0, limit=MOST_EVENTS, since=since))
    return records[::-1]


def pasted_events(text: str) -> list[LogRecord]:
    """Parse pasted events, one per line: JSON, or `{type: parking, slots: 3}`."""
    events: list[Event] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if len(events) == MOST_PASTED:
            raise InputError(f"more than {MOST_PASTED} pasted events", hint="publish them instead")
        events.append(_pasted_event(line, number))
    moment = now()
    return [
        LogRecord.of_event(event, namespace="", publisher="", received=moment + number * 1000)
        for number, event in enumerate(events)
    ]


def _pasted_event(line: str, number: int) -> Event:
    try:
        event = parse_event(line)
    except LikewiseError as error:
        parsed = parse_lines([line.encode()], first=number)
        if not parsed.events:
            reason = parsed.rejected[0].reason if '"' in line else error.message
            raise InputError(
                f"line {number}: {reason}",
                hint='write {type: parking, slots: 3} or {"attributes": {"type": "parking", "slots": 3}}',
            ) from None
        event = parsed.events[0]
    return event if event.id else Event(f"line {number}", event.tuples, event.theme, event.start, event.end)


def preview_text(broker: Broker, namespace: str, text: str, records: Sequence[LogRecord]) -> Preview:
    """Preview a subscription on events; nothing is stored."""
    broker.check_size(text)
    subscription = parse_subscription(text)
    if isinstance(subscription.body, Composite):
        return _preview_pattern(broker, namespace, subscription, records)
    matcher = broker.host.tenant(namespace).engine.matcher
    profile, options = subscription.body, subscription.options
    events = [record.to_event() for record in records]
    ranked = matcher.rank(profile, events, options=without_threshold(options))
    grouped: dict[tuple[Any, ...], MatchGroup] = {}
    for match in ranked:
        score = round(float(match.score), 4)
        key = (score, *(name for name, _ in match.event.tuples))
        if key in grouped:
            grouped[key].count += 1
        else:
            grouped[key] = MatchGroup(score, match.event)
    threshold = float(matcher.settings(profile, options).threshold)
    return Preview(len(events), False, threshold, list(grouped.values()))


def _preview_pattern(
    broker: Broker, namespace: str, subscription: Subscription, records: Sequence[LogRecord]
) -> Preview:
    trial = broker.insight.try_on(namespace, subscription, list(records), limit=30)
    hits = [hit | {"events": [decode_line(bytes(event)) for event in hit["events"]]} for hit in trial.hits]
    return Preview(trial.events, True, subscription.options.threshold or 0.0, [], hits, trial.found)


def reason_of(broker: Broker, namespace: str, text: str, event: Event) -> str:
    """Why an event matches a subscription or does not, in one line."""
    subscription = parse_subscription(text)
    if not isinstance(subscription.body, Profile):
        return ""
    matcher = broker.host.tenant(namespace).engine.matcher
    explanation = matcher.explain(subscription.body, event, options=without_threshold(subscription.options))
    return plain_summary(explanation)
