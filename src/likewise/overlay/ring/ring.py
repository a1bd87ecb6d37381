"""The ring: who is there, and the way to the root of a key, in the manner of Pastry.

No clock, no sockets and no chance: messages and time come in, messages and arrivals go out. The same code runs in
the simulator and over TLS. A peer that does not answer is routed around at once, and is declared dead when it does
not answer a second time. From then on only its own voice brings it back; what others say of it is not believed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from likewise.overlay.ring import messages as m
from likewise.overlay.ring.contacts import Contact, Hop, RingArrival, RingSettings
from likewise.overlay.ring.ids import Key, number_of
from likewise.overlay.ring.tables import LeafSet, Peer, RoutingTable

TTL: Final = 64


class Ring:
    """One node's part of the ring."""

    def __init__(self, me: Peer, settings: RingSettings | None = None) -> None:
        self.me = me
        self.number = me.number
        self.settings = settings or RingSettings()
        self.leaves = LeafSet(me, half=self.settings.half)
        self.table = RoutingTable(me)
        self.sends: list[tuple[Peer, Any]] = []
        self.arrivals: list[RingArrival] = []
        self.counts: Counter[str] = Counter()
        self.joined = False
        self.left = False
        self.version = 0
        self.digest = 0
        self.digests: dict[Key, int] = {}
        self._contacts: dict[Key, Contact] = {}
        self._dead: dict[Key, tuple[int, Peer]] = {}
        self._hops: dict[int, Hop] = {}
        self._acks: dict[Key, tuple[Peer, list[int]]] = {}
        self._timers: list[tuple[int, int, str, Any]] = []
        self._numbers = 0
        self._last_tick: int | None = None
        self._bootstrap: tuple[Peer, ...] = ()
        self._beats = 0
        self._suspects: set[Key] = set()
        self._unconfirmed: set[Key] = set()
        self._generation = 0

    # life

    def start(self, now: int, bootstrap: Iterable[Peer] = ()) -> None:
        """Join through one of the bootstrap, or be the first node of a new ring."""
        self._last_tick = now
        self._bootstrap = tuple(peer for peer in bootstrap if peer.id != self.me.id)
        if self._bootstrap:
            self._request_join(now, 0)
        else:
            self.joined = True
        if self.settings.maintain:
            # Nodes that start together do not speak together.
            self._wake(now + 1 + self.number % self.settings.heartbeat, "heartbeat", None)

    def settle(self, leaves: Iterable[Peer], table: Iterable[Peer]) -> None:
        """Be a member from the beginning, with known neighbours: for large static rings."""
        self.leaves.fill(leaves)
        for peer in table:
            self.table.add(peer)
        self.joined = True

    def leave(self) -> None:
        """Say farewell to the neighbours."""
        self.left = True
        known = tuple(self.leaves)
        for peer in known:
            self._send(peer, m.Farewell(known))

    @property
    def neighbours_confirmed(self) -> bool:
        """Whether this node knows its neighbours: all of them have reported it theirs since it joined or slept."""
        return self.joined and not self._unconfirmed

    def _confirm_neighbours(self) -> None:
        """Ask all neighbours for theirs: a node may have joined unseen."""
        self._unconfirmed = {peer.id for peer in self.leaves}
        for peer in self.leaves:
            self._send(peer, m.Ask())

    def _check_confirmed(self) -> None:
        """Wait only for neighbours, and for those who may be: they were asked whether they live."""
        if self._unconfirmed:
            self._unconfirmed = {key for key in self._unconfirmed if key in self.leaves or self._is_pinged(key)}
            # Others are to hear of it as of a change.
            self.version += not self._unconfirmed

    def _is_pinged(self, id: Key) -> bool:
        known = self._contacts.get(id)
        return known is not None and known.asked is not None

    def _request_join(self, now: int, attempt: int) -> None:
        # Who joins may have heard of others when its gate is gone.
        bootstrap = (*self._bootstrap, *self.table.entries.values())
        gate = bootstrap[attempt % len(bootstrap)]
        self._send(gate, m.Route(self.me.id, 0, self.me, m.Join(self.me)))
        self._wake(
            now + min(self.settings.max_timeout, self.settings.first_timeout << min(attempt, 4)), "knock", attempt
        )

    @property
    def due(self) -> int | None:
        """When `tick` has something to do."""
        timers, hops = self._timers, self._hops
        while timers and timers[0][2] == "hop" and timers[0][3] not in hops:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def tick(self, now: int) -> None:
        """Time has come to `now`."""
        if self.left:
            self._timers.clear()
            return
        due = self.due
        lag = 0 if due is None or self._last_tick is None else now - due
        if lag > self.settings.pause:
            self.counts["pauses"] += 1
            if self.joined:
                # The others may have given this node up: only its own voice brings it back.
                self._confirm_neighbours()
        timers = self._timers
        while timers and timers[0][0] <= now:
            _, _, kind, item = heapq.heappop(timers)
            if lag > self.settings.late and kind in ("hop", "answer"):
                # Who was asleep could not hear the answers: they are waiting to be read.
                self._wake(now + self.settings.first_timeout, kind, item)
            else:
                getattr(self, f"_on_{kind}")(now, item)
        self._last_tick = now

    def _wake(self, time: int, kind: str, item: Any) -> None:
        self._numbers += 1
        heapq.heappush(self._timers, (time, self._numbers, kind, item))

    def _send(self, peer: Peer, message: Any) -> None:
        self.sends.append((peer, message))

    # peers

    def contact(self, peer: Peer) -> Contact:
        """What is known of a peer's behaviour."""
        known = self._contacts.get(peer.id)
        if known is None:
            known = self._contacts[peer.id] = Contact(peer)
        return known

    def timeout(self, id: Key) -> int:
        """How long an answer of a peer may take: its usual time and four times its deviation."""
        known = self._contacts.get(id)
        settings = self.settings
        if known is None or not known.trip:
            return settings.first_timeout
        return int(min(settings.max_timeout, max(settings.min_timeout, known.trip + 4 * known.spread)))

    def is_dead(self, id: Key) -> bool:
        """Whether a peer is in quarantine."""
        return id in self._dead

    @property
    def dead(self) -> list[Peer]:
        """The peers in quarantine."""
        return [peer for _, peer in self._dead.values()]

    def hear(self, now: int, peer: Peer) -> None:
        """A member has said something that is not for the ring."""
        known = self._contacts.get(peer.id)
        if known is None or known.strikes or peer.id in self._dead:
            self._mark_alive(now, peer)
        else:
            known.heard = now

    def _mark_alive(self, now: int, peer: Peer) -> None:
        """The peer itself has spoken."""
        known = self.contact(peer)
        known.heard = now
        known.strikes = 0
        known.asked = None
        if self._suspects:
            self._suspects.discard(peer.id)
        if known.neighbours_confirmed == self._generation and known.peer is peer:
            return
        if peer.id in self._dead:
            del self._dead[peer.id]
            self.counts["revived"] += 1
        if peer.id not in self.leaves and self.leaves.add(peer):
            if self._unconfirmed:
                self._unconfirmed.add(peer.id)
                self._send(peer, m.Ask())
            self._changed(now)
        self._check_confirmed()
        self.table.add(peer)
        # There is no better place for this peer until someone else goes.
        known.peer, known.neighbours_confirmed = peer, self._generation

    def _learn_of(self, now: int, peers: Iterable[Peer]) -> None:
        """Others speak of peers: neighbours are asked first, the table takes whom it has room for."""
        for peer in peers:
            if peer.id == self.me.id or peer.id in self._dead:
                continue
            if self.joined and self.leaves.fits(peer):
                self._ping(now, peer)
                if self._unconfirmed:
                    self._unconfirmed.add(peer.id)
            elif self.table.has_room(peer):
                self.table.add(peer)

    def _changed(self, now: int) -> None:
        self.version += 1
        self._generation += 1
        if self.joined and self.settings.maintain:
            # The nearest hear of it at once, the others with their next heartbeat.
            for peer in self.leaves.beside(1):
                self._ping(now, peer)

    def _ping(self, now: int, peer: Peer) -> None:
        known = self.contact(peer)
        if known.asked is not None:
            return
        known.asked = now
        known.offered = (now, self.version)
        self._send(peer, m.Ping(now, self._changed_leaves(known), self.digest))
        self._wake(now + max(self.settings.patience, self.timeout(peer.id)), "answer", (peer, now))

    def _changed_leaves(self, known: Contact) -> tuple[Peer, ...]:
        return () if known.version == self.version else tuple(self.leaves)

    def _measure(self, known: Contact, took: int) -> None:
        if not known.trip:
            known.trip, known.spread = max(1.0, float(took)), took / 2
        else:
            known.spread += (abs(took - known.trip) - known.spread) / 4
            known.trip += (took - known.trip) / 8

    def _missed_answer(self, now: int, peer: Peer) -> None:
        """No answer in time: ask again, then give the peer up."""
        known = self.contact(peer)
        known.asked = None
        known.strikes += 1
        if known.strikes < self.settings.strikes:
            self._suspects.add(peer.id)
            self._ping(now, peer)
        else:
            self._declare_dead(now, peer)

    def refused(self, now: int, peer: Peer) -> None:
        """Nobody listens at the peer's address: there is no need to ask again."""
        if peer.id in self._contacts:
            self.counts["refused"] += 1
            self._declare_dead(now, peer)

    def _declare_dead(self, now: int, peer: Peer) -> None:
        if peer.id in self._dead:
            return
        self.counts["buried"] += 1
        self._dead[peer.id] = (now + self.settings.quarantine, peer)
        self._generation += 1
        self._contacts.pop(peer.id, None)
        self.digests.pop(peer.id, None)
        self._suspects.discard(peer.id)
        self.table.remove(peer.number, peer.id)
        if self.leaves.remove(peer.id):
            for other in self.leaves:
                self._send(other, m.Suspect(peer))
            for side in (self.leaves.right, self.leaves.left):
                if side:
                    self._send(side[-1], m.Ask())
            self._changed(now)
        self._check_confirmed()
        for number, hop in list(self._hops.items()):
            if hop.peer.id == peer.id:
                del self._hops[number]
                self._reroute(now, hop)

    # heartbeats

    def _on_heartbeat(self, now: int, _item: Any) -> None:
        self._wake(now + self.settings.heartbeat, "heartbeat", None)
        if not self.joined:
            return
        asked = self.leaves.beside(self.settings.near)
        others = self.leaves.right[self.settings.near :] + self.leaves.left[self.settings.near :]
        self._beats += 1
        if others:
            asked.append(others[self._beats % len(others)])
        for peer in asked:
            self._ping(now, peer)
        for peer in self.leaves:
            if peer.id in self._unconfirmed:
                self._send(peer, m.Ask())
        self._ping_dead(now)

    def _ping_dead(self, now: int) -> None:
        """Look now and then whether a dead peer is back: so two halves of a ring find each other again."""
        period = max(1, self.settings.revisit // self.settings.heartbeat)
        if not self._dead or self._beats % period:
            return
        dead = list(self._dead.values())
        _, peer = dead[(self._beats // period) % len(dead)]
        self._send(peer, m.Ping(now, (), self.digest))
        horizon = now - 9 * self.settings.quarantine
        self._dead = {key: entry for key, entry in self._dead.items() if entry[0] >= horizon}

    def _on_answer(self, now: int, item: Any) -> None:
        peer, nonce = item
        known = self._contacts.get(peer.id)
        if known is not None and known.asked == nonce:
            self._missed_answer(now, peer)

    def _on_knock(self, now: int, attempt: int) -> None:
        if not self.joined:
            self._request_join(now, attempt + 1)

    # messages

    def receive(self, now: int, sender: Peer, message: Any) -> None:
        """A message came from a peer, whose id the transport has checked."""
        if self.left or sender.id == self.me.id or not (self.joined or type(message) in _ACCEPTED_BEFORE_JOIN):
            # Who answered before it has its place would be taken for a member, and stand in the way of others.
            return
        handler = _HANDLERS.get(type(message))
        if handler is None:
            self.counts["unknown"] += 1
            return
        if not _is_from_nonmember(sender, message):
            self._mark_alive(now, sender)
        handler(self, now, sender, message)

    def _ping_came(self, now: int, sender: Peer, message: m.Ping) -> None:
        self.digests[sender.id] = message.digest
        self._send(sender, m.Pong(message.nonce, self._changed_leaves(self.contact(sender)), self.digest))
        self._learn_of(now, message.leaves)

    def _pong_came(self, now: int, sender: Peer, message: m.Pong) -> None:
        # A longer trip went through a pause of one of the two.
        known = self.contact(sender)
        if 0 <= now - message.nonce <= self.settings.max_timeout:
            self._measure(known, now - message.nonce)
        if message.nonce == known.offered[0]:
            known.version = known.offered[1]
        self.digests[sender.id] = message.digest
        self._learn_of(now, message.leaves)

    def _rows_came(self, now: int, _sender: Peer, message: m.TableRows) -> None:
        self._learn_of(now, message.peers)

    def _welcome_came(self, now: int, _sender: Peer, message: m.Welcome) -> None:
        if self.joined:
            return
        self.joined = True
        for peer in message.peers:
            if peer.id not in self._dead:
                self.table.add(peer)
        # A root speaks of neighbours that it hears itself.
        self.leaves.fill(peer for peer in message.leaves if peer.id not in self._dead)
        self.version += 1
        self._generation += 1
        known = tuple(self.leaves)
        self._confirm_neighbours()
        for peer in known:
            self._ping(now, peer)
        others = [peer for peer in self.table.entries.values() if peer.id not in self.leaves]
        self._learn_of(now, others)
        for peer in others:
            self._send(peer, m.Announce(known))

    def _announce_came(self, now: int, _sender: Peer, message: m.Announce) -> None:
        self._learn_of(now, message.leaves)

    def _farewell_came(self, now: int, sender: Peer, message: m.Farewell) -> None:
        self._declare_dead(now, sender)
        self._learn_of(now, message.leaves)

    def _ask_came(self, _now: int, sender: Peer, _message: m.Ask) -> None:
        self._send(sender, m.Leaves(tuple(self.leaves)))

    def _leaves_came(self, now: int, sender: Peer, message: m.Leaves) -> None:
        self._learn_of(now, message.leaves)
        if sender.id in self._unconfirmed:
            self._unconfirmed.remove(sender.id)
            self.version += not self._unconfirmed

    def _suspect_came(self, now: int, _sender: Peer, message: m.Suspect) -> None:
        peer = message.peer
        if peer.id in self.leaves and peer.id not in self._dead:
            # Another was not answered either: once more is enough.
            known = self.contact(peer)
            known.strikes = max(known.strikes, self.settings.strikes - 1)
            self._ping(now, peer)

    # routing

    def route(self, now: int, key: Key, payload: Any) -> None:
        """Send something to the root of a key."""
        self._forward(now, m.Route(key, 0, self.me, payload), frozenset())

    def next_hop(self, key: Key, avoid: frozenset[Key] = frozenset()) -> Peer | None:
        """The next peer on the way to a key; None if this node is its root."""
        number = number_of(key)
        leaves = self.leaves
        if self._covers(number):
            return leaves.nearest(number, avoid)
        found = self.table.find(number)
        if found is not None and found.id not in avoid:
            return found
        return self.table.nearer(number, leaves, avoid)

    def is_root(self, key: Key) -> bool:
        """Whether what is sent to a key arrives here."""
        return self.next_hop(key) is None

    def _covers(self, number: int) -> bool:
        """Whether the root of a key is this node or a neighbour."""
        return self.leaves.covers(number) or self.knows_all

    @property
    def knows_all(self) -> bool:
        """Whether all nodes that this one knows are its neighbours, as in a ring of few nodes."""
        leaves = self.leaves
        return leaves.short and all(peer.id in leaves for peer in self.table.entries.values())

    def replicas(self, key: Key, count: int) -> list[Peer]:
        """The neighbours that hold copies of what this root of a key holds."""
        return self.leaves.around(number_of(key), count)

    def _route_came(self, now: int, sender: Peer, message: m.Route) -> None:
        if message.hop:
            entry = self._acks.get(sender.id)
            if entry is None:
                self._acks[sender.id] = (sender, [message.hop])
            else:
                entry[1].append(message.hop)
        if message.hops >= TTL:
            self.counts["lost in circles"] += 1
            return
        payload = message.payload
        if type(payload) is m.Join:
            if not self.joined:
                return
            self._send_rows(payload.peer)
        self._forward(now, message, frozenset())

    def _send_rows(self, peer: Peer) -> None:
        """A new node passes: hand it the rows that it shares."""
        if peer.id != self.me.id:
            row = tuple(other for other in self.table.row(peer.number) if other.id != peer.id)
            self._send(peer, m.TableRows((self.me, *row)))

    def _forward(self, now: int, message: m.Route, avoid: frozenset[Key]) -> None:
        joiner = frozenset((message.payload.peer.id,)) if type(message.payload) is m.Join else frozenset()
        shunned = avoid | joiner | self._suspects if avoid or joiner or self._suspects else avoid
        peer = self.next_hop(message.key, shunned)
        if peer is None and shunned:
            # A root that is slow to answer is still the root.
            peer = self.next_hop(message.key, joiner)
        if peer is None:
            self._arrive(message)
            return
        self._numbers += 1
        onward = m.Route(message.key, self._numbers, message.origin, message.payload, message.hops + 1)
        self._hops[self._numbers] = Hop(peer, onward, now, avoid)
        self._send(peer, onward)
        self._wake(now + self.timeout(peer.id), "hop", self._numbers)

    def _arrive(self, message: m.Route) -> None:
        if type(message.payload) is not m.Join:
            self.arrivals.append(RingArrival(message.key, message.payload, message.origin, message.hops))
            return
        peer = message.payload.peer
        known = (self.me, *self.leaves)
        self._send(peer, m.Welcome(known, tuple(self.table.row(peer.number))))

    def _hops_came(self, now: int, sender: Peer, message: m.HopAck) -> None:
        for number in message.hops:
            hop = self._hops.get(number)
            if hop is not None and hop.peer.id == sender.id:
                del self._hops[number]
                self._measure(self.contact(sender), now - hop.sent)

    def _on_hop(self, now: int, number: int) -> None:
        hop = self._hops.get(number)
        if hop is None:
            return
        if hop.waits < self.settings.waits and self.contact(hop.peer).heard > hop.sent:
            # The peer lives and is only busy: sending more would keep it busy.
            hop.waits += 1
            self._wake(now + (self.timeout(hop.peer.id) << hop.waits), "hop", number)
            return
        del self._hops[number]
        self.counts["rerouted"] += 1
        known = self.contact(hop.peer)
        if known.strikes == 0 and known.asked is None:
            known.strikes = 1
            self._suspects.add(hop.peer.id)
            self._ping(now, hop.peer)
        self._reroute(now, hop)

    def _reroute(self, now: int, hop: Hop) -> None:
        self._forward(now, hop.message, hop.avoid | {hop.peer.id} if hop.message.hops < TTL // 2 else frozenset())

    def flush(self) -> list[tuple[Peer, Any]]:
        """What is to be sent, acknowledgements first."""
        if self._acks:
            acks = [(peer, m.HopAck(tuple(hops))) for peer, hops in self._acks.values()]
            self._acks.clear()
            out = acks + self.sends
        else:
            out = self.sends
        self.sends = []
        return out


_HANDLERS: Final[dict[type, Any]] = {
    m.Ping: Ring._ping_came,
    m.Pong: Ring._pong_came,
    m.TableRows: Ring._rows_came,
    m.Welcome: Ring._welcome_came,
    m.Announce: Ring._announce_came,
    m.Farewell: Ring._farewell_came,
    m.Ask: Ring._ask_came,
    m.Leaves: Ring._leaves_came,
    m.Suspect: Ring._suspect_came,
    m.Route: Ring._route_came,
    m.HopAck: Ring._hops_came,
}


_ACCEPTED_BEFORE_JOIN: Final = frozenset((m.TableRows, m.Welcome))
"""What a node that is about to join listens to."""


def _is_from_nonmember(sender: Peer, message: Any) -> bool:
    """Whether a message makes its sender no member: it leaves, or is only about to join."""
    if type(message) is m.Route:
        return type(message.payload) is m.Join and message.payload.peer.id == sender.id
    return type(message) is m.Farewell
