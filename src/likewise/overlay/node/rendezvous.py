"""A rendezvous at work: what comes in for a key, and what goes out to whom [001 Algorithms 1 and 2].

A topic has its line in the node's Plane, a composite its CellMatrix in the node's cube. Both are made anew from the
store when a node takes a key over; what was reported before is reported again with the same ids, and known to those
who had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from likewise.events import normalise, to_instant
from likewise.overlay.cube.cells import Cube
from likewise.overlay.cube.composing import report_of_event, verify
from likewise.overlay.cube.decompose import Compound, ProfileTopic, compounds_of, levels_of, reach_of, topics_of
from likewise.overlay.cube.items import Carried, Id, Item, Report
from likewise.overlay.cube.plane import Plane, Subscriber, rendezvous
from likewise.overlay.node.regions import Region
from likewise.overlay.node.store import Store, interest_key
from likewise.overlay.node.wire import Disinterest, Interest, Listed, Mark, Offer, Operation, ReportNotice
from likewise.overlay.ring.ids import Key, key_of
from likewise.semantics import Measure

Output = tuple[Key, Any]
"""A body, and the key of where it goes."""


@dataclass(slots=True)
class Workbench:
    """What all rendezvous of a node share."""

    plane: Plane = field(default_factory=Plane)
    cube: Cube = field(default_factory=Cube)
    measure: Measure | None = None
    slack: int = 500_000
    grace: int = 30_000_000


def value_key(key: Key, value: str) -> Key:
    """The rendezvous of one value of a composite that is split."""
    return key_of(key + value.encode()) if value else key


def parent_of(root: Compound, member: Key) -> Iterator[Compound]:
    """The composites of a tree of which something is a member."""
    for compound in compounds_of(root):
        if any(each.key == member for each in compound.members):
            yield compound


class ActiveRendezvous:
    """The active side of a store, at the root of its key."""

    def __init__(self, store: Store, bench: Workbench) -> None:
        self.store = store
        self.bench = bench
        self.regions: dict[str, Region] = {}
        self.renewed: dict[str, int] = {}
        self.handled = 0
        self.arrived: dict[tuple[Key, Id], int] = {}
        self.latest = 0
        self.quiet = 0
        self.version = 0
        """Of the interest in the members: the next one is later, also after an end of it."""

    @property
    def key(self) -> Key:
        """The key of the store."""
        return self.store.key

    def begin(self, now: int) -> list[Output]:
        """Take the key over: everything is built from the store, and sent once more."""
        out: list[Output] = []
        for interest in list(self.store.interests.values()):
            out += self._interest(now, interest)
        for offer in list(self.store.log.values()):
            out += self._offer(now, offer)
        return out

    def end(self) -> None:
        """Give the key up."""
        for interest in self.store.interests.values():
            self._forget(self.quiet, interest)
        self.regions.clear()

    def take(self, now: int, operation: Operation) -> list[Output]:
        """An operation that the store has just applied."""
        if isinstance(operation, Offer):
            return self._offer(now, operation)
        if isinstance(operation, Interest):
            return self._interest(now, operation)
        if isinstance(operation, Disinterest):
            return self._forget(now, operation)
        if isinstance(operation, Mark) and operation.relationship in self.regions:
            self.regions[operation.relationship].restore(operation)
        return []

    # subscription

    def _interest(self, now: int, interest: Interest, value: str = "") -> list[Output]:
        node, subscriber = interest.node, interest.subscriber
        self.renewed[subscriber.id] = now
        if isinstance(node, ProfileTopic):
            self.bench.plane.subscribe(self.key, subscriber)
            return []
        if node.split and node.key == self.key:
            return [(topic.key, Interest(topic, _plan_of(subscriber), (interest,))) for topic in topics_of(node)]
        if node.join is None:
            new = not self.regions
            self._region(interest)
        elif node.split and not value:
            # The cells of a value are made when something with this value comes.
            return []
        else:
            members = tuple(value_key(each.key, value if isinstance(each, Compound) else "") for each in node.members)
            new = self.bench.cube.index(self.key, members, node.join, subscriber)
        if node.split:
            return []
        if new:
            self.version = max(now, self.version + 1)
        # To another subscriber too: what was sent before is known, and waited for if it has not arrived.
        me = rendezvous(self.key, self.version)
        return [(member.key, Interest(member, me)) for member in dict.fromkeys(node.members)]

    def _region(self, interest: Interest) -> None:
        subscriber = interest.subscriber
        if subscriber.id in self.regions:
            return
        bench = self.bench
        # What comes through other rendezvous is on its way for longer, and its first events are older.
        region = Region(
            subscriber.source,
            since=subscriber.since,
            slack=bench.slack * levels_of(interest.node),
            reach=reach_of(interest.node) or 0,
            measure=bench.measure,
        )
        mark = self.store.marks.get(subscriber.id)
        if mark is not None:
            region.restore(mark)
        self.regions[subscriber.id] = region

    def _forget(self, now: int, operation: Interest | Disinterest) -> list[Output]:
        node, subscriber = operation.node, operation.subscriber
        self.renewed.pop(subscriber.id, None)
        if isinstance(node, ProfileTopic):
            self.bench.plane.unsubscribe(self.key, subscriber.id)
            return []
        if node.split and node.key == self.key:
            return [(topic.key, Disinterest(topic, _plan_of(subscriber))) for topic in topics_of(node)]
        if node.join is None:
            self.regions.pop(subscriber.id, None)
            gone = not self.regions
        else:
            gone = self.bench.cube.remove(self.key, node.relationship, subscriber.id)
        if not gone or node.split:
            return []
        self.version = max(now, self.version)
        me = rendezvous(self.key, self.version)
        return [(member.key, Disinterest(member, me)) for member in dict.fromkeys(node.members)]

    # publication

    def _offer(self, now: int, offer: Offer) -> list[Output]:
        item = offer.item
        self.handled += offer.member != self.key
        self.arrived[offer.member, item.id] = now
        self.latest = max(self.latest, item.end)
        self.quiet = now
        if offer.member == self.key:
            return self.forward(item)
        for interest in self._plans(offer):
            self.store.interests.setdefault(interest_key(interest), interest)
            self._interest(now, interest, offer.value)
        for region in self.regions.values():
            region.add(now, item)
        out: list[Output] = []
        for relationship, made in self.bench.cube.arrive(self.key, offer.member, item):
            for subscriber in self.bench.cube.subscribers(self.key, relationship):
                out += self._made(subscriber, made, offer)
        return out

    def _plans(self, offer: Offer) -> Iterator[Interest]:
        """What the plans that came with an event want of this rendezvous."""
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
        """Whether this is a topic that only rendezvous have subscribed to: nothing is to be kept for them."""
        if offer.member != self.key:
            return False
        subscribers = self.bench.plane.scan(self.key)
        return bool(subscribers) and all(subscriber.is_rendezvous for subscriber in subscribers)

    def forward(self, item: Item) -> list[Output]:
        """A primitive event at the root of its topic [Algorithm 2, lines 1 to 6]."""
        self.handled += 1
        out: list[Output] = []
        for subscriber in self.bench.plane.scan(self.key):
            if subscriber.is_rendezvous:
                out.append((subscriber.key, Offer(self.key, item)))
            elif item.end > subscriber.since:
                [carried] = item.parts
                out.append((subscriber.key, ReportNotice(subscriber.id, report_of_event(carried, self.key))))
        return out

    def _made(self, subscriber: Subscriber, made: Item, offer: Offer) -> list[Output]:
        """A composite that came about, for one of its subscribers [Algorithm 2, lines 14 to 17]."""
        if subscriber.is_rendezvous:
            plans = tuple(plan for plan in offer.plans if _wants(plan, subscriber.key, offer.value))
            return [(subscriber.key, Offer(self.key, made, offer.value, plans))]
        if made.first <= subscriber.since:
            return []
        return self._notices(subscriber, verify(subscriber.source, made.parts, measure=self.bench.measure))

    def _notices(self, subscriber: Subscriber, reports: list[Report]) -> list[Output]:
        return [(subscriber.key, ReportNotice(subscriber.id, report)) for report in reports]

    # time

    @property
    def due(self) -> int | None:
        """When a pattern in one piece has something to do."""
        return min((due for region in self.regions.values() if (due := region.due) is not None), default=None)

    def step(self, now: int) -> list[Output]:
        """Let patterns in one piece go on."""
        out: list[Output] = []
        for interest in list(self.store.interests.values()):
            region = self.regions.get(interest.subscriber.id)
            if region is not None:
                out += self._notices(interest.subscriber, region.step(now))
        return out

    def old(self, now: int) -> list[Id]:
        """Items that can no longer contribute."""
        bench = self.bench
        gone = bench.cube.expire(self.key, self.latest, grace=bench.grace)
        if self._holds_nothing():
            gone += [number for (_, number), arrived in self.arrived.items() if arrived + bench.grace < now]
        return gone

    @property
    def is_at_rest(self) -> bool:
        """Whether time changes nothing here: others are waited for, and nothing is held."""
        store = self.store
        if not store.interests or store.log or self.arrived or self.regions:
            return False
        return not any(interest.subscriber.lease for interest in store.interests.values())

    def _holds_nothing(self) -> bool:
        """Whether no item waits for another: a topic, or a pattern of alternatives."""
        meetings = self.bench.cube.meetings.get(self.key, {})
        return not self.regions and all(meeting.join.op == "or" for meeting in meetings.values())

    def forget(self, ids: Iterable[Id]) -> None:
        """Items that were trimmed."""
        gone = set(ids)
        self.arrived = {at: arrived for at, arrived in self.arrived.items() if at[1] not in gone}

    def marks(self) -> Iterator[Mark]:
        """New marks of patterns in one piece."""
        for name, region in self.regions.items():
            mark = region.mark(name)
            if mark is not None:
                yield mark

    def lapsed(self, now: int) -> list[Interest]:
        """Subscriptions that nobody renewed."""
        return [
            interest
            for interest in self.store.interests.values()
            if (lease := interest.subscriber.lease) and self.renewed.get(interest.subscriber.id, now) + lease < now
        ]


def _plan_of(subscriber: Subscriber) -> Subscriber:
    """The subscriber of a split pattern, as the registry of a topic knows it."""
    return Subscriber(f"plan:{subscriber.id}", subscriber.key, subscriber.version)


def _wants(plan: Interest, key: Key, value: str) -> bool:
    """Whether a plan has a composite at this rendezvous."""
    return any(value_key(compound.key, value) == key for compound in compounds_of(plan.node))


def split_offers(listed: Listed, item: Item) -> Iterable[tuple[Key, Offer]]:
    """An event of a split topic, straight to the composites of its values."""
    [carried] = item.parts
    member = listed.topic.key
    values = _values(carried, listed.topic.split)
    # Several subscribers may share a composite: it gets the event once, with all their plans.
    plans: dict[Key, list[Interest]] = {}
    for plan in listed.plans:
        assert isinstance(plan.node, Compound)
        for parent in parent_of(plan.node, member):
            plans.setdefault(parent.key, []).append(plan)
    for key, wanting in plans.items():
        for value in values:
            yield value_key(key, value), Offer(member, item, value, tuple(wanting))


def _values(carried: Carried, attribute: str) -> list[str]:
    wanted = normalise(attribute)
    values = (value for name, value in carried.event().tuples if normalise(name) == wanted)
    return list(dict.fromkeys(_canonical(value) for value in values))


def _canonical(value: Any) -> str:
    """The same for values that are equal to a condition."""
    if isinstance(value, str):
        return f"t{normalise(value)}"
    if isinstance(value, bool):
        return f"b{value}"
    return f"n{float(value)!r}" if isinstance(value, int | float) else f"m{to_instant(value)}"
