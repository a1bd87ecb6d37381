"""The shelf: the folder where spaces stand under their names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from likewise.errors import LikewiseError, SpaceError
from likewise.semantics.space.format import MANIFEST, Manifest, read_manifest
from likewise.semantics.space.space import Space


def spaces_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """`LIKEWISE_SPACES`, or `likewise/spaces` in the user's cache folder."""
    if chosen := environment.get("LIKEWISE_SPACES"):
        return Path(chosen)
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "likewise" / "spaces"


def space_path(name_or_path: str | Path) -> Path:
    """The folder of a space: a bare word is a name on the shelf, anything with a separator or a dot is a path."""
    text = os.fspath(name_or_path)
    bare = isinstance(name_or_path, str) and Path(text).name == text and text not in {".", ".."}
    return spaces_folder() / text if bare else Path(text)


def find_space(name_or_path: str | Path, *, verify: bool = False) -> Space:
    """Open a space by its name on the shelf or by its path; a folder of that name here also counts."""
    path = space_path(name_or_path)
    here = Path(name_or_path)
    if not path.is_dir() and (here / MANIFEST).is_file():
        path = here
    if not path.is_dir():
        raise SpaceError(f"no space {str(name_or_path)!r}", hint=_suggest(path))
    return Space.open(path, verify=verify)


def list_spaces(folder: Path | None = None) -> list[tuple[Path, Manifest | LikewiseError]]:
    """Every space of a folder (the shelf by default) with its manifest, or with what is wrong with it."""
    root = folder or spaces_folder()
    found: list[tuple[Path, Manifest | LikewiseError]] = []
    for path in sorted(root.iterdir()) if root.is_dir() else []:
        if path.is_dir() and not path.name.startswith("."):
            try:
                found.append((path, read_manifest(path)))
            except SpaceError as error:
                found.append((path, error))
    return found


def _suggest(path: Path) -> str:
    names = [found.name for found, manifest in list_spaces(path.parent) if isinstance(manifest, Manifest)]
    if names:
        return f"there are: {', '.join(names)}"
    return f"build one: `likewise space build --corpus wordnet --out {path.name}`"
