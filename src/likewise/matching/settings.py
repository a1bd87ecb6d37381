"""Approaches, aggregations, default thresholds, and the settings that result for one profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from math import log, prod
from pathlib import Path
from typing import Final

import numpy as np

from likewise.calibration import DEFAULT_THRESHOLD, PAPER_THRESHOLDS
from likewise.errors import BuildError, LikewiseError, MissingError
from likewise.events import Event
from likewise.language import APPROACHES, CONTRAST, UNCONTRASTED, Operator, Options, Predicate, Profile
from likewise.matching.background import Commonness, joint
from likewise.matching.encoding import term_of
from likewise.matching.topics import Classifier, Clusters, Taxonomy
from likewise.semantics import Combined, Competitors, Contrast, Esa, Evidence, Measure, Space, Thematic, measure


class Aggregation(StrEnum):
    """How the similarities of a profile's predicates become one score.

    Product and geometric mean need an answer to every predicate [000, 004]; the mean does not [002 eq 11]. The
    geometric mean makes profiles of different length comparable, so one threshold fits all of them, but three good
    predicates can hide a bad fourth. The cautious mean therefore is the geometric mean of it and the weakest
    predicate. The joint probability is for similarities that are probabilities: predicates of one event are true
    together more often than by chance.
    """

    PRODUCT = "product"
    GEOMETRIC = "geometric"
    MEAN = "mean"
    CAUTIOUS = "cautious"
    JOINT = "joint"

    @classmethod
    def parse(cls, name: str) -> Aggregation:
        """The aggregation with this name."""
        if name not in list(cls):
            raise BuildError(f"unknown aggregation {name!r}", hint=f"choose {', '.join(cls)}")
        return cls(name)


def aggregate(similarities: Sequence[float], how: Aggregation, *, commonness: Commonness | None = None) -> float:
    """Combine the similarities of all predicates into one score; `commonness` is for the joint probability.

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


@dataclass(frozen=True, slots=True)
class Approach:
    """A base approach, with or without contrast with the terms of other subscriptions.

    `evidence` is the default for profiles with `~`: it adds up all evidence about two terms to a probability,
    including the terms of other subscriptions.
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
        if base == CONTRAST and not plus:
            return cls("approximate", True)
        if base not in APPROACHES or (plus and (extra != CONTRAST or base in UNCONTRASTED)):
            close = get_close_matches(base, [*APPROACHES, CONTRAST], n=1)
            guess = f"did you mean {close[0]!r}? " if close else ""
            raise BuildError(
                f"unknown approach {name!r}",
                hint=f"{guess}choose {', '.join(APPROACHES)}, and +contrast on any but exact and evidence",
            )
        return EVIDENCE if base == "evidence" else cls(base, bool(plus))

    def __str__(self) -> str:
        return f"{self.base}+contrast" if self.contrast and self.base != "evidence" else self.base


EVIDENCE: Final = Approach("evidence", contrast=True)


def default_threshold(approach: Approach, measure: str) -> float:
    """The threshold of an approach with a measure where none is given.

    >>> default_threshold(Approach("approximate"), "esa"), default_threshold(Approach("approximate"), "my own")
    (0.3, 0.5)
    """
    return PAPER_THRESHOLDS.get(str(approach), {}).get(measure, DEFAULT_THRESHOLD)


def certainty(approach: Approach, measure: str) -> float:
    """The exponent that turns a score into the probability of a match: 0.5 at the default threshold, 1 at 1.

    Scores of different measures have different scales; patterns multiply probabilities, which need one scale.

    >>> round(0.3 ** certainty(Approach("approximate"), "esa"), 3), 0.3 ** certainty(EVIDENCE, "evidence")
    (0.5, 0.3)
    """
    return log(0.5) / log(default_threshold(approach, measure))


@dataclass(frozen=True, slots=True)
class Settings:
    """How one profile is matched, from the options of the engine and of the subscription."""

    approach: Approach
    threshold: float
    top_k: int
    aggregation: Aggregation
    power: float = 1.0
    """The exponent that turns the score into a probability, see `certainty`."""
    exact: int = 0
    """The number of predicates that are compared exactly; they do not change how likely the others are."""


def compared_by_meaning(predicate: Predicate) -> bool:
    """Whether a measure compares the attribute or the value of a predicate."""
    value = predicate.value_approximate and predicate.operator in (Operator.EQ, Operator.NE)
    return predicate.attribute_approximate or value


def is_approximate(profile: Profile) -> bool:
    """Whether a profile has any `~`."""
    return any(predicate.attribute_approximate or predicate.value_approximate for predicate in profile.predicates)


def resolve(
    profile: Profile,
    options: Options,
    *,
    approach: Approach | None,
    threshold: float | None,
    top_k: int,
    aggregation: Aggregation | None,
    default: Callable[[], Approach],
    measure_name: Callable[[Approach], str | None],
) -> Settings:
    """The settings of a profile: its own options, else the engine's; raises an error for options that conflict."""
    if not profile.predicates:
        raise BuildError("a subscription needs at least one predicate", hint="write {attribute = value}")
    chosen = Approach.parse(options.approach) if options.approach is not None else approach
    if chosen is None:
        chosen = default() if is_approximate(profile) else Approach("exact")
    # Asking for the measure's name now raises an error if there is none.
    name = measure_name(chosen)
    limit = threshold if options.threshold is None else options.threshold
    if limit is None:
        limit = default_threshold(chosen, name or "")
    if not 0.0 <= limit <= 1.0:
        raise BuildError(f"threshold {limit} is not between 0 and 1", hint="0.5 is the default")
    mappings = top_k if options.top_k is None else options.top_k
    if mappings < 1:
        raise BuildError(f"top {mappings} is not a number of mappings", hint="give at least 1")
    how = _aggregation(options.aggregation, chosen) or aggregation
    how = how or _default_aggregation(chosen)
    exact = sum(not compared_by_meaning(predicate) for predicate in profile.predicates)
    return Settings(chosen, float(limit), int(mappings), how, certainty(chosen, name or ""), exact)


def _default_aggregation(approach: Approach) -> Aggregation:
    if approach.base == "evidence":
        return Aggregation.JOINT
    return Aggregation.MEAN if approach.base == "hybrid" else Aggregation.GEOMETRIC


def _aggregation(name: str | None, approach: Approach) -> Aggregation | None:
    """The aggregation that a subscription chose; raises an error if it does not fit the approach."""
    if name is None:
        return None
    chosen = Aggregation.parse(name)
    if approach.base == "exact" and chosen is Aggregation.MEAN:
        raise BuildError(
            "the aggregation mean allows unanswered predicates, the approach exact does not",
            hint="leave out `aggregation mean`, or choose another approach",
        )
    return chosen


# The measure of each approach.


NAMES: Final = {
    "approximate": "esa",
    "clustered": "esa",
    "concept": "concept",
    "hybrid": "hybrid",
    "thematic": "thematic",
}
"""The default measure of each approach."""


def measure_name(approach: Approach) -> str:
    """The default measure of an approach.

    >>> measure_name(EVIDENCE), measure_name(Approach("approximate"))
    ('evidence', 'esa')
    """
    return NAMES.get(approach.base, approach.base)


class Measures:
    """The measures of a matcher: those given, and those built from the spaces on first use."""

    def __init__(
        self,
        given: Measure | Mapping[str, Measure] | None = None,
        *,
        spaces: Sequence[Space | str | Path] = (),
        background: Competitors | None = None,
    ) -> None:
        self._by_approach: dict[str, Measure] = dict(given) if isinstance(given, Mapping) else {}
        self._given = None if isinstance(given, Mapping) else given
        self._spaces = tuple(spaces)
        self._background = background

    @property
    def approximate(self) -> Measure | None:
        """The measure of the approximate approach; None without a measure and without spaces."""
        available = self._given is not None or self._spaces or "approximate" in self._by_approach
        return self.of("approximate") if available else None

    @property
    def default(self) -> Approach:
        """The default approach of profiles with `~`: evidence, unless the user gave only a measure of their own."""
        if isinstance(self._given, Evidence) or "evidence" in self._by_approach:
            return EVIDENCE
        own = self._given is not None and not _spaces_of(self._given)
        if not own and (self._spaces or "approximate" not in self._by_approach):
            return EVIDENCE
        if self._background is not None:
            raise BuildError("a measure of your own cannot use a background", hint="leave it out, or give spaces")
        return Approach("approximate")

    def _evidence(self) -> Measure:
        if isinstance(self._given, Evidence):
            return self._given if self._background is None else self._given.with_background(self._background)
        spaces = self._spaces or (() if self._given is None else _spaces_of(self._given))
        if self._given is not None and not spaces:
            raise BuildError(
                f"the approach evidence cannot use the measure {self._given.name!r}",
                hint="give spaces or Evidence(…), or choose another approach",
            )
        return Evidence(spaces, background=self._background)

    def of(self, approach: str) -> Measure:
        """The measure of a base approach; raises an error that names what is missing."""
        if approach not in self._by_approach:
            self._by_approach[approach] = self._make(approach)
        return self._by_approach[approach]

    def _make(self, approach: str) -> Measure:
        if approach == "evidence":
            return self._evidence()
        given = self._given
        if given is not None and self._fits(given, approach):
            return given
        space = getattr(given, "space", None)
        if approach == "thematic" and isinstance(space, Space):
            return Thematic(space)
        if not self._spaces and approach != "concept":
            raise MissingError(
                f"~ needs a space or a measure for the approach {approach}, and none was given",
                hint="give one (`likewise space build` builds a space), or choose exact, which ignores ~",
            )
        try:
            return measure(NAMES[approach], spaces=self._spaces)
        except LikewiseError as error:
            raise MissingError(f"the approach {approach} is not available: {error.message}", hint=error.hint) from error

    @staticmethod
    def _fits(given: Measure, approach: str) -> bool:
        """Whether a measure serves an approach: one of the user's own serves all, a built-in one its own and ESA's."""
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
        return given.name == NAMES[approach] or given.name.removesuffix("+contrast") not in known


def _spaces_of(given: Measure) -> tuple[Space, ...]:
    """The spaces of a measure that is nothing but explicit semantic analysis over spaces, else none."""
    if type(given) is Esa:
        return (given.space,)
    parts = [_spaces_of(part) for part in given.parts] if isinstance(given, Combined) else []
    return tuple(space for spaces in parts for space in spaces) if all(parts) else ()


# The options of a matcher.


MOST_ATTRIBUTE_BITS = 20
"""With more, attributes would not matter at all."""


@dataclass(slots=True)
class MatcherOptions:
    """The measures and options of a matcher; None stands for the default of approach and measure."""

    measures: Measures
    approach: Approach | None = None
    threshold: float | None = None
    aggregation: Aggregation | None = None
    top_k: int = 1
    temperature: float | None = None
    attribute_bits: float | None = None
    taxonomy: Taxonomy | Path | str | None = None
    _settings: dict[Settings, Settings] = field(default_factory=dict)
    _clusters: Clusters | None = None

    def __post_init__(self) -> None:
        if self.attribute_bits is not None and not 0 <= self.attribute_bits <= MOST_ATTRIBUTE_BITS:
            raise BuildError(
                f"attribute_bits is {self.attribute_bits}, which is not between 0 and {MOST_ATTRIBUTE_BITS}",
                hint="give 0 for the scores of the papers",
            )

    def settings(self, profile: Profile, options: Options) -> Settings:
        """The settings of a profile with these options."""
        settings = resolve(
            profile,
            options,
            approach=self.approach,
            threshold=self.threshold,
            top_k=self.top_k,
            aggregation=self.aggregation,
            default=lambda: self.measures.default,
            measure_name=self._measure_name,
        )
        # A million subscriptions have few different settings: equal ones share one object.
        return self._settings.setdefault(settings, settings)

    def measure_of(self, approach: Approach) -> Measure | None:
        """The measure of an approach; None for the approach exact."""
        if approach.base == "exact":
            return None
        return self.measures.of(approach.base)

    def bits_of(self, approach: Approach) -> float:
        """Bits added to the log odds of an attribute whose text value matches."""
        if self.attribute_bits is not None:
            return self.attribute_bits
        measure = self.measure_of(approach) if approach.base == "evidence" else None
        return measure.model.attribute_bits if isinstance(measure, Evidence) else 0.0

    def temperature_of(self, approach: Approach) -> float:
        """The temperature given, or the default of the approach and its measure."""
        measure = self.measures.of(approach.base)
        if isinstance(measure, Evidence) and self.temperature is None:
            return measure.model.temperature
        return Contrast(measure, Competitors.of(()), temperature=self.temperature).temperature

    def clusters(self) -> Clusters:
        """The topics of terms, by the measure of the clustered approach."""
        if self._clusters is None:
            taxonomy = self.taxonomy
            if not isinstance(taxonomy, Taxonomy):
                taxonomy = Taxonomy.default() if taxonomy is None else Taxonomy.from_file(taxonomy)
            self._clusters = Clusters(Classifier(self.measures.of("clustered"), taxonomy))
        return self._clusters

    def out_of_topics(self, profile: Profile, event: Event) -> list[int]:
        """The predicates that share no topic with the event."""
        terms = [term_of(value) for _, value in event.tuples]
        texts = [term_of(value) for _, value in event.tuples if isinstance(value, str)]
        return [
            row
            for row, predicate in enumerate(profile.predicates)
            if predicate.value_approximate
            and predicate.operator is Operator.EQ
            and isinstance(predicate.value, str)
            and term_of(predicate.value) not in terms
            and not self.clusters().meet([term_of(predicate.value)], texts).any()
        ]

    def _measure_name(self, approach: Approach) -> str | None:
        measure = self.measure_of(approach)
        return None if measure is None else measure.name
