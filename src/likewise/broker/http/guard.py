"""Authentication of requests, protection against cross-site requests, and security headers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import cast
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.broker.auth import OPEN, Access, access_in
from likewise.broker.errors import AccessError
from likewise.broker.http.problems import problem_document, problem_response
from likewise.broker.operate.metrics import Metrics
from likewise.broker.service import Broker
from likewise.broker.settings import is_loopback

logs = structlog.get_logger("likewise.http")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_API_HEADERS = (
    *_HEADERS,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)


def broker_of(connection: HTTPConnection) -> Broker:
    """The broker that serves a request."""
    return cast(Broker, connection.app.state.broker)


def access_of(connection: HTTPConnection, role: str, *, in_query: bool = False) -> Access:
    """The access of a request, which must have a role; with `in_query` the token may be in the query string."""
    broker = broker_of(connection)
    text = _token_text(connection, in_query=in_query)
    if text is not None:
        access = broker.keyring.authenticate(text)
    elif broker.settings.open:
        access = OPEN
    else:
        raise AccessError("a token is required", hint="send the header `Authorization: Bearer TOKEN`")
    wanted = connection.headers.get("likewise-namespace") or (
        connection.query_params.get("namespace") if in_query else None
    )
    chosen = access_in(access, wanted)
    chosen.require(role)
    return chosen


def _token_text(connection: HTTPConnection, *, in_query: bool) -> str | None:
    header = connection.headers.get("authorization")
    if header is not None:
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise AccessError("the Authorization header has no bearer token", hint="send `Authorization: Bearer TOKEN`")
        return text.strip()
    # A browser's EventSource and WebSocket cannot send headers.
    return connection.query_params.get("access_token") if in_query else None


class Gate:
    """ASGI middleware: security headers, metrics and logs; without tokens it also refuses cross-site requests."""

    def __init__(self, app: ASGIApp, *, broker: Broker, metrics: Metrics) -> None:
        self._app, self._broker, self._metrics = app, broker, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        reason = self._cross_site(Headers(scope=scope)) if self._broker.settings.open else None
        if reason is not None:
            await _refuse(scope, receive, send, reason)
            return
        start, status = time.perf_counter(), 0

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _secured(message.get("headers", ()), scope["path"])
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        finally:
            took = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", None) or "other"
            self._metrics.request(scope.get("method", "WS"), route, status, took)
            if status >= 500 or (status >= 400 and status != 404):
                logs.info("refused", method=scope.get("method"), route=route, status=status, seconds=round(took, 4))

    def _cross_site(self, headers: Headers) -> str | None:
        """Why a request is refused; None if it is allowed.

        Without tokens, any web page could otherwise send requests to this port through the user's browser.
        """
        if headers.get("authorization"):
            return None
        reason = _not_loopback(headers.get("host", ""))
        if reason is not None:
            return reason
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return "the request comes from another site"
        return None


@lru_cache(maxsize=256)
def _not_loopback(host: str) -> str | None:
    """Why a Host header is refused; None if it names this machine."""
    name = urlsplit(f"//{host}").hostname or ""
    return None if is_loopback(name) else f"the Host header {name[:100]!r} does not name this machine"


def _secured(headers: Iterable[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    """Add security headers to a response; headers set by the route stay."""
    present = list(headers)
    names = {name for name, _ in present}
    wanted = _API_HEADERS if path.startswith(("/v1", "/health", "/metrics")) else _HEADERS
    return present + [header for header in wanted if header[0] not in names]


async def _refuse(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    await problem_response(problem_document(403, "foreign", "Request from another site or machine refused", reason))(
        scope, receive, send
    )
