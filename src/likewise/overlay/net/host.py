"""A node over sockets: asyncio, mutual TLS, and frames of messages.

The node itself knows nothing of this: here are the clock, the links to its peers, and the clients that publish and
subscribe through it. A link has a bounded queue; to a peer that is slower than what it is sent, messages are shed and
counted, and sent again by those who wait for their receipt.
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

QUEUE: Final = 10_000
JOIN_ATTEMPTS: Final = 60
"""How often, twice a second, a new node tries to reach the node through which it joins."""
ROOM: Final = 2_000
"""Parcels under way from which on publishers have to wait."""
BURST: Final = 500
"""Messages that go into one frame at most."""


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Link:
    """Messages to one peer: queued, bounded, several to a frame."""

    def __init__(self, host: NodeHost, peer: Peer) -> None:
        self.host = host
        self.peer = peer
        self.queue: deque[bytes] = deque()
        self._some = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    def put(self, message: bytes) -> None:
        """Send a message, or shed it."""
        if len(self.queue) >= QUEUE:
            self.host.counts["shed"] += 1
            return
        self.queue.append(message)
        self._some.set()

    async def _run(self) -> None:
        """Connect, and again when the peer has gone: if nobody answers there any more, the node hears of it."""
        try:
            while True:
                reader, writer = await dial(self.peer.address, self.host.outward)
                ended = asyncio.ensure_future(self._end(reader))
                try:
                    await self._process(writer, ended)
                finally:
                    if ended.done():
                        # There is nobody to say farewell to, and others wait to hear whether the peer is gone.
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
        """A peer says nothing on this connection, until it ends."""
        with contextlib.suppress(OSError):
            await reader.read()
        self._some.set()

    async def _process(self, writer: asyncio.StreamWriter, ended: asyncio.Future[None]) -> None:
        if _peer_id(writer) != self.peer.id:
            raise InputError("another node answers at this address")
        writer.write(frame([c.pack(c.Hello("node", self.host.node.me.address))]))
        while not ended.done():
            await self._some.wait()
            self._some.clear()
            while self.queue and not ended.done():
                batch = [self.queue.popleft() for _ in range(min(len(self.queue), BURST))]
                writer.write(frame(batch))
                await writer.drain()


def _peer_id(writer: asyncio.StreamWriter) -> Key:
    return id_of_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))


class NodeHost:
    """A node, its listener, its links and its clients."""

    def __init__(self, state: Path, *, listen: str, settings: NodeSettings | None = None, **options: Any) -> None:
        self.where = address_of(listen)
        self.inward, self.outward = context_of(state, server=True), context_of(state, server=False)
        me = Peer(own_id(state), listen)
        self.node = OverlayNode(me, settings, incarnation=f"{now():x}-", **options)
        self.links: dict[Key, Link] = {}
        self.counts: Counter[str] = Counter()
        self._sessions: dict[str, c.Session] = {}
        self._publishers: dict[bytes, c.Session] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes = 0
        self._settling = False
        self._coming: list[tuple[bytes, Event]] = []
        self._room = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._stopped = False
        self._ready = asyncio.Event()

    async def start(self, join: Iterable[str] = ()) -> None:
        """Listen, and join the ring through any of the addresses."""
        # The first match of a process takes long: others would take this node for dead.
        self.node.warm_up()
        try:
            self._server = await asyncio.start_server(
                self._accept, *self.where, ssl=self.inward, ssl_shutdown_timeout=CLOSE
            )
        except OSError as error:
            raise MissingError(f"cannot listen at {self.where[0]}:{self.where[1]}: {error.strerror}") from None
        bootstrap = [await self._peer_at(address) for address in join]
        self.node.start(now(), [gate for gate in bootstrap if gate is not None])
        self._settle()

    async def _peer_at(self, address: str) -> Peer | None:
        """Who listens at an address; None for this node itself."""
        for attempt in range(JOIN_ATTEMPTS):
            try:
                _, writer = await dial(address, self.outward)
                break
            except (OSError, TimeoutError) as error:
                if attempt == JOIN_ATTEMPTS - 1:
                    hint = "is it running, and of this federation?"
                    raise MissingError(f"no node answers at {address}: {error}", hint=hint) from None
                await asyncio.sleep(0.5)
        peer = Peer(_peer_id(writer), address)
        await shut(writer)
        return None if peer.id == self.node.me.id else peer

    async def stop(self) -> None:
        """Leave the ring, and close everything."""
        self.node.leave(now())
        self._settle()
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

    # what comes in

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
            self._soon()

    def _soon(self) -> None:
        """Settle once for all that came in together."""
        if not self._settling:
            self._settling = True
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        """Send what the node wants sent, and wake it when it wants to be woken."""
        self._settling = False
        node = self.node
        if self._coming:
            coming, self._coming = self._coming, []
            node.publish_all(now(), coming)
        if node.ready:
            self._ready.set()
        for delivery in node.deliveries:
            self._pass_on(delivery)
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
        if len(node.outbox) < ROOM:
            self._room.set()
        self._set_timer()

    def _send(self) -> None:
        message = packed = None
        for peer, each in self.node.flush():
            # Copies of one operation follow one another.
            if each is not message or packed is None:
                message, packed = each, encode(each)
            self._link(peer).put(packed)

    def refused(self, peer: Peer) -> None:
        """Nobody listens where a peer did."""
        if not self._stopped:
            self.node.refused(now(), peer)
            self._settle()

    def _link(self, peer: Peer) -> Link:
        link = self.links.get(peer.id)
        if link is None:
            link = self.links[peer.id] = Link(self, peer)
        return link

    def _set_timer(self) -> None:
        due = self.node.due
        if due is None or self._stopped or (self._timer is not None and self._wakes <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = due
        self._timer = asyncio.get_running_loop().call_later(max(0, due - now()) / 1e6, self._tick)

    def _tick(self) -> None:
        self._timer = None
        moment = now()
        if self.node.due is not None and self.node.due <= moment:
            self.node.tick(moment)
        self._settle()

    # clients

    async def _serve(self, session: c.Session, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                for data in await read_frame(reader):
                    request = c.decode_request(data)
                    if not isinstance(request, c.AskStatus | c.Acknowledge):
                        await self._ready.wait()
                    if isinstance(request, c.Publish) and len(self.node.outbox) + len(self._coming) >= ROOM:
                        self._room.clear()
                        self._soon()
                        await self._room.wait()
                    self._request(session, request)
                self._soon()
                await session.drain()
        finally:
            for name in [name for name, one in self._sessions.items() if one is session]:
                # Another node may have the subscriber soon: nothing is acknowledged in its name.
                del self._sessions[name]
                self.node.abandon(name)

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
            self._coming.append((request.number, event))
        elif isinstance(request, c.Subscribe):
            subscriptions = parse(request.source)
            known = {each.name: each for each in subscriptions}
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

    def _pass_on(self, delivery: ReportDelivery) -> None:
        session = self._sessions.get(delivery.subscription)
        if session is not None:
            session.send(c.Reported(delivery.subscription, delivery.parcel, delivery.report))

    def status(self) -> dict[str, Any]:
        """What this node knows and does."""
        from likewise.overlay.node.status import status_of

        return status_of(self.node) | {"network": dict(self.counts), "process": os.getpid()}


async def run_node(
    state: Path, *, listen: str, join: Iterable[str] = (), settings: NodeSettings | None = None, **options: Any
) -> None:
    """Run a node until it is cancelled."""
    host = NodeHost(state, listen=listen, settings=settings, **options)
    await host.start(join)
    # What was loaded stays; events on their way leave no cycles behind.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        await asyncio.Event().wait()
    finally:
        await host.stop()
