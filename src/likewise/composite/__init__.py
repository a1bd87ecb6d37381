"""Composite events: patterns over events, detected in event time."""

from likewise.composite._detection import Detection, ranked
from likewise.composite._explain import PatternState
from likewise.composite._plan import LeafNode, Plan
from likewise.composite._planner import build_plan
from likewise.composite._pool import ProfileMatcher
from likewise.composite._reconcile import Changes, reconcile
from likewise.composite._run import Limits
from likewise.composite._trace import Line
from likewise.composite.composer import Composer, Refused
from likewise.composite.detector import Detector
from likewise.composite.hits import Hit, HitColumns, Wanted, decode_hits, encode_hits
from likewise.composite.relations import relation_of
from likewise.composite.routing import BUCKETS, Rendezvous, key_digest, wanted_attributes
from likewise.composite.why import PatternExplanation

__all__ = [
    "BUCKETS",
    "Changes",
    "Composer",
    "Detection",
    "Detector",
    "Hit",
    "HitColumns",
    "LeafNode",
    "Limits",
    "Line",
    "PatternExplanation",
    "PatternState",
    "Plan",
    "ProfileMatcher",
    "Refused",
    "Rendezvous",
    "Wanted",
    "build_plan",
    "decode_hits",
    "encode_hits",
    "key_digest",
    "ranked",
    "reconcile",
    "relation_of",
    "wanted_attributes",
]
