"""Brokers of different owners on a ring: composite events are detected where their members meet [001]."""

from likewise.overlay.cube import Compound, Cube, Plane, ProfileTopic, Report, decompose
from likewise.overlay.node import MatchingClassifier, NodeSettings, OverlayNode, TopicCatalogue
from likewise.overlay.ring import Key, LeafSet, Peer, Ring, RingSettings, RoutingTable, key_of, short
from likewise.overlay.simulation import NetworkConditions, Simulation

__all__ = [
    "Compound",
    "Cube",
    "Key",
    "LeafSet",
    "MatchingClassifier",
    "NetworkConditions",
    "NodeSettings",
    "OverlayNode",
    "Peer",
    "Plane",
    "ProfileTopic",
    "Report",
    "Ring",
    "RingSettings",
    "RoutingTable",
    "Simulation",
    "TopicCatalogue",
    "decompose",
    "key_of",
    "short",
]
