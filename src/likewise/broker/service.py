"""The broker: log, engines, hub and tokens put together, with what requests ask of them."""

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
from likewise.broker.engines.spaces import EngineMaker
from likewise.broker.errors import BusyError, ConflictError, NotFoundError, QuotaError, StorageError, TooLargeError
from likewise.broker.intake import gather_lines
from likewise.broker.operate.tracing import span
from likewise.broker.settings import BrokerSettings
from likewise.broker.store import schema
from likewise.broker.store.database import Database
from likewise.broker.store.history import History, HistoryQuery, matching
from likewise.broker.store.log import Idempotency, Log, Stored, letter_row
from likewise.broker.store.records import (
    BookChange,
    BookEntry,
    HookTarget,
    Letter,
    LogRecord,
    Notice,
    Stamps,
    first_cursor,
    now,
)
from likewise.broker.store.upkeep import Upkeep
from likewise.errors import BuildError, LikewiseError
from likewise.events import Event, Instant
from likewise.language import format_subscription, parse

T = TypeVar("T")
logs = structlog.get_logger("likewise.broker")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a publication."""

    accepted: int
    first: int | None
    last: int | None


class Broker:
    """One running broker; its methods are called in the event loop."""

    def __init__(self, settings: BrokerSettings, *, federation: Federation | None = None) -> None:
        self.settings = settings
        self.database = Database(settings.url)
        self.keyring = Keyring(self.database)
        self.history = History(self.database)
        self.rate = RateLimit(settings.quotas.events_per_second)
        self.maker = EngineMaker(settings)
        self.log = Log(self.database, committed=self._committed, settled=self._settled, call=self._call)
        self.host = EngineHost(
            make=self.maker.make,
            restore=self.maker.restore,
            settle=self.log.settle,
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
        self.stamps = Stamps()
        self.ready = False
        self.replayed = 0
        self.counts: Counter[str] = Counter()
        self.webhook_states: dict[tuple[str, str], str] = {}
        self.trouble: LikewiseError | None = None
        """Why it could not start."""
        self._key = b""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: set[asyncio.Event] = set()
        self._requests: dict[tuple[str, str], asyncio.Future[bytes]] = {}

    # start and end

    async def start(self) -> None:
        """Open the database, come to the state of its end, and begin."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._start()
        except BaseException as error:  # whatever it was, nothing stays open
            self.trouble = error if isinstance(error, LikewiseError) else None
            await self.stop()
            raise

    async def _start(self) -> None:
        await asyncio.to_thread(self._open)
        applied = int(self.database.value("applied") or 0)
        self.hub = Hub(first_cursor(applied + 1) - 1)
        self.log.start()
        self.stamps.continue_after(self.log.received)
        self.replayed = await asyncio.to_thread(self._resume, applied)
        self.host.start()
        self.maker.warm()
        bridges = [bridge for bridge in (self.mqtt, self.federation) if bridge is not None]
        works = [self.upkeep.run, self.webhooks.run, *(bridge.run for bridge in bridges)]
        self._tasks = [asyncio.create_task(self._always(work)) for work in works]
        self.ready = True
        logs.info("started", blocks_replayed=self.replayed, position=self.log.position, spaces=self.maker.names)

    async def stop(self) -> None:
        """End streams, take what is waiting, keep a snapshot, close."""
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

    async def _always(self, work: Callable[[], Awaitable[None]]) -> None:
        """What runs beside the requests; if it fails in a way nobody thought of, it is logged and begun again."""
        while not self.hub.closing.is_set():
            try:
                await work()
                return
            except Exception as error:  # a bug: the service goes on
                self.counts["task_failures"] += 1
                logs.error("task failed, begins again", task=work.__qualname__, exc_info=error)
                await asyncio.sleep(1)

    def close_streams(self) -> None:
        """End all streams; may be called from any thread."""
        self._call(self.hub.close)

    def _open(self) -> None:
        self.settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.database.open()
        self._key = signing_key(self.settings.folder)
        self.keyring.load()
        if not self.settings.open and not len(self.keyring):
            self._first_token()
        self.maker.open()

    def _first_token(self) -> None:
        with self.database.begin() as connection:
            _, text = self.keyring.create(connection, name="first administrator", namespace=ANY, roles=["admin"])
            descriptor = os.open(self.settings.token_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text + "\n")

    def _resume(self, applied: int) -> int:
        for snapshot in (*self.history.snapshot(), None):
            try:
                after = 0 if snapshot is None else snapshot[0]
                return self.host.resume(snapshot, self.log.blocks(after=after), applied=applied)
            except LikewiseError as error:
                if snapshot is None:
                    raise
                logs.warning("snapshot unusable, trying an older one", block=snapshot[0], reason=error.message)
                self.host.reset()
        raise AssertionError("the last try has no snapshot")

    # from other threads

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """Run something in the event loop; when that is closed already, nobody waits for it."""
        assert self._loop is not None  # threads start after the loop
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(functools.partial(function, *arguments))

    def _committed(self, block: Any) -> None:
        self.host.committed(block)
        if self._arrived:
            self._call(self._announce)

    def _settled(self, block: int) -> None:
        self._call(self.hub.settle, first_cursor(block + 1) - 1)

    def _deliver(self, notices: list[Notice]) -> None:
        if notices:
            self._call(self.hub.add, notices)

    def _announce(self) -> None:
        for event in self._arrived:
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
        """Change other tables."""
        return await asyncio.wrap_future(self.log.write(action))

    async def read(self, query: Callable[..., T], *arguments: Any) -> T:
        """Run a query beside the loop."""
        try:
            return await asyncio.to_thread(query, *arguments)
        except SQLAlchemyError as error:
            raise StorageError("the database cannot be read at the moment", hint="try again") from error

    # publishing

    async def publish(
        self, access: Access, events: Sequence[Event], *, idempotency: Idempotency | None = None
    ) -> Receipt:
        """Store events; when this returns they are on disk."""
        if not events:
            return Receipt(0, None, None)
        self.rate.take(access.actor, len(events))
        await self._room()
        received = self.stamps.take(len(events))
        records = [
            LogRecord.of_event(event, namespace=access.namespace, publisher=access.actor, received=moment)
            for moment, event in enumerate(events, received)
        ]
        with span("publish", events=len(records), namespace=access.namespace):
            stored = await self.log.append(records, idempotency)
        return Receipt(len(records), stored.first, stored.last)

    async def once(
        self,
        access: Access,
        key: str,
        body: bytes,
        work: Callable[[Idempotency], Any],
        answer: Callable[[Stored], bytes],
    ) -> tuple[bytes, bool]:
        """Do a request with a key once: the same key and body get the first answer; gives it and whether it is old."""
        if not 0 < len(key) <= 255:
            raise BuildError("an idempotency key has 1 to 255 characters", hint="use a UUID")
        digest, place = hashlib.sha256(body).digest(), (access.namespace, key)
        if place in self._requests:
            await asyncio.wait([self._requests[place]])
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._requests[place] = waiting
        try:
            before = await self.read(self.history.answered, *place)
            if before is not None:
                if before[0] != digest:
                    raise ConflictError(f"the key {key[:60]!r} was used for another body", hint="use a new key")
                return before[1], True
            kept: list[bytes] = []

            def keep(stored: Stored) -> bytes:
                kept[:] = [answer(stored)]
                return kept[0]

            await work(Idempotency(*place, digest, keep))
            return kept[0], False
        finally:
            if self._requests.get(place) is waiting:
                del self._requests[place]
            waiting.set_result(b"")

    async def _room(self) -> None:
        """Wait while engines are far behind the log."""
        most = self.settings.quotas.backlog_events
        for _ in range(500):
            if self.host.backlog < most:
                return
            await asyncio.sleep(0.02)
        raise BusyError("engines are far behind the log", hint="try again in a moment")

    async def advance(self, access: Access, instant: Instant) -> None:
        """Say that event time has come to an instant."""
        record = LogRecord.of_tick(instant, namespace=access.namespace, publisher=access.actor, received=now())
        await self.log.append([record])

    # subscriptions

    async def create(
        self, access: Access, text: str, *, tags: Iterable[str] = (), webhook: str | None = None, paused: bool = False
    ) -> tuple[BookEntry, ...]:
        """Add the subscriptions of a text: all of them or, on an error, none."""
        self.check_size(text)
        found = parse(text)
        if not found:
            raise BuildError("there is no subscription here", hint="write one, such as parking: {type = parking}")
        have = await self.read(self.history.count_entries, access.namespace)
        if have + len(found) > self.settings.quotas.subscriptions:
            raise QuotaError(f"a namespace has at most {self.settings.quotas.subscriptions} subscriptions")
        moment = now()
        entries = tuple(
            BookEntry(
                one.name,
                text if len(found) == 1 else format_subscription(one),
                access.actor,
                moment,
                moment,
                tuple(tags),
                paused,
                self.webhook_of(webhook),
            )
            for one in found
        )
        return await self._change(access, BookChange("create", entries))

    async def replace(self, access: Access, entry: BookEntry) -> BookEntry:
        """Put a subscription in place of the one of its name, or add it."""
        self.check_size(entry.text)
        [stored] = await self._change(access, BookChange("replace", (entry,)))
        return stored

    async def delete(self, access: Access, name: str) -> None:
        """Remove a subscription."""
        await self._change(access, BookChange("delete", names=(name,)))

    async def _change(self, access: Access, change: BookChange) -> tuple[BookEntry, ...]:
        record = LogRecord.of_change(change, namespace=access.namespace, publisher=access.actor, received=now())
        outcome: Future[Outcome] = self.host.expect(record)
        try:
            await self.log.append([record])
        except LikewiseError:
            self.host.forget(record)
            raise
        found = await asyncio.wrap_future(outcome)
        if found.error is not None:
            raise found.error
        return found.entries

    def check_size(self, text: str) -> None:
        """Refuse a subscription that is too long."""
        if len(text.encode("utf-8", "surrogatepass")) > self.settings.quotas.subscription_bytes:
            raise TooLargeError("the subscription is too long", hint=f"{self.settings.quotas.subscription_bytes} bytes")

    # webhooks of subscriptions

    def check_webhook(self, url: str | None) -> None:
        """Refuse a target that could never be reached or must not be."""
        if url:
            check_target(url, private=self.settings.private_webhooks)

    def webhook_of(self, url: str | None, old: BookEntry | None = None) -> HookTarget | None:
        """The webhook of a URL; the same URL keeps its secret."""
        if not url:
            return None
        if old is not None and old.webhook is not None and old.webhook.url == url:
            return old.webhook
        return HookTarget(url, secrets.token_hex(8))

    def signing_secret(self, namespace: str, entry: BookEntry) -> str | None:
        """What signs the webhooks of a subscription."""
        if entry.webhook is None:
            return None
        return signing_secret(self._key, namespace, entry.name, entry.webhook.salt)

    def webhook_state(self, namespace: str, name: str) -> str:
        """How the webhook of a subscription fares."""
        return self.webhook_states.get((namespace, name), "active")

    # state

    def checks(self) -> dict[str, str]:
        """Whether each part works; anything but "ok" is a reason."""
        behind = self.host.backlog >= self.settings.quotas.backlog_events
        return {
            "start": "ok" if self.ready else "not started, or stopping",
            "storage": self.log.failing or "ok",
            "engine": "far behind the log" if behind else "ok",
            **({} if self.mqtt is None else {"mqtt": self.mqtt.state}),
            **({} if self.federation is None else {"federation": self.federation.state}),
        }

    def instances(self) -> int:
        """What patterns hold, in all namespaces."""
        with self.host.lock:
            return sum(
                sum(state.held for state in tenant.engine.detector.state())
                for tenant in self.host.tenants.values()
                if tenant.engine.has_patterns
            )

    # reading along

    async def follow(
        self, access: Access, *, names: Iterable[str] | None, after: int | None, score: float = 0.0, batch: int = 500
    ) -> AsyncGenerator[list[Notice], None]:
        """Notifications beyond a cursor, then new ones as they come; an empty list every fifteen seconds of silence."""
        if self.hub.streams >= self.settings.quotas.streams:
            raise QuotaError(f"there are {self.hub.streams} streams already", hint="close some")
        chosen = None if names is None else frozenset(names)
        signal = self.hub.join(access.namespace, chosen)
        cursor = self.hub.latest(access.namespace) if after is None else after
        try:
            while not self.hub.closing.is_set():
                signal.clear()
                found, cursor, more = await self._next(access.namespace, chosen, score, cursor, batch)
                if found:
                    self.hub.delivered += len(found)
                    yield found
                if not more and not await signal.wait(15):
                    yield []
        finally:
            self.hub.leave(signal)

    async def _next(
        self, namespace: str, names: frozenset[str] | None, score: float, cursor: int, batch: int
    ) -> tuple[list[Notice], int, bool]:
        """What lies beyond a cursor, the new cursor, and whether there may be more."""
        recent = self.hub.after(namespace, cursor, limit=batch)
        if recent is not None:
            moved = recent[-1].cursor if recent else cursor
            return matching(recent, names, score), moved, len(recent) == batch
        floor = self.hub.floor(namespace)
        wanted = HistoryQuery(after=cursor, limit=batch, subscriptions=tuple(names or ()), score=score)
        found = await self.read(self.history.notices, namespace, wanted)
        if len(found) == batch:
            return found, found[-1].cursor, True
        # All that is in the database was read: the rest is in memory.
        return found, max(cursor, floor, found[-1].cursor if found else 0), True

    async def tail(
        self, access: Access, *, after: int | None, batch: int = 500
    ) -> AsyncGenerator[list[LogRecord], None]:
        """Events beyond a position, then new ones as they come; an empty list every fifteen seconds of silence."""
        arrived, position = asyncio.Event(), self.log.position if after is None else after
        self._arrived.add(arrived)
        try:
            while not self.hub.closing.is_set():
                arrived.clear()
                found = await self.read(
                    self.history.events, access.namespace, HistoryQuery(after=position, limit=batch)
                )
                if found:
                    position = found[-1].position
                    yield found
                if len(found) < batch:
                    waiting = [asyncio.ensure_future(one.wait()) for one in (arrived, self.hub.closing)]
                    done, pending = await asyncio.wait(waiting, timeout=15, return_when=asyncio.FIRST_COMPLETED)
                    for task in pending:
                        task.cancel()
                    if not done:
                        yield []
        finally:
            self._arrived.discard(arrived)

    async def pull(
        self, access: Access, consumer: str, *, names: Sequence[str], limit: int, wait: float
    ) -> tuple[list[Notice], int]:
        """What a consumer has not acknowledged yet, oldest first; waits for something to come."""
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
        """A consumer has dealt with all up to a cursor; it never goes back."""
        return await self.write(
            functools.partial(move_cursor, namespace=access.namespace, name=consumer, cursor=cursor)
        )

    async def bury(self, letter: Letter) -> None:
        """Keep something that could not be used or delivered."""
        row = letter_row(letter)
        await self.write(lambda connection: connection.execute(schema.dead_letters.insert(), row))

    async def retry_letter(self, access: Access, id: int) -> Receipt:
        """Publish a dead letter again, or send it to its webhook again, and be done with it."""
        letter = await self.read(self.history.letter, access.namespace, id)
        if letter.source.startswith("webhook "):
            await self.webhooks.send_again(letter)
            receipt = Receipt(1, None, None)
        else:
            gathered = gather_lines((letter.body,))
            if not gathered.events:
                raise NotFoundError("the letter is no event", hint=gathered.rejected[0].reason)
            receipt = await self.publish(access, gathered.events)
        await self.forget_letter(access, id)
        await self.audit(access, "retry dead letter", str(id))
        return receipt

    async def forget_letter(self, access: Access, id: int) -> None:
        """A dead letter is dealt with."""
        table = schema.dead_letters
        here = (table.c.namespace == access.namespace) & (table.c.id == id)
        await self.write(lambda connection: connection.execute(table.delete().where(here)))

    async def audit(self, access: Access, action: str, target: str) -> None:
        """Write down an administrative act."""
        row = {"time": now(), "namespace": access.namespace, "actor": access.actor, "action": action, "target": target}
        logs.info("audit", **row)
        await self.write(lambda connection: connection.execute(schema.audit.insert(), row))


def move_cursor(connection: Connection, *, namespace: str, name: str, cursor: int) -> int:
    """Move a consumer's cursor on; gives where it stands."""
    table = schema.consumers
    here = (table.c.namespace == namespace) & (table.c.name == name)
    found: int | None = connection.execute(table.select().with_only_columns(table.c.cursor).where(here)).scalar()
    if found is None:
        row = {"namespace": namespace, "name": name, "cursor": cursor, "updated": now()}
        connection.execute(table.insert(), row)
        return cursor
    if cursor > found:
        connection.execute(table.update().where(here).values(cursor=cursor, updated=now()))
    return max(found, cursor)


__all__ = ["Broker", "Receipt", "move_cursor"]
