"""Leadership and replication of the stores at a node.

The root of a key leads its store: it applies operations, sends them to replicas at its nearest neighbours, and
acknowledges a parcel once they have its operation. When the ring changes, the new root takes over with its replica,
in the next epoch. A leader of an earlier epoch is rejected (fenced) by the replicas and by all receivers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from likewise.overlay.cube.items import Id
from likewise.overlay.node.rendezvous import ActiveRendezvous, Output, RendezvousContext
from likewise.overlay.node.store import Store, interest_key
from likewise.overlay.node.wire import (
    EndInterest,
    Epoch,
    Fenced,
    Interest,
    Offer,
    Operation,
    Replicate,
    ReplicateAck,
    StateTransfer,
    Trim,
)
from likewise.overlay.ring.ids import Key, nearness, number_of
from likewise.overlay.ring.ring import Ring
from likewise.overlay.ring.tables import Peer

Emit = Callable[[int, ActiveRendezvous, list[Output]], list[Id]]
"""Sends the outputs of a rendezvous; returns the ids of the parcels that are not yet acknowledged."""

AnnounceTopics = Callable[[int, ActiveRendezvous, bool], list[Id]]
"""Broadcasts the topic of a rendezvous, again if the last argument is true; returns the ids to wait for."""


@dataclass(slots=True)
class PendingReceipt:
    """A parcel to acknowledge once the replicas have operation `number` and all `children` are acknowledged.

    The children are the parcels and broadcasts that the operation caused.
    """

    origin: Peer
    parcel: Id
    number: int
    since: int
    children: set[Id] = field(default_factory=set)


@dataclass(slots=True)
class LedRendezvous:
    """A rendezvous that this node leads.

    `reached` is the last operation that each replica has acknowledged, `last_reached` what it was at the last check.
    """

    rendezvous: ActiveRendezvous
    reached: dict[Key, int] = field(default_factory=dict)
    replicas: dict[Key, Peer] = field(default_factory=dict)
    pending: dict[Id, PendingReceipt] = field(default_factory=dict)
    last_reached: dict[Key, int] = field(default_factory=dict)
    announced: bool = False


class Replication:
    """All stores of one node: those it leads, and replicas.

    `receipts`, `sends` and `routes` collect outgoing messages; `changed` are rendezvous whose topic may have changed.
    """

    def __init__(
        self, ring: Ring, context: RendezvousContext, *, copies: int, retry: int, emit: Emit, announce: AnnounceTopics
    ) -> None:
        self.ring = ring
        self.context = context
        self.copies = copies
        self.retry = retry
        self.emit = emit
        self.announce = announce
        self.stores: dict[Key, Store] = {}
        self.led: dict[Key, LedRendezvous] = {}
        self.receipts: list[tuple[Peer, Id]] = []
        self.sends: list[tuple[Peer, Any]] = []
        self.routes: list[tuple[Key, Any]] = []
        self.changed: list[ActiveRendezvous] = []
        self.counts: Counter[str] = Counter()
        self._acks: dict[Key, tuple[Peer, dict[Key, tuple[Epoch, int]]]] = {}
        self._handovers: dict[Key, int] = {}
        self._children: dict[Id, list[tuple[Key, Id]]] = {}
        self._with_timers: set[Key] = set()
        self._untidy: set[Key] = set()
        self._unacknowledged: set[Key] = set()
        self._tidy_at = 0

    # leading

    def lead(self, now: int, key: Key) -> LedRendezvous:
        """The led rendezvous of a key; takes over the replica, or creates a store, if this node did not lead it."""
        led = self.led.get(key)
        if led is None:
            store = self.stores.setdefault(key, Store(key))
            store.epoch = (store.epoch[0] + 1, self.ring.me.id)
            led = self.led[key] = LedRendezvous(ActiveRendezvous(store, self.context))
            self._untidy.add(key)
            self._handovers.pop(key, None)
            if store:
                self.counts["taken over"] += 1
                self.emit(now, led.rendezvous, led.rendezvous.begin(now))
                self.changed.append(led.rendezvous)
            self._update_replicas(key, led)
            self._update_timers(key, led)
        return led

    def _update_timers(self, key: Key, led: LedRendezvous) -> None:
        """Note whether a rendezvous has ordered patterns, which act on timers."""
        if led.rendezvous.ordered:
            self._with_timers.add(key)
        else:
            self._with_timers.discard(key)

    def apply(self, now: int, key: Key, operation: Operation, receipt: tuple[Peer, Id] | None) -> None:
        """Apply an operation, perform what follows from it, and replicate it; then acknowledge `receipt`."""
        led = self.lead(now, key)
        store = led.rendezvous.store
        if isinstance(operation, Offer) and receipt is not None and led.rendezvous.only_forwards(operation):
            # Nothing is stored here: the sender stays responsible until the composites' rendezvous have the event.
            if receipt[1] in led.pending:
                led.pending[receipt[1]].origin = receipt[0]
            else:
                outputs = led.rendezvous.forward(operation.item)
                self._await_receipt(now, led, receipt, set(self.emit(now, led.rendezvous, outputs)))
            return
        if not store.apply(operation):
            store.number -= 1
            known = store.interests.get(interest_key(operation)) if isinstance(operation, Interest) else None
            if known is None or (receipt is not None and receipt[1] in led.pending):
                self._on_duplicate(led, receipt)
            else:
                # A previous leader may have crashed before it subscribed to the members: do it again.
                self._await_receipt(now, led, receipt, self._perform(now, led, known))
            return
        number = store.number
        self._untidy.add(key)
        children = self._perform(now, led, operation)
        if led.replicas:
            message = Replicate(key, store.epoch, number, operation)
            for peer in led.replicas.values():
                self.sends.append((peer, message))
                led.reached.setdefault(peer.id, -1)
        self._await_receipt(now, led, receipt, set() if isinstance(operation, Offer) else children)
        if not isinstance(operation, Offer):
            self._update_timers(key, led)

    def _perform(self, now: int, led: LedRendezvous, operation: Operation) -> set[Id]:
        """Send what follows from an operation; returns the ids that must be acknowledged first."""
        children = set(self.emit(now, led.rendezvous, led.rendezvous.apply(now, operation)))
        if not isinstance(operation, Offer):
            # A previous leader may not have completed its broadcast.
            children.update(self.announce(now, led.rendezvous, not led.announced))
            led.announced = True
        return children

    def _await_receipt(self, now: int, led: LedRendezvous, receipt: tuple[Peer, Id] | None, children: set[Id]) -> None:
        """Acknowledge a parcel once the replicas have all operations so far and the children are acknowledged."""
        if receipt is not None:
            led.pending[receipt[1]] = PendingReceipt(*receipt, led.rendezvous.store.number, now, children)
            for child in children:
                self._children.setdefault(child, []).append((led.rendezvous.key, receipt[1]))
            self._send_receipts(led)
            if led.pending:
                self._unacknowledged.add(led.rendezvous.key)

    def _on_duplicate(self, led: LedRendezvous, receipt: tuple[Peer, Id] | None) -> None:
        """Acknowledge a repeated parcel, unless the first one is still pending."""
        if receipt is None:
            return
        pending = led.pending.get(receipt[1])
        if pending is None:
            self.receipts.append(receipt)
        else:
            pending.origin = receipt[0]

    def parcel_acknowledged(self, id: Id) -> None:
        """Note that a parcel or broadcast, perhaps of a rendezvous led here, was acknowledged."""
        for key, parcel in self._children.pop(id, ()):
            led = self.led.get(key)
            if led is not None and parcel in led.pending:
                led.pending[parcel].children.discard(id)
                self._send_receipts(led)

    def _send_receipts(self, led: LedRendezvous) -> None:
        """Send the pending receipts whose conditions are met."""
        reached = min(led.reached.values(), default=led.rendezvous.store.number)
        ready = []
        # They are ordered by number.
        for pending in led.pending.values():
            if pending.number > reached:
                break
            if not pending.children:
                ready.append(pending)
        for pending in ready:
            del led.pending[pending.parcel]
            self.receipts.append((pending.origin, pending.parcel))

    # replicas

    def _update_replicas(self, key: Key, led: LedRendezvous) -> None:
        """Choose the nearest neighbours as replicas, and send the state to new ones."""
        wanted = {peer.id: peer for peer in self.ring.replicas(key, self.copies)}
        led.reached = {peer: number for peer, number in led.reached.items() if peer in wanted}
        led.replicas = wanted
        for peer in wanted.values():
            if peer.id not in led.reached:
                led.reached[peer.id] = -1 if led.rendezvous.store.number else 0
                if led.rendezvous.store.number:
                    self._send_state(peer, led)
        self._send_receipts(led)

    def _send_state(self, peer: Peer, led: LedRendezvous) -> None:
        store = led.rendezvous.store
        self.counts["copies"] += 1
        self.sends.append((peer, StateTransfer(store.key, store.epoch, store.number, store.state())))

    def on_replicate(self, now: int, sender: Peer, message: Replicate) -> None:
        """Apply an operation to a replica held here."""
        key, epoch = message.key, message.epoch
        store = self.stores.get(key)
        if store is not None and self._fence_if_stale(now, sender, store, epoch):
            return
        if store is None:
            store = self.stores[key] = Store(key)
        if message.number == store.number + 1 and (epoch == store.epoch or store.number == 0):
            store.epoch = epoch
            store.apply(message.operation)
        elif epoch != store.epoch or message.number > store.number:
            self._acknowledge(sender, key, (epoch, -1))
            return
        self._acknowledge(sender, key, (epoch, store.number))

    def _acknowledge(self, sender: Peer, key: Key, state: tuple[Epoch, int]) -> None:
        """Queue an acknowledgement; only the last one for a key is sent."""
        self._acks.setdefault(sender.id, (sender, {}))[1][key] = state

    @property
    def has_work(self) -> bool:
        """Whether the node has something to route, broadcast or acknowledge."""
        return bool(self.routes or self.receipts or self.changed)

    @property
    def has_messages(self) -> bool:
        """Whether there is something to send."""
        return bool(self.sends or self._acks)

    def flush(self) -> list[tuple[Peer, Any]]:
        """The messages to send: operations, states and acknowledgements."""
        out, self.sends = self.sends, []
        for sender, states in self._acks.values():
            out += [(sender, ReplicateAck(key, *state)) for key, state in states.items()]
        self._acks.clear()
        return out

    def _fence_if_stale(self, now: int, sender: Peer, store: Store, epoch: Epoch) -> bool:
        """Reject a leader of an earlier epoch (True); step down for one of a later epoch."""
        if store.key in self.led:
            if epoch > store.epoch and not self.ring.is_root(store.key):
                self._step_down(now, store.key)
                return False
            store.epoch = max(store.epoch, (epoch[0] + 1, self.ring.me.id))
        if epoch < store.epoch:
            self.counts["fenced"] += 1
            self.sends.append((sender, Fenced(store.key, store.epoch)))
            return True
        return False

    def on_replicate_ack(self, sender: Peer, message: ReplicateAck) -> None:
        """Note which operation a replica has reached, or send it the full state if it requests that."""
        if message.key in self._handovers and message.number >= 0:
            del self._handovers[message.key]
            self._drop_if_far(message.key)
        led = self.led.get(message.key)
        if led is None or sender.id not in led.reached or message.epoch != led.rendezvous.store.epoch:
            return
        if message.number < 0:
            self._send_state(sender, led)
        else:
            led.reached[sender.id] = max(led.reached[sender.id], message.number)
            self._send_receipts(led)

    def on_state(self, now: int, sender: Peer, message: StateTransfer) -> None:
        """Handle a full state, to hold as a replica or to lead."""
        key = message.key
        if self.ring.is_root(key):
            self._merge(now, message)
        else:
            store = self.stores.get(key)
            if store is not None and self._fence_if_stale(now, sender, store, message.epoch):
                return
            if message.lead:
                # The sender takes this node for the root, which it is not: route the state to the root.
                self.routes.append((key, message))
                return
            if store is None:
                store = self.stores[key] = Store(key)
            elif store.has_more_than(message.state):
                # A crashed leader replicated more to this node than the new leader has.
                self.sends.append((sender, StateTransfer(key, store.epoch, store.number, store.state(), True)))
            store.load(message.state, message.epoch, message.number)
        self.sends.append((sender, ReplicateAck(key, message.epoch, message.number)))

    def _merge(self, now: int, message: StateTransfer) -> None:
        """Merge the state of another or a previous leader into the store led here."""
        key = message.key
        if key not in self.led:
            store = self.stores.setdefault(key, Store(key))
            for operation in store.missing(message.state):
                store.apply(operation)
            store.seen |= dict.fromkeys(message.state.seen)
            store.epoch = max(store.epoch, message.epoch)
            self.lead(now, key)
            return
        led = self.led[key]
        store = led.rendezvous.store
        new = list(store.missing(message.state))
        store.epoch = (max(store.epoch[0], message.epoch[0] + 1), self.ring.me.id)
        for operation in new:
            self.apply(now, key, operation, None)
        if new:
            self.counts["merged"] += 1
            self._rebuild(now, led)
        for peer in led.replicas.values():
            led.reached[peer.id] = -1
            self._send_state(peer, led)

    def _rebuild(self, now: int, led: LedRendezvous) -> None:
        """Rebuild a rendezvous from its merged store and send everything again: old offers may meet new interests."""
        led.rendezvous.end()
        led.rendezvous = ActiveRendezvous(led.rendezvous.store, self.context)
        self.emit(now, led.rendezvous, led.rendezvous.begin(now))
        self.changed.append(led.rendezvous)
        self._update_timers(led.rendezvous.key, led)

    def on_fenced(self, now: int, message: Fenced) -> None:
        """Handle a rejection because of a later epoch: start a new epoch if this node is the root, else step down."""
        led = self.led.get(message.key)
        if led is None or message.epoch <= led.rendezvous.store.epoch:
            return
        self.counts["superseded"] += 1
        if self.ring.is_root(message.key):
            led.rendezvous.store.epoch = (message.epoch[0] + 1, self.ring.me.id)
            for peer in led.replicas.values():
                led.reached[peer.id] = -1
                self._send_state(peer, led)
        else:
            self._step_down(now, message.key)

    # handover

    def ring_changed(self, now: int) -> None:
        """After a change of the ring, lead the keys whose root is this node now, and hand over the others."""
        for key in list(self.stores):
            root = self.ring.is_root(key)
            if root and key not in self.led:
                if self.stores[key]:
                    self.lead(now, key)
            elif key in self.led:
                if root:
                    self._update_replicas(key, self.led[key])
                else:
                    self._step_down(now, key)
            elif not self._is_near(key) and key not in self._handovers:
                del self.stores[key]

    def _is_near(self, key: Key) -> bool:
        """Whether this node is close enough to a key to hold a replica."""
        number = number_of(key)
        own = nearness(self.ring.number, number)
        nearer = sum(nearness(peer.number, number) < own for peer in self.ring.leaves)
        return nearer <= self.copies + 2

    def _step_down(self, now: int, key: Key) -> None:
        """Stop leading a key, and send its store to the new root."""
        led = self.led.pop(key)
        led.rendezvous.end()
        self.counts["handed over"] += 1
        if led.rendezvous.store:
            self._hand_over(now, key)

    def _hand_over(self, now: int, key: Key) -> None:
        store = self.stores[key]
        self._handovers[key] = now + self.retry
        self.routes.append((key, StateTransfer(key, store.epoch, store.number, store.state(), True)))

    def _drop_if_far(self, key: Key) -> None:
        if key not in self.led and not self._is_near(key):
            self.stores.pop(key, None)

    def leave(self) -> None:
        """Send the state of every led rendezvous to its replicas, before leaving the ring."""
        for led in self.led.values():
            for peer in led.replicas.values():
                self._send_state(peer, led)

    # time

    def housekeeping(self, now: int) -> None:
        """Once a second: retry handovers and replication, and delete what is old."""
        for key, due in list(self._handovers.items()):
            if due <= now:
                if self.ring.is_root(key):
                    del self._handovers[key]
                    self.lead(now, key)
                else:
                    self._hand_over(now, key)
        self._unacknowledged = {key for key in self._unacknowledged if key in self.led and self.led[key].pending}
        for key in sorted(self._unacknowledged):
            if next(iter(self.led[key].pending.values())).since + self.retry < now:
                self._resend_to_stuck(self.led[key])
        if now >= self._tidy_at:
            self._tidy_at = now + self.context.grace // 8
            for key in sorted(self._untidy & self.led.keys()):
                self._tidy(now, key, self.led[key])
            self._untidy &= self.led.keys()

    def housekeeping_due(self, soon: int) -> int | None:
        """When housekeeping is next needed: `soon` if something is pending, else when stores are to be tidied."""
        if self._unacknowledged or self._handovers:
            return soon
        return max(soon, self._tidy_at) if self._untidy else None

    def _resend_to_stuck(self, led: LedRendezvous) -> None:
        """Send the full state to replicas that have made no progress since the last check."""
        number = led.rendezvous.store.number
        for peer in led.replicas.values():
            reached = led.reached.get(peer.id, -1)
            if reached < number and led.last_reached.get(peer.id) == reached:
                self._send_state(peer, led)
            led.last_reached[peer.id] = reached

    def _tidy(self, now: int, key: Key, led: LedRendezvous) -> None:
        """Take checkpoints, delete old items and expired interests, and drop a store without any."""
        rendezvous = led.rendezvous
        for checkpoint in list(rendezvous.checkpoints()):
            self._apply_own(key, checkpoint)
        old = rendezvous.expired_items(now)
        if old:
            self._apply_own(key, Trim(tuple(old)))
        for interest in rendezvous.expired_interests(now):
            self.counts["lapsed"] += 1
            self.apply(now, key, EndInterest(interest.node, interest.subscriber), None)
            self.changed.append(rendezvous)
        if rendezvous.is_idle:
            self._untidy.discard(key)
        elif not rendezvous.store and rendezvous.last_offer + self.context.grace < now and not led.pending:
            rendezvous.end()
            del self.led[key]
            self.stores.pop(key, None)

    def _apply_own(self, key: Key, operation: Operation) -> None:
        """Apply and replicate an operation that the rendezvous itself decided on, without a receipt."""
        led = self.led[key]
        store = led.rendezvous.store
        store.apply(operation)
        led.rendezvous.drop(getattr(operation, "ids", ()))
        for peer in led.replicas.values():
            self.sends.append((peer, Replicate(key, store.epoch, store.number, operation)))

    @property
    def due(self) -> int | None:
        """When an ordered pattern has something to do."""
        if not self._with_timers:
            return None
        timed = [self.led[key].rendezvous for key in self._with_timers if key in self.led]
        return min((due for rendezvous in timed if (due := rendezvous.due) is not None), default=None)

    def step(self, now: int) -> None:
        """Let ordered patterns process what is due."""
        for key in sorted(self._with_timers & self.led.keys()):
            rendezvous = self.led[key].rendezvous
            due = rendezvous.due
            if due is not None and due <= now:
                self.emit(now, rendezvous, rendezvous.step(now))
