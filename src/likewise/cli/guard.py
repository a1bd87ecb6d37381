"""Looks at all paths of a command before it begins: nothing is written over an input or over another output.

>>> guard(reads={"EVENTS": "in.jsonl"}, writes={"--dead-letter": "./in.jsonl"})
Traceback (most recent call last):
    ...
likewise.errors.BuildError: EVENTS and --dead-letter are the same file: ./in.jsonl
  hint: give --dead-letter another path
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
"""What the user calls an argument or option, and the path or paths that it holds, if any."""

STANDARD = "-"


@dataclass(frozen=True, slots=True)
class _Place:
    """One path of a command: how it is called, as given, and where it really is."""

    name: str
    given: str
    real: Path


def guard(*, reads: Paths, writes: Paths | None = None, makes: Paths | None = None) -> None:
    """Refuse paths that would lose data, and places that cannot be written.

    `writes` are files in folders that are there; `makes` are folders, or files whose folders are made on the way.
    """
    sources, files, made = (list(_places(each or {})) for each in (reads, writes, makes))
    _one_stream([name for name, _ in _given(reads)], [given for _, given in _given(reads)], "be read from stdin")
    outputs = _given(writes or {}) + _given(makes or {})
    _one_stream([name for name, _ in outputs], [given for _, given in outputs], "be written to stdout")
    targets = [*files, *made]
    for number, target in enumerate(targets):
        for other in (*sources, *targets[:number]):
            if _same(target, other):
                raise _clash(other, target)
    for target in made:
        for source in sources:
            if target.real in source.real.parents:
                told = f"{source.name} {source.given} is inside {target.name} {target.given}, which would be replaced"
                raise BuildError(told, hint=f"give {target.name} another path")
    for target in files:
        _check_file(target)
    for target in made:
        _check_folder(target, next(each for each in target.real.parents if each.exists()))


def _given(paths: Paths) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in paths.items():
        values = [] if value is None else [value] if isinstance(value, str | Path) else list(value)
        pairs += [(name, str(each)) for each in values]
    return pairs


def _places(paths: Paths) -> Iterator[_Place]:
    """The paths that are files or folders here; standard streams, addresses and devices cannot be destroyed."""
    for name, given in _given(paths):
        if given == STANDARD or "://" in given:
            continue
        if not given:
            raise BuildError(f"{name} is empty", hint="give the path of a file")
        if "\0" in given:
            raise BuildError(f"{name} is not a path", hint="it holds a null character")
        place = _Place(name, given, Path(os.path.realpath(given)))
        if not _is_device(place.real):
            yield place


def _is_device(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _one_stream(names: list[str], given: list[str], what: str) -> None:
    using = [name for name, path in zip(names, given, strict=True) if path == STANDARD]
    if len(using) > 1:
        raise BuildError(f"{using[0]} and {using[1]} cannot both {what}", hint="give one of them as a file")


def _same(one: _Place, other: _Place) -> bool:
    """Whether two paths are one file, by whatever links and names."""
    if one.real == other.real:
        return True
    try:
        return one.real.samefile(other.real)
    except OSError:
        return False


def _clash(other: _Place, target: _Place) -> BuildError:
    what = "folder" if target.real.is_dir() else "file"
    told = f"{other.name} and {target.name} are the same {what}: {target.given}"
    return BuildError(told, hint=f"give {target.name} another path")


def _check_file(target: _Place) -> None:
    if target.real.is_dir():
        raise BuildError(f"{target.name} {target.given} is a folder", hint="give the path of a file")
    _check_folder(target, target.real.parent)
    if target.real.exists() and not os.access(target.real, os.W_OK):
        raise BuildError(f"{target.name} {target.given} cannot be written", hint="check who may write it")


def _check_folder(target: _Place, folder: Path) -> None:
    if not folder.exists():
        raise BuildError(f"{target.name} {target.given}: there is no folder {folder.name}", hint="make it first")
    if not folder.is_dir():
        raise BuildError(f"{target.name} {target.given}: {folder.name} is not a folder", hint="choose another place")
    if not os.access(folder, os.W_OK):
        raise BuildError(f"{target.name} {target.given}: {folder.name} cannot be written", hint="choose another place")
