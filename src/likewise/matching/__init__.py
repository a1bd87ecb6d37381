"""Matching: one event against many subscriptions."""

from likewise.matching._aggregation import Aggregation
from likewise.matching._approach import (
    APPROACHES,
    TUNED_TEMPERATURE,
    TUNED_WEIGHT,
    Approach,
    certainty,
    default_threshold,
    is_approximate,
)
from likewise.matching._explain import Explanation, Step
from likewise.matching._mapping import Correspondence, Mapping
from likewise.matching._match import Match
from likewise.matching._matcher import Matcher, Scores
from likewise.matching._topics import Classifier, Clusters, Taxonomy, Topic
from likewise.matching._vocabulary import Encoded

__all__ = [
    "APPROACHES",
    "TUNED_TEMPERATURE",
    "TUNED_WEIGHT",
    "Aggregation",
    "Approach",
    "Classifier",
    "Clusters",
    "Correspondence",
    "Encoded",
    "Explanation",
    "Mapping",
    "Match",
    "Matcher",
    "Scores",
    "Step",
    "Taxonomy",
    "Topic",
    "certainty",
    "default_threshold",
    "is_approximate",
]
