"""Explanations: why an event matched or did not, and what a subscription would have found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from likewise.broker.engines.host import EngineHost, Tenant, subscription_of
from likewise.broker.store.history import History, HistoryQuery
from likewise.broker.store.records import LogRecord, now
from likewise.composite import Detector
from likewise.events import Event, decode_line, encode_line, to_datetime
from likewise.language import Composite, Member, Options, Profile, Subscription, members, parse_subscription
from likewise.matching import Explanation

MOST_EVENTS: Final = 10_000
"""Maximum number of events in a trial; the newest are used."""
_TIME_FIELDS: Final = ("time", "start", "activated", "terminated")


@dataclass(slots=True)
class TrialResult:
    """What a subscription would have found, and its near misses."""

    events: int
    found: int
    threshold: float | None = None
    hits: list[dict[str, Any]] = field(default_factory=list)
    near_misses: list[dict[str, Any]] = field(default_factory=list)


class Insight:
    """Explains and tries subscriptions from other threads, without changing the engines."""

    def __init__(self, host: EngineHost, history: History) -> None:
        self._host, self._history = host, history

    def explain(self, namespace: str, cursor: int) -> dict[str, Any]:
        """Explain a notification: a match with the current scores, a detection with its recorded trace."""
        notice = self._history.notice(namespace, cursor)
        body: dict[str, Any] = msgspec.json.decode(notice.body)
        if notice.kind == "detection":
            return _explain_detection(body)
        entry = self._history.entry(namespace, notice.subscription)
        event = decode_line(msgspec.json.encode(body["events"][0]))
        return self._explain(self._host.tenant(namespace), subscription_of(entry), event)

    def why(self, namespace: str, event_id: str, name: str) -> dict[str, Any]:
        """Explain why an event of the log matches a subscription or does not."""
        record, entry = self._history.event(namespace, event_id), self._history.entry(namespace, name)
        return self._explain(self._host.tenant(namespace), subscription_of(entry), record.to_event())

    def trial(self, namespace: str, text: str, *, minutes: float, limit: int) -> TrialResult:
        """Try a subscription on the events of the last minutes."""
        subscription = parse_subscription(text)
        since = now() - int(minutes * 60e6)
        records = self._history.events(namespace, HistoryQuery(before=0, limit=MOST_EVENTS, since=since))
        return self.try_on(namespace, subscription, list(reversed(records)), limit=limit)

    def try_on(
        self, namespace: str, subscription: Subscription, records: list[LogRecord], *, limit: int
    ) -> TrialResult:
        """Try a subscription on the given events."""
        tenant, events = self._host.tenant(namespace), [record.to_event() for record in records]
        if isinstance(subscription.body, Composite):
            return self._try_pattern(tenant, subscription, events, limit)
        return self._try_profile(tenant, subscription.body, subscription.options, events, limit)

    def _explain(self, tenant: Tenant, subscription: Subscription, event: Event) -> dict[str, Any]:
        matcher = tenant.engine.matcher
        if isinstance(subscription.body, Profile):
            explanation = matcher.explain(subscription.body, event, options=subscription.options)
            return _explain_match(explanation, subscription.name, event)
        parts = [
            _explain_match(
                matcher.explain(leaf.profile, event, options=subscription.options),
                leaf.alias or f"part {number}",
                event,
            )
            for number, leaf in enumerate(_leaves(subscription.body), 1)
        ]
        best = max(parts, key=lambda part: (part["matched"], part["score"] - part["threshold"]))
        text = "\n".join(part["text"] for part in parts)
        steps = [step for part in parts for step in part["steps"]]
        return best | {"subscription": subscription.name, "text": text, "steps": steps}

    def _try_profile(
        self, tenant: Tenant, profile: Profile, options: Options, events: list[Event], limit: int
    ) -> TrialResult:
        matcher = tenant.engine.matcher
        threshold = matcher.settings(profile, options).threshold
        ranked = matcher.rank(profile, events, options=options)
        matches = [match for match in ranked if match.score >= threshold]
        near_misses = ranked[len(matches) : len(matches) + limit]

        def shown(event: Event, score: float) -> dict[str, Any]:
            reason = matcher.explain(profile, event, options=options)
            return {"score": round(float(score), 6), "events": [_raw(event)], "explanation": reason.text()}

        return TrialResult(
            len(events),
            len(matches),
            float(threshold),
            [shown(match.event, match.score) for match in matches[:limit]],
            [shown(match.event, match.score) for match in near_misses],
        )

    def _try_pattern(self, tenant: Tenant, subscription: Subscription, events: list[Event], limit: int) -> TrialResult:
        matcher = tenant.engine.matcher
        detector = Detector(matcher=matcher.sibling(), measure=matcher.measure)
        with self._host.lock:
            existing = list(tenant.engine.subscriptions.values())
        for other in existing:
            detector.define(other)
        detector.add(subscription.name, subscription.body, subscription.options)
        events.sort(key=lambda event: event.span[1])
        detections = [*detector.publish_batch(events), *detector.flush()]
        hits = [
            {
                "score": round(float(detection.probability), 6),
                "events": [_raw(event) for event in detection.members],
                "explanation": "\n".join(_line(line) for line in _lines(detection.trace)),
                "roles": {role: [event.id for event in events] for role, events in detection.events.items()},
            }
            for detection in detections[:limit]
        ]
        return TrialResult(len(events), len(detections), None, hits)


def _leaves(body: Composite) -> Iterator[Member]:
    return (leaf for leaf in members(body.root) if isinstance(leaf, Member))


def _raw(event: Event) -> msgspec.Raw:
    return msgspec.Raw(encode_line(event)[:-1])


def _explain_match(explanation: Explanation, name: str, event: Event) -> dict[str, Any]:
    text = explanation.text().replace("this subscription", name, 1)
    return {
        "matched": explanation.matched,
        "score": float(explanation.score),
        "threshold": float(explanation.threshold),
        "subscription": name,
        "event": event.id,
        "text": text,
        "why_not": explanation.why_not or None,
        "steps": list(explanation.as_dict()["steps"]),
    }


def _explain_detection(body: dict[str, Any]) -> dict[str, Any]:
    steps = _lines(body["trace"])
    return {
        "matched": True,
        "score": body["score"],
        "threshold": 0.0,
        "subscription": body["subscription"],
        "event": body["events"][-1]["id"],
        "text": "\n".join([f"{body['subscription']} was detected: {body['score']:.3f}", *map(_line, steps)]),
        "why_not": None,
        "steps": steps,
    }


def _lines(trace: list[Any]) -> list[dict[str, Any]]:
    """The lines of a trace, with times as datetimes."""
    lines = []
    for line in trace:
        plain = dict(line) if isinstance(line, dict) else msgspec.to_builtins(line)
        lines.append(plain | {key: to_datetime(plain[key]) for key in _TIME_FIELDS if isinstance(plain.get(key), int)})
    return lines


def _line(step: dict[str, Any]) -> str:
    probability = "" if step.get("probability") is None else f", probability {step['probability']:.3f}"
    cause = f"event {step['event']}" if step.get("event") else step["what"]
    return f"  • {step['role']}: {cause} at {step['time']}{probability}"
