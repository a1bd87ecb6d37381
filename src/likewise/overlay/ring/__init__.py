"""Membership of the ring, and routing to the root of a key, as in Pastry."""

from likewise.overlay.ring.contacts import RingSettings
from likewise.overlay.ring.ids import Key, key_of, short
from likewise.overlay.ring.ring import Ring
from likewise.overlay.ring.tables import LeafSet, Peer, RoutingTable

__all__ = [
    "Key",
    "LeafSet",
    "Peer",
    "Ring",
    "RingSettings",
    "RoutingTable",
    "key_of",
    "short",
]
