"""A network in one process, and trials of whole federations in it."""

from likewise.overlay.simulation.trial import OverlayTrial, conjunction, run_trial
from likewise.overlay.simulation.world import Simulation, Weather, static_ring

__all__ = [
    "OverlayTrial",
    "Simulation",
    "Weather",
    "conjunction",
    "run_trial",
    "static_ring",
]
