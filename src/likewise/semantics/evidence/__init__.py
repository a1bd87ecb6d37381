"""Evidence: every reason for and against two terms meaning the same, weighed in bits and added up."""

from likewise.semantics.evidence.background import SurroundedTerms, Surroundings, shifted
from likewise.semantics.evidence.encoder import SentenceEncoder
from likewise.semantics.evidence.features import Features, PairShape, features
from likewise.semantics.evidence.glossary import Glossary, extra_words, lists_version
from likewise.semantics.evidence.measure import Evidence
from likewise.semantics.evidence.model import (
    CURVES,
    OF_SHAPE,
    SHARED,
    TABLES,
    WORDS_COMPARED,
    Model,
    Weights,
    probability,
)
from likewise.semantics.evidence.network import ChangedWeights, Network, slopes
from likewise.semantics.evidence.other_names import OtherNames
from likewise.semantics.evidence.side import Sources, TermSide

__all__ = [
    "CURVES",
    "OF_SHAPE",
    "SHARED",
    "TABLES",
    "WORDS_COMPARED",
    "ChangedWeights",
    "Evidence",
    "Features",
    "Glossary",
    "Model",
    "Network",
    "OtherNames",
    "PairShape",
    "SentenceEncoder",
    "Sources",
    "SurroundedTerms",
    "Surroundings",
    "TermSide",
    "Weights",
    "extra_words",
    "features",
    "lists_version",
    "probability",
    "shifted",
    "slopes",
]
