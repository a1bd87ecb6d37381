"""The log: one thread writes, many requests share a commit, and nothing is acknowledged before it is on disk."""

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
from likewise.broker.store.records import Block, BookEntry, Letter, LogRecord, Notice, now
from likewise.errors import LikewiseError, MissingError

logs = structlog.get_logger("likewise.log")
T = TypeVar("T")

BLOCK: Final = 4_000
"""Records of one group commit at most."""
EFFECTS_WAIT: Final = 0.002
"""Seconds that notifications may wait for a commit with new events: they could be computed again from the log."""
EFFECTS_MOST: Final = 5_000
"""Notifications that wait at most."""
_RETRY: Final = 0.5


@dataclass(frozen=True, slots=True)
class Stored:
    """Where records were stored: positions `first` to `last` of a block."""

    block: int
    first: int
    last: int


@dataclass(slots=True)
class Idempotency:
    """The key of a request, and how its answer is written down with its events."""

    namespace: str
    key: str
    digest: bytes
    answer: Callable[[Stored], bytes]


@dataclass(slots=True)
class Append:
    """Records to be stored."""

    records: list[LogRecord]
    idempotency: Idempotency | None
    done: asyncio.Future[Stored]


@dataclass(slots=True)
class Effects:
    """What a block brought about."""

    block: int
    notices: list[Notice] = field(default_factory=list)
    put: list[tuple[str, BookEntry]] = field(default_factory=list)
    deleted: list[tuple[str, str]] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)
    """Called when all is stored."""


@dataclass(slots=True)
class Write:
    """Any other change of the database."""

    action: Callable[[Connection], Any]
    done: Future[Any] = field(default_factory=Future)


Job = Append | Effects | Write | None


class Log:
    """The writing thread, its queue, and reading records back."""

    def __init__(
        self,
        database: Database,
        *,
        committed: Callable[[Block], None],
        settled: Callable[[int], None],
        call: Callable[..., None],
    ) -> None:
        """`committed` takes every block, in order, as soon as it is on disk; `settled` takes the number of the last
        block whose notifications are on disk. `call` runs a function with arguments in the event loop."""
        self.database = database
        self.position = 0
        self.block = 0
        self.received = 0
        """The last time of arrival in the log at the start."""
        self.commits = 0
        self.failures = 0
        self.failing: str | None = None
        """Why writing fails at the moment."""
        self._committed, self._settled, self._call = committed, settled, call
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="likewise-log", daemon=True)
        self._doubt = False
        self._effects: list[Effects] = []
        self._due = 0.0
        """When the effects that wait are stored even without new events."""

    def start(self) -> None:
        """Read where the log ends, and begin to write."""
        self.position, self.block = self._end()
        with self.database.reader() as connection:
            self.received = connection.execute(select(func.max(schema.records.c.received))).scalar() or 0
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Write what is waiting, and end."""
        self._queue.put(None)
        self._thread.join(timeout=30)

    # what may be asked of it, from any thread

    def append(self, records: list[LogRecord], idempotency: Idempotency | None = None) -> asyncio.Future[Stored]:
        """Store records, from the event loop; the future is done when they are on disk.

        A client that goes away takes nothing back.
        """
        job = Append(records, idempotency, asyncio.get_running_loop().create_future())
        self._queue.put(job)
        return job.done

    def settle(self, effects: Effects) -> None:
        """Store what a block brought about, sooner or later."""
        self._queue.put(effects)

    def write(self, action: Callable[[Connection], T]) -> Future[T]:
        """Run a change of other tables in a transaction."""
        job = Write(action)
        job.done.set_running_or_notify_cancel()
        self._queue.put(job)
        return job.done

    def blocks(self, *, after: int, page: int = 5_000) -> Iterator[Block]:
        """The blocks of the log beyond a block number, in order."""
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
            self._gather([job for job in jobs if isinstance(job, Effects)])
            if appends or (self._effects and (writes or not running or time.monotonic() >= self._due)):
                self._commit(appends)
            if writes:
                self._write_all(writes)

    def _gather(self, effects: list[Effects]) -> None:
        """Keep effects for the next commit, which comes at once if somebody waits for them."""
        if not effects:
            return
        if not self._effects:
            self._due = time.monotonic() + EFFECTS_WAIT
        self._effects += effects
        if any(effect.after for effect in effects) or sum(len(one.notices) for one in self._effects) >= EFFECTS_MOST:
            self._due = 0.0

    def _drain(self) -> list[Job]:
        """What is waiting; blocks until there is something, or until effects are due."""
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
        """One transaction for all that waits."""
        effects = self._effects
        try:
            self._resolve_doubt()
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
            self._settled(effects[-1].block)
        for effect in effects:
            for call in effect.after:
                call()

    def _numbered(self, appends: list[Append]) -> tuple[Block, list[Stored]]:
        """Positions for all records; the counters move on only when the commit has succeeded."""
        block, stored, position = Block(self.block + 1, []), list[Stored](), self.position
        for job in appends:
            for number, record in enumerate(job.records, position + 1):
                record.position = number
            block.records += job.records
            stored.append(Stored(block.number, position + 1, position + len(job.records)))
            position += len(job.records)
        return block, stored

    def _insert_records(self, connection: Connection, block: Block) -> None:
        rows = [
            (
                one.position,
                block.number,
                one.namespace,
                one.kind,
                one.id,
                one.time,
                one.received,
                one.publisher,
                one.body,
            )
            for one in block.records
        ]
        names = "position, block, namespace, kind, id, time, received, publisher, body"
        self._insert(connection, f"records ({names})", rows)

    def _insert(self, connection: Connection, into: str, rows: list[tuple[Any, ...]], *, end: str = "") -> None:
        """Many rows at once, past SQLAlchemy's own handling of each."""
        signs = ", ".join(["?" if self.database.is_sqlite else "%s"] * len(rows[0]))
        connection.exec_driver_sql(f"INSERT INTO {into} VALUES ({signs}){end}", rows)

    def _insert_effects(self, connection: Connection, effects: list[Effects]) -> None:
        """Rows that are already there stay: effects may be stored a second time after a failure."""
        rows = [
            (one.cursor, one.namespace, one.subscription, one.kind, one.score, one.time, one.body)
            for effect in effects
            for one in effect.notices
        ]
        if rows:
            names = "cursor, namespace, subscription, kind, score, time, body"
            self._insert(connection, f"notifications ({names})", rows, end=" ON CONFLICT DO NOTHING")
        for effect in effects:
            _insert_book(connection, effect)
        set_meta(connection, "applied", str(effects[-1].block))

    def _insert_requests(self, connection: Connection, appends: list[Append], stored: list[Stored]) -> None:
        for job, place in zip(appends, stored, strict=True):
            asked = job.idempotency
            if asked is not None:
                columns = "requests (namespace, key, digest, answer, made)"
                row = (asked.namespace, asked.key, asked.digest, asked.answer(place), now())
                self._insert(connection, columns, [row], end=" ON CONFLICT DO NOTHING")

    def _fail(self, appends: list[Append], error: Exception) -> None:
        """Nothing of it is acknowledged; whether it was stored is looked up before the next commit."""
        self._doubt = True
        self._note_failure(error)
        self._due = time.monotonic() + _RETRY
        self._call(_refuse, appends, StorageError(f"the event could not be stored: {self.failing}"))

    def _resolve_doubt(self) -> None:
        """After a failed commit: find out whether the database has it all the same, and let engines know."""
        if not self._doubt:
            return
        self.database.reclaim()
        position, block = self._end()
        for found in self.blocks(after=self.block):
            self._committed(found)
        self.position, self.block = max(position, self.position), max(block, self.block)
        self._doubt = False

    def _end(self) -> tuple[int, int]:
        with self.database.reader() as connection:
            columns = schema.records.c
            found = connection.execute(select(func.max(columns.position), func.max(columns.block))).one()
            kept = {row.key: row.value for row in connection.execute(select(schema.meta))}
        # Retention may have removed the last records; their numbers are never used again.
        position, block = int(kept.get("position", 0)), int(kept.get("block", 0))
        return max(found[0] or 0, position), max(found[1] or 0, block)

    def _write_all(self, writes: list[Write]) -> None:
        """All in one transaction, or, if one of them fails, each in its own."""
        try:
            with self.database.begin() as connection:
                results = [job.action(connection) for job in writes]
        except Exception:  # each by itself finds out whose failure it was
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
        except Exception as error:  # of the action itself: for whoever asked
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
            logs.error("storage fails", reason=reason)
        self.failing = reason


def record_of(row: Any) -> LogRecord:
    """The record of a row."""
    return LogRecord(
        row.namespace, row.kind, row.id, row.time, row.received, row.publisher, bytes(row.body), None, row.position
    )


def set_meta(connection: Connection, key: str, value: str) -> None:
    """Write an entry of the `meta` table."""
    changed = connection.execute(schema.meta.update().where(schema.meta.c.key == key).values(value=value))
    if not changed.rowcount:
        connection.execute(schema.meta.insert().values(key=key, value=value))


def reason_of(error: Exception) -> str:
    """The first line of what a database says, without the statement."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0][:200]


def _insert_book(connection: Connection, effect: Effects) -> None:
    """Changed subscriptions and dead letters."""
    for namespace, name in (*effect.deleted, *((namespace, entry.name) for namespace, entry in effect.put)):
        columns = schema.subscriptions.c
        connection.execute(schema.subscriptions.delete().where(columns.namespace == namespace, columns.name == name))
    for namespace, entry in effect.put:
        row = {"namespace": namespace, "name": entry.name, "body": msgspec.json.encode(entry)}
        connection.execute(schema.subscriptions.insert(), row)
    if effect.letters:
        connection.execute(schema.dead_letters.insert(), [letter_row(letter) for letter in effect.letters])


def _resolve(appends: Sequence[Append], stored: Sequence[Stored]) -> None:
    """In the event loop: all of a commit at once, so that it is woken once."""
    for job, place in zip(appends, stored, strict=True):
        if not job.done.done():
            job.done.set_result(place)


def _refuse(appends: Sequence[Append], error: StorageError) -> None:
    for job in appends:
        if not job.done.done():
            job.done.set_exception(error)


def letter_row(letter: Letter) -> dict[str, Any]:
    """The row of a dead letter."""
    names = ("namespace", "source", "reason", "body", "time")
    return {name: getattr(letter, name) for name in names}
