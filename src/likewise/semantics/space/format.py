"""The files of a space folder: their names, types, manifest and checks.

Postings are stored by term: `indptr[t]:indptr[t+1]` is the slice of term t in `concepts` (ascending ids) and `freq`.
Terms are concatenated in `terms.bin`, with an array of offsets; titles and word counts, which are rarely read, are
Parquet tables. The manifest is written last and lists every other file with its size and SHA-256; its `id` covers all
content, so spaces with equal ids are equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.errors import SpaceError

FORMAT = "likewise-space"
VERSION = 1
"""The version of the file layout and of the splitting of text into stems, on which look-ups depend."""
MANIFEST = "manifest.json"
REJECTED = "rejected.parquet"

ARRAYS: Mapping[str, str] = {
    "indptr": "<i8",
    "concepts": "<i4",
    "freq": "<u2",
    "df": "<i4",
    "term_offsets": "<i8",
    "length": "<u4",
    "max_freq": "<u2",
}
FILES = (*(f"{name}.npy" for name in ARRAYS), "terms.bin", "titles.parquet", "words.parquet")
"""The files of every space; a build may add the table of rejected records."""

HINT_REBUILD = "build it again with `likewise space build`"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents and parameters of a space; nothing in it depends on the time or the machine."""

    name: str
    id: str
    counts: Mapping[str, int]
    parameters: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    version: int = VERSION
    format: str = FORMAT
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text of `manifest.json`."""
        body = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @property
    def size(self) -> int:
        """The bytes of all files except the manifest."""
        return sum(int(entry["bytes"]) for entry in self.files.values())


def content_id(
    files: Mapping[str, Mapping[str, Any]], *, counts: Mapping[str, int], parameters: Mapping[str, Any]
) -> str:
    """A hash of everything in which two spaces can differ, except their names."""
    text = json.dumps([VERSION, files, counts, parameters], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe_file(path: Path) -> dict[str, Any]:
    """Size and checksum of one file, for the manifest."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a space folder; raises `SpaceError` if it is missing or not readable by this version."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise SpaceError(f"no space at {folder}", hint="`likewise space list` lists the spaces")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpaceError(f"{folder} is not a space: it has no {MANIFEST}", hint=HINT_REBUILD) from None
    except (OSError, ValueError) as error:
        raise SpaceError(f"the manifest of {folder} cannot be read: {error}", hint=HINT_REBUILD) from error
    return _manifest(body, folder)


def _manifest(body: Any, folder: Path) -> Manifest:
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise SpaceError(f"{folder} is not a space: its manifest is of another kind", hint=HINT_REBUILD)
    if body.get("version") != VERSION:
        raise SpaceError(
            f"{folder} has format version {body.get('version')!r}, this program reads version {VERSION}",
            hint=HINT_REBUILD,
        )
    try:
        manifest = Manifest(**body)
        expected = content_id(manifest.files, counts=manifest.counts, parameters=manifest.parameters)
    except (TypeError, KeyError) as error:
        raise SpaceError(f"the manifest of {folder} is incomplete: {error}", hint=HINT_REBUILD) from error
    if manifest.id != expected:
        raise SpaceError(f"the manifest of {folder} was changed after it was written", hint=HINT_REBUILD)
    return manifest


def check_files(folder: Path, manifest: Manifest, *, verify: bool) -> None:
    """Check that all files exist with their full size and, with `verify`, the right checksum."""
    for name in sorted({*FILES, *manifest.files}):
        entry = manifest.files.get(name)
        path = folder / name
        if entry is None or not path.is_file():
            raise SpaceError(f"{folder} lacks {name}", hint=HINT_REBUILD)
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise SpaceError(f"{path} has {size} bytes, expected {entry['bytes']}", hint=HINT_REBUILD)
        if verify and describe_file(path)["sha256"] != entry["sha256"]:
            raise SpaceError(f"{path} was changed after it was written: the checksum differs", hint=HINT_REBUILD)
