"""The log: one writing thread with group commits. Records are acknowledged once they are on disk."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
import structlog
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from likewise.broker.errors import StorageError
from likewise.broker.store import schema
from likewise.broker.store.database import Database
from likewise.broker.store.records import Block, DeadLetter, LogRecord, Notice, SubscriptionEntry, now
from likewise.errors import LikewiseError, MissingError

logs = structlog.get_logger("likewise.log")
T = TypeVar("T")

BLOCK: Final = 4_000
"""Maximum number of records in one group commit."""
EFFECTS_WAIT: Final = 0.002
"""Seconds that notifications may wait to share a commit with new events; a replay could compute them again."""
EFFECTS_MOST: Final = 5_000
"""Maximum number of notifications that wait."""
_RETRY: Final = 0.5
"""Seconds before effects are stored again after a failure."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """Where records were stored: the block, and the first and last position."""

    block: int
    first: int
    last: int


@dataclass(slots=True)
class Idempotency:
    """The idempotency key of a request; its response is stored together with its events."""

    namespace: str
    key: str
    digest: bytes
    respond: Callable[[LogRange], bytes]


@dataclass(slots=True)
class Append:
    """A request to append records."""

    records: list[LogRecord]
    idempotency: Idempotency | None
    done: asyncio.Future[LogRange]


@dataclass(slots=True)
class Effects:
    """The results of processing a block: notifications, changed subscriptions and dead letters."""

    block: int
    notices: list[Notice] = field(default_factory=list)
    put: list[tuple[str, SubscriptionEntry]] = field(default_factory=list)
    deleted: list[tuple[str, str]] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)
    """Called when the effects are stored."""


@dataclass(slots=True)
class Write:
    """Any other transaction."""

    action: Callable[[Connection], Any]
    done: Future[Any] = field(default_factory=Future)


Job = Append | Effects | Write | None


class Log:
    """Appends records in a writing thread, and reads them back."""

    def __init__(
        self,
        database: Database,
        *,
        committed: Callable[[Block], None],
        effects_stored: Callable[[int], None],
        call: Callable[..., None],
    ) -> None:
        """`committed` is called with every block, in order, once it is on disk; `effects_stored` with the number of
        the last block whose notifications are on disk. `call` runs a function in the event loop."""
        self.database = database
        self.position = 0
        self.block = 0
        self.received = 0
        """The latest arrival time in the log when it was opened."""
        self.commits = 0
        self.failures = 0
        self.failing: str | None = None
        """Why writing fails at the moment; None if it works."""
        self._committed, self._effects_stored, self._call = committed, effects_stored, call
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="likewise-log", daemon=True)
        self._uncertain = False
        """Whether the last commit failed, so that it may or may not be in the database."""
        self._effects: list[Effects] = []
        self._due = 0.0
        """When waiting effects are stored even without new events."""

    def start(self) -> None:
        """Read the last position and start the writing thread."""
        self.position, self.block = self._end()
        with self.database.reader() as connection:
            self.received = connection.execute(select(func.max(schema.records.c.received))).scalar() or 0
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Write all waiting jobs and end the thread."""
        self._queue.put(None)
        self._thread.join(timeout=30)

    # called from other threads

    def append(self, records: list[LogRecord], idempotency: Idempotency | None = None) -> asyncio.Future[LogRange]:
        """Store records; the future completes when they are on disk. Call it in the event loop.

        The records are stored even if the client disconnects.
        """
        job = Append(records, idempotency, asyncio.get_running_loop().create_future())
        self._queue.put(job)
        return job.done

    def store_effects(self, effects: Effects) -> None:
        """Store the effects of a block with one of the next commits."""
        self._queue.put(effects)

    def write(self, action: Callable[[Connection], T]) -> Future[T]:
        """Run an action in a transaction of the writing thread."""
        job = Write(action)
        job.done.set_running_or_notify_cancel()
        self._queue.put(job)
        return job.done

    def blocks(self, *, after: int, page: int = 5_000) -> Iterator[Block]:
        """The blocks after a block number, in order."""
        columns, position, pending = schema.records.c, 0, Block(0, [])
        while True:
            query = select(schema.records).where(columns.block > after, columns.position > position)
            with self.database.reader() as connection:
                rows = connection.execute(query.order_by(columns.position).limit(page)).all()
            for row in rows:
                if row.block != pending.number:
                    if pending.records:
                        yield pending
                    pending = Block(row.block, [])
                pending.records.append(record_of(row))
            if len(rows) < page:
                break
            position = rows[-1].position
        if pending.records:
            yield pending

    # the writing thread

    def _run(self) -> None:
        running = True
        while running:
            jobs = self._drain()
            running = None not in jobs
            appends = [job for job in jobs if isinstance(job, Append)]
            writes = [job for job in jobs if isinstance(job, Write)]
            self._add_effects([job for job in jobs if isinstance(job, Effects)])
            if appends or (self._effects and (writes or not running or time.monotonic() >= self._due)):
                self._commit(appends)
            if writes:
                self._write_all(writes)

    def _add_effects(self, effects: list[Effects]) -> None:
        """Keep effects for the next commit, which is due at once if a request waits for them."""
        if not effects:
            return
        if not self._effects:
            self._due = time.monotonic() + EFFECTS_WAIT
        self._effects += effects
        if (
            any(effect.after for effect in effects)
            or sum(len(effect.notices) for effect in self._effects) >= EFFECTS_MOST
        ):
            self._due = 0.0

    def _drain(self) -> list[Job]:
        """All waiting jobs; blocks until there is one, or until effects are due."""
        timeout = max(0.0, self._due - time.monotonic()) if self._effects else None
        try:
            jobs: list[Job] = [self._queue.get(timeout=timeout)]
        except queue.Empty:
            return []
        size = 0
        while size < BLOCK:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            jobs.append(job)
            size += len(job.records) if isinstance(job, Append) else 1
            if job is None:
                break
        return jobs

    def _commit(self, appends: list[Append]) -> None:
        """Store all waiting records and effects in one transaction."""
        effects = self._effects
        try:
            self._check_last_commit()
            block, stored = self._numbered(appends)
            with self.database.begin() as connection:
                if block.records:
                    self._insert_records(connection, block)
                    self._insert_requests(connection, appends, stored)
                if effects:
                    self._insert_effects(connection, effects)
        except (SQLAlchemyError, LikewiseError, OSError) as error:
            self._fail(appends, error)
            return
        self._note_success()
        self.commits += 1
        self._effects = []
        if block.records:
            self.block, self.position = block.number, block.records[-1].position
            self._committed(block)
            self._call(_resolve, appends, stored)
        if effects:
            self._effects_stored(effects[-1].block)
        for effect in effects:
            for call in effect.after:
                call()

    def _numbered(self, appends: list[Append]) -> tuple[Block, list[LogRange]]:
        """Assign positions to all records; the counters advance only after the commit has succeeded."""
        block, stored, position = Block(self.block + 1, []), list[LogRange](), self.position
        for job in appends:
            for number, record in enumerate(job.records, position + 1):
                record.position = number
            block.records += job.records
            stored.append(LogRange(block.number, position + 1, position + len(job.records)))
            position += len(job.records)
        return block, stored

    def _insert_records(self, connection: Connection, block: Block) -> None:
        rows = [
            (
                record.position,
                block.number,
                record.namespace,
                record.kind,
                record.id,
                record.time,
                record.received,
                record.publisher,
                record.body,
            )
            for record in block.records
        ]
        names = "position, block, namespace, kind, id, time, received, publisher, body"
        self._insert(connection, f"records ({names})", rows)

    def _insert(self, connection: Connection, into: str, rows: list[tuple[Any, ...]], *, end: str = "") -> None:
        """Insert many rows at once; bypasses SQLAlchemy, which is slower for each row."""
        placeholders = ", ".join(["?" if self.database.is_sqlite else "%s"] * len(rows[0]))
        connection.exec_driver_sql(f"INSERT INTO {into} VALUES ({placeholders}){end}", rows)

    def _insert_effects(self, connection: Connection, effects: list[Effects]) -> None:
        """Insert effects; existing rows stay, because effects may be stored again after a failure."""
        rows = [
            (
                notice.cursor,
                notice.namespace,
                notice.subscription,
                notice.kind,
                notice.score,
                notice.time,
                notice.body,
            )
            for effect in effects
            for notice in effect.notices
        ]
        if rows:
            names = "cursor, namespace, subscription, kind, score, time, body"
            self._insert(connection, f"notifications ({names})", rows, end=" ON CONFLICT DO NOTHING")
        for effect in effects:
            _store_changes(connection, effect)
        set_meta(connection, "applied", str(effects[-1].block))

    def _insert_requests(self, connection: Connection, appends: list[Append], stored: list[LogRange]) -> None:
        for job, place in zip(appends, stored, strict=True):
            request = job.idempotency
            if request is not None:
                columns = "requests (namespace, key, digest, answer, made)"
                row = (request.namespace, request.key, request.digest, request.respond(place), now())
                self._insert(connection, columns, [row], end=" ON CONFLICT DO NOTHING")

    def _fail(self, appends: list[Append], error: Exception) -> None:
        """Report a failed commit to its requests; the next commit checks whether it was stored after all."""
        self._uncertain = True
        self._note_failure(error)
        self._due = time.monotonic() + _RETRY
        self._call(_refuse, appends, StorageError(f"the event could not be stored: {self.failing}"))

    def _check_last_commit(self) -> None:
        """After a failed commit, check whether it was stored after all; if so, pass its block to the engines."""
        if not self._uncertain:
            return
        self.database.reconnect()
        position, block = self._end()
        for stored in self.blocks(after=self.block):
            self._committed(stored)
        self.position, self.block = max(position, self.position), max(block, self.block)
        self._uncertain = False

    def _end(self) -> tuple[int, int]:
        with self.database.reader() as connection:
            columns = schema.records.c
            last = connection.execute(select(func.max(columns.position), func.max(columns.block))).one()
            meta = {row.key: row.value for row in connection.execute(select(schema.meta))}
        # Retention may have removed the last records; their numbers must not be used again.
        position, block = int(meta.get("position", 0)), int(meta.get("block", 0))
        return max(last[0] or 0, position), max(last[1] or 0, block)

    def _write_all(self, writes: list[Write]) -> None:
        """Run all actions in one transaction; if one fails, run each in its own."""
        try:
            with self.database.begin() as connection:
                results = [job.action(connection) for job in writes]
        except Exception:  # run them separately to find the one that failed
            for job in writes:
                self._write(job)
            return
        self._note_success()
        for job, result in zip(writes, results, strict=True):
            job.done.set_result(result)

    def _write(self, job: Write) -> None:
        try:
            with self.database.begin() as connection:
                result = job.action(connection)
        except (SQLAlchemyError, MissingError, OSError) as error:
            self._note_failure(error)
            job.done.set_exception(StorageError(f"the change could not be stored: {self.failing}"))
        except Exception as error:  # an error of the action itself goes to the caller
            job.done.set_exception(error)
        else:
            self._note_success()
            job.done.set_result(result)

    def _note_success(self) -> None:
        if self.failing is not None:
            logs.info("storage works again", failures=self.failures)
            self.failing = None

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        reason = reason_of(error)
        if self.failing is None:
            logs.error("storage failed", reason=reason)
        self.failing = reason


def record_of(row: Any) -> LogRecord:
    """The log record of a database row."""
    return LogRecord(
        row.namespace, row.kind, row.id, row.time, row.received, row.publisher, bytes(row.body), None, row.position
    )


def set_meta(connection: Connection, key: str, value: str) -> None:
    """Set a key in the `meta` table."""
    changed = connection.execute(schema.meta.update().where(schema.meta.c.key == key).values(value=value))
    if not changed.rowcount:
        connection.execute(schema.meta.insert().values(key=key, value=value))


def reason_of(error: Exception) -> str:
    """The first line of a database error, without the SQL statement."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0][:200]


def _store_changes(connection: Connection, effect: Effects) -> None:
    """Store changed subscriptions and dead letters."""
    for namespace, name in (*effect.deleted, *((namespace, entry.name) for namespace, entry in effect.put)):
        columns = schema.subscriptions.c
        connection.execute(schema.subscriptions.delete().where(columns.namespace == namespace, columns.name == name))
    for namespace, entry in effect.put:
        row = {"namespace": namespace, "name": entry.name, "body": msgspec.json.encode(entry)}
        connection.execute(schema.subscriptions.insert(), row)
    if effect.letters:
        connection.execute(schema.dead_letters.insert(), [dead_letter_row(letter) for letter in effect.letters])


def _resolve(appends: Sequence[Append], stored: Sequence[LogRange]) -> None:
    """Complete all futures of a commit in one call, so that the event loop is woken once."""
    for job, place in zip(appends, stored, strict=True):
        if not job.done.done():
            job.done.set_result(place)


def _refuse(appends: Sequence[Append], error: StorageError) -> None:
    for job in appends:
        if not job.done.done():
            job.done.set_exception(error)


def dead_letter_row(letter: DeadLetter) -> dict[str, Any]:
    """The database row of a dead letter."""
    names = ("namespace", "source", "reason", "body", "time")
    return {name: getattr(letter, name) for name in names}
