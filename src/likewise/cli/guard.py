"""Checks all paths of a command before it starts: no output may overwrite an input or another output.

>>> guard(reads={"EVENTS": "in.jsonl"}, writes={"--dead-letters": "./in.jsonl"})
Traceback (most recent call last):
    ...
likewise.errors.BuildError: EVENTS and --dead-letters are the same file: ./in.jsonl
  hint: give --dead-letters another path
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from likewise.errors import BuildError

Paths: TypeAlias = Mapping[str, str | Path | Iterable[str | Path] | None]
"""Arguments and options by name, each with its path or paths, if any."""

STANDARD = "-"


@dataclass(frozen=True, slots=True)
class _Place:
    """One path of a command: the option's name, the path as given, and the resolved path."""

    name: str
    given: str
    real: Path


def guard(*, reads: Paths, writes: Paths | None = None, makes: Paths | None = None) -> None:
    """Refuse paths that would lose data, and outputs that cannot be written.

    `writes` are files in existing folders; `makes` are folders, or files whose folders are created.
    """
    sources, files, folders = (list(_places(paths or {})) for paths in (reads, writes, makes))
    _one_stream(_given(reads), "be read from stdin")
    _one_stream(_given(writes or {}) + _given(makes or {}), "be written to stdout")
    targets = [*files, *folders]
    for number, target in enumerate(targets):
        for other in (*sources, *targets[:number]):
            if _same(target, other):
                raise _clash(other, target)
    for target in folders:
        for source in sources:
            if target.real in source.real.parents:
                problem = (
                    f"{source.name} {source.given} is inside {target.name} {target.given}, which would be replaced"
                )
                raise BuildError(problem, hint=f"give {target.name} another path")
    for target in files:
        _check_file(target)
    for target in folders:
        _check_folder(target, next(parent for parent in target.real.parents if parent.exists()))


def _given(paths: Paths) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in paths.items():
        values = [] if value is None else [value] if isinstance(value, str | Path) else list(value)
        pairs += [(name, str(path)) for path in values]
    return pairs


def _places(paths: Paths) -> Iterator[_Place]:
    """The paths of files and folders; standard streams, URLs and devices are left out, as nothing can be lost."""
    for name, path in _given(paths):
        if path == STANDARD or "://" in path:
            continue
        if not path:
            raise BuildError(f"{name} is empty", hint="give the path of a file")
        if "\0" in path:
            raise BuildError(f"{name} is not a path: it contains a null character", hint="give the path of a file")
        place = _Place(name, path, Path(os.path.realpath(path)))
        if not _is_device(place.real):
            yield place


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _one_stream(paths: list[tuple[str, str]], use: str) -> None:
    streams = [name for name, path in paths if path == STANDARD]
    if len(streams) > 1:
        raise BuildError(f"{streams[0]} and {streams[1]} cannot both {use}", hint="give one of them as a file")


def _same(first: _Place, second: _Place) -> bool:
    """Whether two paths lead to the same file, also through links."""
    if first.real == second.real:
        return True
    try:
        return first.real.samefile(second.real)
    except OSError:
        return False


def _clash(other: _Place, target: _Place) -> BuildError:
    kind = "folder" if target.real.is_dir() else "file"
    problem = f"{other.name} and {target.name} are the same {kind}: {target.given}"
    return BuildError(problem, hint=f"give {target.name} another path")


def _check_file(target: _Place) -> None:
    if target.real.is_dir():
        raise BuildError(f"{target.name} {target.given} is a folder", hint="give the path of a file")
    _check_folder(target, target.real.parent)
    if target.real.exists() and not os.access(target.real, os.W_OK):
        raise BuildError(f"{target.name} {target.given} cannot be written", hint="check its permissions")


def _check_folder(target: _Place, folder: Path) -> None:
    if not folder.exists():
        raise BuildError(f"{target.name} {target.given}: there is no folder {folder.name}", hint="create it first")
    if not folder.is_dir():
        raise BuildError(f"{target.name} {target.given}: {folder.name} is not a folder", hint="choose another place")
    if not os.access(folder, os.W_OK):
        raise BuildError(f"{target.name} {target.given}: {folder.name} cannot be written", hint="choose another place")
