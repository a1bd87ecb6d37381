"""Thumbs up and down: kept as labels, with the event, so that they outlive the log."""

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
    """Whether an event was right for a subscription."""

    subscription: str
    event: Event
    right: bool


async def judge(broker: Broker, access: Access, cursor: int, *, right: bool) -> None:
    """Keep what a person says of a notification; the last word counts."""
    notice = await broker.read(broker.history.notice, access.namespace, cursor)
    if notice.kind != "match":
        raise BuildError("only single events can be judged", hint="patterns have no score of their own to tune")
    body = msgspec.json.decode(notice.body)
    event = decode_line(msgspec.json.encode(body["events"][0]))
    await judge_event(broker, access, notice.subscription, event, right=right)


async def judge_event(broker: Broker, access: Access, subscription: str, event: Event, *, right: bool) -> None:
    """Keep what a person says of an event and a subscription, also where it was not found."""
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
    here = (
        (columns.namespace == access.namespace)
        & (columns.subscription == subscription)
        & (columns.event == event.id[:255])
    )

    def keep(connection: Connection) -> None:
        connection.execute(table.delete().where(here))
        connection.execute(table.insert(), row)

    await broker.write(keep)


def judgements(broker: Broker, namespace: str, subscription: str | None = None) -> list[Judgement]:
    """What was said so far, of one subscription or of all."""
    table = schema.labels
    query = select(table).where(table.c.namespace == namespace).order_by(table.c.time)
    if subscription is not None:
        query = query.where(table.c.subscription == subscription)
    with broker.database.reader() as connection:
        rows = connection.execute(query).all()
    return [Judgement(row.subscription, decode_line(bytes(row.body)), bool(row.relevant)) for row in rows]


def as_table(found: list[Judgement]) -> str:
    """Labels as `likewise tune` reads them: subscription, event and 1 or 0, with tabs."""
    rows = [f"{_cell(one.subscription)}\t{_cell(one.event.id)}\t{int(one.right)}" for one in found]
    return "\n".join(["subscription\tevent\trelevant", *rows]) + "\n"


def _cell(words: str) -> str:
    return " ".join(words.split())
