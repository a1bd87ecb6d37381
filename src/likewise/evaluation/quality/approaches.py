"""The approaches that the matching experiment compares, with their measures and competitors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from likewise.errors import LikewiseError, MissingError
from likewise.evaluation.datasets.eurovoc import Eurovoc
from likewise.evaluation.datasets.expansion import phrases
from likewise.evaluation.datasets.thematic import ThematicDataset
from likewise.evaluation.quality.ranking import RankedScores
from likewise.evaluation.quality.scoring import Tabled, TermsOfData, score_all, score_each
from likewise.events import normalise
from likewise.matching import Approach, Background, Matcher, Taxonomy, default_threshold
from likewise.semantics import (
    Combined,
    Competitors,
    Embedding,
    Evidence,
    Hybrid,
    Matrix,
    Measure,
    Model,
    Ranked,
    Space,
    find_space,
    measure,
)

Wrap = Literal["", "contrast", "rank", "rank contrast"]

SHARP = {"embedding": 0.05, "all": 0.02}
"""Temperatures of contrast by measure, where they differ from the default."""
USUAL = 0.005
RANKED = 0.3
"""The temperature of contrast over ranked scores, for all measures: mild, since subscribers who use different words for
the same thing must not compete."""

SAMPLE = 1000
"""The number of events, the first of the stream, whose words are the background."""


@dataclass(frozen=True, slots=True)
class ComparedApproach:
    """One row of the table: a measure and its adjustments."""

    name: str
    measure: str
    wrap: Wrap = ""
    target: float | None = None
    """The F1 to reach at full approximation, with all subscriptions together."""
    alone: float | None = None
    """The F1 to reach with each subscription alone."""
    chosen: str = ""
    """The name by which a user chooses it, if there is one; such an approach has a default threshold."""


_KNOWN = (
    ("glossary only", "nothing"),
    ("WordNet", "wordnet"),
    ("both", "both"),
    ("embedding", "embedding"),
    ("all", "all"),
)
"""What the default has: only its glossary, WordNet with its space, Wikipedia too, the encoder, or all."""

PARTS = {"exact": (), "clustered": ("wikipedia",), "hybrid": ("wikipedia", "jiang-conrath")}
"""The measures of approaches that use several or none."""

APPROACHES = (
    ComparedApproach("exact", "exact", chosen="exact"),
    ComparedApproach("concept (WordNet)", "concept", chosen="concept"),
    ComparedApproach("concept (same thesaurus)", "eurovoc", chosen="concept"),
    ComparedApproach("approximate (WordNet)", "wordnet", chosen="approximate"),
    ComparedApproach("approximate (Wikipedia)", "wikipedia", target=0.60, chosen="approximate"),
    ComparedApproach("approximate (both)", "both", target=0.60, chosen="approximate"),
    ComparedApproach("approximate (Euclidean, 000)", "euclidean"),
    ComparedApproach("clustered (004)", "clustered", chosen="clustered"),
    ComparedApproach("hybrid (002)", "hybrid", chosen="hybrid"),
    ComparedApproach("embedding", "embedding", chosen="approximate"),
    ComparedApproach("sentence", "sentence"),
    ComparedApproach("contrast (WordNet)", "wordnet", "contrast", target=0.86, chosen="contrast"),
    ComparedApproach("contrast (Wikipedia)", "wikipedia", "contrast", target=0.86, chosen="contrast"),
    ComparedApproach("contrast (both)", "both", "contrast", target=0.90, chosen="contrast"),
    ComparedApproach("contrast (embedding)", "embedding", "contrast", target=0.95, chosen="contrast"),
    ComparedApproach("contrast (all)", "all", "contrast", target=0.95),
    ComparedApproach("rank (both)", "both", "rank", alone=0.80),
    ComparedApproach("rank (embedding)", "embedding", "rank", alone=0.80),
    ComparedApproach("rank (all)", "all", "rank", alone=0.80),
    ComparedApproach("rank + contrast (both)", "both", "rank contrast", target=0.90, alone=0.80),
    ComparedApproach("rank + contrast (embedding)", "embedding", "rank contrast", target=0.95, alone=0.80),
    ComparedApproach("rank + contrast (all)", "all", "rank contrast", target=0.95, alone=0.80),
    *(ComparedApproach(f"default ({name})", f"evidence {inner}", "contrast", target=0.93, alone=0.88,
               chosen="evidence")
      for name, inner in _KNOWN),
    *(ComparedApproach(f"default + background ({name})", f"evidence {inner}", "rank contrast", target=0.93, alone=0.88,
               chosen="evidence")
      for name, inner in _KNOWN),
)  # fmt: skip
"""`both` is Wikipedia and WordNet, `all` these and the embedding; `default` adds up evidence."""


@dataclass(frozen=True)
class Laboratory:
    """The measures, built on first use and shared by all data sets."""

    wordnet: str | Path | Space = "wordnet"
    wikipedia: str | Path | Space = "wikipedia"
    thesaurus: Eurovoc | None = None
    taxonomy: Taxonomy | Path | None = None
    _made: dict[str, Measure] = field(default_factory=dict, repr=False)

    def measure(self, name: str) -> Measure:
        """The measure with this name; raises an error that names what is missing."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    @cached_property
    def spaces(self) -> dict[str, Space]:
        """Both spaces, open."""
        both = {"wordnet": self.wordnet, "wikipedia": self.wikipedia}
        return {name: at if isinstance(at, Space) else find_space(at) for name, at in both.items()}

    @cached_property
    def clustered(self) -> Matcher:
        """A matcher with the approach clustered, over the Wikipedia space."""
        return Matcher(self.measure("wikipedia"), approach="clustered", taxonomy=self.taxonomy)

    def _make(self, name: str) -> Measure:
        if name.startswith("evidence "):
            return self._evidence(name.removeprefix("evidence "))
        builders: dict[str, Callable[[], Measure]] = {
            "concept": lambda: measure("concept"),
            "wordnet": lambda: measure("esa", spaces=[self.spaces["wordnet"]]),
            "wikipedia": lambda: measure("esa", spaces=[self.spaces["wikipedia"]]),
            "both": lambda: Combined([self.measure("wikipedia"), self.measure("wordnet")]),
            "euclidean": lambda: measure("esa-euclidean", spaces=[self.spaces["wikipedia"]]),
            "thematic": lambda: measure("thematic", spaces=[self.spaces["wikipedia"]]),
            "jiang-conrath": lambda: measure("jiang-conrath"),
            "embedding": Embedding,
            "sentence": lambda: measure("sentence"),
            "all": lambda: Combined([self.measure(part) for part in ("wikipedia", "wordnet", "embedding")]),
            "eurovoc": lambda: Phrases(self.thesaurus),
        }
        return builders[name]()

    def _evidence(self, known: str) -> Evidence:
        wanted = {"wordnet": ("wordnet",), "both": ("wordnet", "wikipedia"), "all": ("wordnet", "wikipedia")}
        spaces = [self.spaces[name] for name in wanted.get(known, ())]
        return Evidence(spaces, encoder=known in ("embedding", "all"), wordnet=None if known != "nothing" else False)

    def usual_threshold(self, approach: ComparedApproach) -> float | None:
        """The default threshold of an approach; None for approaches that cannot be chosen by name."""
        if not approach.chosen:
            return None
        if approach.chosen == "evidence":
            return default_threshold(Approach.parse("evidence"), "evidence")
        named = {"exact": "", "eurovoc": "concept", "clustered": "esa", "hybrid": "hybrid"}
        name = named[approach.measure] if approach.measure in named else self.measure(approach.measure).name
        ranked = "+rank" if "rank" in approach.wrap else ""
        return default_threshold(Approach.parse(approach.chosen), f"{name}{ranked}")

    def missing(self, approach: ComparedApproach) -> str | None:
        """Why an approach cannot run here; None if it can."""
        try:
            for name in PARTS.get(approach.measure, (approach.measure,)):
                self.measure(name)
            if approach.measure == "clustered" and self.taxonomy is None:
                Taxonomy.default()
        except LikewiseError as error:
            return error.message
        return None


class Trial:
    """Scores of one data set under any approach, with subscriptions together or alone."""

    def __init__(self, data: ThematicDataset, laboratory: Laboratory) -> None:
        self.data = data
        self.laboratory = laboratory
        self._terms = TermsOfData.of(data.events, data.profiles)
        self._known: dict[str, Measure] = {}
        self._compared: dict[ComparedApproach, float] = {}

    def scores(self, approach: ComparedApproach, *, alone: bool = False) -> RankedScores:
        """Scores of all events for all subscriptions, registered together or each alone."""
        matcher, wanted = self._matcher(approach), self.data.subscriptions
        if alone and "contrast" in approach.wrap:
            return score_each(matcher, self.data.events, wanted)
        before = matcher.compared
        scores = score_all(matcher, self.data.events, wanted)
        self._compared[approach] = (matcher.compared - before) / scores.size
        return scores

    def compared(self, approach: ComparedApproach) -> float:
        """The share of pairs of subscription and event that are compared."""
        if approach.measure != "clustered":
            return 1.0
        if approach not in self._compared:
            self.scores(approach)
        return self._compared[approach]

    def _matcher(self, approach: ComparedApproach) -> Matcher:
        name, ranked, contrast = approach.measure, "rank" in approach.wrap, "contrast" in approach.wrap
        if name == "exact":
            return Matcher(approach="exact")
        if name == "clustered":
            return self.laboratory.clustered
        if name == "hybrid":
            return Matcher(Hybrid(self._table("wikipedia"), self._table("jiang-conrath")), approach=name)
        learned = self._learned(approach)
        if learned is not None:
            return Matcher(
                {"evidence": self._table(name)},
                approach="evidence",
                temperature=learned.temperature,
                attribute_bits=learned.attribute_bits,
                background=Background.of(self.data.events) if ranked else None,
            )
        sharp = RANKED if ranked else SHARP.get(name, USUAL)
        base = "approximate+contrast" if contrast else "approximate"
        return Matcher(self._table(name, ranked=ranked), approach=base, temperature=sharp)

    def _learned(self, approach: ComparedApproach) -> Model | None:
        """The model of evidence; None for other measures."""
        chosen = self.laboratory.measure(approach.measure) if approach.chosen == "evidence" else None
        return chosen.model if isinstance(chosen, Evidence) else None

    def _table(self, name: str, *, ranked: bool = False) -> Measure:
        """A measure over the terms of the data set, computed once for all approaches."""
        key = f"{name}+rank" if ranked else name
        if key not in self._known:
            inner = self.laboratory.measure(name)
            self._known[key] = Tabled(Ranked(inner, self._background) if ranked else inner, self._terms)
        return self._known[key]

    @cached_property
    def _background(self) -> Competitors:
        return Competitors.from_events(self.data.events[:SAMPLE])


def choose(names: Sequence[str]) -> tuple[ComparedApproach, ...]:
    """The approaches whose names begin with one of these; without names all."""
    if not names:
        return APPROACHES
    chosen = tuple(approach for approach in APPROACHES if approach.name.startswith(tuple(names)))
    if not chosen:
        known = "; ".join(approach.name for approach in APPROACHES)
        raise MissingError(f"no approach {names[0]!r}", hint=f"known: {known}")
    return chosen


class Phrases(Measure):
    """1 if the thesaurus of the expansion may replace a term by another, else 0."""

    name = "phrases"
    symmetric = False

    def __init__(self, thesaurus: Eurovoc | None) -> None:
        if thesaurus is None:
            raise MissingError("the thesaurus of the data set is not given", hint="set LIKEWISE_DATA")
        self._thesaurus = thesaurus

    def matrix(
        self,
        subscription_terms: Sequence[str],
        event_terms: Sequence[str],
        *,
        subscription_theme: Sequence[str] = (),  # noqa: ARG002 - not needed by this kind
        event_theme: Sequence[str] = (),  # noqa: ARG002 - not needed by this kind
    ) -> Matrix:
        columns = {term: column for column, term in enumerate(event_terms)}
        scores = np.zeros((len(subscription_terms), len(columns)), np.float32)
        for row, term in enumerate(subscription_terms):
            for phrase in (term, *map(normalise, phrases(term, self._thesaurus))):
                if phrase in columns:
                    scores[row, columns[phrase]] = 1
        return scores
