"""Converts English plurals to singular, word by word [002 sec 6.1].

Rules decide by the ending; the lists in `words/` hold only the exceptions. A word that is not a noun or already
singular must stay unchanged, so in doubt the lists leave words alone.
"""

from __future__ import annotations

from importlib.resources import files


def words_in(name: str, *, package: str = "likewise.events") -> list[str]:
    """The words of `words/NAME.txt` in a package, in order; lines that begin with `#` are comments.

    >>> words_in("plurals_in_oes")[:3]
    ['shoes', 'horseshoes', 'snowshoes']
    """
    text = files(package).joinpath("words", f"{name}.txt").read_text(encoding="utf-8")
    return [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]


_IRREGULAR = dict(pair.split(":") for pair in words_in("irregular_plurals"))
_INVARIANT = frozenset(words_in("invariant"))
_USE = frozenset(words_in("plurals_in_uses"))
_OE = frozenset(words_in("plurals_in_oes"))
_SIBILANT = ("ches", "shes", "sses", "xes", "zzes")
_KEPT = ("ss", "us", "is")


def singular(word: str) -> str:
    """The singular of a lower-case noun; any other word unchanged.

    >>> [singular(word) for word in ("buses", "batteries", "gas", "status", "people", "houses")]
    ['bus', 'battery', 'gas', 'status', 'person', 'house']
    """
    known = _IRREGULAR.get(word)
    if known is not None:
        return known
    if len(word) < 4 or not word.endswith("s") or word in _INVARIANT or word.endswith(_KEPT):
        return word
    return _without_es(word) if word.endswith("es") else word[:-1]


def _without_es(word: str) -> str:
    """The singular of a word in "-es": the ending is "s" or "es", or "-is" became "-es"."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-3] + "y"
    if word.endswith("ses") and not word.endswith("sses"):
        return _without_ses(word)
    if word.endswith("oes"):
        return word[:-1] if word in _OE else word[:-2]
    return word[:-2] if word.endswith(_SIBILANT) else word[:-1]


def _without_ses(word: str) -> str:
    if word.endswith(("yses", "heses")):
        return word[:-2] + "is"
    if word.endswith("uses") and not (word.endswith(("ouses", "auses")) or word in _USE):
        return word[:-2]
    return word[:-1]
