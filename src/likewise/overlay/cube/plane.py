"""The Plane: the subscribers to a primitive event at an occurrence time [001 sec IV.A, figure 3]."""

from __future__ import annotations

import msgspec

from likewise.overlay.ring.ids import Key, key_of

ANY: Key = key_of("any time")
"""The occurrence time of an event that may happen at any time."""


class Subscriber(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of a Subscriber Identifier Vector (SIV): the rendezvous of a composite, or a client's subscription.

    `key` is that of the rendezvous, or the id of the subscriber's node, which may change: the latest `version` counts.
    A subscription to a pattern has its text in `source`. It gets events from `since` on, and expires if its node does
    not renew it within `lease`.
    """

    id: str
    key: Key
    version: int = 0
    source: str = ""
    since: int = 0
    lease: int = 0

    @property
    def is_rendezvous(self) -> bool:
        """Whether this is the rendezvous of a composite."""
        return self.id.startswith("ce:")


def rendezvous(key: Key, version: int = 0) -> Subscriber:
    """The rendezvous of a composite as a subscriber to its members."""
    return Subscriber(f"ce:{key.hex()}", key, version)


class PlaneValue:
    """A cell: the EventFlag, and the subscribers (SIV)."""

    __slots__ = ("flag", "siv")

    def __init__(self) -> None:
        self.flag = 0
        self.siv: dict[str, Subscriber] = {}


class Plane:
    """The cells of a node's topics, by the keys of event and occurrence time.

    >>> plane = Plane()
    >>> plane.subscribe(key_of("football match"), Subscriber("fan", key_of("N1")))
    True
    >>> [entry.id for entry in plane.scan(key_of("football match"))]
    ['fan']
    """

    def __init__(self) -> None:
        self.cells: dict[tuple[Key, Key], PlaneValue] = {}

    def __bool__(self) -> bool:
        return bool(self.cells)

    def subscribe(self, event: Key, subscriber: Subscriber, *, time: Key = ANY) -> bool:
        """Set the EventFlag and add to the SIV [Algorithm 1, line 16]; False if the subscriber was there."""
        cell = self.cells.setdefault((event, time), PlaneValue())
        known = cell.siv.get(subscriber.id)
        if known is not None and known.version >= subscriber.version:
            return False
        cell.flag = 1
        cell.siv[subscriber.id] = subscriber
        return known is None

    def unsubscribe(self, event: Key, id: str, *, time: Key = ANY) -> bool:
        """Remove a subscriber, and the cell with the last one; False if the subscriber was not there."""
        cell = self.cells.get((event, time))
        if cell is None or cell.siv.pop(id, None) is None:
            return False
        if not cell.siv:
            del self.cells[event, time]
        return True

    def scan(self, event: Key, *, time: Key = ANY) -> list[Subscriber]:
        """The subscribers of an event that occurs at a time [Algorithm 2, line 2]."""
        subscribers: dict[str, Subscriber] = {}
        for moment in dict.fromkeys((ANY, time)):
            cell = self.cells.get((event, moment))
            if cell is not None and cell.flag:
                subscribers |= cell.siv
        return list(subscribers.values())
