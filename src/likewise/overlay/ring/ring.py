"""The ring: membership, and routing to the root of a key, as in Pastry.

It has no clock, no sockets and no randomness: messages and time come in, messages and arrivals go out. The same code
runs in the simulator and over TLS. Messages are routed around a peer as soon as it misses an answer; after several it
is declared dead. Only a message from the peer itself revives it; what other nodes report about it is ignored.
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
"""Hops after which a routed message is dropped."""


class Ring:
    """One node's part of the ring.

    `version` increases with every change of the neighbours; `digest` and `digests` are those of this node's and its
    peers' catalogues, which travel with heartbeats.
    """

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

    # start and end

    def start(self, now: int, bootstrap: Iterable[Peer] = ()) -> None:
        """Join through one of the bootstrap nodes, or be the first node of a new ring."""
        self._last_tick = now
        self._bootstrap = tuple(peer for peer in bootstrap if peer.id != self.me.id)
        if self._bootstrap:
            self._request_join(now, 0)
        else:
            self.joined = True
        if self.settings.maintain:
            # Spread the heartbeats of nodes that start at the same time.
            self._set_timer(now + 1 + self.number % self.settings.heartbeat, "heartbeat", None)

    def join_static(self, leaves: Iterable[Peer], table: Iterable[Peer]) -> None:
        """Start as a member with given neighbours, for large static rings."""
        self.leaves.fill(leaves)
        for peer in table:
            self.table.add(peer)
        self.joined = True

    def leave(self) -> None:
        """Announce to the neighbours that this node leaves."""
        self.left = True
        known = tuple(self.leaves)
        for peer in known:
            self._send(peer, m.Farewell(known))

    @property
    def neighbours_confirmed(self) -> bool:
        """Whether all neighbours have sent their own neighbours since this node joined or was suspended."""
        return self.joined and not self._unconfirmed

    def _confirm_neighbours(self) -> None:
        """Ask all neighbours for theirs, since other nodes may have joined meanwhile."""
        self._unconfirmed = {peer.id for peer in self.leaves}
        for peer in self.leaves:
            self._send(peer, m.AskLeaves())

    def _check_confirmed(self) -> None:
        """Stop waiting for peers that are neither neighbours nor being pinged."""
        if self._unconfirmed:
            self._unconfirmed = {key for key in self._unconfirmed if key in self.leaves or self._is_pinged(key)}
            # Users of the ring watch the version.
            self.version += not self._unconfirmed

    def _is_pinged(self, id: Key) -> bool:
        contact = self._contacts.get(id)
        return contact is not None and contact.pinged_at is not None

    def _request_join(self, now: int, attempt: int) -> None:
        # If the bootstrap nodes are gone, a peer that was learned of meanwhile can take the request.
        candidates = (*self._bootstrap, *self.table.entries.values())
        self._send(candidates[attempt % len(candidates)], m.Route(self.me.id, 0, self.me, m.Join(self.me)))
        self._set_timer(
            now + min(self.settings.max_timeout, self.settings.first_timeout << min(attempt, 4)), "join", attempt
        )

    @property
    def due(self) -> int | None:
        """When `tick` has something to do."""
        timers, hops = self._timers, self._hops
        while timers and timers[0][2] == "hop" and timers[0][3] not in hops:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    def tick(self, now: int) -> None:
        """Run the timers that are due at `now`."""
        if self.left:
            self._timers.clear()
            return
        due = self.due
        lag = 0 if due is None or self._last_tick is None else now - due
        if lag > self.settings.pause:
            self.counts["pauses"] += 1
            if self.joined:
                # Others may have declared this node dead; a message from it revives it.
                self._confirm_neighbours()
        timers = self._timers
        while timers and timers[0][0] <= now:
            _, _, kind, item = heapq.heappop(timers)
            if lag > self.settings.late_timer and kind in ("hop", "answer"):
                # This node was suspended: answers may have arrived that it has not read yet.
                self._set_timer(now + self.settings.first_timeout, kind, item)
            else:
                getattr(self, f"_on_{kind}_timer")(now, item)
        self._last_tick = now

    def _set_timer(self, time: int, kind: str, item: Any) -> None:
        self._numbers += 1
        heapq.heappush(self._timers, (time, self._numbers, kind, item))

    def _send(self, peer: Peer, message: Any) -> None:
        self.sends.append((peer, message))

    # peers

    def contact(self, peer: Peer) -> Contact:
        """The record about a peer, created if there is none."""
        contact = self._contacts.get(peer.id)
        if contact is None:
            contact = self._contacts[peer.id] = Contact(peer)
        return contact

    def timeout(self, id: Key) -> int:
        """How long to wait for an answer of a peer: its mean round trip and four times the deviation."""
        contact = self._contacts.get(id)
        settings = self.settings
        if contact is None or not contact.round_trip:
            return settings.first_timeout
        return int(min(settings.max_timeout, max(settings.min_timeout, contact.round_trip + 4 * contact.deviation)))

    def is_dead(self, id: Key) -> bool:
        """Whether a peer was declared dead."""
        return id in self._dead

    @property
    def dead(self) -> list[Peer]:
        """The peers that were declared dead."""
        return [peer for _, peer in self._dead.values()]

    def note_alive(self, now: int, peer: Peer) -> None:
        """Note that a member sent a message that the ring does not handle."""
        contact = self._contacts.get(peer.id)
        if contact is None or contact.missed or peer.id in self._dead:
            self._mark_alive(now, peer)
        else:
            contact.heard_at = now

    def _mark_alive(self, now: int, peer: Peer) -> None:
        """Note a message from a peer: reset its missed answers, revive it if it was dead, and add it to the tables."""
        contact = self.contact(peer)
        contact.heard_at = now
        contact.missed = 0
        contact.pinged_at = None
        if self._suspects:
            self._suspects.discard(peer.id)
        if contact.generation == self._generation and contact.peer is peer:
            return
        if peer.id in self._dead:
            del self._dead[peer.id]
            self.counts["revived"] += 1
        if peer.id not in self.leaves and self.leaves.add(peer):
            if self._unconfirmed:
                self._unconfirmed.add(peer.id)
                self._send(peer, m.AskLeaves())
            self._changed(now)
        self._check_confirmed()
        self.table.add(peer)
        # Adding it again is useless until the tables change.
        contact.peer, contact.generation = peer, self._generation

    def _learn_of(self, now: int, peers: Iterable[Peer]) -> None:
        """Handle peers that others reported: ping possible neighbours first; add others to free slots of the table."""
        for peer in peers:
            if peer.id == self.me.id or peer.id in self._dead:
                continue
            if self.joined and self.leaves.fits(peer):
                self._ping(now, peer)
                if self._unconfirmed:
                    self._unconfirmed.add(peer.id)
            elif self.table.has_slot(peer):
                self.table.add(peer)

    def _changed(self, now: int) -> None:
        self.version += 1
        self._generation += 1
        if self.joined and self.settings.maintain:
            # The nearest neighbours learn of the change at once, the others with their next heartbeat.
            for peer in self.leaves.nearest_on_each_side(1):
                self._ping(now, peer)

    def _ping(self, now: int, peer: Peer) -> None:
        contact = self.contact(peer)
        if contact.pinged_at is not None:
            return
        contact.pinged_at = now
        contact.offered = (now, self.version)
        self._send(peer, m.Ping(now, self._changed_leaves(contact), self.digest))
        self._set_timer(now + max(self.settings.ping_timeout, self.timeout(peer.id)), "answer", (peer, now))

    def _changed_leaves(self, contact: Contact) -> tuple[Peer, ...]:
        return () if contact.version == self.version else tuple(self.leaves)

    def _measure(self, contact: Contact, took: int) -> None:
        if not contact.round_trip:
            contact.round_trip, contact.deviation = max(1.0, float(took)), took / 2
        else:
            contact.deviation += (abs(took - contact.round_trip) - contact.deviation) / 4
            contact.round_trip += (took - contact.round_trip) / 8

    def _missed_answer(self, now: int, peer: Peer) -> None:
        """Handle a missing answer: ping again, or declare the peer dead after too many."""
        contact = self.contact(peer)
        contact.pinged_at = None
        contact.missed += 1
        if contact.missed < self.settings.max_missed:
            self._suspects.add(peer.id)
            self._ping(now, peer)
        else:
            self._declare_dead(now, peer)

    def refused(self, now: int, peer: Peer) -> None:
        """Declare a peer dead whose address refused a connection."""
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
                    self._send(side[-1], m.AskLeaves())
            self._changed(now)
        self._check_confirmed()
        for number, hop in list(self._hops.items()):
            if hop.peer.id == peer.id:
                del self._hops[number]
                self._reroute(now, hop)

    # heartbeats

    def _on_heartbeat_timer(self, now: int, _item: Any) -> None:
        self._set_timer(now + self.settings.heartbeat, "heartbeat", None)
        if not self.joined:
            return
        peers = self.leaves.nearest_on_each_side(self.settings.near)
        others = self.leaves.right[self.settings.near :] + self.leaves.left[self.settings.near :]
        self._beats += 1
        if others:
            peers.append(others[self._beats % len(others)])
        for peer in peers:
            self._ping(now, peer)
        for peer in self.leaves:
            if peer.id in self._unconfirmed:
                self._send(peer, m.AskLeaves())
        self._ping_dead(now)

    def _ping_dead(self, now: int) -> None:
        """Ping one dead peer from time to time, so that the halves of a partitioned ring find each other again."""
        period = max(1, self.settings.ping_dead // self.settings.heartbeat)
        if not self._dead or self._beats % period:
            return
        dead = list(self._dead.values())
        _, peer = dead[(self._beats // period) % len(dead)]
        self._send(peer, m.Ping(now, (), self.digest))
        horizon = now - 9 * self.settings.quarantine
        self._dead = {key: entry for key, entry in self._dead.items() if entry[0] >= horizon}

    def _on_answer_timer(self, now: int, item: Any) -> None:
        peer, nonce = item
        contact = self._contacts.get(peer.id)
        if contact is not None and contact.pinged_at == nonce:
            self._missed_answer(now, peer)

    def _on_join_timer(self, now: int, attempt: int) -> None:
        if not self.joined:
            self._request_join(now, attempt + 1)

    # messages

    def receive(self, now: int, sender: Peer, message: Any) -> None:
        """Handle a message from a peer, whose id the transport has checked."""
        if self.left or sender.id == self.me.id or not (self.joined or type(message) in _ACCEPTED_BEFORE_JOIN):
            # A node that answered before it joined would be taken for a member.
            return
        handler = _HANDLERS.get(type(message))
        if handler is None:
            self.counts["unknown"] += 1
            return
        if not _is_from_nonmember(sender, message):
            self._mark_alive(now, sender)
        handler(self, now, sender, message)

    def _on_ping(self, now: int, sender: Peer, message: m.Ping) -> None:
        self.digests[sender.id] = message.digest
        self._send(sender, m.Pong(message.nonce, self._changed_leaves(self.contact(sender)), self.digest))
        self._learn_of(now, message.leaves)

    def _on_pong(self, now: int, sender: Peer, message: m.Pong) -> None:
        # A longer round trip includes a suspension of one of the two nodes.
        contact = self.contact(sender)
        if 0 <= now - message.nonce <= self.settings.max_timeout:
            self._measure(contact, now - message.nonce)
        if message.nonce == contact.offered[0]:
            contact.version = contact.offered[1]
        self.digests[sender.id] = message.digest
        self._learn_of(now, message.leaves)

    def _on_rows(self, now: int, _sender: Peer, message: m.TableRows) -> None:
        self._learn_of(now, message.peers)

    def _on_welcome(self, now: int, _sender: Peer, message: m.Welcome) -> None:
        if self.joined:
            return
        self.joined = True
        for peer in message.peers:
            if peer.id not in self._dead:
                self.table.add(peer)
        # The root hears these neighbours itself, so they need no ping first.
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

    def _on_announce(self, now: int, _sender: Peer, message: m.Announce) -> None:
        self._learn_of(now, message.leaves)

    def _on_farewell(self, now: int, sender: Peer, message: m.Farewell) -> None:
        self._declare_dead(now, sender)
        self._learn_of(now, message.leaves)

    def _on_ask_leaves(self, _now: int, sender: Peer, _message: m.AskLeaves) -> None:
        self._send(sender, m.Leaves(tuple(self.leaves)))

    def _on_leaves(self, now: int, sender: Peer, message: m.Leaves) -> None:
        self._learn_of(now, message.leaves)
        if sender.id in self._unconfirmed:
            self._unconfirmed.remove(sender.id)
            self.version += not self._unconfirmed

    def _on_suspect(self, now: int, _sender: Peer, message: m.Suspect) -> None:
        peer = message.peer
        if peer.id in self.leaves and peer.id not in self._dead:
            # It missed the answer to another node already: one more is enough.
            contact = self.contact(peer)
            contact.missed = max(contact.missed, self.settings.max_missed - 1)
            self._ping(now, peer)

    # routing

    def route(self, now: int, key: Key, payload: Any) -> None:
        """Send a payload to the root of a key."""
        self._forward(now, m.Route(key, 0, self.me, payload), frozenset())

    def next_hop(self, key: Key, avoid: frozenset[Key] = frozenset()) -> Peer | None:
        """The next peer on the route to a key; None if this node is its root."""
        number = number_of(key)
        leaves = self.leaves
        if self._covers(number):
            return leaves.nearest(number, avoid)
        peer = self.table.find(number)
        if peer is not None and peer.id not in avoid:
            return peer
        return self.table.nearer(number, leaves, avoid)

    def is_root(self, key: Key) -> bool:
        """Whether this node is the root of a key."""
        return self.next_hop(key) is None

    def _covers(self, number: int) -> bool:
        """Whether the root of a number is this node or a neighbour."""
        return self.leaves.covers(number) or self.knows_all

    @property
    def knows_all(self) -> bool:
        """Whether all nodes known to this one are its neighbours, as in a ring of few nodes."""
        leaves = self.leaves
        return leaves.has_room and all(peer.id in leaves for peer in self.table.entries.values())

    def replicas(self, key: Key, count: int) -> list[Peer]:
        """The neighbours that hold the replicas of a key of which this node is the root."""
        return self.leaves.closest(number_of(key), count)

    def _on_route(self, now: int, sender: Peer, message: m.Route) -> None:
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
        """Send a joining node the rows of the table that it can use."""
        if peer.id != self.me.id:
            row = tuple(other for other in self.table.row(peer.number) if other.id != peer.id)
            self._send(peer, m.TableRows((self.me, *row)))

    def _forward(self, now: int, message: m.Route, avoid: frozenset[Key]) -> None:
        joining = frozenset((message.payload.peer.id,)) if type(message.payload) is m.Join else frozenset()
        excluded = avoid | joining | self._suspects if avoid or joining or self._suspects else avoid
        peer = self.next_hop(message.key, excluded)
        if peer is None and excluded:
            # A root that is slow to answer is still the root.
            peer = self.next_hop(message.key, joining)
        if peer is None:
            self._arrive(message)
            return
        self._numbers += 1
        onward = m.Route(message.key, self._numbers, message.origin, message.payload, message.hops + 1)
        self._hops[self._numbers] = Hop(peer, onward, now, avoid)
        self._send(peer, onward)
        self._set_timer(now + self.timeout(peer.id), "hop", self._numbers)

    def _arrive(self, message: m.Route) -> None:
        if type(message.payload) is not m.Join:
            self.arrivals.append(RingArrival(message.key, message.payload, message.origin, message.hops))
            return
        peer = message.payload.peer
        known = (self.me, *self.leaves)
        self._send(peer, m.Welcome(known, tuple(self.table.row(peer.number))))

    def _on_hop_ack(self, now: int, sender: Peer, message: m.HopAck) -> None:
        for number in message.hops:
            hop = self._hops.get(number)
            if hop is not None and hop.peer.id == sender.id:
                del self._hops[number]
                self._measure(self.contact(sender), now - hop.sent)

    def _on_hop_timer(self, now: int, number: int) -> None:
        hop = self._hops.get(number)
        if hop is None:
            return
        if hop.waits < self.settings.max_waits and self.contact(hop.peer).heard_at > hop.sent:
            # The peer is alive but busy: sending the message again would add load.
            hop.waits += 1
            self._set_timer(now + (self.timeout(hop.peer.id) << hop.waits), "hop", number)
            return
        del self._hops[number]
        self.counts["rerouted"] += 1
        contact = self.contact(hop.peer)
        if contact.missed == 0 and contact.pinged_at is None:
            contact.missed = 1
            self._suspects.add(hop.peer.id)
            self._ping(now, hop.peer)
        self._reroute(now, hop)

    def _reroute(self, now: int, hop: Hop) -> None:
        self._forward(now, hop.message, hop.avoid | {hop.peer.id} if hop.message.hops < TTL // 2 else frozenset())

    def flush(self) -> list[tuple[Peer, Any]]:
        """The messages to send, acknowledgements first."""
        if self._acks:
            acks = [(peer, m.HopAck(tuple(hops))) for peer, hops in self._acks.values()]
            self._acks.clear()
            out = acks + self.sends
        else:
            out = self.sends
        self.sends = []
        return out


_HANDLERS: Final[dict[type, Any]] = {
    m.Ping: Ring._on_ping,
    m.Pong: Ring._on_pong,
    m.TableRows: Ring._on_rows,
    m.Welcome: Ring._on_welcome,
    m.Announce: Ring._on_announce,
    m.Farewell: Ring._on_farewell,
    m.AskLeaves: Ring._on_ask_leaves,
    m.Leaves: Ring._on_leaves,
    m.Suspect: Ring._on_suspect,
    m.Route: Ring._on_route,
    m.HopAck: Ring._on_hop_ack,
}


_ACCEPTED_BEFORE_JOIN: Final = frozenset((m.TableRows, m.Welcome))
"""The messages that a node accepts before it has joined."""


def _is_from_nonmember(sender: Peer, message: Any) -> bool:
    """Whether the sender of a message is not a member: it leaves, or has not joined yet."""
    if type(message) is m.Route:
        return type(message.payload) is m.Join and message.payload.peer.id == sender.id
    return type(message) is m.Farewell
