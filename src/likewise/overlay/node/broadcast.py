"""Broadcast of catalogue changes to all nodes, with acknowledgement, and repair by comparing catalogues.

A message covers a range of the ring. The receiver divides the rest of its range among the nodes that it knows there;
every node knows its successor, so none is left out. A node acknowledges when all nodes to which it forwarded have
acknowledged. A subscription is therefore confirmed only once every entry node forwards matching events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from likewise.overlay.cube.items import Id, id_of
from likewise.overlay.node import wire as w
from likewise.overlay.node.catalogue import TopicCatalogue
from likewise.overlay.ring.ids import SPAN, Key, number_of
from likewise.overlay.ring.ring import Ring
from likewise.overlay.ring.tables import Peer

MAX_RETRIES: Final = 60
"""Retries to a live node before giving up; it will catch up when it compares catalogues with its neighbours."""
MAX_SEEN: Final = 10_000
"""Received broadcasts that are remembered, to recognise duplicates."""
SYNC_TIMEOUT: Final = 2_000_000
"""Microseconds after which a node stops waiting for a neighbour with a complete catalogue, if none has one."""


@dataclass(slots=True)
class PendingAck:
    """A range of the ring, from `peer` to `limit`, that has not been acknowledged.

    `peer` is this node itself while it does not yet know its neighbours, and so cannot forward.
    """

    peer: Peer
    limit: Key
    since: int
    retries: int = 0


@dataclass(slots=True)
class Broadcast:
    """Entries being broadcast.

    `origin` is the sender and its number, absent if this node started the broadcast; `waiting` are the ids to report
    as complete; `pending` are the missing acknowledgements by number.
    """

    entries: tuple[w.CatalogueEntry, ...]
    origin: tuple[Peer, int] | None = None
    waiting: list[Id] = field(default_factory=list)
    pending: dict[int, PendingAck] = field(default_factory=dict)


class TopicBroadcast:
    """One node's part in keeping the catalogues of all nodes equal.

    `synchronised` is false while this node may have missed changes; `complete` collects the ids of broadcasts that
    every node has acknowledged.
    """

    def __init__(self, ring: Ring, catalogue: TopicCatalogue, *, retry: int) -> None:
        self.ring = ring
        self.catalogue = catalogue
        self.retry = retry
        self.synchronised = True
        self.complete: list[Id] = []
        self._unsynchronised_since = 0
        self._incomplete_peers: set[Key] = set()
        self._numbers = 0
        self._by_number: dict[int, Broadcast] = {}
        self._by_topic: dict[Key, Broadcast] = {}
        self._seen: dict[tuple[Key, int], bool] = {}

    # sending

    def start(self, now: int, entry: w.CatalogueEntry, *, wait: bool, repeat: bool = False) -> list[Id]:
        """Broadcast an entry if it is new, or if `repeat`; returns the id to wait for, if there is one."""
        key = entry.topic.key
        broadcast = self._by_topic.get(key)
        if self.catalogue.merge([entry]) or (repeat and broadcast is None):
            self.ring.digest = self.catalogue.digest
            broadcast = self._by_topic[key] = Broadcast((self.catalogue.entries[key],))
            self._forward(now, broadcast, self.ring.me.id, self.ring.me.id)
        if broadcast is None or not broadcast.pending or not wait:
            self._finish_if_acknowledged(broadcast)
            return []
        self._numbers += 1
        ticket = id_of("known", self.ring.me.id, str(self._numbers))
        broadcast.waiting.append(ticket)
        return [ticket]

    def _forward(self, now: int, broadcast: Broadcast, after: Key, limit: Key) -> None:
        """Divide a range of the ring among the known nodes in it."""
        if self.catalogue.common:
            return
        if not self.ring.neighbours_confirmed:
            self._send(broadcast, PendingAck(self.ring.me, limit, now))
            return
        peers = list(self._between(after, limit))
        for peer, end in zip(peers, [*(successor.id for successor in peers[1:]), limit], strict=False):
            self._send(broadcast, PendingAck(peer, end, now))

    def _send(self, broadcast: Broadcast, pending: PendingAck) -> None:
        self._numbers += 1
        broadcast.pending[self._numbers] = pending
        self._by_number[self._numbers] = broadcast
        if pending.peer.id != self.ring.me.id:
            self.ring.sends.append((pending.peer, w.TopicUpdate(broadcast.entries, pending.limit, self._numbers)))

    def _between(self, after: Key, limit: Key) -> Iterator[Peer]:
        """The known nodes in a range, in the order of the ring."""
        start = number_of(after)
        length = (number_of(limit) - start) % SPAN or SPAN
        known = {peer.id: peer for peer in (*self.ring.leaves, *self.ring.table.entries.values())}
        ordered = sorted(((peer.number - start) % SPAN, peer.id) for peer in known.values())
        return (known[key] for ahead, key in ordered if 0 < ahead < length)

    def _finish_if_acknowledged(self, broadcast: Broadcast | None) -> None:
        if broadcast is None or broadcast.pending:
            return
        for entry in broadcast.entries:
            if self._by_topic.get(entry.topic.key) is broadcast:
                del self._by_topic[entry.topic.key]
        self.complete += broadcast.waiting
        if broadcast.origin is not None:
            peer, number = broadcast.origin
            self._seen[peer.id, number] = True
            self.ring.sends.append((peer, w.TopicUpdateAck(number)))

    def _redistribute(self, now: int) -> None:
        """Forward ranges whose node died, and ranges that waited for this node to know its neighbours."""
        if not self.ring.neighbours_confirmed:
            return
        for number, broadcast in list(self._by_number.items()):
            pending = broadcast.pending[number]
            if pending.peer.id == self.ring.me.id or self.ring.is_dead(pending.peer.id):
                self._forward(now, broadcast, pending.peer.id, pending.limit)
                self._acknowledged(number)

    # receiving

    def on_update(self, now: int, sender: Peer, message: w.TopicUpdate) -> None:
        """Handle a broadcast, or the reply to a request."""
        new = self.catalogue.merge(message.entries)
        self.ring.digest = self.catalogue.digest
        if message.number:
            self._on_broadcast(now, sender, message)
        elif new:
            # Entries that this node missed were probably missed by its neighbours, too.
            for peer in self.ring.leaves.nearest_on_each_side(1):
                if peer.id != sender.id:
                    self.ring.sends.append((peer, w.TopicUpdate(tuple(new))))
        if message.reply and not self.synchronised:
            self._on_reply(now, sender, complete=message.complete)

    def _on_broadcast(self, now: int, sender: Peer, message: w.TopicUpdate) -> None:
        seen_key = (sender.id, message.number)
        acknowledged = self._seen.get(seen_key)
        if acknowledged:
            self.ring.sends.append((sender, w.TopicUpdateAck(message.number)))
        if acknowledged is not None:
            return
        self._seen[seen_key] = False
        if len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        broadcast = Broadcast(message.entries, (sender, message.number))
        self._forward(now, broadcast, self.ring.me.id, message.limit)
        self._finish_if_acknowledged(broadcast)

    def on_ack(self, sender: Peer, message: w.TopicUpdateAck) -> None:
        """Handle an acknowledgement: every node in a range has the entries."""
        broadcast = self._by_number.get(message.number)
        if broadcast is not None and broadcast.pending[message.number].peer.id == sender.id:
            self._acknowledged(message.number)

    def _acknowledged(self, number: int) -> None:
        broadcast = self._by_number.pop(number)
        del broadcast.pending[number]
        self._finish_if_acknowledged(broadcast)

    # comparing catalogues

    def desynchronise(self, now: int) -> None:
        """Note that this node may have missed changes, since it is new or was suspended."""
        if self.synchronised:
            self.synchronised, self._unsynchronised_since = False, now
        self._incomplete_peers.clear()

    @property
    def _predecessor(self) -> Peer | None:
        """The node before this one on the ring; every broadcast to this node has also reached it."""
        leaves = self.ring.leaves
        return leaves.left[0] if leaves.left else leaves.right[-1] if leaves.right else None

    def neighbours_changed(self, now: int) -> None:
        """React to new neighbours."""
        self._redistribute(now)
        if not self.synchronised:
            self.compare(now)

    def compare(self, now: int) -> None:
        """Request entries from neighbours whose catalogue differs, or from all if this node is not synchronised."""
        if not self.synchronised:
            self._give_up_waiting(now)
        if self.synchronised:
            digest = self.catalogue.digest
            peers = [
                peer
                for peer in self.ring.leaves.nearest_on_each_side(2)
                if self.ring.digests.get(peer.id, digest) != digest
            ]
        else:
            peers = list(self.ring.leaves)
        request = w.TopicRequest(tuple(self.catalogue.buckets))
        self.ring.sends += [(peer, request) for peer in peers]

    def on_request(self, sender: Peer, message: w.TopicRequest) -> None:
        """Send the entries that a neighbour may lack."""
        differing = self.catalogue.differing(message.buckets)
        self.ring.sends.append((sender, w.TopicUpdate(differing, reply=True, complete=self.synchronised)))

    def _on_reply(self, now: int, sender: Peer, *, complete: bool) -> None:
        """This node is synchronised once its predecessor has replied from a complete catalogue."""
        if not self.ring.neighbours_confirmed:
            return
        if not complete:
            self._incomplete_peers.add(sender.id)
            self._give_up_waiting(now)
        else:
            self._incomplete_peers.discard(sender.id)
            predecessor = self._predecessor
            self.synchronised = predecessor is None or sender.id == predecessor.id

    def _give_up_waiting(self, now: int) -> None:
        """Count as synchronised if no neighbour is: after all were suspended, or the first node crashed."""
        if not self.ring.neighbours_confirmed or any(
            peer.id not in self._incomplete_peers for peer in self.ring.leaves
        ):
            return
        if self.ring.knows_all or self._unsynchronised_since + SYNC_TIMEOUT <= now:
            self.synchronised = True

    # time

    @property
    def needs_housekeeping(self) -> bool:
        """Whether an acknowledgement or a reply is awaited, or neighbours may change."""
        return self.ring.settings.maintain or bool(self._by_number) or not self.synchronised

    def housekeeping(self, now: int) -> None:
        """Retry what was not acknowledged, and compare catalogues."""
        self._redistribute(now)
        for number, broadcast in list(self._by_number.items()):
            pending = broadcast.pending[number]
            if pending.since + self.retry > now or pending.peer.id == self.ring.me.id:
                continue
            pending.since, pending.retries = now, pending.retries + 1
            if pending.retries > MAX_RETRIES:
                self._acknowledged(number)
            else:
                self.ring.sends.append((pending.peer, w.TopicUpdate(broadcast.entries, pending.limit, number)))
        self.compare(now)
        self.ring.digest = self.catalogue.digest
