"""JSON documents of stored events, notifications, subscriptions and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from likewise.broker.auth import AccessToken
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import LogRecord, Notice, SubscriptionEntry
from likewise.errors import InputError
from likewise.events import to_datetime
from likewise.language import Composite, parse_subscription

MAX_CURSOR = 2**62
_encode = msgspec.json.Encoder(enc_hook=float).encode
"""The hook encodes NumPy numbers, which engines return."""


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(_encode(value), status, headers, "application/json")


def notice_documents(notices: Iterable[Notice]) -> list[msgspec.Raw]:
    """The stored JSON of notifications."""
    return [msgspec.Raw(notice.body) for notice in notices]


def event_document(record: LogRecord) -> dict[str, Any]:
    """The document of an event, with its log position."""
    body: dict[str, Any] = msgspec.json.decode(record.body)
    return body | {
        "position": record.position,
        "received": to_datetime(record.received),
        "publisher": record.publisher,
    }


def entry_document(
    entry: SubscriptionEntry, *, found: int = 0, state: str = "active", secret: str | None = None
) -> dict[str, Any]:
    """The document of a subscription; `found` is its number of notifications."""
    webhook = None if entry.webhook is None else {"url": entry.webhook.url, "state": state}
    out = {
        "name": entry.name,
        "text": entry.text,
        "pattern": isinstance(parse_subscription(entry.text).body, Composite),
        "tags": list(entry.tags),
        "owner": entry.owner,
        "paused": entry.paused,
        "created": to_datetime(entry.created),
        "updated": to_datetime(entry.updated),
        "webhook": webhook,
        "notifications": found,
    }
    return out | ({"secret": secret} if secret else {})


def token_document(token: AccessToken) -> dict[str, Any]:
    """The document of a token, without its secret."""
    return {
        "id": token.id,
        "name": token.name,
        "namespace": token.namespace,
        "roles": sorted(token.roles),
        "made": to_datetime(token.made),
        "expires": None if token.expires is None else to_datetime(token.expires),
        "revoked": token.revoked,
    }


def next_of(items: list[Any], query: HistoryQuery, key: str) -> int | None:
    """Where the next page starts; None on the last page."""
    return getattr(items[-1], key) if len(items) == query.limit else None


def cursor_of(text: str | None) -> int | None:
    """Parse a cursor from a header or query parameter."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > MAX_CURSOR:
        raise InputError(f"{text[:40]!r} is not a cursor", hint="use the id of a notification, or omit it")
    return int(text)
