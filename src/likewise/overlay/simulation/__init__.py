"""A simulated network in one process, and trials of whole federations in it."""

from likewise.overlay.simulation.trial import OverlayTrial, TrialOutcome, conjunction, play_trial
from likewise.overlay.simulation.world import NetworkConditions, Simulation, static_ring

__all__ = [
    "NetworkConditions",
    "OverlayTrial",
    "Simulation",
    "TrialOutcome",
    "conjunction",
    "play_trial",
    "static_ring",
]
