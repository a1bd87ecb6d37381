"""Stored things as the JSON documents that the interface gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from likewise.broker.auth import AccessToken
from likewise.broker.store.history import HistoryQuery
from likewise.broker.store.records import BookEntry, LogRecord, Notice
from likewise.errors import InputError
from likewise.events import to_datetime
from likewise.language import Composite, parse_subscription

MAX_CURSOR = 2**62
_encode = msgspec.json.Encoder(enc_hook=float).encode
"""Engines give NumPy's numbers too."""


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(_encode(value), status, headers, "application/json")


def notice_documents(notices: Iterable[Notice]) -> list[msgspec.Raw]:
    """Notifications, as they are stored."""
    return [msgspec.Raw(notice.body) for notice in notices]


def event_document(record: LogRecord) -> dict[str, Any]:
    """An event with its place in the log."""
    body: dict[str, Any] = msgspec.json.decode(record.body)
    return body | {
        "position": record.position,
        "received": to_datetime(record.received),
        "publisher": record.publisher,
    }


def entry_document(
    entry: BookEntry, *, found: int = 0, state: str = "active", secret: str | None = None
) -> dict[str, Any]:
    """A subscription."""
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
    """A token, without its secret."""
    return {
        "id": token.id,
        "name": token.name,
        "namespace": token.namespace,
        "roles": sorted(token.roles),
        "made": to_datetime(token.made),
        "expires": None if token.expires is None else to_datetime(token.expires),
        "revoked": token.revoked,
    }


def next_of(items: list[Any], wanted: HistoryQuery, key: str) -> int | None:
    """Where the next page begins, if there may be one."""
    return getattr(items[-1], key) if len(items) == wanted.limit else None


def cursor_of(text: str | None) -> int | None:
    """A cursor from a header or a query."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > MAX_CURSOR:
        raise InputError(f"{text[:40]!r} is no cursor", hint="use the id of a notification, or leave it out")
    return int(text)
