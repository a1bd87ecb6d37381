"""What a rendezvous must not forget: interests, what happened, and which parcels it has had.

A store is plain data with operations. The root of a key applies them and sends them to its neighbours, who apply the
same to their copies. Two stores of one key, grown apart in a divided network, are merged to their union.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from likewise.overlay.cube.items import Id
from likewise.overlay.node.wire import NEVER, Disinterest, Epoch, Interest, Mark, Offer, Operation, StoreState
from likewise.overlay.ring.ids import Key

SEEN: Final = 50_000
"""Ids of earlier items that are remembered, so that a late copy is recognised."""


class Store:
    """The state of one key, of the root's own or a copy of it."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self._forget()

    def _forget(self) -> None:
        self.epoch: Epoch = NEVER
        self.number = 0
        self.interests: dict[tuple[str, str], Interest] = {}
        self.gone: dict[str, int] = {}
        self.log: dict[tuple[Key, Id], Offer] = {}
        self.seen: dict[Id, None] = {}
        self.marks: dict[str, Mark] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self.interests or self.log)

    def apply(self, operation: Operation) -> bool:
        """Take an operation; False if it brings nothing new."""
        self.number += 1
        if isinstance(operation, Offer):
            return self._offer(operation)
        if isinstance(operation, Interest):
            return self._interest(operation)
        if isinstance(operation, Disinterest):
            return self._disinterest(operation)
        if isinstance(operation, Mark):
            self.marks[operation.relationship] = operation
            self._trim({*operation.ids, *self._composites_before(operation.clock)})
        else:
            self._trim(set(operation.ids))
        return True

    def _composites_before(self, clock: int) -> Iterator[Id]:
        """Items of several events, all of which a mark has."""
        items = (offer.item for offer in self.log.values())
        return (item.id for item in items if len(item.parts) > 1 and item.end <= clock)

    def _offer(self, offer: Offer) -> bool:
        at = (offer.member, offer.item.id)
        if at in self.log or offer.item.id in self.seen:
            return False
        self.log[at] = offer
        return True

    def _interest(self, interest: Interest) -> bool:
        subscriber = interest.subscriber
        if self.gone.get(subscriber.id, -1) >= subscriber.version:
            return False
        at = interest_key(interest)
        known = self.interests.get(at)
        if known is not None and known.subscriber.version >= subscriber.version:
            return False
        self.interests[at] = interest
        return True

    def _disinterest(self, operation: Disinterest) -> bool:
        subscriber = operation.subscriber
        self.gone[subscriber.id] = max(subscriber.version, self.gone.get(subscriber.id, -1))
        at = interest_key(operation)
        known = self.interests.get(at)
        if known is None or known.subscriber.version > subscriber.version:
            return False
        del self.interests[at]
        return True

    def _trim(self, gone: set[Id]) -> None:
        for at in [at for at in self.log if at[1] in gone]:
            del self.log[at]
            self.seen[at[1]] = None
        while len(self.seen) > SEEN:
            del self.seen[next(iter(self.seen))]

    # whole states

    def state(self) -> StoreState:
        """All of it, to be sent."""
        return StoreState(
            tuple(self.interests.values()),
            tuple(self.gone.items()),
            tuple(self.log.values()),
            tuple(self.seen),
            tuple(self.marks.values()),
        )

    def load(self, state: StoreState, epoch: Epoch, number: int) -> None:
        """Become a copy."""
        self._forget()
        for operation in self.missing(state):
            self.apply(operation)
        self.seen = dict.fromkeys(state.seen)
        self.gone = dict(state.gone)
        self.epoch, self.number = epoch, number

    def has_more_than(self, state: StoreState) -> bool:
        """Whether there is something here that a state has not."""
        other = Store(self.key)
        other.load(state, NEVER, 0)
        return any(True for _ in other.missing(self.state()))

    def missing(self, state: StoreState) -> Iterator[Operation]:
        """The operations by which this store comes to have all that a state has."""
        for name, version in state.gone:
            if self.gone.get(name, -1) < version:
                self.gone[name] = version
                for interest in [one for one in self.interests.values() if one.subscriber.id == name]:
                    if interest.subscriber.version <= version:
                        yield Disinterest(interest.node, interest.subscriber)
        for interest in state.interests:
            known = self.interests.get(interest_key(interest))
            if known is None or known.subscriber.version < interest.subscriber.version:
                yield interest
        for mark in state.marks:
            if mark.relationship not in self.marks or self.marks[mark.relationship].clock < mark.clock:
                yield mark
        known_ids = self.seen
        for offer in state.log:
            if (offer.member, offer.item.id) not in self.log and offer.item.id not in known_ids:
                yield offer


def interest_key(operation: Interest | Disinterest) -> tuple[str, str]:
    """Relationship and subscriber: a subscriber has one interest of a kind."""
    node = operation.node
    return getattr(node, "relationship", ""), operation.subscriber.id
