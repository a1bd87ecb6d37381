"""Python clients of a broker: `BrokerClient`, and `AsyncBrokerClient` for asyncio."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Generic, ParamSpec, cast, overload
from urllib.parse import urlsplit

import httpx
import msgspec

from likewise.broker.client import calls
from likewise.broker.client.calls import Call
from likewise.broker.errors import RemoteError
from likewise.broker.settings import DEFAULT_PORT, default_folder, is_loopback
from likewise.errors import MissingError

P = ParamSpec("P")
DEFAULT_URL: Final = f"http://127.0.0.1:{DEFAULT_PORT}"
_READ_TIMEOUT: Final = 30.0
"""Seconds of silence after which a stream counts as broken; the broker sends a keep-alive every fifteen."""


class Arrival(msgspec.Struct, frozen=True):
    """A notification as a client receives it."""

    id: str
    subscription: str
    kind: str
    score: float
    events: list[dict[str, Any]]
    time: datetime | None = None
    roles: dict[str, list[str]] | None = None
    trace: list[dict[str, Any]] | None = None

    @property
    def event(self) -> dict[str, Any]:
        """The event of a match, or the last event of a detection."""
        return self.events[-1]


def find_url(url: str | None) -> str:
    """The given URL, or `LIKEWISE_URL`, or the default port on this machine."""
    return (url or os.environ.get("LIKEWISE_URL") or DEFAULT_URL).rstrip("/")


def find_token(url: str) -> str | None:
    """`LIKEWISE_TOKEN`, or the administrator token in the folder of a broker on this machine."""
    if text := os.environ.get("LIKEWISE_TOKEN"):
        return text
    if is_loopback(urlsplit(url).hostname or ""):
        with contextlib.suppress(OSError):
            return (default_folder() / "admin.token").read_text().strip()
    return None


def _headers(url: str, token: str | None, namespace: str | None) -> dict[str, str]:
    used = token if token is not None else find_token(url)
    headers = {"Authorization": f"Bearer {used}"} if used else {}
    return headers | ({"Likewise-Namespace": namespace} if namespace else {})


def _arguments(call: Call) -> dict[str, Any]:
    arguments: dict[str, Any] = {"params": call.params, "headers": call.headers}
    if call.content is not None:
        return arguments | {"content": call.content}
    return arguments if call.body is None else arguments | {"json": call.body}


def _result(response: httpx.Response) -> Any:
    if response.is_success:
        if response.headers.get("content-type", "").startswith("application/json"):
            return response.json()
        return response.text or None
    raise _refusal(response)


def _refusal(response: httpx.Response) -> RemoteError:
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    message = str(problem.get("text") or problem.get("detail") or f"the broker answered {response.status_code}")
    hint = problem.get("hint") if "text" not in problem else None
    return RemoteError(message, status=response.status_code, problem=problem, hint=hint)


def _unreachable(url: str, error: httpx.HTTPError) -> MissingError:
    return MissingError(
        f"no broker answers at {url}: {str(error) or type(error).__name__}", hint="start `likewise serve`"
    )


class _Frames:
    """Parses server-sent events line by line; `id` is the last id received."""

    def __init__(self) -> None:
        self._event, self._data = "", list[str]()

    def feed(self, line: str) -> tuple[str, str] | None:
        """Add a line; returns the kind and data of an event if the line completes one."""
        if not line:
            event = (self._event, "\n".join(self._data)) if self._data else None
            self._event, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self.id = value
        return None

    id: str | None = None


def _stream_params(names: Iterable[str], after: str | None, score: float) -> dict[str, Any]:
    params = {"after": after, "score": score or None}
    return {"subscription": list(names)} | {name: value for name, value in params.items() if value is not None}


class ClientOperation(Generic[P]):
    """A method of both clients that builds a request and lets the client send it."""

    def __init__(self, make: Callable[P, Call]) -> None:
        self.make = make

    @overload
    def __get__(self, client: BrokerClient, owner: type) -> Callable[P, dict[str, Any]]: ...
    @overload
    def __get__(self, client: AsyncBrokerClient, owner: type) -> Callable[P, Awaitable[dict[str, Any]]]: ...
    def __get__(self, client: BrokerClient | AsyncBrokerClient, owner: type) -> Callable[P, Any]:
        @functools.wraps(self.make)
        def call(*arguments: P.args, **options: P.kwargs) -> Any:
            return client.send(self.make(*arguments, **options))

        return cast(Callable[P, Any], call)


class Operations:
    """All operations except streams; see `likewise.broker.client.calls` for their parameters."""

    publish = ClientOperation(calls.publish)
    advance = ClientOperation(calls.advance)
    subscribe = ClientOperation(calls.subscribe)
    list_subscriptions = ClientOperation(calls.list_subscriptions)
    get_subscription = ClientOperation(calls.get_subscription)
    replace_subscription = ClientOperation(calls.replace_subscription)
    change_subscription = ClientOperation(calls.change_subscription)
    unsubscribe = ClientOperation(calls.unsubscribe)
    subscribe_sink = ClientOperation(calls.subscribe_sink)
    list_sinks = ClientOperation(calls.list_sinks)
    get_sink = ClientOperation(calls.get_sink)
    replace_sink = ClientOperation(calls.replace_sink)
    unsubscribe_sink = ClientOperation(calls.unsubscribe_sink)
    list_events = ClientOperation(calls.list_events)
    get_event = ClientOperation(calls.get_event)
    why = ClientOperation(calls.why)
    list_notifications = ClientOperation(calls.list_notifications)
    get_notification = ClientOperation(calls.get_notification)
    explain = ClientOperation(calls.explain)
    trial = ClientOperation(calls.trial)
    near_misses = ClientOperation(calls.near_misses)
    pull = ClientOperation(calls.pull)
    acknowledge = ClientOperation(calls.acknowledge)
    list_consumers = ClientOperation(calls.list_consumers)
    list_tokens = ClientOperation(calls.list_tokens)
    create_token = ClientOperation(calls.create_token)
    rotate_token = ClientOperation(calls.rotate_token)
    revoke_token = ClientOperation(calls.revoke_token)
    list_audit = ClientOperation(calls.list_audit)
    list_dead_letters = ClientOperation(calls.list_dead_letters)
    retry_dead_letter = ClientOperation(calls.retry_dead_letter)
    forget_dead_letter = ClientOperation(calls.forget_dead_letter)
    list_mappings = ClientOperation(calls.list_mappings)
    save_mapping = ClientOperation(calls.save_mapping)
    info = ClientOperation(calls.info)
    live = ClientOperation(calls.live)
    ready = ClientOperation(calls.ready)
    metrics = ClientOperation(calls.metrics)


class BrokerClient(Operations):
    """A client of a broker; use it as a context manager.

    >>> with BrokerClient("http://127.0.0.1:9") as client:
    ...     client.info()
    Traceback (most recent call last):
        ...
    likewise.errors.MissingError: no broker answers at http://127.0.0.1:9: [Errno 111] Connection refused
      hint: start `likewise serve`
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
        retries: int = 2,
    ) -> None:
        self.url = find_url(url)
        self._retries = retries
        self._http = httpx.Client(
            base_url=self.url, headers=_headers(self.url, token, namespace), timeout=timeout, trust_env=False
        )

    def __enter__(self) -> BrokerClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call) -> Any:
        """Send a request; retries after a lost connection, a POST only with an idempotency key."""
        for attempt in range(self._retries + 1):
            try:
                return _result(self._http.request(call.method, call.path, **_arguments(call)))
            except httpx.ConnectError as error:
                raise _unreachable(self.url, error) from None
            except httpx.TransportError as error:
                if attempt == self._retries or (call.method == "POST" and "Idempotency-Key" not in call.headers):
                    raise _unreachable(self.url, error) from None
                time.sleep(0.2 * 2**attempt)
        raise AssertionError("the loop returns or raises")

    def stream(
        self,
        *names: str,
        after: str | None = None,
        score: float = 0.0,
        timeout: float | None = None,
        reconnect: bool = True,
    ) -> Iterator[Arrival]:
        """Yield notifications as they arrive, for `timeout` seconds; a reconnect continues after the last one."""
        params = _stream_params(names, after, score)
        for data in self._follow("/v1/stream", params, timeout=timeout, reconnect=reconnect):
            yield msgspec.json.decode(data, type=Arrival)

    def stream_events(
        self, *, after: str | None = None, timeout: float | None = None, reconnect: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Yield every event as it is stored."""
        for data in self._follow(
            "/v1/events/stream", {} if after is None else {"after": after}, timeout=timeout, reconnect=reconnect
        ):
            yield json.loads(data)

    def all_subscriptions(self, *, tag: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield all subscriptions, read page by page."""
        after = ""
        while True:
            page = self.list_subscriptions(after=after, limit=1000, tag=tag)
            yield from page["subscriptions"]
            if page["next"] is None:
                return
            after = page["next"]

    def pages(self, kind: str, *, newest: bool, limit: int | None = None, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield past `events` or `notifications`, read page by page, up to a limit."""
        read_page: Callable[..., dict[str, Any]] = self.list_events if kind == "events" else self.list_notifications
        start: dict[str, Any] = {}
        remaining = limit
        while remaining is None or remaining > 0:
            size = 1000 if remaining is None else min(remaining, 1000)
            page = read_page(newest=newest, limit=size, **start, **options)
            yield from page[kind]
            if page["next"] is None:
                return
            start = {"before" if newest else "after": page["next"]}
            remaining = None if remaining is None else remaining - len(page[kind])

    def _follow(self, path: str, params: dict[str, Any], *, timeout: float | None, reconnect: bool) -> Iterator[str]:
        frames, wait = _Frames(), 0.2
        end = None if timeout is None else time.monotonic() + timeout
        while end is None or time.monotonic() < end:
            headers = {"Last-Event-ID": frames.id} if frames.id else {}
            read_timeout = _READ_TIMEOUT if end is None else max(0.01, min(_READ_TIMEOUT, end - time.monotonic()))
            try:
                with self._http.stream("GET", path, params=params, headers=headers, timeout=read_timeout) as response:
                    if not response.is_success:
                        response.read()
                        raise _refusal(response)
                    wait = 0.2
                    for line in response.iter_lines():
                        event = frames.feed(line)
                        if event is not None:
                            yield event[1]
                        if end is not None and time.monotonic() >= end:
                            return
            except httpx.TransportError as error:
                if end is not None and time.monotonic() >= end:
                    return
                if not reconnect or wait > 30:
                    raise _unreachable(self.url, error) from None
            if not reconnect:
                return
            time.sleep(wait)
            wait *= 2


class AsyncBrokerClient(Operations):
    """A client of a broker for asyncio; use it with `async with`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        namespace: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.url = find_url(url)
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=_headers(self.url, token, namespace), timeout=timeout, trust_env=False
        )

    async def __aenter__(self) -> AsyncBrokerClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def send(self, call: Call) -> Any:
        """Send a request."""
        try:
            return _result(await self._http.request(call.method, call.path, **_arguments(call)))
        except httpx.TransportError as error:
            raise _unreachable(self.url, error) from None

    async def stream(self, *names: str, after: str | None = None, score: float = 0.0) -> AsyncIterator[Arrival]:
        """Yield notifications as they arrive, until the broker closes the stream."""
        frames = _Frames()
        params = _stream_params(names, after, score)
        async with self._http.stream("GET", "/v1/stream", params=params, timeout=30) as response:
            if not response.is_success:
                await response.aread()
                raise _refusal(response)
            async for line in response.aiter_lines():
                event = frames.feed(line)
                if event is not None:
                    yield msgspec.json.decode(event[1], type=Arrival)
