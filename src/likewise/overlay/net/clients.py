"""The protocol between a node and its clients over mutual TLS, and the client.

A client keeps a publication until it is acknowledged. If its node fails, it connects to the next address and sends
publications and subscriptions again with the same ids, so that nothing is lost and nothing is reported twice.

Messages are encoded as arrays: tags, and the order of fields, must not change.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from likewise.errors import InputError, LikewiseError, MissingError
from likewise.events import Event, encode_line
from likewise.overlay.cube.items import Id, Report
from likewise.overlay.net.frames import dial, frame, read_frame, shut
from likewise.overlay.net.identity import context_of

TIMEOUT: Final = 120.0
"""Seconds without any answer after which a client stops waiting."""
START_TIMEOUT: Final = 30.0
"""Seconds for which a client tries to reach a node that may still be starting."""
REFUSED_TIMEOUT: Final = 2.0
"""Seconds for which it tries if its certificate is rejected."""
CHECK: Final = 1.0
"""Seconds between two checks of the timeout."""
MAX_SEEN: Final = 100_000
"""Reports of a subscription that are remembered, to drop duplicates."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first message of a connection, from a node (with its address) or a client."""

    kind: str
    address: str = ""


class Publish(msgspec.Struct, frozen=True, array_like=True, tag="publish"):
    """An event as a JSON line; `number` is chosen by the client."""

    number: Id
    event: bytes


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag="subscribe"):
    """Subscribes to the subscription `name` of the text `source`; `id` is chosen by the client."""

    id: str
    source: str
    name: str
    since: int = 0


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag="unsubscribe"):
    """Ends a subscription."""

    id: str


class Acknowledge(msgspec.Struct, frozen=True, array_like=True, tag="acknowledge"):
    """Acknowledges a report."""

    parcel: Id


class AskStatus(msgspec.Struct, frozen=True, array_like=True, tag="status"):
    """Asks for the node's status."""


class Published(msgspec.Struct, frozen=True, array_like=True, tag="published"):
    """Acknowledges a publication: all subscribed rendezvous have it."""

    number: Id


class Subscribed(msgspec.Struct, frozen=True, array_like=True, tag="subscribed"):
    """Confirms a subscription: all nodes know it."""

    id: str


class Reported(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """A report for a subscription."""

    id: str
    parcel: Id
    report: Report


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """A request failed: a subscription by its id, or a publication by its number."""

    id: str
    message: str
    number: Id = b""


class StatusReply(msgspec.Struct, frozen=True, array_like=True, tag="state"):
    """The node's status as JSON."""

    text: str


Request: TypeAlias = Publish | Subscribe | Unsubscribe | Acknowledge | AskStatus
Answer: TypeAlias = Published | Subscribed | Reported | Failed | StatusReply

pack = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(Hello).decode
_requests: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Request)
_answers: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Answer)


def decode_hello(data: bytes) -> Hello:
    """Decode the first message of a connection."""
    hello: Hello = _decoded(_hello, data)
    return hello


def decode_request(data: bytes) -> Any:
    """Decode a client's request."""
    return _decoded(_requests.decode, data)


def _decoded(decode: Any, data: bytes) -> Any:
    try:
        return decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not a message between node and client: {error}") from None


class FrameWriter:
    """Writes messages to a connection; those of one iteration of the event loop share a frame."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._queued: list[bytes] = []

    def put(self, message: bytes) -> None:
        """Queue a message."""
        if not self._queued:
            asyncio.get_running_loop().call_soon(self._flush)
        self._queued.append(message)

    def _flush(self) -> None:
        queued, self._queued = self._queued, []
        if not self._writer.is_closing():
            self._writer.write(frame(queued))

    async def drain(self) -> None:
        """Wait until the other side has caught up."""
        await self._writer.drain()


class Session:
    """A client's connection at its node."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = FrameWriter(writer)

    def send(self, answer: Any) -> None:
        """Send an answer; a client that has disconnected will repeat its request at another node."""
        self._writer.put(pack(answer))

    async def drain(self) -> None:
        """Wait until the client has caught up."""
        await self._writer.drain()


@dataclass(slots=True)
class ClientSubscription:
    """A subscription of the client, with its unread reports and the ids of those it has received."""

    request: Subscribe
    reports: asyncio.Queue[Report] = field(default_factory=asyncio.Queue)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    failure: LikewiseError | None = None
    seen: dict[Id, None] = field(default_factory=dict)


class OverlayClient:
    """Publishes and subscribes through any of several nodes.

    A wait without any answer for `timeout` seconds ends with a `MissingError`.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        state: Path,
        timeout: float = TIMEOUT,
        on_wait: Callable[[str], object] | None = None,
    ) -> None:
        """`on_wait` is called once, with a message, while no node answers."""
        if not addresses:
            raise InputError("a client needs the address of a node", hint="give --node HOST:PORT")
        self._addresses = list(addresses)
        self._context = context_of(state, server=False)
        self._timeout = timeout
        self._on_wait = on_wait
        self._silence = 0.0
        self._writer: FrameWriter | None = None
        self._unacknowledged: dict[Id, tuple[Publish, asyncio.Future[None]]] = {}
        self._subscriptions: dict[str, ClientSubscription] = {}
        self._status: asyncio.Future[str] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._connected = asyncio.Event()
        self._connect_timeout = 3.0

    async def __aenter__(self) -> OverlayClient:
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._watch())]
        connected = asyncio.create_task(self._connected.wait())
        await asyncio.wait({self._tasks[0], connected}, return_when=asyncio.FIRST_COMPLETED)
        connected.cancel()
        if self._tasks[0].done():
            await self.__aexit__()
            self._tasks[0].result()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # the connection

    async def _run(self) -> None:
        try:
            await self._stay_connected()
        except LikewiseError as error:
            self._give_up(error)
            raise

    async def _stay_connected(self) -> None:
        failures, last_connected = 0, time.monotonic()
        while True:
            address = self._addresses[0]
            try:
                await self._converse(address)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                if self._connected.is_set():
                    failures, last_connected = 0, time.monotonic()
                else:
                    failures += 1
                # The node may be suspended, or the machine slow: try the other nodes, each time with a longer timeout.
                self._connect_timeout = min(30.0, 3.0 * (1 + failures))
                self._connected.clear()
                where = ", ".join(sorted(self._addresses))
                # A node may be starting, but a rejected certificate stays rejected.
                limit = REFUSED_TIMEOUT if isinstance(error, ssl.SSLError) else min(START_TIMEOUT, self._timeout)
                if failures >= 5 * len(self._addresses) and time.monotonic() - last_connected >= limit:
                    hint = "is it running, and is the client's certificate from the same federation?"
                    raise MissingError(f"no node answers at {where}: {error}", hint=hint) from None
                if failures == len(self._addresses) and self._on_wait is not None:
                    self._on_wait(f"no node answers yet at {where}")
                await asyncio.sleep(0.1 if failures < len(self._addresses) else 0.5)
            self._addresses = [*self._addresses[1:], address]

    async def _converse(self, address: str) -> None:
        reader, writer = await dial(address, self._context, timeout=self._connect_timeout)
        try:
            writer.write(frame([pack(Hello("client"))]))
            self._writer = FrameWriter(writer)
            for subscription in self._subscriptions.values():
                self._send(subscription.request)
            for request, _ in self._unacknowledged.values():
                self._send(request)
            self._connected.set()
            while True:
                for data in await read_frame(reader):
                    self._receive(_decoded(_answers.decode, data))
        finally:
            self._writer = None
            await shut(writer)

    def _send(self, request: Any) -> None:
        if self._writer is not None:
            self._writer.put(pack(request))

    def _receive(self, answer: Any) -> None:
        self._silence = 0.0
        if isinstance(answer, Published):
            self._settle(answer.number)
        elif isinstance(answer, Reported):
            subscription = self._subscriptions.get(answer.id)
            if subscription is not None and answer.report.id not in subscription.seen:
                subscription.seen[answer.report.id] = None
                if len(subscription.seen) > MAX_SEEN:
                    del subscription.seen[next(iter(subscription.seen))]
                subscription.reports.put_nowait(answer.report)
            self._send(Acknowledge(answer.parcel))
        elif isinstance(answer, Subscribed):
            if (subscription := self._subscriptions.get(answer.id)) is not None:
                subscription.ready.set()
        elif isinstance(answer, Failed):
            error = InputError(answer.message)
            self._refuse(answer.id, error)
            self._settle(answer.number, error)
        elif self._status is not None and not self._status.done():
            self._status.set_result(answer.text)

    def _settle(self, number: Id, error: LikewiseError | None = None) -> None:
        """Complete the wait for a publication."""
        _, future = self._unacknowledged.pop(number, (None, None))
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def _refuse(self, id: str, error: LikewiseError) -> None:
        """End the wait for a subscription with an error."""
        subscription = self._subscriptions.get(id)
        if subscription is not None and not subscription.ready.is_set():
            subscription.failure = error
            subscription.ready.set()

    # timeouts

    async def _watch(self) -> None:
        """Count the time without an answer in small steps, so that a suspension of this process hardly counts."""
        while True:
            await asyncio.sleep(min(CHECK, self._timeout))
            self._silence = self._silence + min(CHECK, self._timeout) if self._is_waiting else 0.0
            if self._silence >= self._timeout:
                self._give_up(
                    MissingError(
                        f"the node at {self._addresses[0]} gave no answer for {self._timeout:g} s",
                        hint="see `likewise overlay status`; what was sent may still take effect",
                    )
                )

    @property
    def _is_waiting(self) -> bool:
        status_requested = self._status is not None and not self._status.done()
        return (
            status_requested
            or bool(self._unacknowledged)
            or not all(subscription.ready.is_set() for subscription in self._subscriptions.values())
        )

    def _give_up(self, error: LikewiseError) -> None:
        """End all waits with an error."""
        for number in list(self._unacknowledged):
            self._settle(number, error)
        for name in list(self._subscriptions):
            self._refuse(name, error)
        if self._status is not None and not self._status.done():
            self._status.set_exception(error)

    # public operations

    def send(self, event: Event, *, number: Id | None = None) -> asyncio.Future[None]:
        """Publish an event; the future is done when it is acknowledged. The same `number` again is a duplicate."""
        request = Publish(number or uuid.uuid4().bytes, encode_line(event))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._check_alive()
        self._unacknowledged[request.number] = (request, future)
        self._send(request)
        return future

    def _check_alive(self) -> None:
        if self._tasks and self._tasks[0].done():
            self._tasks[0].result()

    async def publish(self, event: Event) -> None:
        """Publish an event, and wait until it is acknowledged."""
        await self.send(event)

    async def publish_all(self, events: Sequence[tuple[Id, Event]]) -> None:
        """Publish numbered events, and wait until all are acknowledged, or no node answers any more."""
        sent = asyncio.gather(*(self.send(event, number=number) for number, event in events))
        try:
            await sent
        finally:
            sent.cancel()

    async def subscribe(self, source: str, name: str, *, since: int = 0) -> str:
        """Subscribe, and wait until the subscription is confirmed; returns its id."""
        self._check_alive()
        request = Subscribe(f"{uuid.uuid4().hex}-{name}", source, name, since)
        subscription = self._subscriptions[request.id] = ClientSubscription(request)
        self._send(request)
        try:
            await subscription.ready.wait()
        finally:
            if subscription.failure is not None or not subscription.ready.is_set():
                await self.unsubscribe(request.id)
        if subscription.failure is not None:
            raise subscription.failure
        return request.id

    async def reports(self, id: str) -> AsyncIterator[Report]:
        """The reports of a subscription, without duplicates."""
        while True:
            yield await self._subscriptions[id].reports.get()

    async def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        del self._subscriptions[id]
        self._send(Unsubscribe(id))

    async def status(self) -> dict[str, Any]:
        """The status of the node."""
        self._check_alive()
        self._status = asyncio.get_running_loop().create_future()
        self._send(AskStatus())
        out: dict[str, Any] = msgspec.json.decode(await self._status)
        return out


class OverlayEntry:
    """An entry to a federation for another service; it connects with the first publication."""

    def __init__(self, addresses: Sequence[str], *, state: Path) -> None:
        self._make = partial(OverlayClient, addresses, state=state)
        self._client: OverlayClient | None = None
        # Errors in the addresses or the certificate are raised at once.
        self._make()

    async def publish(self, events: Sequence[tuple[Id, Event]]) -> None:
        """Publish numbered events, and wait until all are acknowledged; raises `MissingError` if no node answers.

        An event whose number was published before is not published a second time.
        """
        try:
            if self._client is None:
                self._client = await self._make().__aenter__()
            await self._client.publish_all(events)
        except LikewiseError:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.__aexit__()
