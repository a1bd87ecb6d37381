"""Matching: one event against many subscriptions."""

from likewise.matching.background import (
    LEARNED_AT,
    MOST_EVENTS,
    Background,
    Commonness,
    KnownStream,
    StreamLearner,
    StreamSample,
    joint,
)
from likewise.matching.encoding import Encoded, canonical
from likewise.matching.explain import Explanation, percent
from likewise.matching.match import Correspondence, Mapping, Match
from likewise.matching.matcher import DENSE, EventScores, Matcher
from likewise.matching.settings import (
    APPROACHES,
    Aggregation,
    Approach,
    certainty,
    compared_by_meaning,
    default_threshold,
    is_approximate,
    measure_name,
)
from likewise.matching.topics import Classifier, Clusters, Taxonomy, Topic

__all__ = [
    "APPROACHES",
    "DENSE",
    "LEARNED_AT",
    "MOST_EVENTS",
    "Aggregation",
    "Approach",
    "Background",
    "Classifier",
    "Clusters",
    "Commonness",
    "Correspondence",
    "Encoded",
    "EventScores",
    "Explanation",
    "KnownStream",
    "Mapping",
    "Match",
    "Matcher",
    "StreamLearner",
    "StreamSample",
    "Taxonomy",
    "Topic",
    "canonical",
    "certainty",
    "compared_by_meaning",
    "default_threshold",
    "is_approximate",
    "joint",
    "measure_name",
    "percent",
]
