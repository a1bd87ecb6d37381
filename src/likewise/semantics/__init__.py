"""What words mean: spaces, and the measures of relatedness over them."""

from likewise.semantics._background import Ranked
from likewise.semantics._coded import Coded
from likewise.semantics._combined import Combined
from likewise.semantics._concept import Concept
from likewise.semantics._contrast import Competitors, Contrast, contrasted
from likewise.semantics._differing import POWERS as DIFFERING_POWERS
from likewise.semantics._differing import Differing
from likewise.semantics._embedding import Embedding
from likewise.semantics._esa import Esa, EsaEuclidean
from likewise.semantics._hybrid import Hybrid
from likewise.semantics._information import InformationContent
from likewise.semantics._jiang_conrath import JiangConrath
from likewise.semantics._measure import Matrix, Measure, Prepared, Shared, apart, prepare
from likewise.semantics._opposed import Opposed
from likewise.semantics._opposites import Opposites
from likewise.semantics._pairwise import pairwise
from likewise.semantics._registry import measure, measure_names, needs_space, wrap_names
from likewise.semantics._shelf import find_space, list_spaces, space_path, spaces_folder
from likewise.semantics._space import Rows, Space
from likewise.semantics._space_format import Manifest
from likewise.semantics._space_writer import SpaceWriter, write_space
from likewise.semantics._text import tokens
from likewise.semantics._thematic import Thematic
from likewise.semantics._thematic_euclidean import ThematicEuclidean
from likewise.semantics._themes import Suggestion
from likewise.semantics._themes import suggest as suggest_themes
from likewise.semantics._thesaurus import Thesaurus
from likewise.semantics._vocabulary import Neighbour, Vocabulary
from likewise.semantics._weighting import DEFAULT_WEIGHTING, WEIGHTINGS, Weighting
from likewise.semantics._wordnet import Sense, Synset, WordNet

__all__ = [
    "DEFAULT_WEIGHTING",
    "DIFFERING_POWERS",
    "WEIGHTINGS",
    "Coded",
    "Combined",
    "Competitors",
    "Concept",
    "Contrast",
    "Differing",
    "Embedding",
    "Esa",
    "EsaEuclidean",
    "Hybrid",
    "InformationContent",
    "JiangConrath",
    "Manifest",
    "Matrix",
    "Measure",
    "Neighbour",
    "Opposed",
    "Opposites",
    "Prepared",
    "Ranked",
    "Rows",
    "Sense",
    "Shared",
    "Space",
    "SpaceWriter",
    "Suggestion",
    "Synset",
    "Thematic",
    "ThematicEuclidean",
    "Thesaurus",
    "Vocabulary",
    "Weighting",
    "WordNet",
    "apart",
    "contrasted",
    "find_space",
    "list_spaces",
    "measure",
    "measure_names",
    "needs_space",
    "pairwise",
    "prepare",
    "space_path",
    "spaces_folder",
    "suggest_themes",
    "tokens",
    "wrap_names",
    "write_space",
]
