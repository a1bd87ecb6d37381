"""The stores of a node: which it leads, which it holds copies of, and how they change hands.

The root of a key leads its store: it applies operations, sends them to the copies at its nearest neighbours, and
gives receipts when they have them. When the ring changes, a new root takes its copy over in the next epoch. Whoever
is behind in epochs is refused, by the copies and by all that receive from the rendezvous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from likewise.overlay.cube.items import Id
from likewise.overlay.node.rendezvous import ActiveRendezvous, Output, Workbench
from likewise.overlay.node.store import Store, interest_key
from likewise.overlay.node.wire import (
    Copy,
    Disinterest,
    Epoch,
    Fenced,
    Interest,
    Offer,
    Operation,
    Replicate,
    Replicated,
    Trim,
)
from likewise.overlay.ring.ids import Key, nearness, number_of
from likewise.overlay.ring.members import Ring
from likewise.overlay.ring.tables import Peer

Emit = Callable[[int, ActiveRendezvous, list[Output]], list[Id]]
"""Takes what a rendezvous gives out; gives the ids of the parcels that were new."""

Publicise = Callable[[int, ActiveRendezvous, bool], list[Id]]
"""Makes known to all what a rendezvous wants, once more if asked; gives the ids of what is to be waited for."""


@dataclass(slots=True)
class Debt:
    """A receipt that is owed once the copies have an operation, and what it led to is in other hands."""

    origin: Peer
    parcel: Id
    number: int
    since: int
    children: set[Id] = field(default_factory=set)


@dataclass(slots=True)
class Led:
    """A rendezvous that this node leads, and how far its copies are."""

    rendezvous: ActiveRendezvous
    copies: dict[Key, int] = field(default_factory=dict)
    peers: dict[Key, Peer] = field(default_factory=dict)
    debts: dict[Id, Debt] = field(default_factory=dict)
    reminded: dict[Key, int] = field(default_factory=dict)
    announced: bool = False


class Keeper:
    """All stores of one node."""

    def __init__(
        self, ring: Ring, bench: Workbench, *, copies: int, retry: int, emit: Emit, publicise: Publicise
    ) -> None:
        self.ring = ring
        self.bench = bench
        self.copies = copies
        self.retry = retry
        self.emit = emit
        self.publicise = publicise
        self.stores: dict[Key, Store] = {}
        self.led: dict[Key, Led] = {}
        self.receipts: list[tuple[Peer, Id]] = []
        self.sends: list[tuple[Peer, Any]] = []
        self.routes: list[tuple[Key, Any]] = []
        self.changed: list[ActiveRendezvous] = []
        self.counts: Counter[str] = Counter()
        self._answers: dict[Key, tuple[Peer, dict[Key, tuple[Epoch, int]]]] = {}
        self._handing: dict[Key, int] = {}
        self._children: dict[Id, list[tuple[Key, Id]]] = {}
        self._timed: set[Key] = set()
        self._restless: set[Key] = set()
        self._owing: set[Key] = set()
        self._tidy_at = 0

    # leading

    def lead(self, now: int, key: Key) -> Led:
        """The rendezvous of a key, taken over or made if need be."""
        led = self.led.get(key)
        if led is None:
            store = self.stores.setdefault(key, Store(key))
            store.epoch = (store.epoch[0] + 1, self.ring.me.id)
            led = self.led[key] = Led(ActiveRendezvous(store, self.bench))
            self._restless.add(key)
            self._handing.pop(key, None)
            if store:
                self.counts["taken over"] += 1
                self.emit(now, led.rendezvous, led.rendezvous.begin(now))
                self.changed.append(led.rendezvous)
            self._fellow(key, led)
            self._watch(key, led)
        return led

    def _watch(self, key: Key, led: Led) -> None:
        """Patterns in one piece act on time."""
        if led.rendezvous.regions:
            self._timed.add(key)
        else:
            self._timed.discard(key)

    def take(self, now: int, key: Key, operation: Operation, debt: tuple[Peer, Id] | None) -> None:
        """An operation for a rendezvous: apply it, act on it, and copy it."""
        led = self.lead(now, key)
        store = led.rendezvous.store
        if isinstance(operation, Offer) and debt is not None and led.rendezvous.only_forwards(operation):
            # It stays in its sender's care until those who hold events have it.
            if debt[1] in led.debts:
                led.debts[debt[1]].origin = debt[0]
            else:
                self._owe(now, led, debt, set(self.emit(now, led.rendezvous, led.rendezvous.forward(operation.item))))
            return
        if not store.apply(operation):
            store.number -= 1
            known = store.interests.get(interest_key(operation)) if isinstance(operation, Interest) else None
            if known is None or (debt is not None and debt[1] in led.debts):
                self._again(led, debt)
            else:
                # Its receipt was lost, perhaps with the root that owed it: its members may not know of it.
                self._owe(now, led, debt, self._act(now, led, known))
            return
        number = store.number
        self._restless.add(key)
        children = self._act(now, led, operation)
        if led.peers:
            message = Replicate(key, store.epoch, number, operation)
            for peer in led.peers.values():
                self.sends.append((peer, message))
                led.copies.setdefault(peer.id, -1)
        self._owe(now, led, debt, set() if isinstance(operation, Offer) else children)
        if not isinstance(operation, Offer):
            self._watch(key, led)

    def _act(self, now: int, led: Led, operation: Operation) -> set[Id]:
        """Do what follows from an operation; gives what is to be in other hands first."""
        children = set(self.emit(now, led.rendezvous, led.rendezvous.take(now, operation)))
        if not isinstance(operation, Offer):
            # The root before this one may have told only some of a topic.
            children.update(self.publicise(now, led.rendezvous, not led.announced))
            led.announced = True
        return children

    def _owe(self, now: int, led: Led, debt: tuple[Peer, Id] | None, children: set[Id]) -> None:
        """A receipt is due when the copies have what was done so far, and the children are in other hands."""
        if debt is not None:
            led.debts[debt[1]] = Debt(*debt, led.rendezvous.store.number, now, children)
            for child in children:
                self._children.setdefault(child, []).append((led.rendezvous.key, debt[1]))
            self._settle(led)
            if led.debts:
                self._owing.add(led.rendezvous.key)

    def _again(self, led: Led, debt: tuple[Peer, Id] | None) -> None:
        """The same once more: its receipt is due when that of the first is."""
        if debt is None:
            return
        owed = led.debts.get(debt[1])
        if owed is None:
            self.receipts.append(debt)
        else:
            owed.origin = debt[0]

    def received(self, id: Id) -> None:
        """A parcel of some rendezvous is in other hands."""
        for key, parcel in self._children.pop(id, ()):
            led = self.led.get(key)
            if led is not None and parcel in led.debts:
                led.debts[parcel].children.discard(id)
                self._settle(led)

    def _settle(self, led: Led) -> None:
        reached = min(led.copies.values(), default=led.rendezvous.store.number)
        settled = []
        # They are in the order of their numbers.
        for debt in led.debts.values():
            if debt.number > reached:
                break
            if not debt.children:
                settled.append(debt)
        for debt in settled:
            del led.debts[debt.parcel]
            self.receipts.append((debt.origin, debt.parcel))

    # copies

    def _fellow(self, key: Key, led: Led) -> None:
        """See to it that the right neighbours have copies."""
        wanted = {peer.id: peer for peer in self.ring.replicas(key, self.copies)}
        led.copies = {peer: number for peer, number in led.copies.items() if peer in wanted}
        led.peers = wanted
        for peer in wanted.values():
            if peer.id not in led.copies:
                led.copies[peer.id] = -1 if led.rendezvous.store.number else 0
                if led.rendezvous.store.number:
                    self._copy(peer, led)
        self._settle(led)

    def _copy(self, peer: Peer, led: Led) -> None:
        store = led.rendezvous.store
        self.counts["copies"] += 1
        self.sends.append((peer, Copy(store.key, store.epoch, store.number, store.state())))

    def replicate(self, now: int, sender: Peer, message: Replicate) -> None:
        """An operation for a copy held here."""
        key, epoch = message.key, message.epoch
        store = self.stores.get(key)
        if store is not None and self._is_behind(now, sender, store, epoch):
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
        """How far a copy is: of several answers the last says all."""
        self._answers.setdefault(sender.id, (sender, {}))[1][key] = state

    @property
    def has_work(self) -> bool:
        """Whether the node is to route, make known or acknowledge something."""
        return bool(self.routes or self.receipts or self.changed)

    @property
    def has_mail(self) -> bool:
        """Whether there is something to send."""
        return bool(self.sends or self._answers)

    def flush(self) -> list[tuple[Peer, Any]]:
        """What is to be sent, copies and answers."""
        out, self.sends = self.sends, []
        for sender, states in self._answers.values():
            out += [(sender, Replicated(key, *state)) for key, state in states.items()]
        self._answers.clear()
        return out

    def _is_behind(self, now: int, sender: Peer, store: Store, epoch: Epoch) -> bool:
        """Refuse a root that has a successor; give way to one that is later."""
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

    def replicated(self, sender: Peer, message: Replicated) -> None:
        """A copy is this far."""
        if message.key in self._handing and message.number >= 0:
            del self._handing[message.key]
            self._let_go(message.key)
        led = self.led.get(message.key)
        if led is None or sender.id not in led.copies or message.epoch != led.rendezvous.store.epoch:
            return
        if message.number < 0:
            self._copy(sender, led)
        else:
            led.copies[sender.id] = max(led.copies[sender.id], message.number)
            self._settle(led)

    def copy(self, now: int, sender: Peer, message: Copy) -> None:
        """A whole state: to hold, or to lead."""
        key = message.key
        if self.ring.is_root(key):
            self._merge(now, message)
        else:
            store = self.stores.get(key)
            if store is not None and self._is_behind(now, sender, store, message.epoch):
                return
            if message.lead:
                # The sender sees another root than this node does: pass it on.
                self.routes.append((key, message))
                return
            if store is None:
                store = self.stores[key] = Store(key)
            elif store.has_more_than(message.state):
                # The root before has crashed and left more here than the new one knows.
                self.sends.append((sender, Copy(key, store.epoch, store.number, store.state(), True)))
            store.load(message.state, message.epoch, message.number)
        self.sends.append((sender, Replicated(key, message.epoch, message.number)))

    def _merge(self, now: int, message: Copy) -> None:
        """Bring the state of another root, or of a predecessor, into one's own."""
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
            self.take(now, key, operation, None)
        if new:
            self.counts["merged"] += 1
            self._rebuild(now, led)
        for peer in led.peers.values():
            led.copies[peer.id] = -1
            self._copy(peer, led)

    def _rebuild(self, now: int, led: Led) -> None:
        """What came before an interest was known is for it, too: all is built anew, and sent once more."""
        led.rendezvous.end()
        led.rendezvous = ActiveRendezvous(led.rendezvous.store, self.bench)
        self.emit(now, led.rendezvous, led.rendezvous.begin(now))
        self.changed.append(led.rendezvous)
        self._watch(led.rendezvous.key, led)

    def fenced(self, now: int, message: Fenced) -> None:
        """This node was behind."""
        led = self.led.get(message.key)
        if led is None or message.epoch <= led.rendezvous.store.epoch:
            return
        self.counts["superseded"] += 1
        if self.ring.is_root(message.key):
            led.rendezvous.store.epoch = (message.epoch[0] + 1, self.ring.me.id)
            for peer in led.peers.values():
                led.copies[peer.id] = -1
                self._copy(peer, led)
        else:
            self._step_down(now, message.key)

    # changing hands

    def review(self, now: int) -> None:
        """The ring has changed: lead what is ours now, hand over what is not."""
        for key in list(self.stores):
            root = self.ring.is_root(key)
            if root and key not in self.led:
                if self.stores[key]:
                    self.lead(now, key)
            elif key in self.led:
                if root:
                    self._fellow(key, self.led[key])
                else:
                    self._step_down(now, key)
            elif not self._is_near(key) and key not in self._handing:
                del self.stores[key]

    def _is_near(self, key: Key) -> bool:
        number = number_of(key)
        mine = nearness(self.ring.number, number)
        nearer = sum(nearness(peer.number, number) < mine for peer in self.ring.leaves)
        return nearer <= self.copies + 2

    def _step_down(self, now: int, key: Key) -> None:
        """Another node is the root: it gets all there is."""
        led = self.led.pop(key)
        led.rendezvous.end()
        self.counts["handed over"] += 1
        if led.rendezvous.store:
            self._hand(now, key)

    def _hand(self, now: int, key: Key) -> None:
        store = self.stores[key]
        self._handing[key] = now + self.retry
        self.routes.append((key, Copy(key, store.epoch, store.number, store.state(), True)))

    def _let_go(self, key: Key) -> None:
        if key not in self.led and not self._is_near(key):
            self.stores.pop(key, None)

    def leave(self) -> None:
        """Give everything away before leaving the ring."""
        for led in self.led.values():
            for peer in led.peers.values():
                self._copy(peer, led)

    # time

    def chores(self, now: int) -> None:
        """What is done once a second: send again what was lost on the way, and forget what is old."""
        for key, due in list(self._handing.items()):
            if due <= now:
                if self.ring.is_root(key):
                    del self._handing[key]
                    self.lead(now, key)
                else:
                    self._hand(now, key)
        self._owing = {key for key in self._owing if key in self.led and self.led[key].debts}
        for key in sorted(self._owing):
            if next(iter(self.led[key].debts.values())).since + self.retry < now:
                self._remind(self.led[key])
        if now >= self._tidy_at:
            self._tidy_at = now + self.bench.grace // 8
            for key in sorted(self._restless & self.led.keys()):
                self._tidy(now, key, self.led[key])
            self._restless &= self.led.keys()

    def chores_due(self, soon: int) -> int | None:
        """When there are chores: `soon` if someone waits, else when it is time to tidy up."""
        if self._owing or self._handing:
            return soon
        return max(soon, self._tidy_at) if self._restless else None

    def _remind(self, led: Led) -> None:
        """A copy that is behind and does not come nearer has missed something."""
        number = led.rendezvous.store.number
        for peer in led.peers.values():
            reached = led.copies.get(peer.id, -1)
            if reached < number and led.reminded.get(peer.id) == reached:
                self._copy(peer, led)
            led.reminded[peer.id] = reached

    def _tidy(self, now: int, key: Key, led: Led) -> None:
        rendezvous = led.rendezvous
        for mark in list(rendezvous.marks()):
            self._quietly(key, mark)
        old = rendezvous.old(now)
        if old:
            self._quietly(key, Trim(tuple(old)))
        for interest in rendezvous.lapsed(now):
            self.counts["lapsed"] += 1
            self.take(now, key, Disinterest(interest.node, interest.subscriber), None)
            self.changed.append(rendezvous)
        if rendezvous.is_at_rest:
            self._restless.discard(key)
        elif not rendezvous.store and rendezvous.quiet + self.bench.grace < now and not led.debts:
            rendezvous.end()
            del self.led[key]
            self.stores.pop(key, None)

    def _quietly(self, key: Key, operation: Operation) -> None:
        """An operation that the rendezvous itself decided on."""
        led = self.led[key]
        store = led.rendezvous.store
        store.apply(operation)
        led.rendezvous.forget(getattr(operation, "ids", ()))
        for peer in led.peers.values():
            self.sends.append((peer, Replicate(key, store.epoch, store.number, operation)))

    @property
    def due(self) -> int | None:
        """When a pattern in one piece has something to do."""
        if not self._timed:
            return None
        timed = [self.led[key].rendezvous for key in self._timed if key in self.led]
        return min((due for each in timed if (due := each.due) is not None), default=None)

    def step(self, now: int) -> None:
        """Let patterns in one piece go on."""
        for key in sorted(self._timed & self.led.keys()):
            rendezvous = self.led[key].rendezvous
            due = rendezvous.due
            if due is not None and due <= now:
                self.emit(now, rendezvous, rendezvous.step(now))
