"""Webhooks: each subscription's notifications in order, signed, retried, and kept as dead letters in the end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
import socket
import ssl
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httpcore
import msgspec
import structlog

from likewise.broker.auth import Access
from likewise.broker.delivery.signing import is_public, signature
from likewise.broker.errors import StorageError
from likewise.broker.operate.tracing import span
from likewise.broker.store.records import BookEntry, Letter, Notice, first_cursor, now
from likewise.errors import DeliveryError

if TYPE_CHECKING:
    from likewise.broker.service import Broker

logs = structlog.get_logger("likewise.webhooks")
_AGAIN = {408, 425, 429}


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only: the address that was checked is the one that is connected to."""

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve, check, connect; a name that changes its address later is checked again."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address: {error.strerror}") from None
        addresses = [str(entry[4][0]) for entry in found]
        allowed = [one for one in addresses if self._private or _public(one)]
        if not allowed:
            raise httpcore.ConnectError(f"{host} is not a public address")
        return await self._inner.connect_tcp(allowed[0], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Webhooks:
    """One task for each subscription with a webhook; a hanging receiver holds up only its own."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._policy = broker.settings.webhooks
        self._tasks: dict[tuple[str, str], tuple[BookEntry, asyncio.Task[None]]] = {}
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=200,
            network_backend=GuardedBackend(private=broker.settings.private_webhooks),
        )

    async def run(self) -> None:
        """Start and stop tasks as subscriptions change, until cancelled."""
        try:
            while True:
                self._reconcile()
                await asyncio.sleep(self._policy.poll)
        finally:
            for _, task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*(task for _, task in self._tasks.values()), return_exceptions=True)
            await self._pool.aclose()

    def _reconcile(self) -> None:
        wanted = {
            (namespace, entry.name): entry
            for namespace, tenant in list(self._broker.host.tenants.items())
            for entry in list(tenant.book.values())
            if entry.webhook is not None and not entry.paused
        }
        for place, (entry, task) in list(self._tasks.items()):
            if wanted.get(place) != entry or task.done():
                task.cancel()
                del self._tasks[place]
                self._broker.webhook_states.pop(place, None)
        for place, entry in wanted.items():
            if place not in self._tasks:
                self._tasks[place] = (entry, asyncio.create_task(self._serve(place[0], entry)))

    async def _serve(self, namespace: str, entry: BookEntry) -> None:
        broker, access = self._broker, Access("webhooks", namespace, frozenset({"subscribe"}))
        consumer, failures = f"webhook:{entry.name}", 0
        while True:
            try:
                start = first_cursor(int(entry.extra.get("since", 0))) - 1
                done = await broker.read(broker.history.consumer, namespace, consumer)
                cursor = start if done is None else max(done, start)
                async for notices in broker.follow(access, names=[entry.name], after=cursor, batch=50):
                    for notice in notices:
                        with span("deliver", subscription=entry.name, notification=str(notice.cursor)):
                            delivered = await self._deliver(namespace, entry, notice)
                        failures = 0 if delivered else failures + 1
                        await broker.acknowledge(access, consumer, notice.cursor)
                        if failures >= self._policy.pause_after:
                            await self._pause(namespace, entry)
                            failures = 0
                return
            except StorageError:
                await asyncio.sleep(1)  # nothing was acknowledged, so it is sent again

    async def _pause(self, namespace: str, entry: BookEntry) -> None:
        """Leave a dead receiver alone for a while; its notifications wait in the log."""
        self._broker.webhook_states[namespace, entry.name] = "paused after failures"
        self._broker.counts["webhooks_paused"] += 1
        logs.warning("webhook paused", namespace=namespace, subscription=entry.name, seconds=self._policy.pause)
        await asyncio.sleep(self._policy.pause)
        self._broker.webhook_states.pop((namespace, entry.name), None)

    async def _deliver(self, namespace: str, entry: BookEntry, notice: Notice) -> bool:
        reason = ""
        for attempt in range(self._policy.attempts):
            if attempt:
                pause = min(self._policy.first_pause * 2 ** (attempt - 1), self._policy.longest_pause)
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            final, reason = await self._post(namespace, entry, notice)
            if not reason:
                self._broker.counts["webhooks_delivered"] += 1
                return True
            self._broker.counts["webhook_failures"] += 1
            self._broker.webhook_states[namespace, entry.name] = f"failing: {reason}"
            if final:
                break
        logs.warning("webhook gave up", namespace=namespace, subscription=entry.name, reason=reason)
        await self._broker.bury(Letter(namespace, f"webhook {entry.name}", reason, notice.body, now()))
        return False

    async def _post(self, namespace: str, entry: BookEntry, notice: Notice) -> tuple[bool, str]:
        """Send once; gives whether trying again is no use, and why it failed."""
        assert entry.webhook is not None
        body, stamp, number = cloudevent_of(namespace, notice), int(time.time()), str(notice.cursor)
        secret = self._broker.signing_secret(namespace, entry) or ""
        headers: dict[bytes | str, bytes | str] = {
            "Content-Type": "application/cloudevents+json",
            "User-Agent": "likewise",
            "Webhook-Id": number,
            "Webhook-Timestamp": str(stamp),
            "Webhook-Signature": signature(secret, id=number, timestamp=stamp, body=body),
        }
        seconds = self._policy.timeout
        limits = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        try:
            async with asyncio.timeout(seconds * 2):
                # Redirects are not followed: a receiver that has moved says so with a new address.
                answer = await self._pool.request(
                    "POST", entry.webhook.url, headers=headers, content=body, extensions={"timeout": limits}
                )
        except (
            httpcore.NetworkError,
            httpcore.TimeoutException,
            httpcore.ProtocolError,
            TimeoutError,
            OSError,
        ) as error:
            return False, f"{type(error).__name__}: {error}".rstrip(": ")
        if 200 <= answer.status < 300:
            with contextlib.suppress(KeyError):
                del self._broker.webhook_states[namespace, entry.name]
            return True, ""
        return answer.status < 500 and answer.status not in _AGAIN, f"the receiver answered {answer.status}"

    async def send_again(self, letter: Letter) -> None:
        """Send a dead letter again, once."""
        name = letter.source.removeprefix("webhook ")
        entry = await self._broker.read(self._broker.history.entry, letter.namespace, name)
        if entry.webhook is None:
            raise DeliveryError(
                f"the subscription {name!r} has no webhook any more", hint="set one, or forget the letter"
            )
        body: dict[str, Any] = msgspec.json.decode(letter.body)
        notice = Notice(int(body["id"]), letter.namespace, name, body["kind"], body["score"], None, letter.body)
        _, reason = await self._post(letter.namespace, entry, notice)
        if reason:
            raise DeliveryError(f"it failed again: {reason}", hint="check the receiver")


def cloudevent_of(namespace: str, notice: Notice) -> bytes:
    """A notification as a CloudEvent."""
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": str(notice.cursor),
            "source": f"/likewise/{namespace}",
            "type": f"likewise.{notice.kind}",
            "subject": notice.subscription,
            "datacontenttype": "application/json",
            "data": msgspec.Raw(notice.body),
        }
    )


def _public(text: str) -> bool:
    return is_public(ipaddress.ip_address(text.partition("%")[0]))
