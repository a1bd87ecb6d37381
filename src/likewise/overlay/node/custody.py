"""Parcels in this node's care: each is sent again until someone else has it."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from typing import Any

from likewise.overlay.cube.decompose import Compound
from likewise.overlay.cube.items import Id, id_of
from likewise.overlay.node.wire import Disinterest, Interest, Offer, Parcel, ReportNotice
from likewise.overlay.ring.ids import Key


@dataclass(slots=True)
class OutgoingParcel:
    """A parcel, where it goes, and when it is sent again."""

    to: Key
    parcel: Parcel
    sent: int
    tries: int = 0


def parcel_id(to: Key, body: Any) -> Id:
    """The same parcel has the same id, whichever node sends it."""
    if isinstance(body, Offer):
        return id_of("offer", to, body.member, body.item.id)
    if isinstance(body, ReportNotice):
        return id_of("notice", body.subscription, body.report.id)
    assert isinstance(body, Interest | Disinterest)
    subscriber = body.subscriber
    kind = "interest" if isinstance(body, Interest) else "disinterest"
    relationship = body.node.relationship if isinstance(body.node, Compound) else ""
    return id_of(kind, to, subscriber.id, str(subscriber.version), subscriber.key, relationship)


class Outbox:
    """What was sent and has no receipt yet."""

    def __init__(self, *, retry: int, most_retry: int, remember: int = 100_000) -> None:
        self.retry = retry
        self.most_retry = most_retry
        self.waiting: dict[Id, OutgoingParcel] = {}
        self.counts: Counter[str] = Counter()
        self._done: dict[Id, None] = {}
        self._remember = remember
        self._trip = 0.0
        self._timers: list[tuple[int, Id]] = []

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, now: int, to: Key, parcel: Parcel) -> bool:
        """Take a parcel into care; False if it is there already, or was received."""
        if parcel.id in self.waiting or parcel.id in self._done:
            return False
        self.waiting[parcel.id] = OutgoingParcel(to, parcel, now)
        heapq.heappush(self._timers, (now + self.patience, parcel.id))
        return True

    @property
    def patience(self) -> int:
        """How long a receipt may take: several times what it usually takes, or a busy ring would get busier."""
        return int(min(self.most_retry, max(self.retry, 6 * self._trip)))

    def done(self, id: Id, now: int = 0) -> OutgoingParcel | None:
        """Someone else has it."""
        outgoing = self.waiting.pop(id, None)
        if outgoing is not None:
            if now > outgoing.sent:
                self._trip += (now - outgoing.sent - self._trip) / 16
            self._done[id] = None
            if len(self._done) > self._remember:
                del self._done[next(iter(self._done))]
        return outgoing

    def drop(self, id: Id) -> None:
        """Forget a parcel that this node is no longer responsible for."""
        self.waiting.pop(id, None)

    @property
    def due(self) -> int | None:
        """When a parcel is to be sent again."""
        timers = self._timers
        while timers and timers[0][1] not in self.waiting:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def again(self, now: int) -> list[OutgoingParcel]:
        """The parcels that are due."""
        out = []
        while (due := self.due) is not None and due <= now:
            _, number = heapq.heappop(self._timers)
            outgoing = self.waiting[number]
            outgoing.tries += 1
            self.counts["sent again"] += 1
            pause = min(self.most_retry, self.patience << min(outgoing.tries, 6))
            heapq.heappush(self._timers, (now + pause, number))
            out.append(outgoing)
        return out
