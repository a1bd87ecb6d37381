"""Evidence: every reason for and against two terms meaning the same, weighed in bits and added up."""

from likewise.semantics.evidence.background import SurroundedTerms, Surroundings, shifted
from likewise.semantics.evidence.encoder import SentenceEncoder
from likewise.semantics.evidence.features import Features, PairShape, Sources, TermSide, features
from likewise.semantics.evidence.glossary import Glossary, extra_words, lists_version
from likewise.semantics.evidence.measure import Evidence
from likewise.semantics.evidence.model import WORDS_COMPARED, Model, Weights, probability
from likewise.semantics.evidence.other_names import OtherNames
from likewise.semantics.evidence.training import fit

__all__ = [
    "WORDS_COMPARED",
    "Evidence",
    "Features",
    "Glossary",
    "Model",
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
    "fit",
    "lists_version",
    "probability",
    "shifted",
]
