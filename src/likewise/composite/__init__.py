"""Composite events: patterns over events, detected in event time."""

from likewise.composite.catalogue import Changes, closure, reconcile
from likewise.composite.compiled.kernel import kernel_is_cached
from likewise.composite.composer import Composer
from likewise.composite.detection import Detection, Line, ranked
from likewise.composite.detector import Detector
from likewise.composite.general.pools import mapped_values
from likewise.composite.general.run import Limits
from likewise.composite.hits import (
    Hit,
    HitColumns,
    MappedValues,
    MemberProfile,
    hit_of_text,
    hit_text,
)
from likewise.composite.intake import Refused
from likewise.composite.plan.builder import build_plan
from likewise.composite.plan.conditions import relation_of
from likewise.composite.plan.nodes import NEAR, LeafNode
from likewise.composite.reasons import (
    PatternExplanation,
    PatternState,
    detection_lines,
    detection_plain,
    state_lines,
    state_plain,
)
from likewise.composite.routing import BUCKETS, Rendezvous, key_digest

__all__ = [
    "BUCKETS",
    "NEAR",
    "Changes",
    "Composer",
    "Detection",
    "Detector",
    "Hit",
    "HitColumns",
    "LeafNode",
    "Limits",
    "Line",
    "MappedValues",
    "MemberProfile",
    "PatternExplanation",
    "PatternState",
    "Refused",
    "Rendezvous",
    "build_plan",
    "closure",
    "detection_lines",
    "detection_plain",
    "hit_of_text",
    "hit_text",
    "kernel_is_cached",
    "key_digest",
    "mapped_values",
    "ranked",
    "reconcile",
    "relation_of",
    "state_lines",
    "state_plain",
]
