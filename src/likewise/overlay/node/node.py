"""A node of the federation: entry for publishers and subscribers, router, and rendezvous.

Like the ring, it has no clock, no sockets and no randomness: calls, messages and time come in; messages, deliveries
and acknowledgements go out.
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
from likewise.overlay.cube.items import Id, Item, MatchedEvent, Report, id_of
from likewise.overlay.cube.plane import Subscriber
from likewise.overlay.node import wire as w
from likewise.overlay.node.broadcast import TopicBroadcast
from likewise.overlay.node.catalogue import MatchingClassifier, TopicCatalogue, TopicClassifier
from likewise.overlay.node.outbox import Outbox, parcel_id
from likewise.overlay.node.rendezvous import ActiveRendezvous, Output, RendezvousContext, split_offers
from likewise.overlay.node.replication import Replication
from likewise.overlay.ring.contacts import SECOND, RingArrival, RingSettings
from likewise.overlay.ring.ids import Key
from likewise.overlay.ring.ring import Ring
from likewise.overlay.ring.tables import Peer
from likewise.semantics import Measure

MAX_REMEMBERED: Final = 100_000
"""Delivered reports, and epochs of rendezvous, that are remembered."""
_WARM_UP: Final = ("p: {kind = warm, size > 1}", "p: {kind = cold}")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Times in microseconds.

    `copies` is the number of replicas of a rendezvous; `slack` is how long patterns in one piece wait for late events;
    `grace` is how long items are kept after their window; `lease` is how long a subscription lives without renewal;
    `warm` is how long a new node holds parcels for keys whose state may be on its way; `spread` splits composites by
    the attribute that their members share; `outbox` is the maximum number of unacknowledged parcels.
    """

    ring: RingSettings = field(default_factory=RingSettings)
    copies: int = 2
    retry: int = SECOND
    max_retry: int = 8 * SECOND
    slack: int = SECOND // 2
    grace: int = 30 * SECOND
    lease: int = 60 * SECOND
    warm: int = SECOND
    spread: bool = True
    outbox: int = 100_000


@dataclass(slots=True)
class LocalSubscription:
    """A subscription made at this node."""

    name: str
    tree: ProfileTopic | Compound
    source: str
    since: int
    version: int
    renew_at: int
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class ReportDelivery:
    """A report for a subscription of this node; `parcel` is to be acknowledged."""

    subscription: str
    report: Report
    parcel: Id
    origin: Peer


class OverlayNode:
    """One broker of the overlay.

    The driver collects `deliveries` (reports), `acknowledged` (publications) and `confirmed` (subscriptions).
    """

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
        self.context = RendezvousContext(measure=measure, slack=self.settings.slack, grace=self.settings.grace)
        self.replication = Replication(
            self.ring,
            self.context,
            copies=self.settings.copies,
            retry=self.settings.retry,
            emit=self._emit,
            announce=self._announce,
        )
        self.outbox = Outbox(retry=self.settings.retry, max_retry=self.settings.max_retry)
        self.broadcast = TopicBroadcast(
            self.ring, TopicCatalogue() if catalogue is None else catalogue, retry=self.settings.retry
        )
        self.classify: TopicClassifier = MatchingClassifier() if classify is None else classify
        self.subscriptions: dict[str, LocalSubscription] = {}
        self.deliveries: list[ReportDelivery] = []
        self.acknowledged: list[Id] = []
        self.confirmed: list[str] = []
        self.counts: Counter[str] = Counter()
        self._incarnation = incarnation
        self._published = 0
        self._publications: dict[Id, set[Id]] = {}
        self._publication_of: dict[Id, Id] = {}
        self._delivered: dict[Id, None] = {}
        self._undelivered: dict[Id, ReportDelivery] = {}
        self._ended: dict[str, None] = {}
        self._epochs: dict[Key, w.Epoch] = {}
        self._held: list[RingArrival] = []
        self._receipts: dict[Key, tuple[Peer, list[Id]]] = {}
        self._version = 0
        self._warm_until = 0
        self._housekeeping_at = 0
        self._queued: list[tuple[Id, Event]] = []

    @property
    def me(self) -> Peer:
        """This node."""
        return self.ring.me

    @property
    def catalogue(self) -> TopicCatalogue:
        """All topics with a subscriber."""
        return self.broadcast.catalogue

    @property
    def ready(self) -> bool:
        """Whether this node has joined the ring and has a complete catalogue."""
        return self.ring.joined and self.broadcast.synchronised

    @property
    def plane(self) -> Any:
        """The Plane of this node's topics."""
        return self.context.plane

    @property
    def cube(self) -> Any:
        """The CECube of this node's composites."""
        return self.context.cube

    # start and end

    def start(self, now: int, bootstrap: Iterable[Peer] = ()) -> None:
        """Join through one of the bootstrap nodes, or be the first node."""
        bootstrap = tuple(bootstrap)
        self.ring.start(now, bootstrap)
        self._housekeeping_at = now + SECOND
        self._warm_until = now + self.settings.warm if bootstrap else now
        # Without the catalogue of the others, a new node would drop events that have subscribers.
        if not self.ring.joined:
            self.broadcast.desynchronise(now)

    def warm_up(self) -> None:
        """Load the matcher's compiled code and the measure, which takes long the first time."""
        catalogue = TopicCatalogue()
        bodies = [parse_subscription(text).body for text in _WARM_UP]
        catalogue.merge(
            [w.CatalogueEntry(topic_of(body, Options()), 1, True) for body in bodies if isinstance(body, Profile)]
        )
        event = Event("warming", (("kind", "warm"), ("size", 2)), (), 1, 1)
        self.classify((event,), catalogue)
        self.classify((event,), self.catalogue)

    def leave(self, now: int) -> None:
        """Hand over all state, and leave the ring."""
        self.replication.leave()
        self._process(now)
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
        """Subscribe from now on; returns the id, with which a client can move the subscription to another node."""
        tree = decompose(subscription, known, spread=self.settings.spread)
        if isinstance(self.classify, MatchingClassifier):
            self.classify.check(topics_of(tree))
        self._published += 1
        name = id or f"{self.me.id.hex()[:12]}-{self._incarnation}{self._published}-{subscription.name}"
        source = tree.source if isinstance(tree, Compound) else ""
        begin = now if since is None else since
        self.subscriptions[name] = LocalSubscription(
            subscription.name, tree, source, begin, version, now + self.settings.lease // 3
        )
        self._renew(now, name)
        self._process(now)
        return name

    def _subscriber(self, name: str) -> Subscriber:
        subscription = self.subscriptions[name]
        return Subscriber(
            name, self.me.id, subscription.version, subscription.source, subscription.since, self.settings.lease
        )

    def _renew(self, now: int, name: str) -> None:
        subscription = self.subscriptions[name]
        self._post(now, subscription.tree.key, w.Interest(subscription.tree, self._subscriber(name)))

    def unsubscribe(self, now: int, name: str) -> None:
        """End a subscription."""
        if name not in self.subscriptions:
            raise BuildError(
                f"there is no subscription {name!r} at this node", hint="unsubscribe at the node where it was made"
            )
        subscriber = self._subscriber(name)
        tree = self.subscriptions.pop(name).tree
        self._ended[name] = None
        self._post(now, tree.key, w.EndInterest(tree, subscriber))
        self._process(now)

    def abandon(self, name: str) -> None:
        """Forget a subscription whose client disconnected; it expires unless it is renewed at another node."""
        self.subscriptions.pop(name, None)
        for parcel in [number for number, delivery in self._undelivered.items() if delivery.subscription == name]:
            del self._undelivered[parcel]

    # publishing

    def publish(self, now: int, event: Event, *, id: Id | None = None) -> Id:
        """Match an event and send it to the topics it matches; it is acknowledged when all of them have it."""
        if len(self.outbox) >= self.settings.outbox:
            self.counts["refused"] += 1
            raise BuildError(
                "this node has too many unacknowledged events", hint="publish more slowly, or at another node"
            )
        self._published += 1
        number = id or id_of("publication", self.me.id, self._incarnation, str(self._published))
        # Encode and decode, so that this node sees the event exactly as others will.
        self.publish_all(now, [(number, decode_line(encode_line(event.stamped(now))))])
        return number

    def publish_all(self, now: int, publications: Sequence[tuple[Id, Event]]) -> None:
        """Publish a batch of decoded events; each is acknowledged by its id."""
        self.counts["published"] += len(publications)
        self._queued += publications
        self._process(now)

    def _match_queued(self, now: int) -> None:
        queued, self._queued = self._queued, []
        ready = [event.stamped(now) for _, event in queued]
        for (number, _), event, hits in zip(queued, ready, self.classify(ready, self.catalogue), strict=True):
            self._offer(now, MatchedEvent.of(number, event, hits))

    def _offer(self, now: int, matched: MatchedEvent) -> None:
        number = matched.id
        waiting = {
            parcel
            for to, offer in self._offers(matched)
            if (parcel := self._post(now, to, offer)) in self.outbox.pending
        }
        if waiting:
            self._publications[number] = waiting
            self._publication_of |= dict.fromkeys(waiting, number)
        else:
            self.acknowledged.append(number)

    def _offers(self, matched: MatchedEvent) -> Iterable[tuple[Key, w.Offer]]:
        item = Item.of(matched)
        for hit in matched.hits:
            for key, entry in self._entries(hit.topic):
                if not entry.topic.split:
                    yield key, w.Offer(key, item)
                else:
                    yield from split_offers(entry, item)

    def _entries(self, topic: Key) -> list[tuple[Key, w.CatalogueEntry]]:
        """The catalogue entries with the text of a topic: unsplit, and split by attributes."""
        text = self.catalogue.texts.get(topic)
        return [] if text is None else list(self.catalogue.by_text.get(text, {}).items())

    # parcels

    def _post(self, now: int, to: Key, body: Any, source: ActiveRendezvous | None = None) -> Id:
        """Send a body to the root of a key, with retries until it is acknowledged; returns the parcel's id."""
        number = parcel_id(to, body)
        epoch = w.NEVER if source is None else source.store.epoch
        parcel = w.Parcel(number, body, b"" if source is None else source.key, epoch)
        if self.outbox.add(now, to, parcel):
            self.ring.route(now, to, parcel)
        return number

    def _emit(self, now: int, source: ActiveRendezvous, outputs: list[Output]) -> list[Id]:
        posted = [self._post(now, to, body, source) for to, body in outputs]
        return [number for number in posted if number in self.outbox.pending]

    def _parcel_acknowledged(self, id: Id, now: int = 0) -> None:
        outgoing = self.outbox.acknowledge(id, now)
        if outgoing is None:
            return
        self.replication.parcel_acknowledged(id)
        body = outgoing.parcel.body
        if (
            isinstance(body, w.Interest)
            and (subscription := self.subscriptions.get(body.subscriber.id)) is not None
            and not subscription.confirmed
        ):
            subscription.confirmed = True
            self.confirmed.append(body.subscriber.id)
        publication = self._publication_of.pop(id, None)
        if publication is not None:
            rest = self._publications[publication]
            rest.discard(id)
            if not rest:
                del self._publications[publication]
                self.acknowledged.append(publication)

    def acknowledge(self, delivery: ReportDelivery) -> None:
        """Acknowledge a report that the subscriber has received."""
        if self._undelivered.pop(delivery.parcel, None) is not None:
            self._delivered[delivery.parcel] = None
            if len(self._delivered) > MAX_REMEMBERED:
                del self._delivered[next(iter(self._delivered))]
            self._send_receipt(delivery.origin, delivery.parcel)

    def acknowledge_parcel(self, parcel: Id) -> None:
        """Acknowledge the report in this parcel."""
        delivery = self._undelivered.get(parcel)
        if delivery is not None:
            self.acknowledge(delivery)

    def _send_receipt(self, origin: Peer, id: Id) -> None:
        if origin.id == self.me.id:
            self._parcel_acknowledged(id)
        elif (owed := self._receipts.get(origin.id)) is not None:
            owed[1].append(id)
        else:
            self._receipts[origin.id] = (origin, [id])

    # arrivals

    def _arrive(self, now: int, arrival: RingArrival) -> None:
        payload = arrival.payload
        if isinstance(payload, w.StateTransfer):
            self.replication.on_state(now, arrival.origin, payload)
        elif isinstance(payload, w.Parcel):
            if self._is_fenced(now, arrival, payload):
                return
            if isinstance(payload.body, w.ReportNotice):
                self._deliver(arrival, payload)
            elif now < self._warm_until and arrival.key not in self.replication.stores:
                # The state of this key may be on its way from the previous root.
                self._held.append(arrival)
            else:
                self._take(now, arrival, payload)
        else:
            self.counts["unknown"] += 1

    def _take(self, now: int, arrival: RingArrival, parcel: w.Parcel) -> None:
        assert not isinstance(parcel.body, w.ReportNotice)
        self.replication.apply(now, arrival.key, parcel.body, (arrival.origin, parcel.id))
        if not isinstance(parcel.body, w.Offer):
            self._redirect(now, parcel.body.subscriber)

    def _redirect(self, now: int, subscriber: Subscriber) -> None:
        """Send pending reports to the node to which their subscriber has moved."""
        if subscriber.is_rendezvous:
            return
        for outgoing in self.outbox.pending.values():
            body = outgoing.parcel.body
            is_report = isinstance(body, w.ReportNotice) and body.subscription == subscriber.id
            if is_report and outgoing.to != subscriber.key:
                outgoing.to = subscriber.key
                self.ring.route(now, outgoing.to, outgoing.parcel)

    def _is_fenced(self, now: int, arrival: RingArrival, parcel: w.Parcel) -> bool:
        """Whether a parcel is rejected, because its rendezvous has a later epoch."""
        if not parcel.source:
            return False
        known = self._epochs.get(parcel.source, w.NEVER)
        if parcel.epoch < known:
            self.counts["fenced"] += 1
            refusal = w.Refusal(parcel.id, parcel.source, known)
            if arrival.origin.id != self.me.id:
                self.ring.sends.append((arrival.origin, refusal))
            else:
                self._on_refusal(now, self.me, refusal)
            return True
        self._epochs[parcel.source] = parcel.epoch
        if len(self._epochs) > MAX_REMEMBERED:
            del self._epochs[next(iter(self._epochs))]
        return False

    def _deliver(self, arrival: RingArrival, parcel: w.Parcel) -> None:
        notice = parcel.body
        assert isinstance(notice, w.ReportNotice)
        if arrival.key != self.me.id:
            return
        if parcel.id in self._delivered or notice.subscription in self._ended:
            self._send_receipt(arrival.origin, parcel.id)
            return
        if notice.subscription not in self.subscriptions:
            return
        delivery = ReportDelivery(notice.subscription, notice.report, parcel.id, arrival.origin)
        if parcel.id not in self._undelivered:
            self.deliveries.append(delivery)
        self._undelivered[parcel.id] = delivery

    # the catalogue

    def _announce(self, now: int, rendezvous: ActiveRendezvous, repeat: bool) -> list[Id]:
        """Broadcast a topic that has got its first or lost its last subscriber; returns the ids to wait for."""
        interests = list(rendezvous.store.interests.values())
        topics = {interest.node for interest in interests if isinstance(interest.node, ProfileTopic)}
        known = self.catalogue.entries.get(rendezvous.key)
        if not topics and (known is None or not known.alive):
            return []
        topic = known.topic if known is not None else next(iter(topics))
        plans = tuple(plan for interest in interests for plan in interest.plans)
        entry = known
        if known is None or known.alive != bool(topics) or not _same_plans(known.plans, plans):
            entry = w.CatalogueEntry(topic, 1 if known is None else known.version + 1, bool(topics), plans)
        assert entry is not None
        return self.broadcast.start(now, entry, wait=bool(topics), repeat=repeat)

    def _on_topic_update(self, now: int, sender: Peer, message: w.TopicUpdate) -> None:
        self.broadcast.on_update(now, sender, message)

    def _on_topic_update_ack(self, _now: int, sender: Peer, message: w.TopicUpdateAck) -> None:
        self.broadcast.on_ack(sender, message)

    def _on_topic_request(self, _now: int, sender: Peer, message: w.TopicRequest) -> None:
        self.broadcast.on_request(sender, message)

    # messages and time

    def receive(self, now: int, sender: Peer, message: Any) -> None:
        """Handle a message from a peer."""
        handler = _HANDLERS.get(type(message))
        if handler is None:
            self.ring.receive(now, sender, message)
        elif self.ring.joined:
            self.ring.note_alive(now, sender)
            handler(self, now, sender, message)
        self._process(now)

    def refused(self, now: int, peer: Peer) -> None:
        """Note that a peer refused the connection: it has stopped."""
        self.ring.refused(now, peer)
        self._process(now)

    def _on_receipt(self, now: int, _sender: Peer, message: w.ParcelReceipt) -> None:
        for number in message.ids:
            self._parcel_acknowledged(number, now)

    def _on_refusal(self, now: int, _sender: Peer, message: w.Refusal) -> None:
        self.replication.on_fenced(now, w.Fenced(message.source, message.epoch))
        led = self.replication.led.get(message.source)
        if led is None:
            # The new leader has the operation that caused this parcel.
            self.outbox.drop(message.id)
            return
        outgoing = self.outbox.pending.get(message.id)
        if outgoing is not None and outgoing.parcel.epoch < led.rendezvous.store.epoch:
            outgoing.parcel = msgspec.structs.replace(outgoing.parcel, epoch=led.rendezvous.store.epoch)
            self.ring.route(now, outgoing.to, outgoing.parcel)

    def _on_replicate(self, now: int, sender: Peer, message: w.Replicate) -> None:
        self.replication.on_replicate(now, sender, message)

    def _on_replicate_ack(self, _now: int, sender: Peer, message: w.ReplicateAck) -> None:
        self.replication.on_replicate_ack(sender, message)

    def _on_state(self, now: int, sender: Peer, message: w.StateTransfer) -> None:
        self.replication.on_state(now, sender, message)

    def _on_fenced(self, now: int, _sender: Peer, message: w.Fenced) -> None:
        self.replication.on_fenced(now, message)

    def _process(self, now: int) -> None:
        """Process arrivals, and what follows from them, until nothing is left to do."""
        ring, replication = self.ring, self.replication
        if ring.version != self._version:
            self._version = ring.version
            self.broadcast.neighbours_changed(now)
            replication.ring_changed(now)
        if self._queued and self.ready:
            self._match_queued(now)
        while ring.arrivals or replication.has_work or self.broadcast.complete:
            arrivals, ring.arrivals = ring.arrivals, []
            for arrival in arrivals:
                self._arrive(now, arrival)
            routes, replication.routes = replication.routes, []
            for key, payload in routes:
                ring.route(now, key, payload)
            changed, replication.changed = replication.changed, []
            for rendezvous in changed:
                self._announce(now, rendezvous, False)
            complete, self.broadcast.complete = self.broadcast.complete, []
            for number in complete:
                replication.parcel_acknowledged(number)
            receipts, replication.receipts = replication.receipts, []
            for origin, number in receipts:
                self._send_receipt(origin, number)

    @property
    def due(self) -> int | None:
        """When `tick` has something to do."""
        due = self.ring.due
        for moment in (self.outbox.due, self.replication.due, self._next_housekeeping):
            if moment is not None and (due is None or moment < due):
                due = moment
        return due

    @property
    def _next_housekeeping(self) -> int | None:
        if not self.ring.joined:
            return None
        if self.broadcast.needs_housekeeping:
            return self._housekeeping_at
        due = self.replication.housekeeping_due(self._housekeeping_at)
        renewal = (
            min(subscription.renew_at for subscription in self.subscriptions.values()) if self.subscriptions else None
        )
        return due if renewal is None or (due is not None and due <= renewal) else max(renewal, self._housekeeping_at)

    def tick(self, now: int) -> None:
        """Do everything that is due at `now`."""
        pauses = self.ring.counts["pauses"]
        self.ring.tick(now)
        if self.ring.counts["pauses"] != pauses:
            self.broadcast.desynchronise(now)
        self.replication.step(now)
        for outgoing in self.outbox.take_due(now):
            self.ring.route(now, outgoing.to, outgoing.parcel)
        if self._held and now >= self._warm_until:
            held, self._held = self._held, []
            for arrival in held:
                self._arrive(now, arrival)
        if now >= self._housekeeping_at:
            self._housekeeping_at = now + SECOND
            self._housekeeping(now)
        self._process(now)

    def _housekeeping(self, now: int) -> None:
        self.replication.housekeeping(now)
        self.broadcast.housekeeping(now)
        for name, subscription in self.subscriptions.items():
            if now >= subscription.renew_at:
                subscription.renew_at = now + self.settings.lease // 3
                subscription.version += 1
                self._renew(now, name)

    def flush(self) -> list[tuple[Peer, Any]]:
        """The messages to send."""
        if self.replication.has_messages:
            self.ring.sends += self.replication.flush()
        if self._receipts:
            self.ring.sends += [(peer, w.ParcelReceipt(tuple(ids))) for peer, ids in self._receipts.values()]
            self._receipts.clear()
        return self.ring.flush()


def _same_plans(left: tuple[w.Interest, ...], right: tuple[w.Interest, ...]) -> bool:
    return {(plan.subscriber.id, plan.subscriber.key) for plan in left} == {
        (plan.subscriber.id, plan.subscriber.key) for plan in right
    }


_HANDLERS: Final[dict[type, Any]] = {
    w.ParcelReceipt: OverlayNode._on_receipt,
    w.Refusal: OverlayNode._on_refusal,
    w.Replicate: OverlayNode._on_replicate,
    w.ReplicateAck: OverlayNode._on_replicate_ack,
    w.StateTransfer: OverlayNode._on_state,
    w.Fenced: OverlayNode._on_fenced,
    w.TopicUpdate: OverlayNode._on_topic_update,
    w.TopicUpdateAck: OverlayNode._on_topic_update_ack,
    w.TopicRequest: OverlayNode._on_topic_request,
}

__all__ = ["LocalSubscription", "NodeSettings", "OverlayNode", "ReportDelivery"]
