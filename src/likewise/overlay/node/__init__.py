"""One broker of the overlay: entry node, router and rendezvous, without clock, sockets or randomness."""

from likewise.overlay.node.catalogue import MatchingClassifier, TopicCatalogue
from likewise.overlay.node.node import NodeSettings, OverlayNode
from likewise.overlay.node.status import explain_tree, summary_of

__all__ = [
    "MatchingClassifier",
    "NodeSettings",
    "OverlayNode",
    "TopicCatalogue",
    "explain_tree",
    "summary_of",
]
