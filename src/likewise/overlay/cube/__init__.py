"""Composite events as paper 001 has them: a tree of members, the Plane, the cube, and what travels."""

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
