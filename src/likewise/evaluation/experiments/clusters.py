"""004 section 9: matching within topic clusters and without them, figures 4 to 6.

The paper compares with the matcher of Hasan and Curry, which compares every event with every subscription; here that
is the approach `approximate`. Both have the same matrices and the same search for the k best mappings, so what differs
is the effect of the clusters. Times are processor times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import mean
from typing import Final

from likewise.charts import Spec
from likewise.errors import BuildError
from likewise.evaluation.charts import lines
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, build_thematic
from likewise.evaluation.experiment import Cell, Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.evaluation.experiments.matching import make_laboratory
from likewise.evaluation.quality.approaches import Laboratory, Trial, choose
from likewise.evaluation.quality.ranking import delivery
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher, Taxonomy
from likewise.semantics import Measure, measure

METHODS: Final = {"within clusters": "clustered", "all pairs": "approximate"}
"""The paper's algorithm and its baseline, with the names of their approaches."""
ROWS: Final = {"within clusters": "clustered (004)", "all pairs": "approximate (Wikipedia)"}

KS: Final = (1, 2, 5, 10, 20, 50)
TUPLES: Final = 10
"""Predicates and tuples of figure 4."""
MAPPINGS: Final = 5
"""k in figure 5; the paper does not state it."""
DEGREES: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
PAPER_PRECISION: Final = {0.8: 0.93, 1.0: 0.91}
"""The paper's precision in figure 6(a), from its text."""

KNOWS: Final = ("seeds", "ks", "predicates", "degrees", "events")
GUIDE: Final = """\
Compares matching within topic clusters with matching of all pairs, on the
thematic data set (004 section 9). Times for the k best mappings of every match,
by k and by the number of predicates; precision, recall and F1 at the default
thresholds, by the share of attributes and values that are approximate. Numbers
of the paper are those of its text; its figures print none.

--set ks=1,5,20         k in figure 4 (default 1,2,5,10,20,50)
--set predicates=1,5    predicates in figure 5 (default 1 to 10)
--set degrees=0,0.5,1   approximation in figure 6 (default 0 to 1 by 0.2)
--set seeds=1,2         data sets; figure 6 is the mean (default 1,2,3)
--set events=100        events that are timed (default 200, 50 with --quick)

Needs the space wikipedia, and EuroVoc, the appliances and the IPTC topics in
the data folder.

  likewise evaluate clusters --quick
  likewise evaluate clusters --out charts"""


@dataclass(frozen=True, slots=True)
class MatchingCost:
    """Milliseconds per event: with all words known, and including new words."""

    known: float
    first: float
    compared: float
    """The share of the pairs of event and subscription that were compared."""


@dataclass(frozen=True)
class TimedWorld:
    """Events and subscriptions with a number of tuples, and a function that creates a new measure."""

    events: Sequence[Event]
    seeds: Sequence[Sequence[tuple[str, str]]]
    fresh: Callable[[], Measure]
    taxonomy: Taxonomy | Path | None = None

    def profiles(self, predicates: int, *, count: int = 20) -> list[Profile]:
        """Fully approximate subscriptions with this number of predicates, drawn from the seeds with a fixed seed."""
        chance = Random(predicates)
        profiles: dict[Profile, None] = {}
        for turn in range(10 * count):
            seed = self.seeds[turn % len(self.seeds)]
            drawn = chance.sample(list(seed), min(predicates, len(seed)))
            profiles[Profile(tuple(Predicate(name, Operator.EQ, value, True, True) for name, value in drawn))] = None
            if len(profiles) == count:
                break
        return list(profiles)

    def cost(self, approach: str, profiles: Sequence[Profile], *, k: int, turns: int = 3) -> MatchingCost:
        """Match all events with all subscriptions, with the k best mappings of every match."""
        matcher = Matcher(self.fresh(), approach=approach, threshold=0.0, top_k=k, taxonomy=self.taxonomy)
        for profile in profiles:
            matcher.add(profile)
        first = self._once(matcher)
        pairs = len(profiles) * len(self.events)
        before = matcher.compared
        known = min(self._once(matcher) for _ in range(turns))
        return MatchingCost(known, first, (matcher.compared - before) / (turns * pairs))

    def _once(self, matcher: Matcher) -> float:
        gc.collect()
        begin = time.process_time()
        for matches in matcher.match_batch(self.events):
            for match in matches:
                _ = match.mappings
        return 1e3 * (time.process_time() - begin) / len(self.events)


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Figures 4, 5 and 6; GUIDE lists the options of `--set`."""
    experiment.check(settings)
    ks = settings.numbers("ks", KS[:4] if settings.quick else KS)
    counts = settings.numbers("predicates", (1, 5, 10) if settings.quick else range(1, TUPLES + 1))
    seeds = settings.numbers("seeds", (1,) if settings.quick else (1, 2, 3))
    degrees = settings.numbers("degrees", DEGREES)
    if min([*ks, *counts]) < 1 or not all(0 <= degree <= 1 for degree in degrees):
        raise BuildError("ks and predicates are at least 1, degrees from 0 to 1", hint="see evaluate clusters --help")
    timed = int(settings.options.get("events", 50 if settings.quick else 200))
    laboratory = make_laboratory(settings)
    recipe = DatasetRecipe(events=1500) if settings.quick else DatasetRecipe()
    sets = [build_thematic(replace(recipe, seed=seed), data=settings.data) for seed in seeds]
    world = make_world(sets[0], laboratory, events=timed)
    # Loads compiled code before anything is timed.
    for approach in METHODS.values():
        world.cost(approach, world.profiles(2, count=2), k=1, turns=1)
    return [
        by_k(world, ks, settings),
        by_predicates(world, counts, settings),
        by_degree(sets, laboratory, degrees, settings),
    ]


def make_world(data: ThematicDataset, laboratory: Laboratory, *, events: int) -> TimedWorld:
    """The longest events and seeds of a data set: those of ten tuples, or as many as there are."""
    longest = max(len(seed) for seed in data.seeds)
    space = laboratory.spaces["wikipedia"]
    return TimedWorld(
        [event for event in data.events if len(event.tuples) == longest][:events],
        [seed for seed in data.seeds if len(seed) == longest],
        lambda: measure("esa", spaces=[space]),
        laboratory.taxonomy,
    )


def by_k(world: TimedWorld, ks: Sequence[int], settings: ExperimentSettings) -> ExperimentReport:
    """Figure 4: time by the number of mappings, with as many predicates as tuples."""
    profiles = world.profiles(TUPLES)
    rows = [{"k": k, **_costs(world, profiles, k=k, settings=settings)} for k in ks]
    settings.draw("clusters-figure-4", _times(rows, x="k", title="Time by k [004 figure 4]"))
    notes = [
        f"ms of processor time per event; {len(profiles)} subscriptions of up to {TUPLES} predicates, "
        f"{len(world.events)} events of as many tuples",
        _growth(rows, "k"),
        "the paper: almost linear in k, and much faster than all pairs for every k",
    ]
    return ExperimentReport("Time by k [004 figure 4]", rows, notes)


def by_predicates(world: TimedWorld, counts: Sequence[int], settings: ExperimentSettings) -> ExperimentReport:
    """Figure 5: time by the number of predicates."""
    rows = [
        {"predicates": count, **_costs(world, world.profiles(count), k=MAPPINGS, settings=settings)} for count in counts
    ]
    settings.draw("clusters-figure-5", _times(rows, x="predicates", title="Time by predicates [004 figure 5]"))
    notes = [
        f"ms of processor time per event, k = {MAPPINGS}; new words: including relating and classifying each word once",
        "the paper: all pairs are faster with few predicates, clusters with many, since clustering itself takes time",
    ]
    return ExperimentReport("Time by predicates [004 figure 5]", rows, notes)


def _costs(world: TimedWorld, profiles: Sequence[Profile], *, k: int, settings: ExperimentSettings) -> dict[str, Cell]:
    costs = {name: world.cost(approach, profiles, k=k) for name, approach in METHODS.items()}
    clustered, every = costs.values()
    settings.say(f"k = {k}, {len(profiles[0].predicates)} predicates: {clustered.known:.2f} and {every.known:.2f} ms")
    return {
        **{name: rates.known for name, rates in costs.items()},
        "times faster": every.known / max(clustered.known, 1e-9),
        **{f"{name}, new words": rates.first for name, rates in costs.items()},
        "pairs compared": clustered.compared,
    }


def _growth(rows: Sequence[Mapping[str, Cell]], x: str) -> str:
    """How time grows along the axis, for each method."""
    first, last = rows[0], rows[-1]
    growth = [f"{name} {float(last[name] or 0) / float(first[name] or 1):.1f}" for name in METHODS]
    return f"from {x} = {first[x]} to {last[x]}, time grows by a factor of {', '.join(growth)}"


def by_degree(
    sets: Sequence[ThematicDataset], laboratory: Laboratory, degrees: Sequence[float], settings: ExperimentSettings
) -> ExperimentReport:
    """Figure 6: precision, recall and F1 at the default thresholds, by the degree of approximation."""
    rows: list[Row] = []
    for degree in degrees:
        row: dict[str, Cell] = {"approximate": degree}
        trials = [Trial(data if degree == 1 else data.approximated(degree), laboratory) for data in sets]
        for name, figures in _delivered(trials):
            row |= {f"{name}: {figure}": value for figure, value in figures.items()}
        row["precision (paper)"] = PAPER_PRECISION.get(degree)
        settings.say(f"{degree:.0%} approximate: F1 {row['within clusters: F1']:.3f} and {row['all pairs: F1']:.3f}")
        rows.append(row)
    for part, figure in zip("abc", ("precision", "recall", "F1"), strict=True):
        tall = [
            {"approximate": row["approximate"], "method": name, figure: row[f"{name}: {figure}"]}
            for row in rows
            for name in METHODS
        ]
        title = f"{figure.capitalize()} by approximation [004 figure 6({part})]"
        spec = lines(tall, x="approximate", y=figure, colour="method", title=title, domain=(0, 1))
        settings.draw(f"clusters-figure-6{part}", spec)
    limits = {name: laboratory.usual_threshold(choose([row])[0]) for name, row in ROWS.items()}
    notes = [
        f"means over {len(sets)} seeds and all subscriptions; thresholds: "
        + ", ".join(f"{name} {limit}" for name, limit in limits.items()),
        "approximate: the share of attributes and values with ~; the paper has the share of subscriptions",
        "the paper: its precision falls from 0.93 to 0.91 above 80 %, that of all pairs sharply; recall is similar",
    ]
    return ExperimentReport("Precision, recall and F1 by approximation [004 figure 6]", rows, notes)


def _delivered(trials: Sequence[Trial]) -> Iterator[tuple[str, dict[str, float]]]:
    for name, row in ROWS.items():
        [approach] = choose([row])
        deliveries = [
            delivery(trial.scores(approach), trial.data.truth, trial.laboratory.usual_threshold(approach) or 0.0)
            for trial in trials
        ]
        yield (
            name,
            {
                "precision": mean(figures.precision for figures in deliveries),
                "recall": mean(figures.recall for figures in deliveries),
                "F1": mean(figures.f1 for figures in deliveries),
                "pairs": mean(trial.compared(approach) for trial in trials),
            },
        )


def _times(rows: Sequence[Mapping[str, Cell]], *, x: str, title: str) -> Spec:
    tall = [{x: row[x], "method": name, "ms per event": row[name]} for row in rows for name in METHODS]
    return lines(tall, x=x, y="ms per event", colour="method", title=title)


experiment = Experiment(
    "clusters", "004: time and quality of matching within topic clusters, figures 4 to 6", run, KNOWS, GUIDE
)
