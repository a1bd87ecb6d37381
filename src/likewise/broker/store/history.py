"""Queries for events, notifications and the other tables, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import Select, func, select

from likewise.broker.errors import NotFoundError
from likewise.broker.store import schema
from likewise.broker.store.database import Database
from likewise.broker.store.log import record_of
from likewise.broker.store.records import EVENT, DeadLetter, LogRecord, Notice, SubscriptionEntry
from likewise.events import Instant

_REMOVED: Final = "it may have been removed: the log keeps events for a limited time"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Filters and paging for events or notifications."""

    after: int = 0
    before: int | None = None
    """Return the newest first, before this position or cursor; 0 starts with the newest."""
    limit: int = 100
    since: Instant | None = None
    until: Instant | None = None
    id: str | None = None
    publisher: str | None = None
    subscriptions: tuple[str, ...] = ()
    kind: str | None = None
    score: float = 0.0


class History:
    """Queries; each opens its own connection, so any thread may run them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, namespace: str, query: HistoryQuery) -> list[LogRecord]:
        """Events in log order, or the newest first."""
        columns = schema.records.c
        rows = select(schema.records).where(columns.namespace == namespace, columns.kind == EVENT)
        if query.id is not None:
            rows = rows.where(columns.id == query.id)
        if query.publisher is not None:
            rows = rows.where(columns.publisher == query.publisher)
        rows = _between(rows, columns.received, query)
        return [record_of(row) for row in self._rows(_page(rows, columns.position, query))]

    def event(self, namespace: str, id: str) -> LogRecord:
        """The newest event with an id."""
        events = self.events(namespace, HistoryQuery(id=id, before=0, limit=1))
        if not events:
            raise NotFoundError(f"there is no event {id[:100]!r}", hint=_REMOVED)
        return events[0]

    def notices(self, namespace: str, query: HistoryQuery) -> list[Notice]:
        """Notifications in cursor order, or the newest first."""
        columns = schema.notifications.c
        rows = select(schema.notifications).where(columns.namespace == namespace)
        if query.subscriptions:
            rows = rows.where(columns.subscription.in_(query.subscriptions))
        if query.kind is not None:
            rows = rows.where(columns.kind == query.kind)
        if query.score:
            rows = rows.where(columns.score >= query.score)
        rows = _between(rows, columns.time, query)
        return [_notice(row) for row in self._rows(_page(rows, columns.cursor, query))]

    def notice(self, namespace: str, cursor: int) -> Notice:
        """One notification."""
        columns = schema.notifications.c
        query = select(schema.notifications).where(columns.namespace == namespace, columns.cursor == cursor)
        for row in self._rows(query):
            return _notice(row)
        raise NotFoundError(f"there is no notification {cursor}", hint=_REMOVED)

    def entry(self, namespace: str, name: str) -> SubscriptionEntry:
        """One subscription."""
        columns = schema.subscriptions.c
        for row in self._rows(select(schema.subscriptions).where(columns.namespace == namespace, columns.name == name)):
            return msgspec.json.decode(bytes(row.body), type=SubscriptionEntry)
        raise NotFoundError(f"there is no subscription {name[:100]!r}", hint="GET /v1/subscriptions lists them")

    def entries(
        self, namespace: str | None, *, after: str = "", limit: int = 10_000
    ) -> list[tuple[str, SubscriptionEntry]]:
        """Subscriptions with their namespaces, sorted by name."""
        columns = schema.subscriptions.c
        query = select(schema.subscriptions).where(columns.name > after)
        if namespace is not None:
            query = query.where(columns.namespace == namespace)
        rows = self._rows(query.order_by(columns.namespace, columns.name).limit(limit))
        return [(row.namespace, msgspec.json.decode(bytes(row.body), type=SubscriptionEntry)) for row in rows]

    def count_entries(self, namespace: str) -> int:
        """The number of subscriptions of a namespace."""
        query = select(func.count()).where(schema.subscriptions.c.namespace == namespace)
        with self._database.reader() as connection:
            return connection.execute(query).scalar() or 0

    def consumers(self, namespace: str) -> dict[str, int]:
        """The acknowledged cursor of each consumer."""
        columns = schema.consumers.c
        return {
            row.name: row.cursor for row in self._rows(select(schema.consumers).where(columns.namespace == namespace))
        }

    def consumer(self, namespace: str, name: str) -> int | None:
        """The acknowledged cursor of a consumer; None if it has not acknowledged anything."""
        columns = schema.consumers.c
        query = select(columns.cursor).where(columns.namespace == namespace, columns.name == name)
        with self._database.reader() as connection:
            cursor: int | None = connection.execute(query).scalar()
            return cursor

    def earlier_response(self, namespace: str, key: str) -> tuple[bytes, bytes] | None:
        """The body digest and the response of an earlier request with this idempotency key."""
        columns = schema.requests.c
        for row in self._rows(select(schema.requests).where(columns.namespace == namespace, columns.key == key)):
            return bytes(row.digest), bytes(row.answer)
        return None

    def snapshots(self) -> list[tuple[int, bytes]]:
        """Block numbers and bodies of the snapshots, newest first."""
        query = select(schema.snapshots).order_by(schema.snapshots.c.block.desc())
        return [(row.block, bytes(row.body)) for row in self._rows(query)]

    def table(self, table: Any, namespace: str, *, before: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Rows of the audit log or of dead letters, newest first."""
        query = select(table).where(table.c.namespace == namespace).order_by(table.c.id.desc()).limit(limit)
        if before:
            query = query.where(table.c.id < before)
        return [dict(row._mapping) for row in self._rows(query)]

    def letter(self, namespace: str, id: int) -> DeadLetter:
        """One dead letter."""
        columns = schema.dead_letters.c
        query = select(schema.dead_letters).where(columns.namespace == namespace, columns.id == id)
        for row in self._rows(query):
            return DeadLetter(row.namespace, row.source, row.reason, bytes(row.body), row.time)
        raise NotFoundError(f"there is no dead letter {id}", hint="GET /v1/dead-letters lists them")

    def mapping(self, namespace: str, name: str) -> bytes:
        """A saved mapping of flat records, as JSON."""
        columns = schema.mappings.c
        for row in self._rows(select(schema.mappings).where(columns.namespace == namespace, columns.name == name)):
            return bytes(row.body)
        raise NotFoundError(f"there is no mapping {name[:100]!r}", hint="GET /v1/mappings lists them")

    def mappings(self, namespace: str) -> dict[str, bytes]:
        """All saved mappings by name, as JSON."""
        columns = schema.mappings.c
        rows = self._rows(select(schema.mappings).where(columns.namespace == namespace).order_by(columns.name))
        return {row.name: bytes(row.body) for row in rows}

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._database.reader() as connection:
            return connection.execute(query).all()


def _page(rows: Select[Any], key: Any, query: HistoryQuery) -> Select[Any]:
    if query.before is None:
        return rows.where(key > query.after).order_by(key).limit(query.limit)
    if query.before:
        rows = rows.where(key < query.before)
    return rows.order_by(key.desc()).limit(query.limit)


def _between(rows: Select[Any], column: Any, query: HistoryQuery) -> Select[Any]:
    if query.since is not None:
        rows = rows.where(column >= query.since)
    if query.until is not None:
        rows = rows.where(column < query.until)
    return rows


def _notice(row: Any) -> Notice:
    return Notice(row.cursor, row.namespace, row.subscription, row.kind, row.score, row.time, bytes(row.body))


def matching(notices: Iterable[Notice], names: frozenset[str] | None, score: float) -> list[Notice]:
    """Filter notifications by subscription and minimum score."""
    return [notice for notice in notices if (names is None or notice.subscription in names) and notice.score >= score]
