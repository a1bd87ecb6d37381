"""Forward events from the log to a federation of overlay nodes, in log order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from sqlalchemy import Connection

from likewise.broker.auth import Access
from likewise.broker.store.log import set_meta
from likewise.broker.store.records import LogRecord
from likewise.errors import LikewiseError
from likewise.events import Event

if TYPE_CHECKING:
    from likewise.broker.service import Broker

logs = structlog.get_logger("likewise.federation")
KEY: Final = "federation"
"""Key in the `meta` table: the log position up to which all events were forwarded."""
PAUSE: Final = 1.0
"""Seconds before a retry."""


class Federation(Protocol):
    """Publishes events with unique keys; an event whose key was published before is ignored."""

    async def publish(self, events: Sequence[tuple[bytes, Event]]) -> None:
        """Return when the federation has accepted all events."""

    async def close(self) -> None:
        """Close the connection."""


class FederationBridge:
    """Forwards the log of the default namespace. While no node answers, it retries and the broker keeps working."""

    def __init__(self, broker: Broker, federation: Federation) -> None:
        self._broker, self._federation = broker, federation
        self._access = Access("federation", "default", frozenset({"subscribe"}))
        self.state = "ok"

    async def run(self) -> None:
        """Forward events until the broker stops."""
        try:
            while not self._broker.hub.closing.is_set():
                try:
                    await self._follow()
                except LikewiseError as error:
                    self._set_state(error)
                    await asyncio.sleep(PAUSE)
        finally:
            await self._federation.close()

    async def _follow(self) -> None:
        broker = self._broker
        stored = await broker.read(broker.database.value, KEY)
        position = broker.log.position if stored is None else int(stored)
        if stored is None:
            await self._store_position(position)
        async for records in broker.tail(self._access, after=position):
            if records:
                await self._federation.publish([(record_key(record), record.to_event()) for record in records])
                broker.counts["federation_sent"] += len(records)
                await self._store_position(records[-1].position)
                self._set_state(None)

    async def _store_position(self, position: int) -> None:
        def write(connection: Connection) -> None:
            set_meta(connection, KEY, str(position))

        await self._broker.write(write)

    def _set_state(self, error: LikewiseError | None) -> None:
        state = "ok" if error is None else error.message
        if state != self.state:
            logs.warning("federation", state=state)
        self.state = state


def record_key(record: LogRecord) -> bytes:
    """A unique key of a record, the same each time it is sent."""
    head = f"{record.position} {record.received} ".encode()
    return blake2b(head + record.body, digest_size=16).digest()
