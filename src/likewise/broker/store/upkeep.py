"""Periodic work: advance event time in silent streams, take snapshots, and remove old records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import structlog
from sqlalchemy import Connection, func, select

from likewise.broker.auth import Access
from likewise.broker.store import schema
from likewise.broker.store.log import set_meta
from likewise.broker.store.records import first_cursor, now
from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from likewise.broker.service import Broker

logs = structlog.get_logger("likewise.upkeep")
_STEP: Final = 1_000_000
"""Microseconds that the clock may go back without a warning."""
_SLICE: Final = 5_000
"""Records removed in one transaction."""
_DAY: Final = 86_400_000_000
_TICK: Final = 2.0
"""Seconds between ticks."""
_GRACE: Final = 2_000_000
"""Microseconds that the clock waits for events that are still on their way."""
_LIVE: Final = 10_000_000
"""Microseconds: a stream is live if its last event arrived this soon after its event time; others are replays."""


class Upkeep:
    """Runs the periodic work of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ticked: dict[str, int] = {}
        self._clock_behind = False

    async def run(self) -> None:
        """Run all jobs until cancelled."""
        settings = self._broker.settings
        jobs = [
            self._every(settings.snapshot_seconds, self._snapshot),
            self._every(60.0, self.retain),
            self._every(1.0, self.probe),
            self._every(5.0, self.watch_clock),
        ]
        if settings.live_clock:
            jobs.append(self._every(_TICK, self.tick))
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job)

    async def _every(self, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except LikewiseError as error:
                logs.warning("periodic job failed", what=getattr(work, "__name__", ""), reason=error.message)

    async def _snapshot(self) -> None:
        self._broker.host.request_snapshot()

    async def probe(self) -> None:
        """While storage fails, try to write, so that the broker recovers even if nobody publishes."""
        if self._broker.log.failing is not None:
            await self._broker.write(lambda connection: set_meta(connection, "probed", str(now())))

    async def watch_clock(self) -> None:
        """Log when the system clock was set back, and when it has caught up with the arrival times."""
        behind = self._broker.arrival_clock.behind > _STEP
        if behind != self._clock_behind:
            self._clock_behind = behind
            if behind:
                logs.warning("the clock was set back", seconds=self._broker.arrival_clock.behind / 1e6)
            else:
                logs.info("the clock has caught up")

    async def tick(self) -> None:
        """Advance event time in live, silent streams, so that their patterns detect absences."""
        instant = now() - self._broker.settings.lateness - _GRACE
        for namespace, tenant in list(self._broker.host.tenants.items()):
            live = tenant.newest is not None and abs(tenant.lag) <= _LIVE
            last = max(tenant.newest or 0, self._ticked.get(namespace, 0))
            if live and tenant.engine.has_patterns and instant > last:
                self._ticked[namespace] = instant
                await self._broker.advance(Access("clock", namespace, frozenset()), instant)

    async def retain(self) -> int:
        """Remove records beyond the retention limits; returns how many were removed."""
        retention, removed = self._broker.settings.retention, 0
        if retention.age is not None:
            before = now() - int(retention.age * 1e6)
            while count := await self._broker.write(lambda connection: remove(connection, before=before)):
                removed += count
        while retention.bytes is not None and await self._broker.read(self._broker.database.size) > retention.bytes:
            count = await self._broker.write(lambda connection: remove(connection, before=None))
            if not count:
                break
            removed += count
        if removed:
            logs.info("removed old records", records=removed)
        return removed


def remove(connection: Connection, *, before: int | None) -> int:
    """Remove some of the oldest records and their notifications, except those that a replay needs."""
    records = schema.records.c
    snapshot = connection.execute(select(func.min(schema.snapshots.c.block))).scalar()
    low = connection.execute(select(func.min(records.position))).scalar()
    if snapshot is None or low is None:
        return 0
    end = connection.execute(select(func.max(records.position), func.max(records.block))).one()
    set_meta(connection, "position", str(end[0]))
    set_meta(connection, "block", str(end[1]))
    query = schema.records.delete().where(records.position < low + _SLICE, records.block <= snapshot)
    if before is not None:
        query = query.where(records.received < before)
    removed = connection.execute(query).rowcount
    first = connection.execute(select(func.min(records.block))).scalar()
    cursor = first_cursor(snapshot + 1 if first is None else first)
    connection.execute(schema.notifications.delete().where(schema.notifications.c.cursor < cursor))
    connection.execute(schema.requests.delete().where(schema.requests.c.made < now() - _DAY))
    if before is not None:
        connection.execute(schema.dead_letters.delete().where(schema.dead_letters.c.time < before))
    return removed
