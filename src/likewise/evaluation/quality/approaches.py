"""The approaches that the matching experiment compares: what measures two terms, and who competes."""

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
from likewise.evaluation.quality.scoring import Mean, Scorer, Side, value_of
from likewise.events import normalise
from likewise.matching import (
    MOST_EVENTS,
    Approach,
    Classifier,
    Clusters,
    Taxonomy,
    default_threshold,
)
from likewise.semantics import (
    Coded,
    Combined,
    Competitors,
    Differing,
    Embedding,
    Evidence,
    Matrix,
    Measure,
    Model,
    Opposed,
    Ranked,
    Space,
    contrasted,
    find_space,
    measure,
)

Wrap = Literal["", "contrast", "rank", "rank contrast"]

SHARP = {"embedding": 0.05, "all": 0.02}
"""Temperatures of contrast that are not the usual one, by measure."""
USUAL = 0.005
RANKED = 0.3
"""The temperature of contrast over ranked scores, whatever the measure: mild, for subscribers who use each their own
words for one thing must not be set against each other."""

SAMPLE = 1000
"""The background is the words of so many events, the first of the stream."""

ATTRIBUTES = 0.2
"""The weight of attributes in the rows that damp them: a tuple's score is attribute^weight * value."""


@dataclass(frozen=True, slots=True)
class ComparedApproach:
    """One row of the table: a measure, what is put around it, and the weight of attributes."""

    name: str
    measure: str
    wrap: Wrap = ""
    attribute_weight: float = 1.0
    target: float | None = None
    """What the issue asks for at full approximation, all subscriptions together."""
    alone: float | None = None
    """What it asks for when each subscription is alone."""
    temperature: float | None = None
    """That of contrast, where it is not the usual one of the measure."""
    chosen: str = ""
    """What a user would choose to have it, if it can be had by name; that has a usual threshold."""

    @property
    def mean(self) -> Mean:
        """How predicates become one score."""
        if self.measure.startswith("evidence"):
            return "joint"
        return "cautious" if "differing" in self.measure else "geometric"


_DEFAULTS = (
    ("WordNet", "wordnet", 0.90),
    ("both", "both", 0.90),
    ("embedding", "embedding", 0.95),
    ("all", "all", 0.95),
)
"""What the previous default is measured over, and the aim for it."""

_KNOWN = (
    ("glossary only", "nothing"),
    ("WordNet", "wordnet"),
    ("both", "both"),
    ("embedding", "embedding"),
    ("all", "all"),
)
"""What the default may have: only its glossary, WordNet with its space, Wikipedia too, the encoder, or all."""

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
    ComparedApproach("approximate (both), tuned", "both apart", "", ATTRIBUTES),
    ComparedApproach("embedding, tuned", "embedding apart", "", ATTRIBUTES),
    ComparedApproach("contrast (both), tuned", "both apart", "contrast", ATTRIBUTES, target=0.90),
    ComparedApproach("contrast (embedding), tuned", "embedding apart", "contrast", ATTRIBUTES, target=0.95),
    ComparedApproach("contrast (all), tuned", "all apart", "contrast", ATTRIBUTES, target=0.95),
    ComparedApproach("default (both), opposites kept", "both coded differing", "contrast", ATTRIBUTES,
             temperature=RANKED),
    ComparedApproach("default (embedding), opposites kept", "embedding coded differing", "contrast", ATTRIBUTES,
             temperature=RANKED),
    *(ComparedApproach(f"previous default ({name})", f"{inner} differing", "contrast", ATTRIBUTES, aim, 0.80, RANKED)
      for name, inner, aim in _DEFAULTS),
    *(ComparedApproach(f"previous default + background ({name})", f"{inner} differing", "rank contrast",
                       ATTRIBUTES, aim, 0.80)
      for name, inner, aim in _DEFAULTS),
    *(ComparedApproach(f"default ({name})", f"evidence {inner}", "contrast", target=0.93, alone=0.88,
               chosen="evidence")
      for name, inner in _KNOWN),
    *(ComparedApproach(f"default + background ({name})", f"evidence {inner}", "rank contrast", target=0.93, alone=0.88,
               chosen="evidence")
      for name, inner in _KNOWN),
)  # fmt: skip
"""`both` is Wikipedia and WordNet, `all` these and the embedding; `tuned` has light attributes, and codes and opposites
apart; `previous default` is that with soft contrast, phrases compared by what differs and the cautious mean, and over
ranks if it has a background; `default` adds up evidence."""


@dataclass(frozen=True)
class Laboratory:
    """The measures, made when first asked for and kept over all data sets."""

    wordnet: str | Path | Space = "wordnet"
    wikipedia: str | Path | Space = "wikipedia"
    thesaurus: Eurovoc | None = None
    taxonomy: Path | None = None
    _made: dict[str, Measure] = field(default_factory=dict, repr=False)

    def measure(self, name: str) -> Measure:
        """One of the measures that approaches name, or an error that says what is missing."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    @cached_property
    def spaces(self) -> dict[str, Space]:
        """Both spaces, open."""
        both = {"wordnet": self.wordnet, "wikipedia": self.wikipedia}
        return {name: at if isinstance(at, Space) else find_space(at) for name, at in both.items()}

    @cached_property
    def clusters(self) -> Clusters:
        """The topics of terms, by Wikipedia's measure."""
        taxonomy = Taxonomy.from_file(self.taxonomy) if self.taxonomy else Taxonomy.default()
        return Clusters(Classifier(self.measure("wikipedia"), taxonomy))

    def _make(self, name: str) -> Measure:
        if name.startswith("evidence "):
            return self._evidence(name.removeprefix("evidence "))
        if name.endswith(" coded differing"):
            return Differing(self.measure(name.removesuffix(" differing")))
        if name.endswith(" differing"):
            return Differing(self.measure(name.removesuffix(" differing") + " apart"))
        if name.endswith(" coded"):
            return Coded(self.measure(name.removesuffix(" coded")))
        if name.endswith(" apart"):
            return Opposed(self.measure(name.removesuffix(" apart") + " coded"))
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
        }
        return builders[name]()

    def _evidence(self, known: str) -> Evidence:
        wanted = {"wordnet": ("wordnet",), "both": ("wordnet", "wikipedia"), "all": ("wordnet", "wikipedia")}
        spaces = [self.spaces[name] for name in wanted.get(known, ())]
        return Evidence(spaces, encoder=known in ("embedding", "all"), wordnet=None if known != "nothing" else False)

    def usual_threshold(self, approach: ComparedApproach) -> float | None:
        """The threshold that a user of this approach gets who gives none; None for what cannot be chosen by name."""
        if not approach.chosen:
            return None
        if approach.chosen == "evidence":
            return default_threshold(Approach.parse("evidence"), "evidence")
        named = {"exact": "", "eurovoc": "concept", "clustered": "esa", "hybrid": "hybrid"}
        name = named[approach.measure] if approach.measure in named else self.measure(approach.measure).name
        ranked = "+rank" if "rank" in approach.wrap else ""
        return default_threshold(Approach.parse(approach.chosen), f"{name}{ranked}")

    def missing(self, approach: ComparedApproach) -> str | None:
        """Why an approach cannot be run here; None if it can."""
        try:
            if approach.measure == "hybrid":
                self.measure("jiang-conrath")
                self.measure("wikipedia")
            elif approach.measure == "clustered":
                _ = self.clusters
            elif approach.measure not in ("exact", "eurovoc"):
                self.measure(approach.measure)
        except LikewiseError as error:
            return error.message
        return None


class Trial:
    """One data set and the measures: scores of any approach, together and alone."""

    def __init__(self, data: ThematicDataset, laboratory: Laboratory) -> None:
        self.data = data
        self.laboratory = laboratory
        self.scorer = Scorer(data.events, data.profiles)
        self._known: dict[tuple[str, int], Matrix] = {}

    def scores(self, approach: ComparedApproach, *, alone: bool = False) -> RankedScores:
        """Scores of all events for all subscriptions, registered together or each in an empty system."""
        if approach.measure == "hybrid":
            return self._hybrid()
        if approach.measure == "clustered":
            return self.scorer.score(self._side("wikipedia", 0), self._side("wikipedia", 1)) * self._meeting
        of = self._ranked if "rank" in approach.wrap else self._side
        attributes, values = of(approach.measure, 0), of(approach.measure, 1)
        weight = approach.attribute_weight
        learned = self._learned(approach)
        bits = 0.0 if learned is None else learned.attribute_bits
        sample = MOST_EVENTS if learned is not None and "rank" in approach.wrap else 0
        if "contrast" not in approach.wrap:
            return self.scorer.score(
                attributes, values, attribute_weight=weight, bits=bits, mean=approach.mean, sample=sample
            )
        tau = approach.temperature or (self._usual(approach) if learned is None else learned.temperature)

        def adjust(matrix: Matrix) -> Matrix:
            return np.ascontiguousarray(contrasted(matrix.T, matrix.max(axis=0, initial=0), tau).T)

        if alone:
            return self.scorer.score_alone(
                attributes, values, adjust, attribute_weight=weight, bits=bits, mean=approach.mean, sample=sample
            )
        return self.scorer.score(
            adjust(attributes),
            adjust(values),
            attribute_weight=weight,
            bits=bits,
            mean=approach.mean,
            sample=sample,
        )

    def _learned(self, approach: ComparedApproach) -> Model | None:
        """What evidence has learned; None for other measures."""
        found = self.laboratory.measure(approach.measure) if approach.chosen == "evidence" else None
        return found.model if isinstance(found, Evidence) else None

    @staticmethod
    def _usual(approach: ComparedApproach) -> float:
        return RANKED if "rank" in approach.wrap else SHARP.get(approach.measure.split()[0], USUAL)

    def compared(self, approach: ComparedApproach) -> float:
        """The share of pairs of subscription and event whose words are compared at all."""
        return float(self._meeting.mean()) if approach.measure == "clustered" else 1.0

    @cached_property
    def _meeting(self) -> RankedScores:
        """1 where every value of the subscription shares a topic with some value of the event [004 sec 7.4]."""
        values, scorer = self.scorer.values, self.scorer
        shared = self.laboratory.clusters.meet(values.wanted, values.said)
        padded = np.vstack([scorer.tuples, [[0, 0]]])[scorer.tuples_of][:, :, 1]
        meets = (shared[padded] & (scorer.tuples_of >= 0)[:, :, None]).any(axis=1)
        rows = [[values.row[value_of(p)] for p in profile.predicates] for profile in scorer.profiles]
        return np.stack([meets[:, row].all(axis=1) for row in rows]).astype(np.float32)

    def _terms(self, side: int) -> Side:
        return (self.scorer.attributes, self.scorer.values)[side]

    def _side(self, name: str, side: int) -> Matrix:
        if (name, side) not in self._known:
            terms = self._terms(side)
            if name == "exact":
                made = terms.exact
            elif name == "eurovoc":
                made = _by_thesaurus(terms, self.laboratory.thesaurus)
            else:
                made = self.laboratory.measure(name).matrix(terms.wanted, terms.said)
            self._known[name, side] = made
        return self._known[name, side]

    def _ranked(self, name: str, side: int) -> Matrix:
        terms = self._terms(side)
        if ("+" + name, side) not in self._known:
            inner = self.laboratory.measure(name)
            # Of a stream, evidence knows how common answers are, which is not a matter of terms.
            beside = inner if isinstance(inner, Evidence) else Ranked(inner, self._background)
            self._known["+" + name, side] = beside.matrix(terms.wanted, terms.said)
        return self._known["+" + name, side]

    @cached_property
    def _background(self) -> Competitors:
        return Competitors.from_events(self.data.events[:SAMPLE])

    def _hybrid(self) -> RankedScores:
        """Rank of a property among those of its own event, by Jiang-Conrath [002 eq 14, 15, 22]."""
        esa = [self._side("wikipedia", side) for side in (0, 1)]
        similar = self._side("jiang-conrath", 0)
        scorer = self.scorer
        padded = np.vstack([scorer.tuples, [[0, 0]]])[scorer.tuples_of]
        real = scorer.tuples_of >= 0
        best = {}
        for p in dict.fromkeys(p for profile in scorer.profiles for p in profile.predicates):
            row, value = scorer.attributes.row[normalise(p.attribute)], scorer.values.row[normalise(str(p.value))]
            near = np.where(real, similar[row][padded[:, :, 0]], -1)
            rank = 1 + (near[:, None, :] > near[:, :, None]).sum(axis=2)
            lift = np.minimum(1, np.maximum(0, 5 - rank + 1) * esa[0][row][padded[:, :, 0]])
            if not p.attribute_approximate:
                lift = scorer.attributes.exact[row][padded[:, :, 0]]
            values = esa[1] if p.value_approximate else scorer.values.exact
            best[p] = np.where(real, lift * values[value][padded[:, :, 1]], 0).max(axis=1)
        rows = [np.mean([best[p] for p in profile.predicates], axis=0) for profile in scorer.profiles]
        return np.stack(rows).astype(np.float32)


def choose(names: Sequence[str]) -> tuple[ComparedApproach, ...]:
    """The approaches whose names begin with one of these; all for none."""
    if not names:
        return APPROACHES
    found = tuple(each for each in APPROACHES if any(each.name.startswith(name) for name in names))
    if not found:
        raise MissingError(f"no approach {names[0]!r}", hint=f"known: {'; '.join(each.name for each in APPROACHES)}")
    return found


def _by_thesaurus(side: Side, thesaurus: Eurovoc | None) -> Matrix:
    """1 where the thesaurus of the expansion itself says that a term may stand for another."""
    if thesaurus is None:
        raise MissingError("the thesaurus of the data set is not given", hint="set LIKEWISE_DATA")
    made = side.exact.copy()
    for term, row in side.row.items():
        for phrase in map(normalise, phrases(term, thesaurus)):
            if phrase in side.column:
                made[row, side.column[phrase]] = 1
    return made
