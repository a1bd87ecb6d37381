"""The requests of the HTTP interface, each named like its operation in the OpenAPI document."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec

from likewise.events import Event, encode_line

_LINES: Final = {"Content-Type": "application/x-ndjson"}
Publishable: TypeAlias = Event | Mapping[str, Any] | bytes


class Call(msgspec.Struct, frozen=True):
    """One HTTP request, independent of the client."""

    method: str
    path: str
    params: dict[str, Any] = {}
    body: Any = None
    content: bytes | None = None
    headers: dict[str, str] = {}


def publish(events: Iterable[Publishable], *, key: str | None = None, mapping: str | None = None) -> Call:
    """Publish events, given as `Event`, as mappings like an event's JSON, or as JSON lines."""
    lines = b"".join(map(_line, events))
    headers = _LINES | {"Idempotency-Key": key or str(uuid.uuid4())}
    return Call("POST", "/v1/events", _without_none(mapping=mapping), content=lines, headers=headers)


def advance(time: datetime) -> Call:
    return Call("POST", "/v1/advance", body={"time": time.isoformat()})


def subscribe(text: str, *, tags: Iterable[str] = (), webhook: str | None = None, paused: bool = False) -> Call:
    body = {"text": text, "tags": list(tags), "paused": paused} | _without_none(webhook=webhook)
    return Call("POST", "/v1/subscriptions", body=body)


def list_subscriptions(*, after: str = "", limit: int = 100, tag: str | None = None) -> Call:
    return Call("GET", "/v1/subscriptions", _without_none(after=after or None, limit=limit, tag=tag))


def get_subscription(name: str) -> Call:
    return Call("GET", f"/v1/subscriptions/{_quoted(name)}")


def replace_subscription(
    name: str, text: str, *, tags: Iterable[str] = (), webhook: str | None = None, paused: bool = False
) -> Call:
    body = {"text": text, "tags": list(tags), "paused": paused} | _without_none(webhook=webhook)
    return Call("PUT", f"/v1/subscriptions/{_quoted(name)}", body=body)


def change_subscription(
    name: str,
    *,
    text: str | None = None,
    tags: Iterable[str] | None = None,
    paused: bool | None = None,
    webhook: str | None = None,
) -> Call:
    body = _without_none(text=text, tags=None if tags is None else list(tags), paused=paused, webhook=webhook)
    return Call("PATCH", f"/v1/subscriptions/{_quoted(name)}", body=body)


def unsubscribe(name: str) -> Call:
    return Call("DELETE", f"/v1/subscriptions/{_quoted(name)}")


def subscribe_sink(text: str, sink: str) -> Call:
    return Call("POST", "/v1/cloudevents/subscriptions", body={"filters": [{"likewise": text}], "sink": sink})


def list_sinks() -> Call:
    return Call("GET", "/v1/cloudevents/subscriptions")


def get_sink(name: str) -> Call:
    return Call("GET", f"/v1/cloudevents/subscriptions/{_quoted(name)}")


def replace_sink(name: str, text: str, sink: str) -> Call:
    body = {"filters": [{"likewise": text}], "sink": sink}
    return Call("PUT", f"/v1/cloudevents/subscriptions/{_quoted(name)}", body=body)


def unsubscribe_sink(name: str) -> Call:
    return Call("DELETE", f"/v1/cloudevents/subscriptions/{_quoted(name)}")


def list_events(
    *,
    after: int = 0,
    newest: bool = False,
    before: int = 0,
    limit: int = 100,
    since: datetime | None = None,
    until: datetime | None = None,
    publisher: str | None = None,
) -> Call:
    params = _without_none(
        after=after or None,
        newest=newest or None,
        before=before or None,
        limit=limit,
        since=_isoformat(since),
        until=_isoformat(until),
        publisher=publisher,
    )
    return Call("GET", "/v1/events", params)


def get_event(event: str) -> Call:
    return Call("GET", f"/v1/events/{_quoted(event)}")


def why(event: str, subscription: str) -> Call:
    return Call("GET", f"/v1/events/{_quoted(event)}/why", {"subscription": subscription})


def list_notifications(
    *,
    after: str | None = None,
    newest: bool = False,
    before: str | None = None,
    limit: int = 100,
    subscription: Iterable[str] = (),
    kind: str | None = None,
    score: float = 0.0,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Call:
    params = _without_none(
        after=after,
        newest=newest or None,
        before=before,
        limit=limit,
        subscription=list(subscription) or None,
        kind=kind,
        score=score or None,
        since=_isoformat(since),
        until=_isoformat(until),
    )
    return Call("GET", "/v1/notifications", params)


def get_notification(id: str) -> Call:
    return Call("GET", f"/v1/notifications/{_quoted(id)}")


def explain(id: str) -> Call:
    return Call("GET", f"/v1/notifications/{_quoted(id)}/explanation")


def trial(text: str, *, minutes: float = 60, limit: int = 20) -> Call:
    return Call("POST", "/v1/trial", body={"text": text, "minutes": minutes, "limit": limit})


def near_misses(name: str, *, minutes: float = 60, limit: int = 20) -> Call:
    return Call("GET", f"/v1/subscriptions/{_quoted(name)}/near-misses", {"minutes": minutes, "limit": limit})


def pull(consumer: str, *, subscription: Iterable[str] = (), limit: int = 100, wait: float = 0.0) -> Call:
    params = {"subscription": list(subscription), "limit": limit, "wait": wait}
    return Call("POST", f"/v1/consumers/{_quoted(consumer)}/pull", params)


def acknowledge(consumer: str, cursor: str) -> Call:
    return Call("POST", f"/v1/consumers/{_quoted(consumer)}/acknowledge", body={"cursor": cursor})


def list_consumers() -> Call:
    return Call("GET", "/v1/consumers")


def list_tokens() -> Call:
    return Call("GET", "/v1/tokens")


def create_token(
    name: str, roles: Iterable[str], *, namespace: str | None = None, expires: datetime | None = None
) -> Call:
    body = {"name": name, "roles": list(roles)} | _without_none(namespace=namespace, expires=_isoformat(expires))
    return Call("POST", "/v1/tokens", body=body)


def rotate_token(id: str, *, grace: float = 3600.0) -> Call:
    return Call("POST", f"/v1/tokens/{_quoted(id)}/rotate", {"grace": grace})


def revoke_token(id: str) -> Call:
    return Call("DELETE", f"/v1/tokens/{_quoted(id)}")


def list_audit(*, before: int = 0, limit: int = 100) -> Call:
    return Call("GET", "/v1/audit", {"before": before, "limit": limit})


def list_dead_letters(*, before: int = 0, limit: int = 100) -> Call:
    return Call("GET", "/v1/dead-letters", {"before": before, "limit": limit})


def retry_dead_letter(id: int) -> Call:
    return Call("POST", f"/v1/dead-letters/{id}/retry")


def forget_dead_letter(id: int) -> Call:
    return Call("DELETE", f"/v1/dead-letters/{id}")


def list_mappings() -> Call:
    return Call("GET", "/v1/mappings")


def save_mapping(name: str, mapping: Mapping[str, Any]) -> Call:
    return Call("PUT", f"/v1/mappings/{_quoted(name)}", body=dict(mapping))


def info() -> Call:
    return Call("GET", "/v1/info")


def live() -> Call:
    return Call("GET", "/health/live")


def ready() -> Call:
    return Call("GET", "/health/ready")


def metrics() -> Call:
    return Call("GET", "/metrics")


def _line(event: Publishable) -> bytes:
    if isinstance(event, bytes):
        return event + b"\n"
    return encode_line(event) if isinstance(event, Event) else msgspec.json.encode(event) + b"\n"


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _isoformat(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _quoted(text: str) -> str:
    return quote(text, safe="")
