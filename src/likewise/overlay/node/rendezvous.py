"""A rendezvous: from the operations of a key to the messages that follow from them [001 Algorithms 1 and 2].

A topic has its line in the node's Plane, a composite its CellMatrix in the node's cube. When a node takes over a key,
both are rebuilt from the store. Reports that this repeats have the same ids, so that receivers drop them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from likewise.events import normalise, to_instant
from likewise.overlay.cube.cells import Cube
from likewise.overlay.cube.composing import report_of_event, verify
from likewise.overlay.cube.decompose import Compound, ProfileTopic, compounds_of, levels_of, reach_of, topics_of
from likewise.overlay.cube.items import Id, Item, MatchedEvent, Report
from likewise.overlay.cube.plane import Plane, Subscriber, rendezvous
from likewise.overlay.node.ordered import OrderedPattern
from likewise.overlay.node.store import Store, interest_key
from likewise.overlay.node.wire import CatalogueEntry, Checkpoint, EndInterest, Interest, Offer, Operation, ReportNotice
from likewise.overlay.ring.ids import Key, key_of
from likewise.semantics import Measure

Output = tuple[Key, Any]
"""The key of the destination, and the body to send."""


@dataclass(slots=True)
class RendezvousContext:
    """What all rendezvous of a node share; `slack` and `grace` are those of `NodeSettings`."""

    plane: Plane = field(default_factory=Plane)
    cube: Cube = field(default_factory=Cube)
    measure: Measure | None = None
    slack: int = 500_000
    grace: int = 30_000_000


def value_key(key: Key, value: str) -> Key:
    """The key of the rendezvous for one value of a split composite."""
    return key_of(key + value.encode()) if value else key


def parent_of(root: Compound, member: Key) -> Iterator[Compound]:
    """The composites of a tree that have this member."""
    for compound in compounds_of(root):
        if any(child.key == member for child in compound.members):
            yield compound


class ActiveRendezvous:
    """The rendezvous of a key at its leader: acts on the operations that its store applied.

    `renewed` is when each subscriber last renewed its interest, `arrived` when each item arrived, `handled` how many
    did, `latest` the latest event time and `last_offer` the time of the last arrival.
    """

    def __init__(self, store: Store, context: RendezvousContext) -> None:
        self.store = store
        self.context = context
        self.ordered: dict[str, OrderedPattern] = {}
        self.renewed: dict[str, int] = {}
        self.handled = 0
        self.arrived: dict[tuple[Key, Id], int] = {}
        self.latest = 0
        self.last_offer = 0
        self.version = 0
        """The version of the interest in the members; it increases also when the interest ends."""

    @property
    def key(self) -> Key:
        """The key of this rendezvous."""
        return self.store.key

    def begin(self, now: int) -> list[Output]:
        """Rebuild everything from the store; returns all messages that follow from it, sent before or not."""
        out: list[Output] = []
        for interest in list(self.store.interests.values()):
            out += self._interest(now, interest)
        for offer in list(self.store.log.values()):
            out += self._offer(now, offer)
        return out

    def end(self) -> None:
        """Remove this rendezvous from Plane and cube."""
        for interest in self.store.interests.values():
            self._end_interest(self.last_offer, interest)
        self.ordered.clear()

    def apply(self, now: int, operation: Operation) -> list[Output]:
        """Act on an operation that the store has just applied; returns the messages to send."""
        if isinstance(operation, Offer):
            return self._offer(now, operation)
        if isinstance(operation, Interest):
            return self._interest(now, operation)
        if isinstance(operation, EndInterest):
            return self._end_interest(now, operation)
        if isinstance(operation, Checkpoint) and operation.relationship in self.ordered:
            self.ordered[operation.relationship].restore(operation)
        return []

    # subscription

    def _interest(self, now: int, interest: Interest, value: str = "") -> list[Output]:
        node, subscriber = interest.node, interest.subscriber
        self.renewed[subscriber.id] = now
        if isinstance(node, ProfileTopic):
            self.context.plane.subscribe(self.key, subscriber)
            return []
        if node.split and node.key == self.key:
            return [(topic.key, Interest(topic, _plan_of(subscriber), (interest,))) for topic in topics_of(node)]
        if node.join is None:
            new = not self.ordered
            self._add_ordered(interest)
        elif node.split and not value:
            # The cells of a value are created when the first event with this value arrives.
            return []
        else:
            members = tuple(
                value_key(member.key, value if isinstance(member, Compound) else "") for member in node.members
            )
            new = self.context.cube.index(self.key, members, node.join, subscriber)
        if node.split:
            return []
        if new:
            self.version = max(now, self.version + 1)
        # Also for a second subscriber: a parcel that was sent before is only waited for.
        rendezvous_subscriber = rendezvous(self.key, self.version)
        return [(member.key, Interest(member, rendezvous_subscriber)) for member in dict.fromkeys(node.members)]

    def _add_ordered(self, interest: Interest) -> None:
        subscriber = interest.subscriber
        if subscriber.id in self.ordered:
            return
        context = self.context
        # Items that pass through other rendezvous take longer, and their first events are older.
        pattern = OrderedPattern(
            subscriber.source,
            since=subscriber.since,
            slack=context.slack * levels_of(interest.node),
            reach=reach_of(interest.node) or 0,
            measure=context.measure,
        )
        checkpoint = self.store.checkpoints.get(subscriber.id)
        if checkpoint is not None:
            pattern.restore(checkpoint)
        self.ordered[subscriber.id] = pattern

    def _end_interest(self, now: int, operation: Interest | EndInterest) -> list[Output]:
        node, subscriber = operation.node, operation.subscriber
        self.renewed.pop(subscriber.id, None)
        if isinstance(node, ProfileTopic):
            self.context.plane.unsubscribe(self.key, subscriber.id)
            return []
        if node.split and node.key == self.key:
            return [(topic.key, EndInterest(topic, _plan_of(subscriber))) for topic in topics_of(node)]
        if node.join is None:
            self.ordered.pop(subscriber.id, None)
            removed = not self.ordered
        else:
            removed = self.context.cube.remove(self.key, node.relationship, subscriber.id)
        if not removed or node.split:
            return []
        self.version = max(now, self.version)
        rendezvous_subscriber = rendezvous(self.key, self.version)
        return [(member.key, EndInterest(member, rendezvous_subscriber)) for member in dict.fromkeys(node.members)]

    # publication

    def _offer(self, now: int, offer: Offer) -> list[Output]:
        item = offer.item
        self.handled += offer.member != self.key
        self.arrived[offer.member, item.id] = now
        self.latest = max(self.latest, item.end)
        self.last_offer = now
        if offer.member == self.key:
            return self.forward(item)
        for interest in self._interests_from(offer):
            self.store.interests.setdefault(interest_key(interest), interest)
            self._interest(now, interest, offer.value)
        for pattern in self.ordered.values():
            pattern.add(now, item)
        out: list[Output] = []
        for relationship, composite in self.context.cube.arrive(self.key, offer.member, item):
            for subscriber in self.context.cube.subscribers(self.key, relationship):
                out += self._detected(subscriber, composite, offer)
        return out

    def _interests_from(self, offer: Offer) -> Iterator[Interest]:
        """The interests in this rendezvous, from the plans that came with an event."""
        for plan in offer.plans:
            root = plan.node
            assert isinstance(root, Compound)
            for compound in compounds_of(root):
                if value_key(compound.key, offer.value) != self.key:
                    continue
                if compound is root:
                    yield Interest(compound, plan.subscriber)
                else:
                    for parent in parent_of(root, compound.key):
                        yield Interest(compound, rendezvous(value_key(parent.key, offer.value)))

    def only_forwards(self, offer: Offer) -> bool:
        """Whether this is a topic with only rendezvous as subscribers, for which nothing must be stored."""
        if offer.member != self.key:
            return False
        subscribers = self.context.plane.scan(self.key)
        return bool(subscribers) and all(subscriber.is_rendezvous for subscriber in subscribers)

    def forward(self, item: Item) -> list[Output]:
        """Forward a primitive event to the subscribers of its topic [Algorithm 2, lines 1 to 6]."""
        self.handled += 1
        out: list[Output] = []
        for subscriber in self.context.plane.scan(self.key):
            if subscriber.is_rendezvous:
                out.append((subscriber.key, Offer(self.key, item)))
            elif item.end > subscriber.since:
                [matched] = item.parts
                out.append((subscriber.key, ReportNotice(subscriber.id, report_of_event(matched, self.key))))
        return out

    def _detected(self, subscriber: Subscriber, composite: Item, offer: Offer) -> list[Output]:
        """Report or forward a composite to one of its subscribers [Algorithm 2, lines 14 to 17]."""
        if subscriber.is_rendezvous:
            plans = tuple(plan for plan in offer.plans if _wants(plan, subscriber.key, offer.value))
            return [(subscriber.key, Offer(self.key, composite, offer.value, plans))]
        if composite.first <= subscriber.since:
            return []
        return self._notices(subscriber, verify(subscriber.source, composite.parts, measure=self.context.measure))

    def _notices(self, subscriber: Subscriber, reports: list[Report]) -> list[Output]:
        return [(subscriber.key, ReportNotice(subscriber.id, report)) for report in reports]

    # time

    @property
    def due(self) -> int | None:
        """When an ordered pattern has something to do."""
        return min((due for pattern in self.ordered.values() if (due := pattern.due) is not None), default=None)

    def step(self, now: int) -> list[Output]:
        """Let ordered patterns process what is due; returns their reports."""
        out: list[Output] = []
        for interest in list(self.store.interests.values()):
            pattern = self.ordered.get(interest.subscriber.id)
            if pattern is not None:
                out += self._notices(interest.subscriber, pattern.step(now))
        return out

    def expired_items(self, now: int) -> list[Id]:
        """Ids of the items that can no longer contribute to a detection."""
        context = self.context
        expired = context.cube.expire(self.key, self.latest, grace=context.grace)
        if self._holds_nothing():
            expired += [number for (_, number), arrived in self.arrived.items() if arrived + context.grace < now]
        return expired

    @property
    def is_idle(self) -> bool:
        """Whether nothing here expires: there are interests without a lease, and no items."""
        store = self.store
        if not store.interests or store.log or self.arrived or self.ordered:
            return False
        return not any(interest.subscriber.lease for interest in store.interests.values())

    def _holds_nothing(self) -> bool:
        """Whether no item waits for another: a topic, or a disjunction."""
        joins = self.context.cube.joins.get(self.key, {})
        return not self.ordered and all(state.join.op == "or" for state in joins.values())

    def drop(self, ids: Iterable[Id]) -> None:
        """Forget the arrival of items that were deleted."""
        dropped = set(ids)
        self.arrived = {entry: arrived for entry, arrived in self.arrived.items() if entry[1] not in dropped}

    def checkpoints(self) -> Iterator[Checkpoint]:
        """New checkpoints of ordered patterns."""
        for name, pattern in self.ordered.items():
            checkpoint = pattern.checkpoint(name)
            if checkpoint is not None:
                yield checkpoint

    def expired_interests(self, now: int) -> list[Interest]:
        """The interests whose lease ran out."""
        return [
            interest
            for interest in self.store.interests.values()
            if (lease := interest.subscriber.lease) and self.renewed.get(interest.subscriber.id, now) + lease < now
        ]


def _plan_of(subscriber: Subscriber) -> Subscriber:
    """The subscriber of a split pattern, as it is registered at a topic."""
    return Subscriber(f"plan:{subscriber.id}", subscriber.key, subscriber.version)


def _wants(plan: Interest, key: Key, value: str) -> bool:
    """Whether a plan has a composite at this key."""
    return any(value_key(compound.key, value) == key for compound in compounds_of(plan.node))


def split_offers(entry: CatalogueEntry, item: Item) -> Iterable[tuple[Key, Offer]]:
    """The offers of an event of a split topic, sent directly to the composites of its values."""
    [matched] = item.parts
    member = entry.topic.key
    values = _values(matched, entry.topic.split)
    # Subscribers may share a composite: it gets the event once, with all their plans.
    plans: dict[Key, list[Interest]] = {}
    for plan in entry.plans:
        assert isinstance(plan.node, Compound)
        for parent in parent_of(plan.node, member):
            plans.setdefault(parent.key, []).append(plan)
    for key, wanting in plans.items():
        for value in values:
            yield value_key(key, value), Offer(member, item, value, tuple(wanting))


def _values(matched: MatchedEvent, attribute: str) -> list[str]:
    wanted = normalise(attribute)
    values = (value for name, value in matched.event().tuples if normalise(name) == wanted)
    return list(dict.fromkeys(_canonical(value) for value in values))


def _canonical(value: Any) -> str:
    """A text that is the same for values that a condition treats as equal."""
    if isinstance(value, str):
        return f"t{normalise(value)}"
    if isinstance(value, bool):
        return f"b{value}"
    return f"n{float(value)!r}" if isinstance(value, int | float) else f"m{to_instant(value)}"
