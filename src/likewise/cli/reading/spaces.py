"""The spaces that a command opens, and the words of subscriptions that none of them knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from likewise.cli.output import errors
from likewise.errors import MissingError

if TYPE_CHECKING:
    from likewise.language import Subscription
    from likewise.semantics import Space

DEFAULT = "wordnet"
_SHOWN = 10
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


def report_unknown(interests: Iterable[Subscription], spaces: Sequence[str]) -> None:
    """Print a line for each unknown word that is compared by meaning, with the nearest known words."""
    if not spaces:
        return
    from likewise.semantics import unknown_words

    unknown = unknown_words(terms_by_meaning(interests), open_spaces(list(spaces)))
    for word, near in list(unknown.items())[:_SHOWN]:
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        errors.print(
            f"note: {word!r} is an unknown word: {guess}--glossary can explain it", markup=False, soft_wrap=True
        )
    if len(unknown) > _SHOWN:
        errors.print(f"… and {len(unknown) - _SHOWN:,} more unknown words")


def terms_by_meaning(interests: Iterable[Subscription]) -> list[str]:
    """The attributes and values that are marked with `~`."""
    from likewise.language import profiles_of

    terms: list[str] = []
    for profile in (profile for interest in interests for profile in profiles_of(interest.body)):
        for predicate in profile.predicates:
            if predicate.attribute_approximate:
                terms.append(predicate.attribute)
            if predicate.value_approximate and isinstance(predicate.value, str):
                terms.append(predicate.value)
    return list(dict.fromkeys(terms))
