"""The spaces that a command opens: those named, or a default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.errors import MissingError

if TYPE_CHECKING:
    from likewise.semantics import Space

DEFAULT = "wordnet"
BUILD = "likewise space build --corpus wordnet --out wordnet"


def open_spaces(names: Sequence[str] | None) -> list[Space]:
    """Open spaces by name or path; without any, `wordnet` or else the first built one."""
    from likewise.semantics import Manifest, find_space, list_spaces

    if names:
        return [find_space(name) for name in names]
    built = {path.name: path for path, state in list_spaces() if isinstance(state, Manifest)}
    if not built:
        raise MissingError("no space is built yet", hint=f"build one: `{BUILD}`")
    return [find_space(built[DEFAULT] if DEFAULT in built else min(built.values()))]
