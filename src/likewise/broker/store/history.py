"""Reading back: events, notifications and the other tables, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Select, func, select

from likewise.broker.errors import NotFoundError
from likewise.broker.store import schema
from likewise.broker.store.database import Database
from likewise.broker.store.log import record_of
from likewise.broker.store.records import EVENT, BookEntry, Letter, LogRecord, Notice
from likewise.events import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which part of the history is asked for."""

    after: int = 0
    before: int | None = None
    """Newest first, below this position or cursor; 0 begins with the newest."""
    limit: int = 100
    since: Instant | None = None
    until: Instant | None = None
    id: str | None = None
    publisher: str | None = None
    subscriptions: tuple[str, ...] = ()
    kind: str | None = None
    score: float = 0.0


class History:
    """Queries; each takes a connection of its own, so they run in any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, namespace: str, wanted: HistoryQuery) -> list[LogRecord]:
        """Events in the order of the log, or the newest first."""
        columns = schema.records.c
        query = select(schema.records).where(columns.namespace == namespace, columns.kind == EVENT)
        if wanted.id is not None:
            query = query.where(columns.id == wanted.id)
        if wanted.publisher is not None:
            query = query.where(columns.publisher == wanted.publisher)
        query = _between(query, columns.received, wanted)
        return [record_of(row) for row in self._rows(_page(query, columns.position, wanted))]

    def event(self, namespace: str, id: str) -> LogRecord:
        """The newest event of an id."""
        found = self.events(namespace, HistoryQuery(id=id, before=0, limit=1))
        if not found:
            raise NotFoundError(f"there is no event {id[:100]!r}", hint="it may be older than the retention")
        return found[0]

    def notices(self, namespace: str, wanted: HistoryQuery) -> list[Notice]:
        """Notifications in the order of their cursors, or the newest first."""
        columns = schema.notifications.c
        query = select(schema.notifications).where(columns.namespace == namespace)
        if wanted.subscriptions:
            query = query.where(columns.subscription.in_(wanted.subscriptions))
        if wanted.kind is not None:
            query = query.where(columns.kind == wanted.kind)
        if wanted.score:
            query = query.where(columns.score >= wanted.score)
        query = _between(query, columns.time, wanted)
        return [_notice(row) for row in self._rows(_page(query, columns.cursor, wanted))]

    def notice(self, namespace: str, cursor: int) -> Notice:
        """One notification."""
        columns = schema.notifications.c
        query = select(schema.notifications).where(columns.namespace == namespace, columns.cursor == cursor)
        for row in self._rows(query):
            return _notice(row)
        raise NotFoundError(f"there is no notification {cursor}", hint="it may be older than the retention")

    def entry(self, namespace: str, name: str) -> BookEntry:
        """One subscription."""
        columns = schema.subscriptions.c
        for row in self._rows(select(schema.subscriptions).where(columns.namespace == namespace, columns.name == name)):
            return msgspec.json.decode(bytes(row.body), type=BookEntry)
        raise NotFoundError(f"there is no subscription {name[:100]!r}", hint="GET /v1/subscriptions lists them")

    def entries(self, namespace: str | None, *, after: str = "", limit: int = 10_000) -> list[tuple[str, BookEntry]]:
        """Subscriptions by name."""
        columns = schema.subscriptions.c
        query = select(schema.subscriptions).where(columns.name > after)
        if namespace is not None:
            query = query.where(columns.namespace == namespace)
        rows = self._rows(query.order_by(columns.namespace, columns.name).limit(limit))
        return [(row.namespace, msgspec.json.decode(bytes(row.body), type=BookEntry)) for row in rows]

    def count_entries(self, namespace: str) -> int:
        """How many subscriptions there are."""
        query = select(func.count()).where(schema.subscriptions.c.namespace == namespace)
        with self._database.reader() as connection:
            return connection.execute(query).scalar() or 0

    def consumers(self, namespace: str) -> dict[str, int]:
        """The cursors of consumers."""
        columns = schema.consumers.c
        return {
            row.name: row.cursor for row in self._rows(select(schema.consumers).where(columns.namespace == namespace))
        }

    def consumer(self, namespace: str, name: str) -> int | None:
        """How far a consumer has acknowledged; None if it never did."""
        columns = schema.consumers.c
        query = select(columns.cursor).where(columns.namespace == namespace, columns.name == name)
        with self._database.reader() as connection:
            found: int | None = connection.execute(query).scalar()
            return found

    def answered(self, namespace: str, key: str) -> tuple[bytes, bytes] | None:
        """The digest and the answer of an earlier request with this key."""
        columns = schema.requests.c
        for row in self._rows(select(schema.requests).where(columns.namespace == namespace, columns.key == key)):
            return bytes(row.digest), bytes(row.answer)
        return None

    def snapshot(self) -> list[tuple[int, bytes]]:
        """The snapshots, newest first."""
        query = select(schema.snapshots).order_by(schema.snapshots.c.block.desc())
        return [(row.block, bytes(row.body)) for row in self._rows(query)]

    def table(self, table: Any, namespace: str, *, before: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Rows of the audit log or of dead letters, newest first."""
        query = select(table).where(table.c.namespace == namespace).order_by(table.c.id.desc()).limit(limit)
        if before:
            query = query.where(table.c.id < before)
        return [dict(row._mapping) for row in self._rows(query)]

    def letter(self, namespace: str, id: int) -> Letter:
        """One dead letter."""
        columns = schema.dead_letters.c
        query = select(schema.dead_letters).where(columns.namespace == namespace, columns.id == id)
        for row in self._rows(query):
            return Letter(row.namespace, row.source, row.reason, bytes(row.body), row.time)
        raise NotFoundError(f"there is no dead letter {id}", hint="GET /v1/dead-letters lists them")

    def mapping(self, namespace: str, name: str) -> bytes:
        """A saved mapping of flat records."""
        columns = schema.mappings.c
        for row in self._rows(select(schema.mappings).where(columns.namespace == namespace, columns.name == name)):
            return bytes(row.body)
        raise NotFoundError(f"there is no mapping {name[:100]!r}", hint="GET /v1/mappings lists them")

    def mappings(self, namespace: str) -> dict[str, bytes]:
        """The saved mappings."""
        columns = schema.mappings.c
        rows = self._rows(select(schema.mappings).where(columns.namespace == namespace).order_by(columns.name))
        return {row.name: bytes(row.body) for row in rows}

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._database.reader() as connection:
            return connection.execute(query).all()


def _page(query: Select[Any], key: Any, wanted: HistoryQuery) -> Select[Any]:
    if wanted.before is None:
        return query.where(key > wanted.after).order_by(key).limit(wanted.limit)
    if wanted.before:
        query = query.where(key < wanted.before)
    return query.order_by(key.desc()).limit(wanted.limit)


def _between(query: Select[Any], column: Any, wanted: HistoryQuery) -> Select[Any]:
    if wanted.since is not None:
        query = query.where(column >= wanted.since)
    if wanted.until is not None:
        query = query.where(column < wanted.until)
    return query


def _notice(row: Any) -> Notice:
    return Notice(row.cursor, row.namespace, row.subscription, row.kind, row.score, row.time, bytes(row.body))


def matching(notices: Iterable[Notice], names: frozenset[str] | None, score: float) -> list[Notice]:
    """Those of some subscriptions and at least this score."""
    return [notice for notice in notices if (names is None or notice.subscription in names) and notice.score >= score]
