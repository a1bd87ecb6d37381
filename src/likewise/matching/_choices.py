"""Choices: what a matcher was told, and what follows from it for one profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Operator, Options, Profile
from likewise.matching._aggregation import Aggregation
from likewise.matching._approach import TUNED_TEMPERATURE, TUNED_WEIGHT, Approach, Settings, resolve
from likewise.matching._measures import Measures
from likewise.matching._topics import Classifier, Clusters, Taxonomy
from likewise.matching._vocabulary import term_of
from likewise.semantics import Competitors, Contrast, Measure


@dataclass(slots=True)
class Choices:
    """The measures and options of a matcher; None leaves it to what suits approach and measure."""

    measures: Measures
    approach: Approach | None = None
    threshold: float | None = None
    aggregation: Aggregation | None = None
    top_k: int = 1
    temperature: float | None = None
    attribute_weight: float | None = None
    taxonomy: Taxonomy | Path | str | None = None
    _settings: dict[Settings, Settings] = field(default_factory=dict)
    _clusters: Clusters | None = None

    def __post_init__(self) -> None:
        if self.attribute_weight is not None and not 0 <= self.attribute_weight < float("inf"):
            raise BuildError(
                f"attributes cannot weigh {self.attribute_weight}", hint="1 is as much as values, 0 is nothing"
            )

    def settings(self, profile: Profile, options: Options) -> Settings:
        """What a profile with these options is matched with."""
        found = resolve(
            profile,
            options,
            approach=self.approach,
            threshold=self.threshold,
            top_k=self.top_k,
            aggregation=self.aggregation,
            measure_name=self._measure_name,
        )
        # A million subscriptions have few different settings: each is kept once.
        return self._settings.setdefault(found, found)

    def measure_of(self, approach: Approach) -> Measure | None:
        """The measure of an approach; the exact one has none."""
        if approach.base == "exact":
            return None
        return self.measures.tuned() if approach.tuned else self.measures.of(approach.base)

    def weight_of(self, approach: Approach) -> float:
        """The power of attributes."""
        if self.attribute_weight is not None:
            return self.attribute_weight
        return TUNED_WEIGHT if approach.tuned else 1.0

    def temperature_of(self, approach: Approach) -> float:
        """The temperature given, or the one that suits the approach and its measure."""
        if approach.tuned and self.temperature is None:
            return TUNED_TEMPERATURE
        measure = self.measures.of(approach.base)
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
        """The predicates whose topics the event does not meet."""
        every = [term_of(value) for _, value in event.tuples]
        said = [term_of(value) for _, value in event.tuples if isinstance(value, str)]
        return [
            row
            for row, one in enumerate(profile.predicates)
            if one.value_approximate
            and one.operator is Operator.EQ
            and isinstance(one.value, str)
            and term_of(one.value) not in every
            and not self.clusters().meet([term_of(one.value)], said).any()
        ]

    def _measure_name(self, approach: Approach) -> str | None:
        measure = self.measure_of(approach)
        return None if measure is None else measure.name
