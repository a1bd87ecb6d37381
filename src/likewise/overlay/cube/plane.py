"""The Plane: who subscribed to a primitive event at a time [001 sec IV.A, figure 3]."""

from __future__ import annotations

import msgspec

from likewise.overlay.ring.ids import Key, key_of

ANY: Key = key_of("any time")
"""The occurrence time of an event that may come at any time."""


class Subscriber(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of a Subscriber Identifier Vector: a rendezvous of a composite, or someone's subscription.

    `key` is that of the rendezvous, or the id of the subscriber's node, which may change: the newest `version` counts.
    A subscription to a pattern has its `source`; it gets what happened from `since` on, and ends when its node is
    silent for longer than `lease`.
    """

    id: str
    key: Key
    version: int = 0
    source: str = ""
    since: int = 0
    lease: int = 0

    @property
    def is_rendezvous(self) -> bool:
        """Whether this is another composite's rendezvous."""
        return self.id.startswith("ce:")


def rendezvous(key: Key, version: int = 0) -> Subscriber:
    """The rendezvous of a composite as a subscriber to its members."""
    return Subscriber(f"ce:{key.hex()}", key, version)


class PlaneValue:
    """A cell: whether anyone subscribed, and who."""

    __slots__ = ("flag", "siv")

    def __init__(self) -> None:
        self.flag = 0
        self.siv: dict[str, Subscriber] = {}


class Plane:
    """Cells by event and occurrence time, both hashed.

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
        """Set the EventFlag and add to the SIV [Algorithm 1, line 16]; False if it was there."""
        cell = self.cells.setdefault((event, time), PlaneValue())
        known = cell.siv.get(subscriber.id)
        if known is not None and known.version >= subscriber.version:
            return False
        cell.flag = 1
        cell.siv[subscriber.id] = subscriber
        return known is None

    def unsubscribe(self, event: Key, id: str, *, time: Key = ANY) -> bool:
        """Take a subscriber out; without any, the flag goes down. False if it was not there."""
        cell = self.cells.get((event, time))
        if cell is None or cell.siv.pop(id, None) is None:
            return False
        if not cell.siv:
            del self.cells[event, time]
        return True

    def scan(self, event: Key, *, time: Key = ANY) -> list[Subscriber]:
        """The subscribers of an event that occurs at a time [Algorithm 2, line 2]."""
        found: dict[str, Subscriber] = {}
        for moment in dict.fromkeys((ANY, time)):
            cell = self.cells.get((event, moment))
            if cell is not None and cell.flag:
                found |= cell.siv
        return list(found.values())
