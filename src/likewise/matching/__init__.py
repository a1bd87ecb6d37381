"""Matching: one event against many subscriptions."""

from likewise.matching.encoding import Encoded, canonical
from likewise.matching.explain import Explanation, PredicateStep
from likewise.matching.mapping import Correspondence, Mapping
from likewise.matching.match import Match
from likewise.matching.matcher import EventScores, Matcher
from likewise.matching.settings import (
    APPROACHES,
    Aggregation,
    Approach,
    certainty,
    default_threshold,
    is_approximate,
    joint,
)
from likewise.matching.topics import Classifier, Clusters, Taxonomy, Topic
from likewise.matching.verdict import percent

__all__ = [
    "APPROACHES",
    "Aggregation",
    "Approach",
    "Classifier",
    "Clusters",
    "Correspondence",
    "Encoded",
    "EventScores",
    "Explanation",
    "Mapping",
    "Match",
    "Matcher",
    "PredicateStep",
    "Taxonomy",
    "Topic",
    "canonical",
    "certainty",
    "default_threshold",
    "is_approximate",
    "joint",
    "percent",
]
