"""Word lists, shipped as plain text files beside the module that uses them."""

from __future__ import annotations

from importlib.resources import files


def words_in(name: str, *, package: str = "likewise.events") -> list[str]:
    """The words of `words/NAME.txt` in a package, in order; lines that begin with `#` are comments.

    >>> words_in("plurals_in_oes")[:3]
    ['shoes', 'horseshoes', 'snowshoes']
    """
    text = files(package).joinpath("words", f"{name}.txt").read_text(encoding="utf-8")
    return [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]


__all__ = ["words_in"]
