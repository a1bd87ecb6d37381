"""A node of the federation: an entry for publishers and subscribers, a hop, and a rendezvous, all in one.

Like the ring, it has no clock, no sockets and no chance of its own: messages, calls and time come in; messages,
deliveries and acknowledgements go out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from likewise.errors import BuildError
from likewise.events import Event, decode_line, encode_line
from likewise.language import Options, Profile, Subscription, parse_subscription
from likewise.overlay.cube.decompose import Compound, ProfileTopic, decompose, topic_of, topics_of
from likewise.overlay.cube.items import Carried, Id, Item, Report, id_of
from likewise.overlay.cube.plane import Subscriber
from likewise.overlay.node import wire as w
from likewise.overlay.node.catalogue import MatchingClassifier, TopicCatalogue, TopicClassifier
from likewise.overlay.node.custody import Outbox, parcel_id
from likewise.overlay.node.herald import TopicHerald
from likewise.overlay.node.keeper import Keeper
from likewise.overlay.node.rendezvous import ActiveRendezvous, Output, Workbench, split_offers
from likewise.overlay.ring.contacts import SECOND, RingArrival, RingSettings
from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.members import Ring
from likewise.overlay.ring.tables import Peer
from likewise.semantics import Measure

HEARD: Final = 100_000
_WARMING: Final = ("p: {kind = warm, size > 1}", "p: {kind = cold}")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Times in microseconds.

    `copies` is how many neighbours hold what a rendezvous holds; `slack` is how long patterns in one piece wait for
    events that others overtook; `grace` is how long items are kept beyond their use; `spread` splits composites over
    the attribute that their members have in common.
    """

    ring: RingSettings = field(default_factory=RingSettings)
    copies: int = 2
    retry: int = SECOND
    most_retry: int = 8 * SECOND
    slack: int = SECOND // 2
    grace: int = 30 * SECOND
    lease: int = 60 * SECOND
    warm: int = SECOND
    spread: bool = True
    outbox: int = 100_000


@dataclass(slots=True)
class Own:
    """A subscription that entered here."""

    name: str
    tree: ProfileTopic | Compound
    source: str
    since: int
    version: int
    renew_at: int
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class ReportDelivery:
    """A report for a subscription that entered here; `parcel` is to be acknowledged."""

    subscription: str
    report: Report
    parcel: Id
    origin: Peer


class OverlayNode:
    """One broker of the overlay."""

    def __init__(
        self,
        me: Peer,
        settings: NodeSettings | None = None,
        *,
        classify: TopicClassifier | None = None,
        measure: Measure | None = None,
        catalogue: TopicCatalogue | None = None,
        incarnation: str = "",
    ) -> None:
        self.settings = settings or NodeSettings()
        self.ring = Ring(me, self.settings.ring)
        self.bench = Workbench(measure=measure, slack=self.settings.slack, grace=self.settings.grace)
        self.keeper = Keeper(
            self.ring,
            self.bench,
            copies=self.settings.copies,
            retry=self.settings.retry,
            emit=self._emit,
            publicise=self._publicise,
        )
        self.outbox = Outbox(retry=self.settings.retry, most_retry=self.settings.most_retry)
        self.herald = TopicHerald(
            self.ring, TopicCatalogue() if catalogue is None else catalogue, retry=self.settings.retry
        )
        self.classify: TopicClassifier = MatchingClassifier() if classify is None else classify
        self.own: dict[str, Own] = {}
        self.deliveries: list[ReportDelivery] = []
        self.acknowledged: list[Id] = []
        self.confirmed: list[str] = []
        self.counts: Counter[str] = Counter()
        self._incarnation = incarnation
        self._published = 0
        self._publications: dict[Id, set[Id]] = {}
        self._of_parcel: dict[Id, Id] = {}
        self._heard: dict[Id, None] = {}
        self._in_delivery: dict[Id, ReportDelivery] = {}
        self._ended: dict[str, None] = {}
        self._fences: dict[Key, w.Epoch] = {}
        self._held: list[RingArrival] = []
        self._receipts: dict[Key, tuple[Peer, list[Id]]] = {}
        self._version = 0
        self._warm_at = 0
        self._chores_at = 0
        self._early: list[tuple[Id, Event]] = []

    @property
    def me(self) -> Peer:
        """This node."""
        return self.ring.me

    @property
    def catalogue(self) -> TopicCatalogue:
        """All topics that someone wants."""
        return self.herald.catalogue

    @property
    def ready(self) -> bool:
        """Whether this node has its place in the ring and knows what others want."""
        return self.ring.joined and self.herald.informed

    @property
    def plane(self) -> Any:
        """The Plane of this node's topics."""
        return self.bench.plane

    @property
    def cube(self) -> Any:
        """The CECube of this node's composites."""
        return self.bench.cube

    # life

    def start(self, now: int, gates: Iterable[Peer] = ()) -> None:
        """Join through one of the gates, or be the first node."""
        gates = tuple(gates)
        self.ring.start(now, gates)
        self._chores_at = now + SECOND
        self._warm_at = now + self.settings.warm if gates else now
        # A new node learns first what others want: else it would take their events for unwanted.
        if not self.ring.joined:
            self.herald.doubt(now)

    def warm_up(self) -> None:
        """Do once what takes long the first time: the matcher's compiled parts are loaded, the measure is read."""
        catalogue = TopicCatalogue()
        bodies = [parse_subscription(text).body for text in _WARMING]
        catalogue.merge([w.Listed(topic_of(body, Options()), 1, True) for body in bodies if isinstance(body, Profile)])
        event = Event("warming", (("kind", "warm"), ("size", 2)), (), 1, 1)
        self.classify((event,), catalogue)
        self.classify((event,), self.catalogue)

    def leave(self, now: int) -> None:
        """Hand everything over, and leave the ring."""
        self.keeper.leave()
        self._pump(now)
        self.ring.leave()

    # subscribing

    def subscribe(
        self,
        now: int,
        subscription: Subscription,
        *,
        known: Mapping[str, Subscription] | None = None,
        id: str = "",
        version: int = 0,
        since: int | None = None,
    ) -> str:
        """Subscribe from now on; gives the id of the subscription, which a client takes along to another node."""
        tree = decompose(subscription, known, spread=self.settings.spread)
        if isinstance(self.classify, MatchingClassifier):
            self.classify.check(topics_of(tree))
        self._published += 1
        name = id or f"{self.me.id.hex()[:12]}-{self._incarnation}{self._published}-{subscription.name}"
        source = tree.source if isinstance(tree, Compound) else ""
        begin = now if since is None else since
        self.own[name] = Own(subscription.name, tree, source, begin, version, now + self.settings.lease // 3)
        self._renew(now, name)
        self._pump(now)
        return name

    def _subscriber(self, name: str) -> Subscriber:
        own = self.own[name]
        return Subscriber(name, self.me.id, own.version, own.source, own.since, self.settings.lease)

    def _renew(self, now: int, name: str) -> None:
        own = self.own[name]
        self._post(now, own.tree.key, w.Interest(own.tree, self._subscriber(name)))

    def unsubscribe(self, now: int, name: str) -> None:
        """End a subscription."""
        if name not in self.own:
            raise BuildError(f"there is no subscription {name!r} at this node", hint="unsubscribe where it entered")
        subscriber = self._subscriber(name)
        tree = self.own.pop(name).tree
        self._ended[name] = None
        self._post(now, tree.key, w.Disinterest(tree, subscriber))
        self._pump(now)

    def abandon(self, name: str) -> None:
        """The subscriber is gone, perhaps to another node: its subscription lapses unless it is renewed there."""
        self.own.pop(name, None)
        for parcel in [key for key, each in self._in_delivery.items() if each.subscription == name]:
            del self._in_delivery[parcel]

    # publishing

    def publish(self, now: int, event: Event, *, id: Id | None = None) -> Id:
        """Match an event and send it to the topics that want it; it is acknowledged when all have it."""
        if len(self.outbox) >= self.settings.outbox:
            self.counts["refused"] += 1
            raise BuildError("this node has too many events under way", hint="publish more slowly, or elsewhere")
        self._published += 1
        number = id or id_of("publication", self.me.id, self._incarnation, str(self._published))
        # The event as others will read it.
        self.publish_all(now, [(number, decode_line(encode_line(event.stamped(now))))])
        return number

    def publish_all(self, now: int, publications: Sequence[tuple[Id, Event]]) -> None:
        """Publish events as they were read, matched together; each has the number by which it is acknowledged."""
        self.counts["published"] += len(publications)
        self._early += publications
        self._pump(now)

    def _offer_early(self, now: int) -> None:
        early, self._early = self._early, []
        ready = [event.stamped(now) for _, event in early]
        for (number, _), event, hits in zip(early, ready, self.classify(ready, self.catalogue), strict=True):
            self._offer(now, Carried.of(number, event, hits))

    def _offer(self, now: int, carried: Carried) -> None:
        number = carried.id
        waiting = {
            parcel
            for to, offer in self._offers(carried)
            if (parcel := self._post(now, to, offer)) in self.outbox.waiting
        }
        if waiting:
            self._publications[number] = waiting
            self._of_parcel |= dict.fromkeys(waiting, number)
        else:
            self.acknowledged.append(number)

    def _offers(self, carried: Carried) -> Iterable[tuple[Key, w.Offer]]:
        item = Item.of(carried)
        for hit in carried.hits:
            for key, listed in self._listed(hit.topic):
                if not listed.topic.split:
                    yield key, w.Offer(key, item)
                else:
                    yield from split_offers(listed, item)

    def _listed(self, topic: Key) -> list[tuple[Key, w.Listed]]:
        """The topics of one text: whole, and split in several ways."""
        text = self.catalogue.texts.get(topic)
        return [] if text is None else list(self.catalogue.by_text.get(text, {}).items())

    # parcels

    def _post(self, now: int, to: Key, body: Any, source: ActiveRendezvous | None = None) -> Id:
        """Send a body to the root of a key, until someone has it."""
        number = parcel_id(to, body)
        epoch = w.NEVER if source is None else source.store.epoch
        parcel = w.Parcel(number, body, b"" if source is None else source.key, epoch)
        if self.outbox.add(now, to, parcel):
            self.ring.route(now, to, parcel)
        return number

    def _emit(self, now: int, source: ActiveRendezvous, outputs: list[Output]) -> list[Id]:
        posted = [self._post(now, to, body, source) for to, body in outputs]
        return [number for number in posted if number in self.outbox.waiting]

    def _received(self, id: Id, now: int = 0) -> None:
        outgoing = self.outbox.done(id, now)
        if outgoing is None:
            return
        self.keeper.received(id)
        body = outgoing.parcel.body
        if isinstance(body, w.Interest) and (own := self.own.get(body.subscriber.id)) is not None and not own.confirmed:
            own.confirmed = True
            self.confirmed.append(body.subscriber.id)
        publication = self._of_parcel.pop(id, None)
        if publication is not None:
            rest = self._publications[publication]
            rest.discard(id)
            if not rest:
                del self._publications[publication]
                self.acknowledged.append(publication)

    def acknowledge(self, delivery: ReportDelivery) -> None:
        """The subscriber has a report."""
        if self._in_delivery.pop(delivery.parcel, None) is not None:
            self._heard[delivery.parcel] = None
            if len(self._heard) > HEARD:
                del self._heard[next(iter(self._heard))]
            self._receipt(delivery.origin, delivery.parcel)

    def acknowledge_parcel(self, parcel: Id) -> None:
        """The subscriber has the report in this parcel."""
        delivery = self._in_delivery.get(parcel)
        if delivery is not None:
            self.acknowledge(delivery)

    def _receipt(self, origin: Peer, id: Id) -> None:
        if origin.id == self.me.id:
            self._received(id)
        elif (owed := self._receipts.get(origin.id)) is not None:
            owed[1].append(id)
        else:
            self._receipts[origin.id] = (origin, [id])

    # arrivals

    def _arrive(self, now: int, arrival: RingArrival) -> None:
        payload = arrival.payload
        if isinstance(payload, w.Copy):
            self.keeper.copy(now, arrival.origin, payload)
        elif isinstance(payload, w.Parcel):
            if self._is_fenced(now, arrival, payload):
                return
            if isinstance(payload.body, w.ReportNotice):
                self._deliver(arrival, payload)
            elif now < self._warm_at and arrival.key not in self.keeper.stores:
                # What a new neighbour knows of this key is on its way.
                self._held.append(arrival)
            else:
                self._take(now, arrival, payload)
        else:
            self.counts["unknown"] += 1

    def _take(self, now: int, arrival: RingArrival, parcel: w.Parcel) -> None:
        assert not isinstance(parcel.body, w.ReportNotice)
        self.keeper.take(now, arrival.key, parcel.body, (arrival.origin, parcel.id))
        if not isinstance(parcel.body, w.Offer):
            self._redirect(now, parcel.body.subscriber)

    def _redirect(self, now: int, subscriber: Subscriber) -> None:
        """A subscriber has moved to another node: what waits for it goes there."""
        if subscriber.is_rendezvous:
            return
        for outgoing in self.outbox.waiting.values():
            body = outgoing.parcel.body
            theirs = isinstance(body, w.ReportNotice) and body.subscription == subscriber.id
            if theirs and outgoing.to != subscriber.key:
                outgoing.to = subscriber.key
                self.ring.route(now, outgoing.to, outgoing.parcel)

    def _is_fenced(self, now: int, arrival: RingArrival, parcel: w.Parcel) -> bool:
        """Whether the sender's rendezvous has a successor: then it must not report."""
        if not parcel.source:
            return False
        known = self._fences.get(parcel.source, w.NEVER)
        if parcel.epoch < known:
            self.counts["fenced"] += 1
            refusal = w.Refusal(parcel.id, parcel.source, known)
            if arrival.origin.id != self.me.id:
                self.ring.sends.append((arrival.origin, refusal))
            else:
                self._refusal_came(now, self.me, refusal)
            return True
        self._fences[parcel.source] = parcel.epoch
        if len(self._fences) > HEARD:
            del self._fences[next(iter(self._fences))]
        return False

    def _deliver(self, arrival: RingArrival, parcel: w.Parcel) -> None:
        notice = parcel.body
        assert isinstance(notice, w.ReportNotice)
        if arrival.key != self.me.id:
            return
        if parcel.id in self._heard or notice.subscription in self._ended:
            self._receipt(arrival.origin, parcel.id)
            return
        if notice.subscription not in self.own:
            return
        delivery = ReportDelivery(notice.subscription, notice.report, parcel.id, arrival.origin)
        if parcel.id not in self._in_delivery:
            self.deliveries.append(delivery)
        self._in_delivery[parcel.id] = delivery

    # the catalogue

    def _publicise(self, now: int, rendezvous: ActiveRendezvous, again: bool) -> list[Id]:
        """A topic that someone wants, or that nobody wants any more, is made known to all."""
        interests = list(rendezvous.store.interests.values())
        topics = {interest.node for interest in interests if isinstance(interest.node, ProfileTopic)}
        known = self.catalogue.entries.get(rendezvous.key)
        if not topics and (known is None or not known.alive):
            return []
        topic = known.topic if known is not None else next(iter(topics))
        plans = tuple(plan for interest in interests for plan in interest.plans)
        entry = known
        if known is None or known.alive != bool(topics) or not _same_plans(known.plans, plans):
            entry = w.Listed(topic, 1 if known is None else known.version + 1, bool(topics), plans)
        assert entry is not None
        return self.herald.spread(now, entry, wait=bool(topics), again=again)

    def _topics_came(self, now: int, sender: Peer, message: w.Topics) -> None:
        self.herald.topics_came(now, sender, message)

    def _topics_known_came(self, _now: int, sender: Peer, message: w.TopicsKnown) -> None:
        self.herald.known_came(sender, message)

    def _ask_topics_came(self, _now: int, sender: Peer, message: w.AskTopics) -> None:
        self.herald.ask_came(sender, message)

    # messages and time

    def receive(self, now: int, sender: Peer, message: Any) -> None:
        """A message from a peer."""
        handler = _HANDLERS.get(type(message))
        if handler is None:
            self.ring.receive(now, sender, message)
        elif self.ring.joined:
            self.ring.hear(now, sender)
            handler(self, now, sender, message)
        self._pump(now)

    def refused(self, now: int, peer: Peer) -> None:
        """Nobody listens any more where a peer did."""
        self.ring.refused(now, peer)
        self._pump(now)

    def _receipt_came(self, now: int, _sender: Peer, message: w.ParcelReceipt) -> None:
        for number in message.ids:
            self._received(number, now)

    def _refusal_came(self, now: int, _sender: Peer, message: w.Refusal) -> None:
        self.keeper.fenced(now, w.Fenced(message.source, message.epoch))
        led = self.keeper.led.get(message.source)
        if led is None:
            # The successor has what this parcel came from.
            self.outbox.drop(message.id)
            return
        outgoing = self.outbox.waiting.get(message.id)
        if outgoing is not None and outgoing.parcel.epoch < led.rendezvous.store.epoch:
            outgoing.parcel = msgspec.structs.replace(outgoing.parcel, epoch=led.rendezvous.store.epoch)
            self.ring.route(now, outgoing.to, outgoing.parcel)

    def _replicate_came(self, now: int, sender: Peer, message: w.Replicate) -> None:
        self.keeper.replicate(now, sender, message)

    def _replicated_came(self, _now: int, sender: Peer, message: w.Replicated) -> None:
        self.keeper.replicated(sender, message)

    def _copy_came(self, now: int, sender: Peer, message: w.Copy) -> None:
        self.keeper.copy(now, sender, message)

    def _fenced_came(self, now: int, _sender: Peer, message: w.Fenced) -> None:
        self.keeper.fenced(now, message)

    def _pump(self, now: int) -> None:
        """Let what came in bring about what follows."""
        ring, keeper = self.ring, self.keeper
        if ring.version != self._version:
            self._version = ring.version
            self.herald.neighbours_changed(now)
            keeper.review(now)
        if self._early and self.ready:
            self._offer_early(now)
        while ring.arrivals or keeper.has_work or self.herald.complete:
            arrivals, ring.arrivals = ring.arrivals, []
            for arrival in arrivals:
                self._arrive(now, arrival)
            routes, keeper.routes = keeper.routes, []
            for key, payload in routes:
                ring.route(now, key, payload)
            changed, keeper.changed = keeper.changed, []
            for rendezvous in changed:
                self._publicise(now, rendezvous, False)
            complete, self.herald.complete = self.herald.complete, []
            for number in complete:
                keeper.received(number)
            receipts, keeper.receipts = keeper.receipts, []
            for origin, number in receipts:
                self._receipt(origin, number)

    @property
    def due(self) -> int | None:
        """When `tick` has something to do."""
        due = self.ring.due
        for moment in (self.outbox.due, self.keeper.due, self._next_chores):
            if moment is not None and (due is None or moment < due):
                due = moment
        return due

    @property
    def _next_chores(self) -> int | None:
        if not self.ring.joined:
            return None
        if self.herald.is_restless:
            return self._chores_at
        due = self.keeper.chores_due(self._chores_at)
        renewal = min(own.renew_at for own in self.own.values()) if self.own else None
        return due if renewal is None or (due is not None and due <= renewal) else max(renewal, self._chores_at)

    def tick(self, now: int) -> None:
        """Time has come to `now`."""
        pauses = self.ring.counts["pauses"]
        self.ring.tick(now)
        if self.ring.counts["pauses"] != pauses:
            self.herald.doubt(now)
        self.keeper.step(now)
        for outgoing in self.outbox.again(now):
            self.ring.route(now, outgoing.to, outgoing.parcel)
        if self._held and now >= self._warm_at:
            held, self._held = self._held, []
            for arrival in held:
                self._arrive(now, arrival)
        if now >= self._chores_at:
            self._chores_at = now + SECOND
            self._chores(now)
        self._pump(now)

    def _chores(self, now: int) -> None:
        self.keeper.chores(now)
        self.herald.chores(now)
        for name, own in self.own.items():
            if now >= own.renew_at:
                own.renew_at = now + self.settings.lease // 3
                own.version += 1
                self._renew(now, name)

    def flush(self) -> list[tuple[Peer, Any]]:
        """What is to be sent."""
        if self.keeper.has_mail:
            self.ring.sends += self.keeper.flush()
        if self._receipts:
            self.ring.sends += [(peer, w.ParcelReceipt(tuple(ids))) for peer, ids in self._receipts.values()]
            self._receipts.clear()
        return self.ring.flush()


def _same_plans(left: tuple[w.Interest, ...], right: tuple[w.Interest, ...]) -> bool:
    return {(plan.subscriber.id, plan.subscriber.key) for plan in left} == {
        (plan.subscriber.id, plan.subscriber.key) for plan in right
    }


_HANDLERS: Final[dict[type, Any]] = {
    w.ParcelReceipt: OverlayNode._receipt_came,
    w.Refusal: OverlayNode._refusal_came,
    w.Replicate: OverlayNode._replicate_came,
    w.Replicated: OverlayNode._replicated_came,
    w.Copy: OverlayNode._copy_came,
    w.Fenced: OverlayNode._fenced_came,
    w.Topics: OverlayNode._topics_came,
    w.TopicsKnown: OverlayNode._topics_known_came,
    w.AskTopics: OverlayNode._ask_topics_came,
}

__all__ = ["NodeSettings", "OverlayNode", "Own", "ReportDelivery"]
