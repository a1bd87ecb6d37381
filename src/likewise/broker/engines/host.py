"""The engine host: one thread that processes the blocks of the log in order, with one engine per namespace.

An engine's state is a function of the log. After a restart the host restores the last snapshot and replays the blocks
since then. Notifications get the same cursors in every replay, so those that were stored before are skipped.
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
    DeadLetter,
    LogRecord,
    Notice,
    SubscriptionChange,
    SubscriptionEntry,
    first_cursor,
)
from likewise.composite import Refused
from likewise.engine import Engine, Notification
from likewise.errors import BuildError, InputError, LikewiseError
from likewise.events import Event, Instant, encode_line, to_datetime
from likewise.language import Subscription, parse_subscription

SNAPSHOT: Final = 1
"""Version of the snapshot format."""
MakeEngine = Callable[[Callable[[Refused], None]], Engine]
RestoreEngine = Callable[[bytes, Callable[[Refused], None]], Engine]


@dataclass(slots=True)
class Tenant:
    """The engine and the subscriptions of a namespace, including paused ones."""

    engine: Engine
    entries: dict[str, SubscriptionEntry] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    newest: Instant | None = None
    """The latest event time seen."""
    lag: Instant = 0
    """Time between the last event and its arrival."""
    events: int = 0
    found: dict[str, int] = field(default_factory=dict)
    """Number of notifications by subscription since the start."""


class Outcome(msgspec.Struct):
    """The result of a subscription change: the stored entries, or the error."""

    entries: tuple[SubscriptionEntry, ...] = ()
    error: LikewiseError | None = None


class EngineHost:
    """Runs the engines over the blocks of the log and passes on the effects."""

    def __init__(
        self,
        *,
        make: MakeEngine,
        restore: RestoreEngine,
        store_effects: Callable[[Effects], None],
        deliver: Callable[[list[Notice]], None],
        snapshot: Callable[[int, bytes], None],
        snapshot_events: int,
    ) -> None:
        self._make, self._restore = make, restore
        self._store_effects, self._deliver, self._store_snapshot = store_effects, deliver, snapshot
        self._snapshot_events = snapshot_events
        self.tenants: dict[str, Tenant] = {}
        self.lock = threading.RLock()
        """Held while a block is processed; other threads must hold it to read an engine."""
        self.block = 0
        self._stored = self._processed = 0
        self.failed: str | None = None
        """Traceback of the last block that an engine failed on."""
        self._since_snapshot = 0
        self._queue: queue.SimpleQueue[Block | bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="likewise-engine", daemon=True)
        self._waiting: dict[int, Future[Outcome]] = {}

    # start and stop

    def resume(self, snapshot: tuple[int, bytes] | None, blocks: Iterable[Block], *, applied: int) -> int:
        """Restore a snapshot and replay the blocks after it; returns how many blocks were replayed."""
        if snapshot is not None:
            self.block = snapshot[0]
            self._load(snapshot[1])
        replayed = 0
        for block in blocks:
            effects = self._process(block)
            self.block = block.number
            replayed += 1
            if block.number > applied:
                self._deliver(effects.notices)
                self._store_effects(effects)
        return replayed

    def reset(self) -> None:
        """Discard all state, to start again from another snapshot."""
        self.tenants.clear()
        self.block = 0

    def start(self) -> None:
        """Start processing blocks."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Process the remaining blocks, take a snapshot and end the thread."""
        self._queue.put(False)
        self._thread.join(timeout=60)

    # called from other threads

    @property
    def backlog(self) -> int:
        """Number of stored records that are not processed yet."""
        # Two counters, each written by one thread only, so that no update is lost.
        return self._stored - self._processed

    def committed(self, block: Block) -> None:
        """Queue a block that is on disk."""
        self._stored += len(block.records)
        self._queue.put(block)

    def request_snapshot(self) -> None:
        """Take a snapshot after the current block, if anything has changed."""
        self._queue.put(True)

    def expect(self, record: LogRecord) -> Future[Outcome]:
        """A future for the outcome of a change; call this before the record is appended to the log."""
        outcome: Future[Outcome] = Future()
        outcome.set_running_or_notify_cancel()
        self._waiting[id(record)] = outcome
        return outcome

    def forget(self, record: LogRecord) -> None:
        """Drop the future of a change that was not stored."""
        self._waiting.pop(id(record), None)

    def tenant(self, namespace: str) -> Tenant:
        """The tenant of a namespace, created on first use."""
        with self.lock:
            if namespace not in self.tenants:
                refused: list[Refused] = []
                self.tenants[namespace] = Tenant(self._make(refused.append), refused=refused)
            return self.tenants[namespace]

    def rebuild_engines(self) -> None:
        """Rebuild all engines with their current state, after the glossary has changed."""
        with self.lock:
            for tenant in self.tenants.values():
                tenant.engine = self._restore(tenant.engine.snapshot(), tenant.refused.append)
        self.request_snapshot()

    # the thread

    def _run(self) -> None:
        while (block := self._queue.get()) is not False:
            if block is True:
                if self._since_snapshot:
                    self.take_snapshot()
                continue
            try:
                with span("match", block=block.number, records=len(block.records)):
                    effects = self._process(block)
            except Exception:
                # A block that an engine fails on must not stop the service: its records become dead letters.
                self.failed = traceback.format_exc(limit=-3)
                effects = self._dead_letters(block, self.failed)
            self.block = block.number  # even if the block failed
            self._processed += len(block.records)
            self._deliver(effects.notices)
            self._store_effects(effects)
            self._since_snapshot += len(block.records)
            if self._since_snapshot >= self._snapshot_events:
                self.take_snapshot()
        self.take_snapshot()

    def _dead_letters(self, block: Block, reason: str) -> Effects:
        last = reason.strip().splitlines()[-1]
        effects = Effects(block.number)
        for record in block.records:
            effects.letters.append(DeadLetter(record.namespace, "engine", last, record.body, record.received))
            waiting = self._waiting.pop(id(record), None)
            if waiting is not None:
                waiting.set_result(
                    Outcome(error=BuildError(f"the engine failed: {last}", hint="the dead letters have the details"))
                )
        return effects

    def take_snapshot(self) -> None:
        """Take a snapshot of all engines."""
        with self.lock:
            block, body = self.block, self._dump()
        self._since_snapshot = 0
        self._store_snapshot(block, body)

    def _process(self, block: Block) -> Effects:
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
            notifications = _ordered(tenant.engine.publish_batch(events), events)
            self._collect(namespace, tenant, notifications, effects, bodies=bodies)

    def _tick(self, record: LogRecord, effects: Effects) -> None:
        tenant = self.tenant(record.namespace)
        assert record.time is not None  # every tick has a time
        self._collect(record.namespace, tenant, tenant.engine.advance(record.time), effects, bodies={})

    def _note_times(self, tenant: Tenant, records: list[LogRecord]) -> None:
        last = records[-1]
        newest = max(record.time or 0 for record in records)
        tenant.newest = newest if tenant.newest is None else max(tenant.newest, newest)
        # Compare with None: a time of 0 is valid, the first moment of 1970.
        tenant.lag = 0 if last.time is None else last.received - last.time
        tenant.events += len(records)

    def _collect(
        self,
        namespace: str,
        tenant: Tenant,
        notifications: list[Notification],
        effects: Effects,
        *,
        bodies: dict[int, bytes],
    ) -> None:
        cursor = first_cursor(effects.block) + len(effects.notices)
        for number, notification in enumerate(notifications, cursor):
            effects.notices.append(notice_of(number, namespace, notification, bodies))
            name = notification.subscription
            tenant.found[name] = tenant.found.get(name, 0) + 1
        for refused in tenant.refused:
            reason = f"patterns refused the event: {refused.reason}"
            body, time = encode_line(refused.event)[:-1], refused.event.start or 0
            effects.letters.append(DeadLetter(namespace, "patterns", reason, body, time))
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

    def _apply(self, namespace: str, change: SubscriptionChange, effects: Effects) -> Outcome:
        tenant = self.tenant(namespace)
        if change.action == "delete":
            for name in change.names:
                _existing(tenant, name)
            for name in change.names:
                entry = tenant.entries.pop(name)
                if not entry.paused:
                    tenant.engine.unsubscribe(name)
                effects.deleted.append((namespace, name))
            return Outcome()
        if change.action == "create":
            for entry in change.entries:
                if entry.name in tenant.entries:
                    raise ConflictError(
                        f"there is already a subscription {entry.name!r}",
                        hint="replace or remove it, or choose another name",
                    )
            tenant.engine.subscribe([subscription_of(entry) for entry in change.entries if not entry.paused])
        else:
            for entry in change.entries:
                _replace(tenant, entry)
        entries = tuple(_with_start(entry, tenant.entries.get(entry.name), effects.block) for entry in change.entries)
        for entry in entries:
            tenant.entries[entry.name] = entry
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
                        "book": [msgspec.json.encode(entry) for entry in tenant.entries.values()],
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
            raise InputError(f"this is not a snapshot: {error}", hint="it may be truncated") from None
        if not isinstance(state, dict) or state.get("version") != SNAPSHOT:
            raise InputError("this is not a snapshot of this version", hint="the log is replayed instead")
        for name, saved in state["tenants"].items():
            refused: list[Refused] = []
            engine = self._restore(saved["engine"], refused.append)
            entries = [msgspec.json.decode(entry, type=SubscriptionEntry) for entry in saved["book"]]
            self.tenants[name] = Tenant(
                engine, {entry.name: entry for entry in entries}, refused, saved["newest"], saved["lag"]
            )


def subscription_of(entry: SubscriptionEntry) -> Subscription:
    """The parsed subscription of an entry."""
    parsed = parse_subscription(entry.text)
    return Subscription(entry.name, parsed.body, parsed.options)


def _with_start(entry: SubscriptionEntry, old: SubscriptionEntry | None, block: int) -> SubscriptionEntry:
    """Note the current block for a new webhook, which gets notifications from then on."""
    if entry.webhook is None or (old is not None and old.webhook == entry.webhook):
        return entry
    return msgspec.structs.replace(entry, extra=entry.extra | {"since": block})


def _existing(tenant: Tenant, name: str) -> SubscriptionEntry:
    if name not in tenant.entries:
        raise NotFoundError(f"there is no subscription {name!r}", hint="GET /v1/subscriptions lists them")
    return tenant.entries[name]


def _replace(tenant: Tenant, entry: SubscriptionEntry) -> None:
    """Replace a subscription in the engine; if the new one is refused, the old one stays."""
    old = tenant.entries.get(entry.name)
    active = old is not None and not old.paused
    if old is not None and active and not entry.paused and old.text == entry.text:
        return  # only tags or delivery change, so a pattern keeps its partial instances
    if not entry.paused:
        # First subscribe under a name that no user can choose: this raises if the text is refused.
        subscription, trial = subscription_of(entry), f"{entry.name}\n"
        tenant.engine.subscribe(Subscription(trial, subscription.body, subscription.options))
        tenant.engine.unsubscribe(trial)
    if active:
        tenant.engine.unsubscribe(entry.name)
    if not entry.paused:
        tenant.engine.subscribe(subscription_of(entry))


def _ordered(notifications: list[Notification], events: list[Event]) -> list[Notification]:
    """Matches sorted by event, score and name, then detections, so that every replay gives the same order."""
    place = {id(event): number for number, event in enumerate(events)}
    matches = [match for match in notifications if match.detection is None]
    matches.sort(key=lambda match: (place[id(match.events[0])], -match.score, match.subscription))
    return matches + [detection for detection in notifications if detection.detection is not None]


def notice_of(cursor: int, namespace: str, notification: Notification, bodies: dict[int, bytes]) -> Notice:
    """The stored form of a notification; `bodies` has the JSON of events by their `id()`."""
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
