"""Spaces: vectors of terms over concepts, built from a corpus and memory-mapped from a folder."""

from likewise.semantics.space.assembly import (
    BuildSummary,
    Progress,
    SpaceOptions,
    assemble,
    build_local,
    by_kind,
    write_space,
)
from likewise.semantics.space.inversion import POSTINGS, Inversion
from likewise.semantics.space.inversion import SCHEMA as INDEX_SCHEMA
from likewise.semantics.space.inversion import SPARK_SCHEMA as SPARK_INDEX_SCHEMA
from likewise.semantics.space.space import Space
from likewise.semantics.space.writer import SpaceWriter

__all__ = [
    "INDEX_SCHEMA",
    "POSTINGS",
    "SPARK_INDEX_SCHEMA",
    "BuildSummary",
    "Inversion",
    "Progress",
    "Space",
    "SpaceOptions",
    "SpaceWriter",
    "assemble",
    "build_local",
    "by_kind",
    "write_space",
]
