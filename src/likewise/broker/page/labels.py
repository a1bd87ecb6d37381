"""Relevance labels from thumbs up and down, stored with their events so that they outlive the log."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, select

from likewise.broker.auth import Access
from likewise.broker.service import Broker
from likewise.broker.store import schema
from likewise.broker.store.records import now
from likewise.errors import BuildError
from likewise.events import Event, decode_line, encode_line


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an event is relevant for a subscription, as a user rated it."""

    subscription: str
    event: Event
    right: bool


async def judge(broker: Broker, access: Access, cursor: int, *, right: bool) -> None:
    """Store a user's rating of a match; a later rating replaces an earlier one."""
    notice = await broker.read(broker.history.notice, access.namespace, cursor)
    if notice.kind != "match":
        raise BuildError(
            "only matches of single events can be rated", hint="rate the matches of the pattern's members instead"
        )
    body = msgspec.json.decode(notice.body)
    event = decode_line(msgspec.json.encode(body["events"][0]))
    await judge_event(broker, access, notice.subscription, event, right=right)


async def judge_event(broker: Broker, access: Access, subscription: str, event: Event, *, right: bool) -> None:
    """Store a user's rating of an event for a subscription, whether it matched or not."""
    table = schema.labels
    row = {
        "namespace": access.namespace,
        "subscription": subscription,
        "event": event.id[:255],
        "relevant": right,
        "actor": access.actor,
        "time": now(),
        "body": encode_line(event)[:-1],
    }
    columns = table.c
    condition = (
        (columns.namespace == access.namespace)
        & (columns.subscription == subscription)
        & (columns.event == event.id[:255])
    )

    def store(connection: Connection) -> None:
        connection.execute(table.delete().where(condition))
        connection.execute(table.insert(), row)

    await broker.write(store)


def judgements(broker: Broker, namespace: str, subscription: str | None = None) -> list[Judgement]:
    """The stored ratings of one subscription, or of all."""
    table = schema.labels
    query = select(table).where(table.c.namespace == namespace).order_by(table.c.time)
    if subscription is not None:
        query = query.where(table.c.subscription == subscription)
    with broker.database.reader() as connection:
        rows = connection.execute(query).all()
    return [Judgement(row.subscription, decode_line(bytes(row.body)), bool(row.relevant)) for row in rows]


def as_table(labels: list[Judgement]) -> str:
    """Labels as tab-separated values for `likewise tune`: subscription, event, and 1 or 0."""
    rows = [f"{_cell(label.subscription)}\t{_cell(label.event.id)}\t{int(label.right)}" for label in labels]
    return "\n".join(["subscription\tevent\trelevant", *rows]) + "\n"


def _cell(words: str) -> str:
    return " ".join(words.split())
