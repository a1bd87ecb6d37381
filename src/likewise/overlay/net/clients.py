"""Publishers and subscribers of a node, over the same TLS: requests, answers, and the client.

A client holds a publication until it is acknowledged and takes its subscriptions along when its node is gone: it
connects to the next address with the same ids, so that nothing is lost and nothing is reported twice.
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

WAIT: Final = 120.0
"""Seconds without any answer after which a client gives up what it waits for."""
STARTING: Final = 30.0
"""Seconds that a client waits for a node that does not listen yet."""
REFUSED: Final = 2.0
"""Seconds that it waits when its certificate is refused."""
BEAT: Final = 1.0
"""Seconds between two looks at whether answers come."""
REMEMBER: Final = 100_000
"""Reports of a subscription that are recognised when they come again."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first message of a connection: a node with its address, or a client."""

    kind: str
    address: str = ""


class Publish(msgspec.Struct, frozen=True, array_like=True, tag="publish"):
    """An event as a JSON line; `number` is chosen by the client."""

    number: Id
    event: bytes


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag="subscribe"):
    """A subscription of a text, by its name; `id` is chosen by the client."""

    id: str
    source: str
    name: str
    since: int = 0


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag="unsubscribe"):
    """The end of a subscription."""

    id: str


class Acknowledge(msgspec.Struct, frozen=True, array_like=True, tag="acknowledge"):
    """The client has a report."""

    parcel: Id


class AskStatus(msgspec.Struct, frozen=True, array_like=True, tag="status"):
    """What does the node know and do?"""


class Published(msgspec.Struct, frozen=True, array_like=True, tag="published"):
    """An event is in the care of those who want it."""

    number: Id


class Subscribed(msgspec.Struct, frozen=True, array_like=True, tag="subscribed"):
    """A subscription is in place."""

    id: str


class Reported(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """A report for a subscription."""

    id: str
    parcel: Id
    report: Report


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """A request that cannot be met: a subscription by its id, or a publication by its number."""

    id: str
    message: str
    number: Id = b""


class StatusReply(msgspec.Struct, frozen=True, array_like=True, tag="state"):
    """The status as JSON."""

    text: str


Request: TypeAlias = Publish | Subscribe | Unsubscribe | Acknowledge | AskStatus
Answer: TypeAlias = Published | Subscribed | Reported | Failed | StatusReply

pack = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(Hello).decode
_requests: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Request)
_answers: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Answer)


def decode_hello(data: bytes) -> Hello:
    """The first message of a connection."""
    hello: Hello = _decoded(_hello, data)
    return hello


def decode_request(data: bytes) -> Any:
    """A client's request."""
    return _decoded(_requests.decode, data)


def _decoded(decode: Any, data: bytes) -> Any:
    try:
        return decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not a message between node and client: {error}") from None


class FrameWriter:
    """Messages on a connection: those of one turn of the loop go out in one frame."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: list[bytes] = []

    def put(self, message: bytes) -> None:
        """Send a message soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(message)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not self._writer.is_closing():
            self._writer.write(frame(waiting))

    async def drain(self) -> None:
        """Let the other side catch up."""
        await self._writer.drain()


class Session:
    """A client at its node."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._post = FrameWriter(writer)

    def send(self, answer: Any) -> None:
        """Answer; a client that has gone will ask again elsewhere."""
        self._post.put(pack(answer))

    async def drain(self) -> None:
        """Let a slow client catch up."""
        await self._post.drain()


@dataclass(slots=True)
class ClientSubscription:
    """A subscription of the client, and what came for it."""

    request: Subscribe
    reports: asyncio.Queue[Report] = field(default_factory=asyncio.Queue)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    failure: LikewiseError | None = None
    had: dict[Id, None] = field(default_factory=dict)


class OverlayClient:
    """Publishes and subscribes through any of several nodes.

    If something is waited for and nothing is answered for `timeout` seconds, the wait ends with a `MissingError`.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        state: Path,
        timeout: float = WAIT,
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
        self._post: FrameWriter | None = None
        self._waiting: dict[Id, tuple[Publish, asyncio.Future[None]]] = {}
        self._wanted: dict[str, ClientSubscription] = {}
        self._status: asyncio.Future[str] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._connected = asyncio.Event()
        self._patience = 3.0

    async def __aenter__(self) -> OverlayClient:
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._watch())]
        waits = asyncio.create_task(self._connected.wait())
        await asyncio.wait({self._tasks[0], waits}, return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
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
        failures, alone = 0, time.monotonic()
        while True:
            address = self._addresses[0]
            try:
                await self._talk(address)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                if self._connected.is_set():
                    failures, alone = 0, time.monotonic()
                else:
                    failures += 1
                # A node that does not answer soon may be frozen, or the machine slow: try others, then wait longer.
                self._patience = min(30.0, 3.0 * (1 + failures))
                self._connected.clear()
                where = ", ".join(sorted(self._addresses))
                # A node may be starting, but a certificate that is refused stays refused.
                patience = REFUSED if isinstance(error, ssl.SSLError) else min(STARTING, self._timeout)
                if failures >= 5 * len(self._addresses) and time.monotonic() - alone >= patience:
                    hint = "is it running, and is the client's certificate of its federation?"
                    raise MissingError(f"no node answers at {where}: {error}", hint=hint) from None
                if failures == len(self._addresses) and self._on_wait is not None:
                    self._on_wait(f"no node answers yet at {where}")
                await asyncio.sleep(0.1 if failures < len(self._addresses) else 0.5)
            self._addresses = [*self._addresses[1:], address]

    async def _talk(self, address: str) -> None:
        reader, writer = await dial(address, self._context, timeout=self._patience)
        try:
            writer.write(frame([pack(Hello("client"))]))
            self._post = FrameWriter(writer)
            for wanted in self._wanted.values():
                self._send(wanted.request)
            for request, _ in self._waiting.values():
                self._send(request)
            self._connected.set()
            while True:
                for data in await read_frame(reader):
                    self._receive(_decoded(_answers.decode, data))
        finally:
            self._post = None
            await shut(writer)

    def _send(self, request: Any) -> None:
        if self._post is not None:
            self._post.put(pack(request))

    def _receive(self, answer: Any) -> None:
        self._silence = 0.0
        if isinstance(answer, Published):
            self._settle(answer.number)
        elif isinstance(answer, Reported):
            wanted = self._wanted.get(answer.id)
            if wanted is not None and answer.report.id not in wanted.had:
                wanted.had[answer.report.id] = None
                if len(wanted.had) > REMEMBER:
                    del wanted.had[next(iter(wanted.had))]
                wanted.reports.put_nowait(answer.report)
            self._send(Acknowledge(answer.parcel))
        elif isinstance(answer, Subscribed):
            if (wanted := self._wanted.get(answer.id)) is not None:
                wanted.ready.set()
        elif isinstance(answer, Failed):
            error = InputError(answer.message)
            self._refuse(answer.id, error)
            self._settle(answer.number, error)
        elif self._status is not None and not self._status.done():
            self._status.set_result(answer.text)

    def _settle(self, number: Id, error: LikewiseError | None = None) -> None:
        """A publication is acknowledged, or has failed."""
        _, future = self._waiting.pop(number, (None, None))
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def _refuse(self, id: str, error: LikewiseError) -> None:
        """A subscription has failed."""
        wanted = self._wanted.get(id)
        if wanted is not None and not wanted.ready.is_set():
            wanted.failure = error
            wanted.ready.set()

    # patience

    async def _watch(self) -> None:
        """Count the time without an answer; a pause of this process is not the fault of others."""
        while True:
            await asyncio.sleep(min(BEAT, self._timeout))
            self._silence = self._silence + min(BEAT, self._timeout) if self._awaits else 0.0
            if self._silence >= self._timeout:
                self._give_up(
                    MissingError(
                        f"the node at {self._addresses[0]} gave no answer for {self._timeout:g} s",
                        hint="see `likewise overlay status`; what was sent may still take effect",
                    )
                )

    @property
    def _awaits(self) -> bool:
        asked = self._status is not None and not self._status.done()
        return asked or bool(self._waiting) or not all(each.ready.is_set() for each in self._wanted.values())

    def _give_up(self, error: LikewiseError) -> None:
        """End all that is waited for."""
        for number in list(self._waiting):
            self._settle(number, error)
        for name in list(self._wanted):
            self._refuse(name, error)
        if self._status is not None and not self._status.done():
            self._status.set_exception(error)

    # what a user does

    def send(self, event: Event, *, number: Id | None = None) -> asyncio.Future[None]:
        """Publish an event; the future is done when it is acknowledged. With the same `number` it is the same one."""
        request = Publish(number or uuid.uuid4().bytes, encode_line(event))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._check_alive()
        self._waiting[request.number] = (request, future)
        self._send(request)
        return future

    def _check_alive(self) -> None:
        if self._tasks and self._tasks[0].done():
            self._tasks[0].result()

    async def publish(self, event: Event) -> None:
        """Publish an event, and wait until it is acknowledged."""
        await self.send(event)

    async def publish_all(self, events: Sequence[tuple[Id, Event]]) -> None:
        """Publish events under their numbers, and wait until all are acknowledged, or no node answers any more."""
        sent = asyncio.gather(*(self.send(event, number=number) for number, event in events))
        try:
            await sent
        finally:
            sent.cancel()

    async def subscribe(self, source: str, name: str, *, since: int = 0) -> str:
        """Subscribe, and wait until the subscription is in place; gives its id."""
        self._check_alive()
        request = Subscribe(f"{uuid.uuid4().hex}-{name}", source, name, since)
        wanted = self._wanted[request.id] = ClientSubscription(request)
        self._send(request)
        try:
            await wanted.ready.wait()
        finally:
            if wanted.failure is not None or not wanted.ready.is_set():
                await self.unsubscribe(request.id)
        if wanted.failure is not None:
            raise wanted.failure
        return request.id

    async def reports(self, id: str) -> AsyncIterator[Report]:
        """What is reported to a subscription, each once."""
        while True:
            yield await self._wanted[id].reports.get()

    async def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        del self._wanted[id]
        self._send(Unsubscribe(id))

    async def status(self) -> dict[str, Any]:
        """What the node knows and does."""
        self._check_alive()
        self._status = asyncio.get_running_loop().create_future()
        self._send(AskStatus())
        out: dict[str, Any] = msgspec.json.decode(await self._status)
        return out


class OverlayEntry:
    """The way into a federation for another service: it connects when there is something to publish."""

    def __init__(self, addresses: Sequence[str], *, state: Path) -> None:
        self._make = partial(OverlayClient, addresses, state=state)
        self._client: OverlayClient | None = None
        # What is wrong with the addresses or the certificate is said at once.
        self._make()

    async def publish(self, events: Sequence[tuple[Id, Event]]) -> None:
        """Publish events under their numbers, and wait until all are acknowledged; a `MissingError` if nobody answers.

        An event that was published under its number before is not published a second time.
        """
        try:
            if self._client is None:
                self._client = await self._make().__aenter__()
            await self._client.publish_all(events)
        except LikewiseError:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.__aexit__()
