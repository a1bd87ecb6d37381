"""Reasons: why a notification came, why one did not, and what a subscription would have found."""

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
"""Events that a trial looks at, the newest."""
_MOMENTS: Final = ("time", "start", "activated", "terminated")


@dataclass(slots=True)
class TrialResult:
    """What a subscription would have found, and what it narrowly missed."""

    events: int
    found: int
    threshold: float | None = None
    hits: list[dict[str, Any]] = field(default_factory=list)
    near_misses: list[dict[str, Any]] = field(default_factory=list)


class Insight:
    """Looks into engines from other threads; none of it changes what they find."""

    def __init__(self, host: EngineHost, history: History) -> None:
        self._host, self._history = host, history

    def explain(self, namespace: str, cursor: int) -> dict[str, Any]:
        """Why a notification came: for a match as engines score now, for a detection as it was traced then."""
        notice = self._history.notice(namespace, cursor)
        body: dict[str, Any] = msgspec.json.decode(notice.body)
        if notice.kind == "detection":
            return _traced(body)
        entry = self._history.entry(namespace, notice.subscription)
        event = decode_line(msgspec.json.encode(body["events"][0]))
        return self._explain(self._host.tenant(namespace), subscription_of(entry), event)

    def why(self, namespace: str, event_id: str, name: str) -> dict[str, Any]:
        """Why an event of the log answers a subscription, or why it does not."""
        record, entry = self._history.event(namespace, event_id), self._history.entry(namespace, name)
        return self._explain(self._host.tenant(namespace), subscription_of(entry), record.to_event())

    def trial(self, namespace: str, text: str, *, minutes: float, limit: int) -> TrialResult:
        """What a subscription would have found in the last minutes."""
        subscription = parse_subscription(text)
        since = now() - int(minutes * 60e6)
        records = self._history.events(namespace, HistoryQuery(before=0, limit=MOST_EVENTS, since=since))
        return self.try_on(namespace, subscription, list(reversed(records)), limit=limit)

    def try_on(
        self, namespace: str, subscription: Subscription, records: list[LogRecord], *, limit: int
    ) -> TrialResult:
        """The same on chosen events."""
        tenant, events = self._host.tenant(namespace), [record.to_event() for record in records]
        if isinstance(subscription.body, Composite):
            return self._try_pattern(tenant, subscription, events, limit)
        return self._try_profile(tenant, subscription.body, subscription.options, events, limit)

    def _explain(self, tenant: Tenant, subscription: Subscription, event: Event) -> dict[str, Any]:
        matcher = tenant.engine.matcher
        if isinstance(subscription.body, Profile):
            found = matcher.explain(subscription.body, event, options=subscription.options)
            return _explained(found, subscription.name, event)
        parts = [
            _explained(matcher.explain(leaf.profile, event), leaf.alias or f"part {number}", event)
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
        enough = [match for match in ranked if match.score >= threshold]
        below = ranked[len(enough) : len(enough) + limit]

        def shown(event: Event, score: float) -> dict[str, Any]:
            reason = matcher.explain(profile, event, options=options)
            return {"score": round(float(score), 6), "events": [_raw(event)], "explanation": reason.text()}

        return TrialResult(
            len(events),
            len(enough),
            float(threshold),
            [shown(match.event, match.score) for match in enough[:limit]],
            [shown(match.event, match.score) for match in below],
        )

    def _try_pattern(self, tenant: Tenant, subscription: Subscription, events: list[Event], limit: int) -> TrialResult:
        matcher = tenant.engine.matcher
        detector = Detector(matcher=matcher.sibling(), measure=matcher.measure)
        with self._host.lock:
            known = list(tenant.engine.subscriptions.values())
        for other in known:
            detector.define(other)
        detector.add(subscription.name, subscription.body, subscription.options)
        events.sort(key=lambda event: event.span[1])
        found = [*detector.publish_batch(events), *detector.flush()]
        hits = [
            {
                "score": round(float(one.probability), 6),
                "events": [_raw(event) for event in one.members],
                "explanation": "\n".join(_line(line) for line in _lines(one.trace)),
                "roles": {role: [event.id for event in filled] for role, filled in one.events.items()},
            }
            for one in found[:limit]
        ]
        return TrialResult(len(events), len(found), None, hits)


def _leaves(body: Composite) -> Iterator[Member]:
    return (leaf for leaf in members(body.root) if isinstance(leaf, Member))


def _raw(event: Event) -> msgspec.Raw:
    return msgspec.Raw(encode_line(event)[:-1])


def _explained(found: Explanation, name: str, event: Event) -> dict[str, Any]:
    plain = found.as_dict()
    text = found.text().replace("this subscription", name, 1)
    return {
        "matched": found.matched,
        "score": float(found.score),
        "threshold": float(found.threshold),
        "subscription": name,
        "event": event.id,
        "text": text,
        "why_not": found.why_not or None,
        "steps": list(plain["steps"]),
    }


def _traced(body: dict[str, Any]) -> dict[str, Any]:
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
    """The lines of a trace with times that people can read."""
    out = []
    for line in trace:
        plain = dict(line) if isinstance(line, dict) else msgspec.to_builtins(line)
        out.append(plain | {key: to_datetime(plain[key]) for key in _MOMENTS if isinstance(plain.get(key), int)})
    return out


def _line(step: dict[str, Any]) -> str:
    sure = "" if step.get("probability") is None else f", probability {step['probability']:.3f}"
    what = f"event {step['event']}" if step.get("event") else step["what"]
    return f"  • {step['role']}: {what} at {step['time']}{sure}"
