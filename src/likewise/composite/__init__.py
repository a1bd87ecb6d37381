"""Composite events: patterns over events, detected in event time."""

from likewise.composite._detection import Detection, ranked
from likewise.composite._explain import PatternState
from likewise.composite._plan import Plan
from likewise.composite._planner import build_plan
from likewise.composite._pool import ProfileMatcher
from likewise.composite._reconcile import Changes, reconcile
from likewise.composite._run import Limits
from likewise.composite._trace import Line
from likewise.composite.detector import Detector, Refused
from likewise.composite.relations import relation_of

__all__ = [
    "Changes",
    "Detection",
    "Detector",
    "Limits",
    "Line",
    "PatternState",
    "Plan",
    "ProfileMatcher",
    "Refused",
    "build_plan",
    "ranked",
    "reconcile",
    "relation_of",
]
