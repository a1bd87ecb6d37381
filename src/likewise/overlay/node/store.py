"""The replicated state of a rendezvous: interests, a log of offers, ids of earlier items, and checkpoints.

A store is plain data, changed by operations. The leader of a key applies them and sends them to the replicas, which
apply the same ones. Two stores of one key that diverged in a network partition are merged to their union.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from likewise.overlay.cube.items import Id
from likewise.overlay.node.wire import NEVER, Checkpoint, EndInterest, Epoch, Interest, Offer, Operation, StoreState
from likewise.overlay.ring.ids import Key

MAX_SEEN: Final = 50_000
"""Ids of deleted items that are remembered, to recognise duplicates."""


class Store:
    """The state of one key, at its leader or at a replica.

    `number` counts the operations; `ended` has the last version of each subscriber whose interest ended.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self._clear()

    def _clear(self) -> None:
        self.epoch: Epoch = NEVER
        self.number = 0
        self.interests: dict[tuple[str, str], Interest] = {}
        self.ended: dict[str, int] = {}
        self.log: dict[tuple[Key, Id], Offer] = {}
        self.seen: dict[Id, None] = {}
        self.checkpoints: dict[str, Checkpoint] = {}

    def __bool__(self) -> bool:
        """Whether there is an interest or an offer."""
        return bool(self.interests or self.log)

    def apply(self, operation: Operation) -> bool:
        """Apply an operation; False if it changes nothing."""
        self.number += 1
        if isinstance(operation, Offer):
            return self._offer(operation)
        if isinstance(operation, Interest):
            return self._interest(operation)
        if isinstance(operation, EndInterest):
            return self._end_interest(operation)
        if isinstance(operation, Checkpoint):
            self.checkpoints[operation.relationship] = operation
            self._trim({*operation.ids, *self._composites_before(operation.clock)})
        else:
            self._trim(set(operation.ids))
        return True

    def _composites_before(self, clock: int) -> Iterator[Id]:
        """Ids of the composite items that a checkpoint at `clock` covers."""
        items = (offer.item for offer in self.log.values())
        return (item.id for item in items if len(item.parts) > 1 and item.end <= clock)

    def _offer(self, offer: Offer) -> bool:
        entry = (offer.member, offer.item.id)
        if entry in self.log or offer.item.id in self.seen:
            return False
        self.log[entry] = offer
        return True

    def _interest(self, interest: Interest) -> bool:
        subscriber = interest.subscriber
        if self.ended.get(subscriber.id, -1) >= subscriber.version:
            return False
        key = interest_key(interest)
        known = self.interests.get(key)
        if known is not None and known.subscriber.version >= subscriber.version:
            return False
        self.interests[key] = interest
        return True

    def _end_interest(self, operation: EndInterest) -> bool:
        subscriber = operation.subscriber
        self.ended[subscriber.id] = max(subscriber.version, self.ended.get(subscriber.id, -1))
        key = interest_key(operation)
        known = self.interests.get(key)
        if known is None or known.subscriber.version > subscriber.version:
            return False
        del self.interests[key]
        return True

    def _trim(self, ids: set[Id]) -> None:
        for member, number in [entry for entry in self.log if entry[1] in ids]:
            del self.log[member, number]
            self.seen[number] = None
        while len(self.seen) > MAX_SEEN:
            del self.seen[next(iter(self.seen))]

    # full states

    def state(self) -> StoreState:
        """The full state, to be sent."""
        return StoreState(
            tuple(self.interests.values()),
            tuple(self.ended.items()),
            tuple(self.log.values()),
            tuple(self.seen),
            tuple(self.checkpoints.values()),
        )

    def load(self, state: StoreState, epoch: Epoch, number: int) -> None:
        """Replace everything by a received state."""
        self._clear()
        for operation in self.missing(state):
            self.apply(operation)
        self.seen = dict.fromkeys(state.seen)
        self.ended = dict(state.ended)
        self.epoch, self.number = epoch, number

    def has_more_than(self, state: StoreState) -> bool:
        """Whether this store has something that a state lacks."""
        other = Store(self.key)
        other.load(state, NEVER, 0)
        return any(True for _ in other.missing(self.state()))

    def missing(self, state: StoreState) -> Iterator[Operation]:
        """The operations that this store needs to have all that a state has."""
        for name, version in state.ended:
            if self.ended.get(name, -1) < version:
                self.ended[name] = version
                for interest in [known for known in self.interests.values() if known.subscriber.id == name]:
                    if interest.subscriber.version <= version:
                        yield EndInterest(interest.node, interest.subscriber)
        for interest in state.interests:
            known = self.interests.get(interest_key(interest))
            if known is None or known.subscriber.version < interest.subscriber.version:
                yield interest
        for checkpoint in state.checkpoints:
            if (
                checkpoint.relationship not in self.checkpoints
                or self.checkpoints[checkpoint.relationship].clock < checkpoint.clock
            ):
                yield checkpoint
        for offer in state.log:
            if (offer.member, offer.item.id) not in self.log and offer.item.id not in self.seen:
                yield offer


def interest_key(operation: Interest | EndInterest) -> tuple[str, str]:
    """Relationship and subscriber, which identify an interest in a store."""
    node = operation.node
    return getattr(node, "relationship", ""), operation.subscriber.id
