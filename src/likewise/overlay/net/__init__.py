"""Nodes and clients over sockets: mutual TLS, message frames, and the certificates of a federation."""

from likewise.overlay.net.clients import OverlayClient, OverlayEntry
from likewise.overlay.net.host import NodeHost, run_node
from likewise.overlay.net.identity import init_authority, init_node

__all__ = [
    "NodeHost",
    "OverlayClient",
    "OverlayEntry",
    "init_authority",
    "init_node",
    "run_node",
]
