"""Normalises terms to one spelling, so that spelling variants compare equal [002 sec 6.1].

The steps, in this order: a URI becomes its tail (after the last `/` or `#`, percent-decoded); camelCase is split;
underscores, and hyphens between word characters, become spaces; case is folded (Unicode, with compatibility forms);
white space is collapsed; every word becomes singular. Digits, signs, other punctuation, accents, and slashes outside of
URIs (`km/h`) are kept.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize
from urllib.parse import unquote

from likewise.events.text.plurals import singular

_CACHED_LENGTH = 256
_CACHE_SIZE = 1 << 16
_ROUNDS = 32

_URI = re.compile(r"<?(?:[A-Za-z][A-Za-z0-9+.\-]*://|urn:)\S+")
_LOWER = "a-zß-öø-ÿ"
_UPPER = "A-ZÀ-ÖØ-Þ"
# Splits parkingSpot, HTTPServer, xPosition, ZnCO2 and 2010Final, but not units such as kWh, MHz and pH.
_CAMEL = re.compile(
    f"(?<=[{_LOWER}][{_LOWER}])(?=[{_UPPER}])"
    f"|(?<=[{_UPPER}][{_LOWER}])(?=[{_UPPER}][{_UPPER}])"
    f"|(?<=[{_LOWER}{_UPPER}0-9])(?=[{_UPPER}][{_LOWER}][{_LOWER}])"
    f"|(?<=[0-9])(?=[{_UPPER}][{_LOWER}])"
)
_JOINT = re.compile(r"_+|(?<=\w)[-‐‑–](?=\w)")
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_POSSESSIVE = re.compile(r"['’]s?\b")
_WORD = re.compile(r"[^\W_]+")


def normalise(term: str) -> str:
    """The spelling by which terms are compared; normalising twice changes nothing more.

    >>> normalise("Parking_Spots") == normalise("parking spot") == normalise("http://example.org/v#ParkingSpot")
    True
    >>> normalise("kWh"), normalise("energyConsumption"), normalise("AC/DC"), normalise("gas")
    ('kwh', 'energy consumption', 'ac/dc', 'gas')
    """
    # Long texts are rare and seldom repeat, so caching them would waste memory.
    return _cached(term) if len(term) <= _CACHED_LENGTH else _settle(term)


def words(term: str) -> tuple[str, ...]:
    """The word tokens of a normalised term, for the semantic space; numbers stay.

    >>> words("http://dbpedia.org/resource/2010_FIFA_World_Cup")
    ('2010', 'fifa', 'world', 'cup')
    """
    return tuple(_WORD.findall(_POSSESSIVE.sub("", normalise(term))))


def _settle(term: str) -> str:
    # One round is usually enough; a second is needed if the first uncovers a URI or a plural.
    for _ in range(_ROUNDS):
        normalised = _normalise_once(term)
        if normalised == term:
            break
        term = normalised
    return term


_cached = lru_cache(maxsize=_CACHE_SIZE)(_settle)


def _normalise_once(term: str) -> str:
    if ":" in term and _URI.match(term.strip()):
        term = uri_tail(term.strip())
    if not (term.isascii() and term.islower()):
        term = _fold(_CAMEL.sub(" ", term))
    spaced = " ".join(_JOINT.sub(" ", term).split())
    return _LETTERS.sub(_singular_match, spaced)


def _singular_match(match: re.Match[str]) -> str:
    return singular(match[0])


def _fold(text: str) -> str:
    return text.lower() if text.isascii() else normalize("NFKC", normalize("NFKC", text.casefold()).casefold())


def uri_tail(uri: str) -> str:
    """The tail of a URI, percent-decoded; the URI itself if the tail is empty."""
    bare = uri.strip("<>").rstrip("/#")
    cut = max(bare.rfind(mark) for mark in ("/#:" if bare.startswith("urn:") else "/#"))
    return unquote(bare[cut + 1 :]) or uri
