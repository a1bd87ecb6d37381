"""The approaches of the papers' tables, by name, and what a subscriber chose."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from likewise.errors import BuildError, MissingError
from likewise.language import Options, Profile
from likewise.matching._aggregation import Aggregation

APPROACHES: Final = ("exact", "concept", "approximate", "thematic", "clustered", "hybrid")
"""Content-based, thesaurus, distributional, with themes, within topics, and 002's mixture."""


@dataclass(frozen=True, slots=True)
class Approach:
    """A base approach, with or without contrast between the subscriptions' own words."""

    base: str
    contrast: bool = False

    @classmethod
    def parse(cls, name: str) -> Approach:
        """Read `thematic`, `thematic+contrast` or `contrast` (short for `approximate+contrast`).

        >>> Approach.parse("contrast")
        Approach(base='approximate', contrast=True)
        """
        base, plus, extra = name.strip().lower().partition("+")
        if base == "contrast" and not plus:
            return cls("approximate", True)
        if base not in APPROACHES or (plus and extra != "contrast") or (base == "exact" and plus):
            close = get_close_matches(base, [*APPROACHES, "contrast"], n=1)
            guess = f"did you mean {close[0]!r}? " if close else ""
            raise BuildError(
                f"unknown approach {name!r}",
                hint=f"{guess}choose {', '.join(APPROACHES)}, and +contrast on any but exact",
            )
        return cls(base, bool(plus))

    def __str__(self) -> str:
        return f"{self.base}+contrast" if self.contrast else self.base


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that one profile is matched with, once engine and subscriber have spoken."""

    approach: Approach
    threshold: float
    top_k: int
    aggregation: Aggregation


def is_approximate(profile: Profile) -> bool:
    """Whether a profile has any `~`."""
    return any(p.attribute_approximate or p.value_approximate for p in profile.predicates)


def resolve(
    profile: Profile,
    options: Options,
    *,
    approach: Approach | None,
    threshold: float,
    top_k: int,
    aggregation: Aggregation | None,
    has_measure: bool,
) -> Settings:
    """The subscriber's options over the engine's, or an error that says what does not go together."""
    if not profile.predicates:
        raise BuildError("a subscription needs at least one predicate", hint="write {attribute = value}")
    chosen = Approach.parse(options.approach) if options.approach is not None else approach
    if chosen is None:
        chosen = _default(profile, has_measure=has_measure)
    limit = threshold if options.threshold is None else options.threshold
    if not 0.0 <= limit <= 1.0:
        raise BuildError(f"threshold {limit} is not between 0 and 1", hint="0.5 is a usual one")
    mappings = top_k if options.top_k is None else options.top_k
    if mappings < 1:
        raise BuildError(f"top {mappings} mappings cannot be given", hint="ask for at least 1")
    how = aggregation or (Aggregation.MEAN if chosen.base == "hybrid" else Aggregation.GEOMETRIC)
    return Settings(chosen, float(limit), int(mappings), how)


def _default(profile: Profile, *, has_measure: bool) -> Approach:
    if not is_approximate(profile):
        return Approach("exact")
    if has_measure:
        return Approach("approximate", contrast=True)
    raise MissingError(
        "the subscription uses ~ and there is no measure of relatedness to answer it",
        hint="give a measure or a space, or choose the approach exact, which takes ~ as nothing",
    )
