"""What words mean: spaces, and the measures of relatedness over them."""

from likewise.semantics.adjust.apart import Coded, Opposed
from likewise.semantics.adjust.beside import Competitors, Contrast, Ranked, contrasted
from likewise.semantics.adjust.differences import Differing
from likewise.semantics.evidence import (
    Evidence,
    Glossary,
    Model,
    OtherNames,
    SentenceEncoder,
    extra_words,
    lists_version,
)
from likewise.semantics.measures.base import Matrix, Measure, Prepared, Shared, Themes
from likewise.semantics.measures.combined import Combined, Hybrid
from likewise.semantics.measures.concept import Concept, Thesaurus
from likewise.semantics.measures.embedding import Embedding
from likewise.semantics.measures.esa import Esa, EsaEuclidean
from likewise.semantics.measures.jiang_conrath import JiangConrath
from likewise.semantics.measures.thematic import Thematic, ThematicEuclidean
from likewise.semantics.registry import measure, measure_names, needs_space, wrap_names
from likewise.semantics.space.assembly import BuildSummary, SpaceOptions, build_local, write_space
from likewise.semantics.space.format import Manifest
from likewise.semantics.space.space import (
    Space,
    find_space,
    list_spaces,
    space_path,
    spaces_folder,
)
from likewise.semantics.space.vocabulary import Vocabulary, unknown_words
from likewise.semantics.space.writer import SpaceWriter
from likewise.semantics.text import key, tokens
from likewise.semantics.themes import Suggestion
from likewise.semantics.themes import suggest as suggest_themes
from likewise.semantics.wordnet.corpus import build_wordnet
from likewise.semantics.wordnet.corpus import documents as wordnet_documents
from likewise.semantics.wordnet.information import InformationContent
from likewise.semantics.wordnet.opposites import PHRASES_OF_STATES, Opposites
from likewise.semantics.wordnet.wordnet import WordNet

__all__ = [
    "PHRASES_OF_STATES",
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
    "Opposed",
    "Opposites",
    "OtherNames",
    "Prepared",
    "Ranked",
    "SentenceEncoder",
    "Shared",
    "Space",
    "SpaceOptions",
    "SpaceWriter",
    "Suggestion",
    "Thematic",
    "ThematicEuclidean",
    "Themes",
    "Thesaurus",
    "Vocabulary",
    "WordNet",
    "build_local",
    "build_wordnet",
    "contrasted",
    "extra_words",
    "find_space",
    "key",
    "list_spaces",
    "lists_version",
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
