"""The keywords of patterns and options, and suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from likewise.language.model import Allen

ALLEN_FIRST: dict[str, Allen] = {relation.value.split()[0]: relation for relation in Allen} | {
    "includes": Allen.CONTAINS
}
"""Allen relations by first word; `met`, `started`, … are followed by `by`. 001 writes `includes` for `contains`."""

JOINERS = ("then", "and", "xor", "or", *ALLEN_FIRST)
CLAUSES = ("where", "consume", "threshold", "top", "approach", "aggregation")
PREFIXES = ("not", "first", "last", "all", "longest", "at", "every")
FOLLOWERS = ("within", "for", "as", "times")
OTHERS = ("by", "duplicate", "of", "to", "more", "least")

KEYWORDS = frozenset((*JOINERS, *CLAUSES, *PREFIXES, *FOLLOWERS, *OTHERS))
"""A subscription with such a name is referred to in quotes."""


def suggestion(word: str, candidates: Iterable[str]) -> str | None:
    """A hint for a misspelt word.

    >>> suggestion("wihtin", ["within", "where"])
    'did you mean `within`?'
    """
    if not 2 <= len(word) <= 40:
        return None
    close = get_close_matches(word.lower(), tuple(candidates), n=1, cutoff=0.66)
    return f"did you mean `{close[0]}`?" if close and close[0] != word else None
