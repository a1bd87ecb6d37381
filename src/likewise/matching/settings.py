"""The approaches of the papers' tables, by name, and what a subscriber chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from math import log, prod
from pathlib import Path
from typing import Final

import numpy as np

from likewise.errors import BuildError, LikewiseError, MissingError
from likewise.language import Operator, Options, Predicate, Profile
from likewise.matching.background import Commonness, joint
from likewise.semantics import Combined, Competitors, Esa, Evidence, Measure, Space, Thematic, measure

# How the best entries of a profile's predicates become one score.


class Aggregation(StrEnum):
    """Product and geometric mean need every predicate [000, 004]; the mean lets one be missing [002 eq 11].

    The geometric mean is the product made comparable between profiles of different length, so one
    threshold serves all of them. But there three good predicates hide a fourth that nothing answers well; the
    cautious mean is the geometric mean of it and the weakest predicate. The joint probability is for scores that are
    probabilities: predicates of one event are true together more often than by chance.
    """

    PRODUCT = "product"
    GEOMETRIC = "geometric"
    MEAN = "mean"
    CAUTIOUS = "cautious"
    JOINT = "joint"

    @classmethod
    def parse(cls, name: str) -> Aggregation:
        """One of them by its name."""
        if name not in list(cls):
            raise BuildError(f"unknown aggregation {name!r}", hint=f"choose {', '.join(cls)}")
        return cls(name)


def aggregate(similarities: Sequence[float], how: Aggregation, *, commonness: Commonness | None = None) -> float:
    """One score from the similarity of every predicate; `joint` wants to know how common their answers are.

    >>> aggregate([0.25, 1.0], Aggregation.GEOMETRIC), aggregate([0.25, 1.0], Aggregation.MEAN)
    (0.5, 0.625)
    >>> round(aggregate([0.25, 1.0], Aggregation.CAUTIOUS), 3)  # sqrt(0.5 * 0.25)
    0.354
    """
    if how is Aggregation.MEAN:
        return float(sum(similarities) / len(similarities))
    product = float(prod(similarities))
    if how is Aggregation.JOINT:
        known = Commonness.unknown([True] * len(similarities)) if commonness is None else commonness
        return float(joint(np.array(similarities, np.float64), known)) if product > 0 else 0.0
    if how is Aggregation.CAUTIOUS:
        return float((product ** (1.0 / len(similarities)) * min(similarities)) ** 0.5)
    return product if how is Aggregation.PRODUCT else float(product ** (1.0 / len(similarities)))


APPROACHES: Final = ("evidence", "exact", "concept", "approximate", "thematic", "clustered", "hybrid")
"""Likewise's own, then content-based, thesaurus, distributional, with themes, within topics, and 002's mixture."""


@dataclass(frozen=True, slots=True)
class Approach:
    """A base approach, with or without contrast between the subscriptions' own words.

    `evidence` is the default for profiles with `~`: it adds up all that is known of two terms to a probability, the
    words of other subscriptions included.
    """

    base: str
    contrast: bool = False

    @classmethod
    def parse(cls, name: str) -> Approach:
        """Read `thematic`, `thematic+contrast` or `contrast` (short for `approximate+contrast`).

        >>> Approach.parse("contrast"), str(Approach.parse("evidence"))
        (Approach(base='approximate', contrast=True), 'evidence')
        """
        base, plus, extra = name.strip().lower().partition("+")
        if base == "contrast" and not plus:
            return cls("approximate", True)
        if base not in APPROACHES or (plus and extra != "contrast") or (base in ("exact", "evidence") and plus):
            close = get_close_matches(base, [*APPROACHES, "contrast"], n=1)
            guess = f"did you mean {close[0]!r}? " if close else ""
            raise BuildError(
                f"unknown approach {name!r}",
                hint=f"{guess}choose {', '.join(APPROACHES)}, and +contrast on any but exact and evidence",
            )
        return EVIDENCE if base == "evidence" else cls(base, bool(plus))

    def __str__(self) -> str:
        return f"{self.base}+contrast" if self.contrast and self.base != "evidence" else self.base


EVIDENCE: Final = Approach("evidence", contrast=True)

_THRESHOLDS: Final = {
    "approximate": {"esa": 0.3, "combined": 0.55, "embedding": 0.7},
    "approximate+contrast": {"esa": 0.01, "combined": 0.2, "embedding": 0.35},
    "clustered": {"esa": 0.25, "combined": 0.55, "embedding": 0.7},
    "hybrid": {"hybrid": 0.7},
    "thematic": {"thematic": 0.35, "combined": 0.55, "thematic-euclidean": 0.2},
    "thematic+contrast": {"thematic": 0.04, "combined": 0.15, "thematic-euclidean": 0.08},
}
"""The one threshold that was best for all subscriptions of the thematic data set. Of the thematic approach it is what
was best without themes: the best with them, 0.5, misses the example of 000. Evidence has 0.5, whatever it stands on."""


def default_threshold(approach: Approach, measure: str) -> float:
    """The threshold of an approach over a measure for those who give none.

    >>> default_threshold(Approach("approximate"), "esa"), default_threshold(Approach("approximate"), "my own")
    (0.3, 0.5)
    """
    return _THRESHOLDS.get(str(approach), {}).get(measure, 0.5)


def certainty(approach: Approach, measure: str) -> float:
    """The power of a score that is the probability of a match: even odds at the usual threshold, 1 at 1.

    Scores of different measures are not on one scale; probabilities must be, to be multiplied in patterns.

    >>> round(0.3 ** certainty(Approach("approximate"), "esa"), 3), 0.3 ** certainty(EVIDENCE, "evidence")
    (0.5, 0.3)
    """
    return log(0.5) / log(default_threshold(approach, measure))


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that one profile is matched with, once engine and subscriber have spoken."""

    approach: Approach
    threshold: float
    top_k: int
    aggregation: Aggregation
    power: float = 1.0
    """What turns the score into a probability, see `certainty`."""
    sure: int = 0
    """How many predicates are exact: they say nothing of how likely the others are."""


def is_loose(predicate: Predicate) -> bool:
    """Whether a predicate has any `~`."""
    return predicate.attribute_approximate or predicate.value_approximate


def tells(predicate: Predicate) -> bool:
    """Whether a predicate is compared by meaning, so that it tells something of the others of its profile."""
    by_meaning = predicate.value_approximate and predicate.operator in (Operator.EQ, Operator.NE)
    return predicate.attribute_approximate or by_meaning


def is_approximate(profile: Profile) -> bool:
    """Whether a profile has any `~`."""
    return any(map(is_loose, profile.predicates))


def resolve(
    profile: Profile,
    options: Options,
    *,
    approach: Approach | None,
    threshold: float | None,
    top_k: int,
    aggregation: Aggregation | None,
    usual: Callable[[], Approach],
    measure_name: Callable[[Approach], str | None],
) -> Settings:
    """The subscriber's options over the engine's, or an error that says what does not go together."""
    if not profile.predicates:
        raise BuildError("a subscription needs at least one predicate", hint="write {attribute = value}")
    chosen = Approach.parse(options.approach) if options.approach is not None else approach
    if chosen is None:
        chosen = usual() if is_approximate(profile) else Approach("exact")
    # Asking for the measure's name finds out now, not later, whether there is one.
    name = measure_name(chosen)
    limit = threshold if options.threshold is None else options.threshold
    if limit is None:
        limit = default_threshold(chosen, name or "")
    if not 0.0 <= limit <= 1.0:
        raise BuildError(f"threshold {limit} is not between 0 and 1", hint="0.5 is the default")
    mappings = top_k if options.top_k is None else options.top_k
    if mappings < 1:
        raise BuildError(f"top {mappings} mappings cannot be given", hint="ask for at least 1")
    how = _aggregation(options.aggregation, chosen) or aggregation
    how = how or _usual_aggregation(chosen)
    sure = sum(not tells(each) for each in profile.predicates)
    return Settings(chosen, float(limit), int(mappings), how, certainty(chosen, name or ""), sure)


def _usual_aggregation(approach: Approach) -> Aggregation:
    if approach.base == "evidence":
        return Aggregation.JOINT
    return Aggregation.MEAN if approach.base == "hybrid" else Aggregation.GEOMETRIC


def _aggregation(name: str | None, approach: Approach) -> Aggregation | None:
    """What a subscriber chose, or an error that says what does not go together."""
    if name is None:
        return None
    chosen = Aggregation.parse(name)
    if approach.base == "exact" and chosen is Aggregation.MEAN:
        raise BuildError(
            "the mean lets a predicate be unanswered, and exact matching does not",
            hint="leave out `aggregation mean`, or choose another approach",
        )
    return chosen


# Which measure answers for which approach.


NAMES: Final = {
    "approximate": "esa",
    "clustered": "esa",
    "concept": "concept",
    "hybrid": "hybrid",
    "thematic": "thematic",
}
"""The measure that each approach has when nobody says another."""


def measure_name(approach: Approach) -> str:
    """The measure that an approach has when nobody says another.

    >>> measure_name(EVIDENCE), measure_name(Approach("approximate"))
    ('evidence', 'esa')
    """
    return NAMES.get(approach.base, approach.base)


class Measures:
    """The measures of a matcher: given ones first, then those that can be made from the spaces."""

    def __init__(
        self,
        given: Measure | Mapping[str, Measure] | None = None,
        *,
        spaces: Sequence[Space | str | Path] = (),
        background: Competitors | None = None,
    ) -> None:
        self._made: dict[str, Measure] = dict(given) if isinstance(given, Mapping) else {}
        self._one = None if isinstance(given, Mapping) else given
        self._spaces = tuple(spaces)
        self._background = background

    @property
    def approximate(self) -> Measure | None:
        """The measure of the approximate approach, if there is one to be had."""
        there = self._one is not None or self._spaces or "approximate" in self._made
        return self.of("approximate") if there else None

    @property
    def usual(self) -> Approach:
        """The approach of profiles with `~` that choose none: evidence, unless there is only a measure of one's own."""
        if isinstance(self._one, Evidence) or "evidence" in self._made:
            return EVIDENCE
        own = self._one is not None and not _spaces_of(self._one)
        if not own and (self._spaces or "approximate" not in self._made):
            return EVIDENCE
        if self._background is not None:
            raise BuildError("a measure of your own knows no background", hint="leave it out, or give spaces")
        return Approach("approximate")

    def _evidence(self) -> Measure:
        if isinstance(self._one, Evidence):
            return self._one if self._background is None else self._one.with_background(self._background)
        spaces = self._spaces or (() if self._one is None else _spaces_of(self._one))
        if self._one is not None and not spaces:
            raise BuildError(
                f"evidence cannot stand on the measure {self._one.name!r}",
                hint="give spaces, Evidence(…), or choose another approach",
            )
        return Evidence(spaces, background=self._background)

    def of(self, approach: str) -> Measure:
        """The measure of a base approach, or an error that says what is missing."""
        if approach not in self._made:
            self._made[approach] = self._make(approach)
        return self._made[approach]

    def _make(self, approach: str) -> Measure:
        if approach == "evidence":
            return self._evidence()
        one = self._one
        if one is not None and self._fits(one, approach):
            return one
        space = getattr(one, "space", None)
        if approach == "thematic" and isinstance(space, Space):
            return Thematic(space)
        if not self._spaces and approach != "concept":
            raise MissingError(
                f"~ needs a space or a measure for the approach {approach}, and there is none",
                hint="give one (`likewise space build` makes it), or choose exact, which takes ~ as nothing",
            )
        try:
            return measure(NAMES[approach], spaces=self._spaces)
        except LikewiseError as error:
            raise MissingError(f"the approach {approach} cannot be had: {error.message}", hint=error.hint) from error

    @staticmethod
    def _fits(one: Measure, approach: str) -> bool:
        """A measure of one's own serves every approach; a known one serves its own, and approximate ones."""
        if approach in ("approximate", "clustered"):
            return True
        known = set(NAMES.values()) | {
            "esa-euclidean",
            "combined",
            "embedding",
            "evidence",
            "jiang-conrath",
            "sentence",
        }
        return one.name == NAMES[approach] or one.name.removesuffix("+contrast") not in known


def _spaces_of(one: Measure) -> tuple[Space, ...]:
    """The spaces that a measure stands on, if it is nothing but explicit semantic analysis over them."""
    if type(one) is Esa:
        return (one.space,)
    parts = [_spaces_of(part) for part in one.parts] if isinstance(one, Combined) else []
    return tuple(space for found in parts for space in found) if all(parts) else ()
