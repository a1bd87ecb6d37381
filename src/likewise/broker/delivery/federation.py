"""The broker as an entry of a federation: what is accepted here is published there too, from the log, in its order."""

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
"""The entry of the `meta` table with the position up to which the federation has the log."""
PAUSE: Final = 1.0
"""Seconds before the next attempt."""


class Federation(Protocol):
    """Where events go; one whose number was published before is not published again."""

    async def publish(self, events: Sequence[tuple[bytes, Event]]) -> None:
        """Return when all are in the federation's care."""

    async def close(self) -> None:
        """End the connection."""


class FederationBridge:
    """Follows the log of the default namespace; while no node answers, the log waits and the broker goes on."""

    def __init__(self, broker: Broker, federation: Federation) -> None:
        self._broker, self._federation = broker, federation
        self._access = Access("federation", "default", frozenset({"subscribe"}))
        self.state = "ok"

    async def run(self) -> None:
        """Pass events on until the broker ends."""
        try:
            while not self._broker.hub.closing.is_set():
                try:
                    await self._follow()
                except LikewiseError as error:
                    self._note(error)
                    await asyncio.sleep(PAUSE)
        finally:
            await self._federation.close()

    async def _follow(self) -> None:
        broker = self._broker
        known = await broker.read(broker.database.value, KEY)
        position = broker.log.position if known is None else int(known)
        if known is None:
            await self._keep(position)
        async for records in broker.tail(self._access, after=position):
            if records:
                await self._federation.publish([(number_of(record), record.to_event()) for record in records])
                broker.counts["federation_sent"] += len(records)
                await self._keep(records[-1].position)
                self._note(None)

    async def _keep(self, position: int) -> None:
        def write(connection: Connection) -> None:
            set_meta(connection, KEY, str(position))

        await self._broker.write(write)

    def _note(self, error: LikewiseError | None) -> None:
        state = "ok" if error is None else error.message
        if state != self.state:
            logs.warning("federation", state=state)
        self.state = state


def number_of(record: LogRecord) -> bytes:
    """The same for one record however often it is sent, and another for every other one."""
    head = f"{record.position} {record.received} ".encode()
    return blake2b(head + record.body, digest_size=16).digest()
