"""What words mean: spaces, and the measures of relatedness over them."""

from likewise.semantics.adjust.codes import Coded
from likewise.semantics.adjust.contrast import Competitors, Contrast, contrasted
from likewise.semantics.adjust.differences import POWERS as DIFFERING_POWERS
from likewise.semantics.adjust.differences import Differing
from likewise.semantics.adjust.opposites import Opposed
from likewise.semantics.adjust.rank import Ranked
from likewise.semantics.evidence import Evidence, Glossary, Model, SentenceEncoder, Weight, extra_words
from likewise.semantics.measures.base import Matrix, Measure, Prepared, Shared, Themes
from likewise.semantics.measures.combined import Combined
from likewise.semantics.measures.concept import Concept
from likewise.semantics.measures.embedding import Embedding
from likewise.semantics.measures.esa import Esa, EsaEuclidean
from likewise.semantics.measures.hybrid import Hybrid
from likewise.semantics.measures.jiang_conrath import JiangConrath
from likewise.semantics.measures.thematic import Thematic
from likewise.semantics.measures.thematic_euclidean import ThematicEuclidean
from likewise.semantics.registry import measure, measure_names, needs_space, wrap_names
from likewise.semantics.space.assembly import BuildSummary, SpaceOptions
from likewise.semantics.space.format import Manifest
from likewise.semantics.space.local import build_local, write_space
from likewise.semantics.space.shelf import find_space, list_spaces, space_path, spaces_folder
from likewise.semantics.space.space import Space, SpaceRows
from likewise.semantics.space.vocabulary import Neighbour, Vocabulary
from likewise.semantics.space.weighting import DEFAULT_WEIGHTING, WEIGHTINGS, Weighting
from likewise.semantics.space.writer import SpaceWriter
from likewise.semantics.text.phrase import key
from likewise.semantics.text.words import tokens
from likewise.semantics.themes import Suggestion
from likewise.semantics.themes import suggest as suggest_themes
from likewise.semantics.unknown import unknown_words
from likewise.semantics.wordnet.corpus import build_wordnet
from likewise.semantics.wordnet.corpus import documents as wordnet_documents
from likewise.semantics.wordnet.information import InformationContent
from likewise.semantics.wordnet.opposites import Opposites
from likewise.semantics.wordnet.thesaurus import Thesaurus
from likewise.semantics.wordnet.wordnet import Sense, Synset, WordNet

__all__ = [
    "DEFAULT_WEIGHTING",
    "DIFFERING_POWERS",
    "WEIGHTINGS",
    "BuildSummary",
    "Coded",
    "Combined",
    "Competitors",
    "Concept",
    "Contrast",
    "Differing",
    "Embedding",
    "Esa",
    "EsaEuclidean",
    "Evidence",
    "Glossary",
    "Hybrid",
    "InformationContent",
    "JiangConrath",
    "Manifest",
    "Matrix",
    "Measure",
    "Model",
    "Neighbour",
    "Opposed",
    "Opposites",
    "Prepared",
    "Ranked",
    "Sense",
    "SentenceEncoder",
    "Shared",
    "Space",
    "SpaceOptions",
    "SpaceRows",
    "SpaceWriter",
    "Suggestion",
    "Synset",
    "Thematic",
    "ThematicEuclidean",
    "Themes",
    "Thesaurus",
    "Vocabulary",
    "Weight",
    "Weighting",
    "WordNet",
    "build_local",
    "build_wordnet",
    "contrasted",
    "extra_words",
    "find_space",
    "key",
    "list_spaces",
    "measure",
    "measure_names",
    "needs_space",
    "space_path",
    "spaces_folder",
    "suggest_themes",
    "tokens",
    "unknown_words",
    "wordnet_documents",
    "wrap_names",
    "write_space",
]
