"""The engine host: one thread that takes the log's blocks in order and runs each namespace's engine over them.

An engine's state is a function of the log. A snapshot shortens the way to it: after a restart the host restores the
last snapshot and takes the blocks since then again. Notifications get the same cursors in every run, so those that
were stored before are simply left out.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from likewise.broker.errors import ConflictError, NotFoundError
from likewise.broker.operate.tracing import span
from likewise.broker.store.log import Effects
from likewise.broker.store.records import (
    CHANGE,
    EVENT,
    Block,
    BookChange,
    BookEntry,
    Letter,
    LogRecord,
    Notice,
    first_cursor,
)
from likewise.composite import Refused
from likewise.engine import Engine, Notification
from likewise.errors import BuildError, InputError, LikewiseError
from likewise.events import Event, Instant, encode_line, to_datetime
from likewise.language import Subscription, parse_subscription

SNAPSHOT: Final = 1
MakeEngine = Callable[[Callable[[Refused], None]], Engine]
RestoreEngine = Callable[[bytes, Callable[[Refused], None]], Engine]


@dataclass(slots=True)
class Tenant:
    """A namespace at work: its engine and its subscriptions, also the paused ones."""

    engine: Engine
    book: dict[str, BookEntry] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    newest: Instant | None = None
    """The latest event time seen."""
    lag: Instant = 0
    """By how much the last event came later than its time."""
    events: int = 0
    found: dict[str, int] = field(default_factory=dict)
    """Notifications by subscription since the start."""


class Outcome(msgspec.Struct):
    """What became of a change."""

    entries: tuple[BookEntry, ...] = ()
    error: LikewiseError | None = None


class EngineHost:
    """Takes blocks, runs engines, gives effects."""

    def __init__(
        self,
        *,
        make: MakeEngine,
        restore: RestoreEngine,
        settle: Callable[[Effects], None],
        deliver: Callable[[list[Notice]], None],
        snapshot: Callable[[int, bytes], None],
        snapshot_events: int,
    ) -> None:
        self._make, self._restore = make, restore
        self._settle, self._deliver, self._snapshot = settle, deliver, snapshot
        self._every = snapshot_events
        self.tenants: dict[str, Tenant] = {}
        self.lock = threading.RLock()
        """Held while a block is taken; whoever looks at an engine from another thread takes it too."""
        self.block = 0
        self._stored = self._taken = 0
        self.failed: str | None = None
        self._since_snapshot = 0
        self._queue: queue.SimpleQueue[Block | bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="likewise-engine", daemon=True)
        self._waiting: dict[int, Future[Outcome]] = {}

    # the start

    def resume(self, snapshot: tuple[int, bytes] | None, blocks: Iterable[Block], *, applied: int) -> int:
        """Come to the state of the log's end; gives how many blocks were taken again."""
        if snapshot is not None:
            self.block = snapshot[0]
            self._load(snapshot[1])
        taken = 0
        for block in blocks:
            effects = self._take(block)
            self.block = block.number
            taken += 1
            if block.number > applied:
                self._deliver(effects.notices)
                self._settle(effects)
        return taken

    def reset(self) -> None:
        """Forget all state, to begin again with another snapshot."""
        self.tenants.clear()
        self.block = 0

    def start(self) -> None:
        """Begin to take blocks."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Take what is waiting, keep a snapshot, and end."""
        self._queue.put(False)
        self._thread.join(timeout=60)

    # from other threads

    @property
    def backlog(self) -> int:
        """Records stored and not taken yet; each thread counts for itself, so that no count is lost between them."""
        return self._stored - self._taken

    def committed(self, block: Block) -> None:
        """A block is on disk."""
        self._stored += len(block.records)
        self._queue.put(block)

    def request_snapshot(self) -> None:
        """Take a snapshot between two blocks, if anything has changed."""
        self._queue.put(True)

    def expect(self, record: LogRecord) -> Future[Outcome]:
        """What becomes of a change; ask before it is appended."""
        done: Future[Outcome] = Future()
        done.set_running_or_notify_cancel()
        self._waiting[id(record)] = done
        return done

    def forget(self, record: LogRecord) -> None:
        """The change was not stored."""
        self._waiting.pop(id(record), None)

    def tenant(self, namespace: str) -> Tenant:
        """A namespace, made on first use."""
        with self.lock:
            if namespace not in self.tenants:
                refused: list[Refused] = []
                self.tenants[namespace] = Tenant(self._make(refused.append), refused=refused)
            return self.tenants[namespace]

    def remake(self) -> None:
        """Build all engines anew with the state that they have, after what they stand on has changed."""
        with self.lock:
            for tenant in self.tenants.values():
                tenant.engine = self._restore(tenant.engine.snapshot(), tenant.refused.append)
        self.request_snapshot()

    # the thread

    def _run(self) -> None:
        while (block := self._queue.get()) is not False:
            if block is True:
                if self._since_snapshot:
                    self.keep()
                continue
            try:
                with span("match", block=block.number, records=len(block.records)):
                    effects = self._take(block)
            except Exception:
                # A block that breaks an engine must not end the service: it is kept aside with its reason.
                self.failed = traceback.format_exc(limit=-3)
                effects = self._broken(block, self.failed)
            self.block = block.number  # also of a block that failed
            self._taken += len(block.records)
            self._deliver(effects.notices)
            self._settle(effects)
            self._since_snapshot += len(block.records)
            if self._since_snapshot >= self._every:
                self.keep()
        self.keep()

    def _broken(self, block: Block, reason: str) -> Effects:
        last = reason.strip().splitlines()[-1]
        effects = Effects(block.number)
        for record in block.records:
            effects.letters.append(Letter(record.namespace, "engine", last, record.body, record.received))
            waiting = self._waiting.pop(id(record), None)
            if waiting is not None:
                waiting.set_result(Outcome(error=BuildError(f"the engine failed: {last}", hint="see the log")))
        return effects

    def keep(self) -> None:
        """Take a snapshot of all engines."""
        with self.lock:
            block, body = self.block, self._dump()
        self._since_snapshot = 0
        self._snapshot(block, body)

    def _take(self, block: Block) -> Effects:
        effects, runs = Effects(block.number), list[list[LogRecord]]()
        for record in block.records:
            if runs and record.kind == EVENT and runs[-1][0].kind == EVENT:
                runs[-1].append(record)
            else:
                runs.append([record])
        with self.lock:
            for run in runs:
                if run[0].kind == EVENT:
                    self._publish(run, effects)
                elif run[0].kind == CHANGE:
                    self._change(run[0], effects)
                else:
                    self._tick(run[0], effects)
        return effects

    def _publish(self, run: list[LogRecord], effects: Effects) -> None:
        grouped: dict[str, list[LogRecord]] = {}
        for record in run:
            grouped.setdefault(record.namespace, []).append(record)
        for namespace, records in grouped.items():
            tenant = self.tenant(namespace)
            events = [record.to_event() for record in records]
            bodies = {id(event): record.body for event, record in zip(events, records, strict=True)}
            self._note_times(tenant, records)
            found = _ordered(tenant.engine.publish_batch(events), events)
            self._collect(namespace, tenant, found, effects, bodies=bodies)

    def _tick(self, record: LogRecord, effects: Effects) -> None:
        tenant = self.tenant(record.namespace)
        assert record.time is not None  # a tick is nothing else
        self._collect(record.namespace, tenant, tenant.engine.advance(record.time), effects, bodies={})

    def _note_times(self, tenant: Tenant, records: list[LogRecord]) -> None:
        last = records[-1]
        newest = max(record.time or 0 for record in records)
        tenant.newest = newest if tenant.newest is None else max(tenant.newest, newest)
        # A time of 0 is a time, too: the first moment of 1970.
        tenant.lag = 0 if last.time is None else last.received - last.time
        tenant.events += len(records)

    def _collect(
        self, namespace: str, tenant: Tenant, found: list[Notification], effects: Effects, *, bodies: dict[int, bytes]
    ) -> None:
        cursor = first_cursor(effects.block) + len(effects.notices)
        for number, notification in enumerate(found, cursor):
            effects.notices.append(notice_of(number, namespace, notification, bodies))
            name = notification.subscription
            tenant.found[name] = tenant.found.get(name, 0) + 1
        for refused in tenant.refused:
            reason = f"patterns refused the event: {refused.reason}"
            body, time = encode_line(refused.event)[:-1], refused.event.start or 0
            effects.letters.append(Letter(namespace, "patterns", reason, body, time))
        tenant.refused.clear()

    # changes of subscriptions

    def _change(self, record: LogRecord, effects: Effects) -> None:
        waiting = self._waiting.pop(id(record), None)
        try:
            outcome = self._apply(record.namespace, record.to_change(), effects)
        except LikewiseError as error:
            outcome = Outcome(error=error)
        if waiting is not None:
            effects.after.append(lambda: waiting.set_result(outcome))

    def _apply(self, namespace: str, change: BookChange, effects: Effects) -> Outcome:
        tenant = self.tenant(namespace)
        if change.action == "delete":
            for name in change.names:
                _known(tenant, name)
            for name in change.names:
                entry = tenant.book.pop(name)
                if not entry.paused:
                    tenant.engine.unsubscribe(name)
                effects.deleted.append((namespace, name))
            return Outcome()
        if change.action == "create":
            for entry in change.entries:
                if entry.name in tenant.book:
                    raise ConflictError(
                        f"there is already a subscription {entry.name!r}", hint="replace it with PUT, or rename this"
                    )
            tenant.engine.subscribe([subscription_of(entry) for entry in change.entries if not entry.paused])
        else:
            for entry in change.entries:
                _replace(tenant, entry)
        entries = tuple(_dated(entry, tenant.book.get(entry.name), effects.block) for entry in change.entries)
        for entry in entries:
            tenant.book[entry.name] = entry
            effects.put.append((namespace, entry))
        return Outcome(entries)

    # snapshots

    def _dump(self) -> bytes:
        return msgspec.msgpack.encode(
            {
                "version": SNAPSHOT,
                "tenants": {
                    name: {
                        "engine": tenant.engine.snapshot(),
                        "book": [msgspec.json.encode(entry) for entry in tenant.book.values()],
                        "newest": tenant.newest,
                        "lag": tenant.lag,
                    }
                    for name, tenant in self.tenants.items()
                },
            }
        )

    def _load(self, body: bytes) -> None:
        try:
            state = msgspec.msgpack.decode(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(f"this is not a snapshot: {error}", hint="it may be cut short") from None
        if not isinstance(state, dict) or state.get("version") != SNAPSHOT:
            raise InputError("this is not a snapshot of this version", hint="the log is replayed instead")
        for name, kept in state["tenants"].items():
            refused: list[Refused] = []
            engine = self._restore(kept["engine"], refused.append)
            book = [msgspec.json.decode(entry, type=BookEntry) for entry in kept["book"]]
            self.tenants[name] = Tenant(
                engine, {entry.name: entry for entry in book}, refused, kept["newest"], kept["lag"]
            )


def subscription_of(entry: BookEntry) -> Subscription:
    """The subscription that an entry stands for."""
    parsed = parse_subscription(entry.text)
    return Subscription(entry.name, parsed.body, parsed.options)


def _dated(entry: BookEntry, old: BookEntry | None, block: int) -> BookEntry:
    """A new webhook gets what is found from now on."""
    if entry.webhook is None or (old is not None and old.webhook == entry.webhook):
        return entry
    return msgspec.structs.replace(entry, extra=entry.extra | {"since": block})


def _known(tenant: Tenant, name: str) -> BookEntry:
    if name not in tenant.book:
        raise NotFoundError(f"there is no subscription {name!r}", hint="GET /v1/subscriptions lists them")
    return tenant.book[name]


def _replace(tenant: Tenant, entry: BookEntry) -> None:
    """The new one in place of the old; if it is refused, the old one stays as it was."""
    old = tenant.book.get(entry.name)
    active = old is not None and not old.paused
    if old is not None and active and not entry.paused and old.text == entry.text:
        return  # only tags or delivery change, so a pattern keeps what it holds
    if not entry.paused:
        fresh = subscription_of(entry)
        trial = f"{entry.name}\n"
        tenant.engine.subscribe(Subscription(trial, fresh.body, fresh.options))
        tenant.engine.unsubscribe(trial)
    if active:
        tenant.engine.unsubscribe(entry.name)
    if not entry.paused:
        tenant.engine.subscribe(subscription_of(entry))


def _ordered(found: list[Notification], events: list[Event]) -> list[Notification]:
    """Matches by event, score and name, so that the order never depends on how an engine came to its state."""
    place = {id(event): number for number, event in enumerate(events)}
    matches = [one for one in found if one.detection is None]
    matches.sort(key=lambda one: (place[id(one.events[0])], -one.score, one.subscription))
    return matches + [one for one in found if one.detection is not None]


def notice_of(cursor: int, namespace: str, notification: Notification, bodies: dict[int, bytes]) -> Notice:
    """A notification as JSON; events are written as they are in the log."""
    detection = notification.detection
    events = [msgspec.Raw(bodies.get(id(event)) or encode_line(event)[:-1]) for event in notification.events]
    # Scores are computed in single precision; more digits would be noise.
    score = round(float(notification.score), 6)
    body: dict[str, Any] = {
        "id": str(cursor),
        "subscription": notification.subscription,
        "kind": "match" if detection is None else "detection",
        "score": score,
    }
    time = notification.event.start if detection is None else detection.time
    if detection is not None:
        body["time"] = to_datetime(detection.time)
        body["roles"] = {role: [event.id for event in members] for role, members in detection.events.items()}
        body["trace"] = detection.trace
    body["events"] = events
    return Notice(cursor, namespace, notification.subscription, body["kind"], score, time, msgspec.json.encode(body))
