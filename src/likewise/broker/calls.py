"""The requests that a broker understands, each named as its operation in the OpenAPI document."""

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
    """One request, the same for both clients."""

    method: str
    path: str
    params: dict[str, Any] = {}
    body: Any = None
    content: bytes | None = None
    headers: dict[str, str] = {}


def publish(events: Iterable[Publishable], *, key: str | None = None, mapping: str | None = None) -> Call:
    """Events, mappings in the shape of an event's JSON, or lines of JSON."""
    lines = b"".join(map(_line, events))
    headers = _LINES | {"Idempotency-Key": key or str(uuid.uuid4())}
    return Call("POST", "/v1/events", _given(mapping=mapping), content=lines, headers=headers)


def advance(time: datetime) -> Call:
    return Call("POST", "/v1/advance", body={"time": time.isoformat()})


def subscribe(text: str, *, tags: Iterable[str] = (), webhook: str | None = None, paused: bool = False) -> Call:
    body = {"text": text, "tags": list(tags), "paused": paused} | _given(webhook=webhook)
    return Call("POST", "/v1/subscriptions", body=body)


def list_subscriptions(*, after: str = "", limit: int = 100, tag: str | None = None) -> Call:
    return Call("GET", "/v1/subscriptions", _given(after=after or None, limit=limit, tag=tag))


def get_subscription(name: str) -> Call:
    return Call("GET", f"/v1/subscriptions/{_part(name)}")


def replace_subscription(
    name: str, text: str, *, tags: Iterable[str] = (), webhook: str | None = None, paused: bool = False
) -> Call:
    body = {"text": text, "tags": list(tags), "paused": paused} | _given(webhook=webhook)
    return Call("PUT", f"/v1/subscriptions/{_part(name)}", body=body)


def change_subscription(
    name: str,
    *,
    text: str | None = None,
    tags: Iterable[str] | None = None,
    paused: bool | None = None,
    webhook: str | None = None,
) -> Call:
    body = _given(text=text, tags=None if tags is None else list(tags), paused=paused, webhook=webhook)
    return Call("PATCH", f"/v1/subscriptions/{_part(name)}", body=body)


def unsubscribe(name: str) -> Call:
    return Call("DELETE", f"/v1/subscriptions/{_part(name)}")


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


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _part(text: str) -> str:
    return quote(text, safe="")
