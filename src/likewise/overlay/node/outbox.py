"""Parcels that were sent and not yet acknowledged; each is retried until its receipt comes."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from typing import Any

from likewise.overlay.cube.decompose import Compound
from likewise.overlay.cube.items import Id, id_of
from likewise.overlay.node.wire import EndInterest, Interest, Offer, Parcel, ReportNotice
from likewise.overlay.ring.ids import Key

_REMEMBERED = 100_000
"""Acknowledged ids that are kept to recognise duplicates."""


@dataclass(slots=True)
class OutgoingParcel:
    """A parcel, its destination, when it was sent and how often it was retried."""

    to: Key
    parcel: Parcel
    sent: int
    retries: int = 0


def parcel_id(to: Key, body: Any) -> Id:
    """The id of a parcel: equal content has an equal id, whichever node sends it."""
    if isinstance(body, Offer):
        return id_of("offer", to, body.member, body.item.id)
    if isinstance(body, ReportNotice):
        return id_of("notice", body.subscription, body.report.id)
    assert isinstance(body, Interest | EndInterest)
    subscriber = body.subscriber
    kind = "interest" if isinstance(body, Interest) else "disinterest"
    relationship = body.node.relationship if isinstance(body.node, Compound) else ""
    return id_of(kind, to, subscriber.id, str(subscriber.version), subscriber.key, relationship)


class Outbox:
    """The parcels without a receipt."""

    def __init__(self, *, retry: int, max_retry: int) -> None:
        self.retry = retry
        self.max_retry = max_retry
        self.pending: dict[Id, OutgoingParcel] = {}
        self.counts: Counter[str] = Counter()
        self._acknowledged: dict[Id, None] = {}
        self._round_trip = 0.0
        self._timers: list[tuple[int, Id]] = []

    def __len__(self) -> int:
        return len(self.pending)

    def add(self, now: int, to: Key, parcel: Parcel) -> bool:
        """Add a parcel; False if it is pending already or was acknowledged."""
        if parcel.id in self.pending or parcel.id in self._acknowledged:
            return False
        self.pending[parcel.id] = OutgoingParcel(to, parcel, now)
        heapq.heappush(self._timers, (now + self.timeout, parcel.id))
        return True

    @property
    def timeout(self) -> int:
        """Time until the first retry: several round trips, so that retries do not overload a busy ring."""
        return int(min(self.max_retry, max(self.retry, 6 * self._round_trip)))

    def acknowledge(self, id: Id, now: int = 0) -> OutgoingParcel | None:
        """Remove a parcel whose receipt came; None if it was not pending."""
        outgoing = self.pending.pop(id, None)
        if outgoing is not None:
            if now > outgoing.sent:
                self._round_trip += (now - outgoing.sent - self._round_trip) / 16
            self._acknowledged[id] = None
            if len(self._acknowledged) > _REMEMBERED:
                del self._acknowledged[next(iter(self._acknowledged))]
        return outgoing

    def drop(self, id: Id) -> None:
        """Remove a parcel for which this node is no longer responsible."""
        self.pending.pop(id, None)

    @property
    def due(self) -> int | None:
        """When the next retry is due."""
        timers = self._timers
        while timers and timers[0][1] not in self.pending:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def take_due(self, now: int) -> list[OutgoingParcel]:
        """The parcels to retry now, each with a longer timeout than before."""
        out = []
        while (due := self.due) is not None and due <= now:
            _, number = heapq.heappop(self._timers)
            outgoing = self.pending[number]
            outgoing.retries += 1
            self.counts["sent again"] += 1
            pause = min(self.max_retry, self.timeout << min(outgoing.retries, 6))
            heapq.heappush(self._timers, (now + pause, number))
            out.append(outgoing)
        return out
