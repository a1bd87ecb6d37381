"""Brokers of different owners on a ring: composite events are detected where their members meet [001]."""

from likewise.overlay.ids import Key, key_of, short
from likewise.overlay.ring import Ring, RingSettings
from likewise.overlay.simulation import Simulation, Weather
from likewise.overlay.tables import LeafSet, Peer, RoutingTable

__all__ = [
    "Key",
    "LeafSet",
    "Peer",
    "Ring",
    "RingSettings",
    "RoutingTable",
    "Simulation",
    "Weather",
    "key_of",
    "short",
]
