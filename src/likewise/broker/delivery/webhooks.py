"""Webhooks: send each subscription's notifications in order, signed, with retries and dead letters."""

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
from likewise.broker.store.records import DeadLetter, Notice, SubscriptionEntry, first_cursor, now
from likewise.errors import DeliveryError

if TYPE_CHECKING:
    from likewise.broker.service import Broker

logs = structlog.get_logger("likewise.webhooks")
_RETRIED = {408, 425, 429}
"""Client errors that are worth a retry: timeout, too early, too many requests."""


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only; it connects to the very address that it checked."""

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
        """Resolve the host, check its addresses and connect; this runs anew for every connection."""
        try:
            entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address: {error.strerror}") from None
        addresses = [str(entry[4][0]) for entry in entries]
        allowed = [address for address in addresses if self._private or _is_public(address)]
        if not allowed:
            raise httpcore.ConnectError(f"{host} is not a public address")
        return await self._inner.connect_tcp(allowed[0], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Webhooks:
    """Runs one task per subscription with a webhook, so that a slow receiver delays only its own notifications."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._policy = broker.settings.webhooks
        self._tasks: dict[tuple[str, str], tuple[SubscriptionEntry, asyncio.Task[None]]] = {}
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
            for entry in list(tenant.entries.values())
            if entry.webhook is not None and not entry.paused
        }
        for key, (entry, task) in list(self._tasks.items()):
            if wanted.get(key) != entry or task.done():
                task.cancel()
                del self._tasks[key]
                self._broker.webhook_states.pop(key, None)
        for key, entry in wanted.items():
            if key not in self._tasks:
                self._tasks[key] = (entry, asyncio.create_task(self._serve(key[0], entry)))

    async def _serve(self, namespace: str, entry: SubscriptionEntry) -> None:
        broker, access = self._broker, Access("webhooks", namespace, frozenset({"subscribe"}))
        consumer, failures = f"webhook:{entry.name}", 0
        while True:
            try:
                start = first_cursor(int(entry.extra.get("since", 0))) - 1
                acknowledged = await broker.read(broker.history.consumer, namespace, consumer)
                cursor = start if acknowledged is None else max(acknowledged, start)
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
                await asyncio.sleep(1)  # it was not acknowledged, so it is sent again

    async def _pause(self, namespace: str, entry: SubscriptionEntry) -> None:
        """Pause a failing receiver; its notifications wait in the log."""
        self._broker.webhook_states[namespace, entry.name] = "paused after failures"
        self._broker.counts["webhooks_paused"] += 1
        logs.warning("webhook paused", namespace=namespace, subscription=entry.name, seconds=self._policy.pause)
        await asyncio.sleep(self._policy.pause)
        self._broker.webhook_states.pop((namespace, entry.name), None)

    async def _deliver(self, namespace: str, entry: SubscriptionEntry, notice: Notice) -> bool:
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
        logs.warning("webhook delivery failed", namespace=namespace, subscription=entry.name, reason=reason)
        await self._broker.store_dead_letter(DeadLetter(namespace, f"webhook {entry.name}", reason, notice.body, now()))
        return False

    async def _post(self, namespace: str, entry: SubscriptionEntry, notice: Notice) -> tuple[bool, str]:
        """Send once; returns whether a retry is pointless, and the reason of a failure."""
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
                # Redirects are not followed: a receiver that has moved must be given as a new URL.
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
        return answer.status < 500 and answer.status not in _RETRIED, f"the receiver answered {answer.status}"

    async def send_again(self, letter: DeadLetter) -> None:
        """Send a dead letter again, once."""
        name = letter.source.removeprefix("webhook ")
        entry = await self._broker.read(self._broker.history.entry, letter.namespace, name)
        if entry.webhook is None:
            raise DeliveryError(
                f"the subscription {name!r} no longer has a webhook", hint="set one, or delete the dead letter"
            )
        body: dict[str, Any] = msgspec.json.decode(letter.body)
        notice = Notice(int(body["id"]), letter.namespace, name, body["kind"], body["score"], None, letter.body)
        _, reason = await self._post(letter.namespace, entry, notice)
        if reason:
            raise DeliveryError(f"the delivery failed again: {reason}", hint="check the receiver")


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


def _is_public(text: str) -> bool:
    return is_public(ipaddress.ip_address(text.partition("%")[0]))
