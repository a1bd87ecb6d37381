"""Matching: one event against many subscriptions."""

from likewise.matching.background import (
    LEARNED_AT,
    MOST_EVENTS,
    Background,
    Commonness,
    StreamLearner,
    StreamSample,
    joint,
)
from likewise.matching.encoding import Encoded, TupleNumbers, canonical
from likewise.matching.explain import Explanation, percent
from likewise.matching.match import Correspondence, Mapping, Match
from likewise.matching.matcher import EventScores, Matcher
from likewise.matching.settings import (
    Aggregation,
    Approach,
    certainty,
    default_threshold,
    is_approximate,
    measure_name,
)
from likewise.matching.topics import Taxonomy, Topic

__all__ = [
    "LEARNED_AT",
    "MOST_EVENTS",
    "Aggregation",
    "Approach",
    "Background",
    "Commonness",
    "Correspondence",
    "Encoded",
    "EventScores",
    "Explanation",
    "Mapping",
    "Match",
    "Matcher",
    "StreamLearner",
    "StreamSample",
    "Taxonomy",
    "Topic",
    "TupleNumbers",
    "canonical",
    "certainty",
    "default_threshold",
    "is_approximate",
    "joint",
    "measure_name",
    "percent",
]
