"""Composite events as in paper 001: the tree of members, the Plane, the cube, and the items that travel."""

from likewise.overlay.cube.cells import Cube
from likewise.overlay.cube.decompose import Compound, Pairing, ProfileTopic, decompose
from likewise.overlay.cube.items import Report
from likewise.overlay.cube.plane import Plane, Subscriber

__all__ = [
    "Compound",
    "Cube",
    "Pairing",
    "Plane",
    "ProfileTopic",
    "Report",
    "Subscriber",
    "decompose",
]
