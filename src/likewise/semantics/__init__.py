"""What words mean: spaces, and the measures of relatedness over them."""

from likewise.semantics._measure import Matrix, Measure, Shared
from likewise.semantics._shelf import find_space, list_spaces, space_path, spaces_folder
from likewise.semantics._space import Rows, Space
from likewise.semantics._space_format import Manifest
from likewise.semantics._space_writer import SpaceWriter, write_space
from likewise.semantics._text import tokens
from likewise.semantics._weighting import DEFAULT_WEIGHTING, WEIGHTINGS, Weighting

__all__ = [
    "DEFAULT_WEIGHTING",
    "WEIGHTINGS",
    "Manifest",
    "Matrix",
    "Measure",
    "Rows",
    "Shared",
    "Space",
    "SpaceWriter",
    "Weighting",
    "find_space",
    "list_spaces",
    "space_path",
    "spaces_folder",
    "tokens",
    "write_space",
]
