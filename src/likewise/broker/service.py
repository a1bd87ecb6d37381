"""The broker: connects log, engines, delivery and tokens, and implements the operations of the HTTP interface."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from likewise.broker.auth import ANY, Access, Keyring, RateLimit
from likewise.broker.delivery.federation import Federation, FederationBridge
from likewise.broker.delivery.hub import Hub
from likewise.broker.delivery.mqtt import MqttBridge
from likewise.broker.delivery.signing import check_target, signing_key, signing_secret
from likewise.broker.delivery.webhooks import Webhooks
from likewise.broker.engines.host import EngineHost, Outcome
from likewise.broker.engines.insight import Insight
from likewise.broker.engines.spaces import EngineFactory
from likewise.broker.errors import BusyError, ConflictError, NotFoundError, QuotaError, StorageError, TooLargeError
from likewise.broker.intake import parse_lines
from likewise.broker.operate.tracing import span
from likewise.broker.settings import BrokerSettings
from likewise.broker.store import schema
from likewise.broker.store.database import Database
from likewise.broker.store.history import History, HistoryQuery, matching
from likewise.broker.store.log import Idempotency, Log, LogRange, dead_letter_row
from likewise.broker.store.records import (
    ArrivalClock,
    DeadLetter,
    LogRecord,
    Notice,
    SubscriptionChange,
    SubscriptionEntry,
    WebhookTarget,
    first_cursor,
    now,
)
from likewise.broker.store.upkeep import Upkeep
from likewise.errors import BuildError, LikewiseError
from likewise.events import Event, Instant
from likewise.language import format_subscription, parse

T = TypeVar("T")
logs = structlog.get_logger("likewise.broker")
_TAIL = 500
"""Events in one batch of a stream."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """How many events were accepted, and the log positions of the first and the last."""

    accepted: int
    first: int | None
    last: int | None


class Broker:
    """One broker. Unless noted otherwise, call its methods in the event loop."""

    def __init__(self, settings: BrokerSettings, *, federation: Federation | None = None) -> None:
        self.settings = settings
        self.database = Database(settings.url)
        self.keyring = Keyring(self.database)
        self.history = History(self.database)
        self.rate = RateLimit(settings.quotas.events_per_second)
        self.engine_factory = EngineFactory(settings)
        self.log = Log(self.database, committed=self._committed, effects_stored=self._effects_stored, call=self._call)
        self.host = EngineHost(
            make=self.engine_factory.make,
            restore=self.engine_factory.restore,
            store_effects=self.log.store_effects,
            deliver=self._deliver,
            snapshot=self._store_snapshot,
            snapshot_events=settings.snapshot_events,
        )
        self.hub = Hub(0)
        self.insight = Insight(self.host, self.history)
        self.upkeep = Upkeep(self)
        self.webhooks = Webhooks(self)
        self.mqtt = None if settings.mqtt is None else MqttBridge(self, settings.mqtt)
        self.federation = None if federation is None else FederationBridge(self, federation)
        self._tasks: list[asyncio.Task[None]] = []
        self.arrival_clock = ArrivalClock()
        self.ready = False
        self.replayed = 0
        self.counts: Counter[str] = Counter()
        self.webhook_states: dict[tuple[str, str], str] = {}
        self.start_error: LikewiseError | None = None
        """The error that prevented the start."""
        self._key = b""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tails: set[asyncio.Event] = set()
        """Set when new records are stored, one for each open stream of events."""
        self._requests: dict[tuple[str, str], asyncio.Future[bytes]] = {}

    # start and stop

    async def start(self) -> None:
        """Open the database, restore the engines and start all background work."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._start()
        except BaseException as error:  # close everything that was opened, whatever the error
            self.start_error = error if isinstance(error, LikewiseError) else None
            await self.stop()
            raise

    async def _start(self) -> None:
        await asyncio.to_thread(self._open)
        applied = int(self.database.value("applied") or 0)
        self.hub = Hub(first_cursor(applied + 1) - 1)
        self.log.start()
        self.arrival_clock.continue_after(self.log.received)
        self.replayed = await asyncio.to_thread(self._resume, applied)
        self.host.start()
        self.engine_factory.warm()
        bridges = [bridge for bridge in (self.mqtt, self.federation) if bridge is not None]
        works = [self.upkeep.run, self.webhooks.run, *(bridge.run for bridge in bridges)]
        self._tasks = [asyncio.create_task(self._keep_running(work)) for work in works]
        self.ready = True
        logs.info(
            "started", blocks_replayed=self.replayed, position=self.log.position, spaces=self.engine_factory.names
        )

    async def stop(self) -> None:
        """Close streams, process the remaining records, take a snapshot and close the database."""
        self.ready = False
        self.hub.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.log.is_running:
            if self.host.is_running:
                await asyncio.to_thread(self.host.stop)
            await asyncio.to_thread(self.log.stop)
        await asyncio.to_thread(self.database.close)
        logs.info("stopped", position=self.log.position)

    async def _keep_running(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run background work; after an unexpected error, log it and start again."""
        while not self.hub.closing.is_set():
            try:
                await work()
                return
            except Exception as error:  # a bug must not stop the service
                self.counts["task_failures"] += 1
                logs.error("task failed, restarting it", task=work.__qualname__, exc_info=error)
                await asyncio.sleep(1)

    def close_streams(self) -> None:
        """Close all streams; may be called from any thread."""
        self._call(self.hub.close)

    def _open(self) -> None:
        self.settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.database.open()
        self._key = signing_key(self.settings.folder)
        self.keyring.load()
        if not self.settings.open and not len(self.keyring):
            self._first_token()
        self.engine_factory.open()

    def _first_token(self) -> None:
        with self.database.begin() as connection:
            _, text = self.keyring.create(connection, name="first administrator", namespace=ANY, roles=["admin"])
            descriptor = os.open(self.settings.token_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text + "\n")

    def _resume(self, applied: int) -> int:
        for snapshot in (*self.history.snapshots(), None):
            try:
                after = 0 if snapshot is None else snapshot[0]
                return self.host.resume(snapshot, self.log.blocks(after=after), applied=applied)
            except LikewiseError as error:
                if snapshot is None:
                    raise
                logs.warning("snapshot unusable, trying an older one", block=snapshot[0], reason=error.message)
                self.host.reset()
        raise AssertionError("the last attempt uses no snapshot")

    # called from other threads

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """Run a function in the event loop; does nothing once the loop is closed."""
        assert self._loop is not None  # threads start after the loop
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(functools.partial(function, *arguments))

    def _committed(self, block: Any) -> None:
        self.host.committed(block)
        if self._tails:
            self._call(self._wake_tails)

    def _effects_stored(self, block: int) -> None:
        self._call(self.hub.mark_stored, first_cursor(block + 1) - 1)

    def _deliver(self, notices: list[Notice]) -> None:
        if notices:
            self._call(self.hub.add, notices)

    def _wake_tails(self) -> None:
        for event in self._tails:
            event.set()

    def _store_snapshot(self, block: int, body: bytes) -> None:
        def store(connection: Connection) -> None:
            applied = connection.execute(schema.meta.select().where(schema.meta.c.key == "applied")).one_or_none()
            if applied is None or int(applied.value) < block:
                return  # its notifications are not stored yet, so the blocks before it are still needed
            table = schema.snapshots
            connection.execute(table.delete().where(table.c.block == block))
            connection.execute(table.insert(), {"block": block, "made": now(), "body": body})
            old = connection.execute(table.select().with_only_columns(table.c.block).order_by(table.c.block.desc()))
            for row in old.all()[2:]:
                connection.execute(table.delete().where(table.c.block == row.block))

        self.log.write(store)

    async def write(self, action: Callable[[Connection], T]) -> T:
        """Run a transaction in the writing thread."""
        return await asyncio.wrap_future(self.log.write(action))

    async def read(self, query: Callable[..., T], *arguments: Any) -> T:
        """Run a query in a worker thread."""
        try:
            return await asyncio.to_thread(query, *arguments)
        except SQLAlchemyError as error:
            raise StorageError("the database cannot be read at the moment", hint="retry in a moment") from error

    # publishing

    async def publish(
        self, access: Access, events: Sequence[Event], *, idempotency: Idempotency | None = None
    ) -> Receipt:
        """Store events; they are on disk when this returns."""
        if not events:
            return Receipt(0, None, None)
        self.rate.take(access.actor, len(events))
        await self._wait_for_engines()
        received = self.arrival_clock.reserve(len(events))
        records = [
            LogRecord.of_event(event, namespace=access.namespace, publisher=access.actor, received=moment)
            for moment, event in enumerate(events, received)
        ]
        with span("publish", events=len(records), namespace=access.namespace):
            stored = await self.log.append(records, idempotency)
        return Receipt(len(records), stored.first, stored.last)

    async def idempotent(
        self,
        access: Access,
        key: str,
        body: bytes,
        work: Callable[[Idempotency], Any],
        respond: Callable[[LogRange], bytes],
    ) -> tuple[bytes, bool]:
        """Run a request once per key; returns the response, and whether it is that of an earlier request."""
        if not 0 < len(key) <= 255:
            raise BuildError("an idempotency key has 1 to 255 characters", hint="use a UUID")
        digest, request = hashlib.sha256(body).digest(), (access.namespace, key)
        if request in self._requests:
            await asyncio.wait([self._requests[request]])
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._requests[request] = waiting
        try:
            earlier = await self.read(self.history.earlier_response, *request)
            if earlier is not None:
                if earlier[0] != digest:
                    raise ConflictError(f"the key {key[:60]!r} was used with another body", hint="use a new key")
                return earlier[1], True
            response: list[bytes] = []

            def keep(stored: LogRange) -> bytes:
                response[:] = [respond(stored)]
                return response[0]

            await work(Idempotency(*request, digest, keep))
            return response[0], False
        finally:
            if self._requests.get(request) is waiting:
                del self._requests[request]
            waiting.set_result(b"")

    async def _wait_for_engines(self) -> None:
        """Wait while too many stored events are not matched yet."""
        most = self.settings.quotas.backlog_events
        for _ in range(500):
            if self.host.backlog < most:
                return
            await asyncio.sleep(0.02)
        raise BusyError("too many stored events are not matched yet", hint="retry in a moment")

    async def advance(self, access: Access, instant: Instant) -> None:
        """Advance event time to an instant."""
        record = LogRecord.of_tick(instant, namespace=access.namespace, publisher=access.actor, received=now())
        await self.log.append([record])

    # subscriptions

    async def create(
        self, access: Access, text: str, *, tags: Iterable[str] = (), webhook: str | None = None, paused: bool = False
    ) -> tuple[SubscriptionEntry, ...]:
        """Create the subscriptions of a text; on an error, none is created."""
        self.check_size(text)
        subscriptions = parse(text)
        if not subscriptions:
            raise BuildError("the text has no subscription", hint="write one, such as parking: {type = parking}")
        existing = await self.read(self.history.count_entries, access.namespace)
        if existing + len(subscriptions) > self.settings.quotas.subscriptions:
            raise QuotaError(f"a namespace has at most {self.settings.quotas.subscriptions} subscriptions")
        moment = now()
        entries = tuple(
            SubscriptionEntry(
                subscription.name,
                text if len(subscriptions) == 1 else format_subscription(subscription),
                access.actor,
                moment,
                moment,
                tuple(tags),
                paused,
                self.webhook_of(webhook),
            )
            for subscription in subscriptions
        )
        return await self._change(access, SubscriptionChange("create", entries))

    async def replace(self, access: Access, entry: SubscriptionEntry) -> SubscriptionEntry:
        """Replace the subscription of the same name, or create it."""
        self.check_size(entry.text)
        [stored] = await self._change(access, SubscriptionChange("replace", (entry,)))
        return stored

    async def delete(self, access: Access, name: str) -> None:
        """Remove a subscription."""
        await self._change(access, SubscriptionChange("delete", names=(name,)))

    async def _change(self, access: Access, change: SubscriptionChange) -> tuple[SubscriptionEntry, ...]:
        record = LogRecord.of_change(change, namespace=access.namespace, publisher=access.actor, received=now())
        waiting: Future[Outcome] = self.host.expect(record)
        try:
            await self.log.append([record])
        except LikewiseError:
            self.host.forget(record)
            raise
        outcome = await asyncio.wrap_future(waiting)
        if outcome.error is not None:
            raise outcome.error
        return outcome.entries

    def check_size(self, text: str) -> None:
        """Raise `TooLargeError` for a subscription that is too long."""
        if len(text.encode("utf-8", "surrogatepass")) > self.settings.quotas.subscription_bytes:
            limit = self.settings.quotas.subscription_bytes
            raise TooLargeError("the subscription is too long", hint=f"it may have up to {limit} bytes")

    # webhooks of subscriptions

    def check_webhook(self, url: str | None) -> None:
        """Raise `BuildError` for a webhook URL that is invalid or not allowed."""
        if url:
            check_target(url, private=self.settings.private_webhooks)

    def webhook_of(self, url: str | None, old: SubscriptionEntry | None = None) -> WebhookTarget | None:
        """The webhook for a URL; an unchanged URL keeps its secret."""
        if not url:
            return None
        if old is not None and old.webhook is not None and old.webhook.url == url:
            return old.webhook
        return WebhookTarget(url, secrets.token_hex(8))

    def signing_secret(self, namespace: str, entry: SubscriptionEntry) -> str | None:
        """The secret that signs the webhooks of a subscription."""
        if entry.webhook is None:
            return None
        return signing_secret(self._key, namespace, entry.name, entry.webhook.salt)

    def webhook_state(self, namespace: str, name: str) -> str:
        """The delivery state of a subscription's webhook."""
        return self.webhook_states.get((namespace, name), "active")

    # state

    def checks(self) -> dict[str, str]:
        """The state of each part: "ok", or the reason why it does not work."""
        behind = self.host.backlog >= self.settings.quotas.backlog_events
        return {
            "start": "ok" if self.ready else "not started, or stopping",
            "storage": self.log.failing or "ok",
            "engine": "too many events wait to be matched" if behind else "ok",
            **({} if self.mqtt is None else {"mqtt": self.mqtt.state}),
            **({} if self.federation is None else {"federation": self.federation.state}),
        }

    def instances(self) -> int:
        """The number of partial instances that the patterns of all namespaces hold."""
        with self.host.lock:
            return sum(
                sum(state.held for state in tenant.engine.detector.state())
                for tenant in self.host.tenants.values()
                if tenant.engine.has_patterns
            )

    # reading streams

    async def follow(
        self, access: Access, *, names: Iterable[str] | None, after: int | None, score: float = 0.0, batch: int = 500
    ) -> AsyncGenerator[list[Notice], None]:
        """Yield notifications after a cursor, then new ones; an empty list after every fifteen silent seconds."""
        if self.hub.streams >= self.settings.quotas.streams:
            raise QuotaError(f"{self.hub.streams} streams are open, which is the limit", hint="close some of them")
        subscriptions = None if names is None else frozenset(names)
        signal = self.hub.join(access.namespace, subscriptions)
        cursor = self.hub.latest(access.namespace) if after is None else after
        try:
            while not self.hub.closing.is_set():
                signal.clear()
                notices, cursor, more = await self._next(access.namespace, subscriptions, score, cursor, batch)
                if notices:
                    self.hub.delivered += len(notices)
                    yield notices
                if not more and not await signal.wait(15):
                    yield []
        finally:
            self.hub.leave(signal)

    async def _next(
        self, namespace: str, names: frozenset[str] | None, score: float, cursor: int, batch: int
    ) -> tuple[list[Notice], int, bool]:
        """Notifications after a cursor, the new cursor, and whether there may be more."""
        recent = self.hub.after(namespace, cursor, limit=batch)
        if recent is not None:
            moved = recent[-1].cursor if recent else cursor
            return matching(recent, names, score), moved, len(recent) == batch
        floor = self.hub.floor(namespace)
        query = HistoryQuery(after=cursor, limit=batch, subscriptions=tuple(names or ()), score=score)
        notices = await self.read(self.history.notices, namespace, query)
        if len(notices) == batch:
            return notices, notices[-1].cursor, True
        # The database has no more of them: the rest is in memory.
        return notices, max(cursor, floor, notices[-1].cursor if notices else 0), True

    async def tail(self, access: Access, *, after: int | None) -> AsyncGenerator[list[LogRecord], None]:
        """Yield events after a position, then new ones; an empty list after every fifteen silent seconds."""
        arrived, position = asyncio.Event(), self.log.position if after is None else after
        self._tails.add(arrived)
        try:
            while not self.hub.closing.is_set():
                arrived.clear()
                query = HistoryQuery(after=position, limit=_TAIL)
                events = await self.read(self.history.events, access.namespace, query)
                if events:
                    position = events[-1].position
                    yield events
                if len(events) < _TAIL:
                    waiting = [asyncio.ensure_future(event.wait()) for event in (arrived, self.hub.closing)]
                    done, pending = await asyncio.wait(waiting, timeout=15, return_when=asyncio.FIRST_COMPLETED)
                    for task in pending:
                        task.cancel()
                    if not done:
                        yield []
        finally:
            self._tails.discard(arrived)

    async def pull(
        self, access: Access, consumer: str, *, names: Sequence[str], limit: int, wait: float
    ) -> tuple[list[Notice], int]:
        """Unacknowledged notifications of a consumer, oldest first; waits up to `wait` seconds for the first."""
        cursor = await self.read(self.history.consumer, access.namespace, consumer)
        if cursor is None:
            cursor = self.hub.latest(access.namespace)
            await self.acknowledge(access, consumer, cursor)
        stream = self.follow(access, names=names or None, after=cursor, batch=limit)
        try:
            async with asyncio.timeout(wait if wait > 0 else 0.05):
                async for notices in stream:
                    if notices:
                        return notices, cursor
        except TimeoutError:
            pass
        finally:
            await stream.aclose()
        return [], cursor

    async def acknowledge(self, access: Access, consumer: str, cursor: int) -> int:
        """Acknowledge all notifications up to a cursor; returns the consumer's cursor, which never moves back."""
        return await self.write(
            functools.partial(move_cursor, namespace=access.namespace, name=consumer, cursor=cursor)
        )

    async def store_dead_letter(self, letter: DeadLetter) -> None:
        """Store an event or notification that could not be used or delivered."""
        row = dead_letter_row(letter)
        await self.write(lambda connection: connection.execute(schema.dead_letters.insert(), row))

    async def retry_dead_letter(self, access: Access, id: int) -> Receipt:
        """Publish a dead letter again, or send it to its webhook again, then delete it."""
        letter = await self.read(self.history.letter, access.namespace, id)
        if letter.source.startswith("webhook "):
            await self.webhooks.send_again(letter)
            receipt = Receipt(1, None, None)
        else:
            parsed = parse_lines((letter.body,))
            if not parsed.events:
                raise NotFoundError("the dead letter is not a valid event", hint=parsed.rejected[0].reason)
            receipt = await self.publish(access, parsed.events)
        await self.delete_dead_letter(access, id)
        await self.audit(access, "retry dead letter", str(id))
        return receipt

    async def delete_dead_letter(self, access: Access, id: int) -> None:
        """Delete a dead letter."""
        table = schema.dead_letters
        condition = (table.c.namespace == access.namespace) & (table.c.id == id)
        await self.write(lambda connection: connection.execute(table.delete().where(condition)))

    async def audit(self, access: Access, action: str, target: str) -> None:
        """Record an administrative action in the audit log."""
        row = {"time": now(), "namespace": access.namespace, "actor": access.actor, "action": action, "target": target}
        logs.info("audit", **row)
        await self.write(lambda connection: connection.execute(schema.audit.insert(), row))


def move_cursor(connection: Connection, *, namespace: str, name: str, cursor: int) -> int:
    """Advance a consumer's cursor; returns its new value."""
    table = schema.consumers
    condition = (table.c.namespace == namespace) & (table.c.name == name)
    current: int | None = connection.execute(table.select().with_only_columns(table.c.cursor).where(condition)).scalar()
    if current is None:
        row = {"namespace": namespace, "name": name, "cursor": cursor, "updated": now()}
        connection.execute(table.insert(), row)
        return cursor
    if cursor > current:
        connection.execute(table.update().where(condition).values(cursor=cursor, updated=now()))
    return max(current, cursor)


__all__ = ["Broker", "Receipt", "move_cursor"]
