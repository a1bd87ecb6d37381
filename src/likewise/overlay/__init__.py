"""Brokers of different owners on a ring: composite events are detected where their members meet [001]."""

from likewise.overlay.catalogue import MatchingClassifier, TopicCatalogue
from likewise.overlay.cube import Cube
from likewise.overlay.decompose import Compound, ProfileTopic, decompose
from likewise.overlay.ids import Key, key_of, short
from likewise.overlay.items import Report
from likewise.overlay.node import NodeSettings, OverlayNode
from likewise.overlay.plane import Plane
from likewise.overlay.ring import Ring, RingSettings
from likewise.overlay.simulation import Simulation, Weather
from likewise.overlay.tables import LeafSet, Peer, RoutingTable

__all__ = [
    "Compound",
    "Cube",
    "Key",
    "LeafSet",
    "MatchingClassifier",
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
    "Weather",
    "decompose",
    "key_of",
    "short",
]
