"""Runs a node over sockets: asyncio, mutual TLS, and frames of messages.

The host has what the node lacks: a clock, links to peers, and clients. A link has a bounded queue; messages to a peer
that is too slow are dropped and counted, and the node retries them when their acknowledgement does not come.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from likewise.errors import InputError, LikewiseError, MissingError
from likewise.events import Event, decode_line
from likewise.language import parse
from likewise.overlay.net import clients as c
from likewise.overlay.net.frames import CLOSE, address_of, dial, frame, read_frame, shut
from likewise.overlay.net.identity import context_of, id_of_certificate, own_id
from likewise.overlay.node.node import NodeSettings, OverlayNode, ReportDelivery
from likewise.overlay.node.wire import decode, encode
from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.tables import Peer

MAX_QUEUED: Final = 10_000
JOIN_ATTEMPTS: Final = 60
"""Attempts, two a second, to reach a node through which this one joins."""
MAX_UNACKNOWLEDGED: Final = 2_000
"""Unacknowledged parcels above which publishers have to wait."""
MAX_FRAME_MESSAGES: Final = 500
"""The most messages in one frame."""


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Link:
    """A connection to one peer, with a bounded queue; several messages share a frame."""

    def __init__(self, host: NodeHost, peer: Peer) -> None:
        self.host = host
        self.peer = peer
        self.queue: deque[bytes] = deque()
        self._has_messages = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    def put(self, message: bytes) -> None:
        """Queue a message; drop it if the queue is full."""
        if len(self.queue) >= MAX_QUEUED:
            self.host.counts["shed"] += 1
            return
        self.queue.append(message)
        self._has_messages.set()

    async def _run(self) -> None:
        """Connect, and reconnect when the connection ends; report a refused connection to the node."""
        try:
            while True:
                reader, writer = await dial(self.peer.address, self.host.client_context)
                ended = asyncio.ensure_future(self._end(reader))
                try:
                    await self._write(writer, ended)
                finally:
                    if ended.done():
                        # The peer has closed already: do not wait for an orderly close, but reconnect at once.
                        writer.transport.abort()
                    ended.cancel()
                    await shut(writer)
        except ConnectionRefusedError:
            self.host.refused(self.peer)
        except (OSError, LikewiseError, TimeoutError):
            self.host.counts["broken links"] += 1
        finally:
            if self.host.links.get(self.peer.id) is self:
                del self.host.links[self.peer.id]

    async def _end(self, reader: asyncio.StreamReader) -> None:
        """Wait for the end of the connection; the peer sends nothing on it."""
        with contextlib.suppress(OSError):
            await reader.read()
        self._has_messages.set()

    async def _write(self, writer: asyncio.StreamWriter, ended: asyncio.Future[None]) -> None:
        if _peer_id(writer) != self.peer.id:
            raise InputError(f"another node answers at {self.peer.address}")
        writer.write(frame([c.pack(c.Hello("node", self.host.node.me.address))]))
        while not ended.done():
            await self._has_messages.wait()
            self._has_messages.clear()
            while self.queue and not ended.done():
                batch = [self.queue.popleft() for _ in range(min(len(self.queue), MAX_FRAME_MESSAGES))]
                writer.write(frame(batch))
                await writer.drain()


def _peer_id(writer: asyncio.StreamWriter) -> Key:
    return id_of_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))


class NodeHost:
    """A node with its listener, its links and its clients."""

    def __init__(self, state: Path, *, listen: str, settings: NodeSettings | None = None, **options: Any) -> None:
        self.address = address_of(listen)
        self.server_context, self.client_context = context_of(state, server=True), context_of(state, server=False)
        me = Peer(own_id(state), listen)
        self.node = OverlayNode(me, settings, incarnation=f"{now():x}-", **options)
        self.links: dict[Key, Link] = {}
        self.counts: Counter[str] = Counter()
        self._sessions: dict[str, c.Session] = {}
        self._publishers: dict[bytes, c.Session] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._flush_scheduled = False
        self._queued: list[tuple[bytes, Event]] = []
        self._has_capacity = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._stopped = False
        self._ready = asyncio.Event()

    async def start(self, join: Iterable[str] = ()) -> None:
        """Listen, and join the ring through any of the addresses."""
        # The first match of a process takes long, and others would declare this node dead meanwhile.
        self.node.warm_up()
        try:
            self._server = await asyncio.start_server(
                self._accept, *self.address, ssl=self.server_context, ssl_shutdown_timeout=CLOSE
            )
        except OSError as error:
            raise MissingError(f"cannot listen at {self.address[0]}:{self.address[1]}: {error.strerror}") from None
        bootstrap = [await self._peer_at(address) for address in join]
        self.node.start(now(), [peer for peer in bootstrap if peer is not None])
        self._flush()

    async def _peer_at(self, address: str) -> Peer | None:
        """The peer that listens at an address; None if it is this node."""
        for attempt in range(JOIN_ATTEMPTS):
            try:
                _, writer = await dial(address, self.client_context)
                break
            except (OSError, TimeoutError) as error:
                if attempt == JOIN_ATTEMPTS - 1:
                    hint = "is it running, and a member of this federation?"
                    raise MissingError(f"no node answers at {address}: {error}", hint=hint) from None
                await asyncio.sleep(0.5)
        peer = Peer(_peer_id(writer), address)
        await shut(writer)
        return None if peer.id == self.node.me.id else peer

    async def stop(self) -> None:
        """Leave the ring, and close everything."""
        self.node.leave(now())
        self._flush()
        await asyncio.sleep(0.1)
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
        tasks = [*self._tasks, *(link.task for link in list(self.links.values()))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # incoming connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            [first] = await read_frame(reader)
            hello = c.decode_hello(first)
            if hello.kind == "node":
                await self._receive(reader, Peer(_peer_id(writer), hello.address))
            else:
                await self._serve(c.Session(writer), reader)
        except (OSError, asyncio.IncompleteReadError, ValueError, LikewiseError) as error:
            self.counts["refused" if isinstance(error, LikewiseError | ValueError) else "closed"] += 1
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            await shut(writer)

    async def _receive(self, reader: asyncio.StreamReader, sender: Peer) -> None:
        node = self.node
        while True:
            frames = await read_frame(reader)
            moment = now()
            for data in frames:
                try:
                    message = decode(data)
                except InputError:
                    self.counts["malformed"] += 1
                    continue
                node.receive(moment, sender, message)
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        """Flush once in the next iteration of the event loop."""
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Publish queued events, send messages, reports and answers, and set the timer of the node."""
        self._flush_scheduled = False
        node = self.node
        if self._queued:
            queued, self._queued = self._queued, []
            node.publish_all(now(), queued)
        if node.ready:
            self._ready.set()
        for delivery in node.deliveries:
            self._send_report(delivery)
        node.deliveries.clear()
        for number in node.acknowledged:
            session = self._publishers.pop(number, None)
            if session is not None:
                session.send(c.Published(number))
        node.acknowledged.clear()
        for name in node.confirmed:
            if (session := self._sessions.get(name)) is not None:
                session.send(c.Subscribed(name))
        node.confirmed.clear()
        self._send()
        if len(node.outbox) < MAX_UNACKNOWLEDGED:
            self._has_capacity.set()
        self._set_timer()

    def _send(self) -> None:
        last = packed = None
        for peer, message in self.node.flush():
            # The same message for several replicas comes in a row: encode it once.
            if message is not last or packed is None:
                last, packed = message, encode(message)
            self._link(peer).put(packed)

    def refused(self, peer: Peer) -> None:
        """Note that a peer refused the connection: it has stopped."""
        if not self._stopped:
            self.node.refused(now(), peer)
            self._flush()

    def _link(self, peer: Peer) -> Link:
        link = self.links.get(peer.id)
        if link is None:
            link = self.links[peer.id] = Link(self, peer)
        return link

    def _set_timer(self) -> None:
        due = self.node.due
        if due is None or self._stopped or (self._timer is not None and self._timer_at <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        self._timer = asyncio.get_running_loop().call_later(max(0, due - now()) / 1e6, self._tick)

    def _tick(self) -> None:
        self._timer = None
        moment = now()
        if self.node.due is not None and self.node.due <= moment:
            self.node.tick(moment)
        self._flush()

    # clients

    async def _serve(self, session: c.Session, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                for data in await read_frame(reader):
                    request = c.decode_request(data)
                    if not isinstance(request, c.AskStatus | c.Acknowledge):
                        await self._ready.wait()
                    if isinstance(request, c.Publish) and self._is_full:
                        self._has_capacity.clear()
                        self._schedule_flush()
                        await self._has_capacity.wait()
                    self._request(session, request)
                self._schedule_flush()
                await session.drain()
        finally:
            for name in [name for name, holder in self._sessions.items() if holder is session]:
                # The client may continue at another node, so its reports must not be acknowledged here.
                del self._sessions[name]
                self.node.abandon(name)

    @property
    def _is_full(self) -> bool:
        return len(self.node.outbox) + len(self._queued) >= MAX_UNACKNOWLEDGED

    def _request(self, session: c.Session, request: Any) -> None:
        try:
            self._answer(session, request)
        except LikewiseError as error:
            session.send(c.Failed(getattr(request, "id", ""), str(error), getattr(request, "number", b"")))

    def _answer(self, session: c.Session, request: Any) -> None:
        moment = now()
        if isinstance(request, c.Publish):
            event = decode_line(request.event)
            self._publishers[request.number] = session
            self._queued.append((request.number, event))
        elif isinstance(request, c.Subscribe):
            subscriptions = parse(request.source)
            known = {subscription.name: subscription for subscription in subscriptions}
            if request.name not in known:
                raise InputError(f"the text has no subscription named {request.name!r}")
            self._sessions[request.id] = session
            self.node.subscribe(
                moment, known[request.name], known=known, id=request.id, version=moment, since=request.since or moment
            )
        elif isinstance(request, c.Acknowledge):
            self.node.acknowledge_parcel(request.parcel)
        elif isinstance(request, c.Unsubscribe):
            self._sessions.pop(request.id, None)
            self.node.unsubscribe(moment, request.id)
        else:
            session.send(c.StatusReply(msgspec.json.encode(self.status()).decode()))

    def _send_report(self, delivery: ReportDelivery) -> None:
        session = self._sessions.get(delivery.subscription)
        if session is not None:
            session.send(c.Reported(delivery.subscription, delivery.parcel, delivery.report))

    def status(self) -> dict[str, Any]:
        """The status of this node as plain values."""
        from likewise.overlay.node.status import status_of

        return status_of(self.node) | {"network": dict(self.counts), "process": os.getpid()}


async def run_node(
    state: Path, *, listen: str, join: Iterable[str] = (), settings: NodeSettings | None = None, **options: Any
) -> None:
    """Run a node until it is cancelled."""
    host = NodeHost(state, listen=listen, settings=settings, **options)
    await host.start(join)
    # Loaded modules stay, and events create no reference cycles: collect garbage rarely.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        await asyncio.Event().wait()
    finally:
        await host.stop()
