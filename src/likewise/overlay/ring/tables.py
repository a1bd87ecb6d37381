"""The routing state of a node, as in Pastry: its neighbours on both sides, and a routing table by prefix."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from likewise.overlay.ring.ids import SPAN, Key, digit_of, distance, nearness, number_of, shared_digits

HALF: Final = 8
"""Number of neighbours kept on each side."""
MAX_CACHED: Final = 4096
"""Number of keys whose nearest neighbour is cached."""


class Peer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node: its id, and the address at which it listens."""

    id: Key
    address: str = ""

    @property
    def number(self) -> int:
        """The id as a number."""
        return number_of(self.id)


class LeafSet:
    """The nearest nodes on each side; a side is half of the ring."""

    def __init__(self, me: Peer, *, half: int = HALF) -> None:
        self.me = me.number
        self.half = half
        self.members: dict[Key, Peer] = {}
        self.numbers: list[tuple[int, Peer]] = []
        self.right: list[Peer] = []
        self.left: list[Peer] = []
        self._reach_left = self._reach_right = 0
        self._nearest: dict[int, Peer | None] = {}

    def __contains__(self, id: Key) -> bool:
        return id in self.members

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Peer]:
        return iter(self.members.values())

    def fits(self, peer: Peer) -> bool:
        """Whether the peer is not a member, and would be among the nearest on its side."""
        number = peer.number
        if number == self.me or peer.id in self.members:
            return False
        ahead = (number - self.me) % SPAN
        if ahead <= SPAN >> 1:
            return len(self.right) < self.half or ahead < self._reach_right
        return len(self.left) < self.half or SPAN - ahead < self._reach_left

    def add(self, peer: Peer) -> bool:
        """Add a peer; False if it is too far away, or known with this address."""
        known = self.members.get(peer.id)
        if known is not None:
            if known.address == peer.address or not peer.address:
                return False
            self.members[peer.id] = peer
        elif not self.fits(peer):
            return False
        self.members[peer.id] = peer
        self._arrange()
        return True

    def fill(self, peers: Iterable[Peer]) -> None:
        """Add many peers at once."""
        self.members.update({peer.id: peer for peer in peers if peer.number != self.me})
        self._arrange()

    def remove(self, id: Key) -> bool:
        """Remove a peer; False if it was not a member."""
        if self.members.pop(id, None) is None:
            return False
        self._arrange()
        return True

    def _arrange(self) -> None:
        # A side is half of the ring, so a peer's side does not depend on which others are known.
        me = self.me
        self._nearest.clear()
        ordered = sorted(((peer.number - me) % SPAN, peer) for peer in self.members.values())
        self.right = [peer for ahead, peer in ordered if ahead <= SPAN >> 1][: self.half]
        self.left = [peer for ahead, peer in reversed(ordered) if ahead > SPAN >> 1][: self.half]
        self.members = {peer.id: peer for peer in (*self.right, *self.left)}
        self.numbers = [(peer.number, peer) for peer in self.members.values()]
        self._reach_right = (self.right[-1].number - me) % SPAN if self.right else 0
        self._reach_left = (me - self.left[-1].number) % SPAN if self.left else 0

    @property
    def has_room(self) -> bool:
        """Whether a side is not full, as in a ring of few nodes."""
        return len(self.right) < self.half or len(self.left) < self.half

    def covers(self, key: int) -> bool:
        """Whether a key lies between the outermost neighbours, so that the nearest of them is its root."""
        return (key - self.me) % SPAN <= self._reach_right or (self.me - key) % SPAN <= self._reach_left

    def nearest(self, key: int, avoid: Collection[Key] = ()) -> Peer | None:
        """The peer nearest to a key; None if this node is nearer."""
        if avoid:
            return self._search(key, avoid)
        try:
            return self._nearest[key]
        except KeyError:
            if len(self._nearest) >= MAX_CACHED:
                self._nearest.clear()
            peer = self._nearest[key] = self._search(key, ())
            return peer

    def _search(self, key: int, avoid: Collection[Key]) -> Peer | None:
        best, nearest = nearness(self.me, key), None
        for number, peer in self.numbers:
            if (near := nearness(number, key)) < best and peer.id not in avoid:
                best, nearest = near, peer
        return nearest

    def closest(self, key: int, count: int) -> list[Peer]:
        """The `count` peers nearest to a key."""
        return [peer for _, peer in sorted(self.numbers, key=lambda entry: nearness(entry[0], key))[:count]]

    def nearest_on_each_side(self, count: int) -> list[Peer]:
        """The `count` nearest peers of each side, without repetition."""
        return list({peer.id: peer for peer in (*self.right[:count], *self.left[:count])}.values())


class RoutingTable:
    """One peer for each length of a shared prefix and each next digit."""

    def __init__(self, me: Peer) -> None:
        self.me = me.number
        self.entries: dict[int, Peer] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def slot(self, number: int) -> int:
        """The slot of a number: row and digit."""
        row = shared_digits(self.me, number)
        return row << 4 | digit_of(number, row)

    def add(self, peer: Peer) -> bool:
        """Add a peer if its slot is free, or update its address; True if it was added."""
        number = peer.number
        if number == self.me:
            return False
        slot = self.slot(number)
        known = self.entries.get(slot)
        if known is None or (known.id == peer.id and known.address != peer.address and peer.address):
            self.entries[slot] = peer
            return known is None
        return False

    def has_slot(self, peer: Peer) -> bool:
        """Whether the slot of a peer is free."""
        number = peer.number
        return number != self.me and self.slot(number) not in self.entries

    def remove(self, peer_number: int, id: Key) -> bool:
        """Remove a peer; False if it was not in the table."""
        slot = self.slot(peer_number)
        known = self.entries.get(slot)
        if known is None or known.id != id:
            return False
        del self.entries[slot]
        return True

    def find(self, key: int) -> Peer | None:
        """The peer that shares one more digit with the key."""
        return None if key == self.me else self.entries.get(self.slot(key))

    def row(self, number: int) -> list[Peer]:
        """The peers of all rows up to the one in which routes to a number continue."""
        last = shared_digits(self.me, number)
        return [peer for slot, peer in self.entries.items() if slot >> 4 <= last]

    def nearer(self, key: int, others: Iterable[Peer], avoid: Collection[Key]) -> Peer | None:
        """A fallback for a free slot: a peer that shares as many digits as this node and is nearer to the key."""
        row, best, nearest = shared_digits(self.me, key), distance(self.me, key), None
        for peer in (*others, *self.entries.values()):
            if peer.id not in avoid and shared_digits(peer.number, key) >= row:
                apart = distance(peer.number, key)
                if apart < best:
                    best, nearest = apart, peer
        return nearest
