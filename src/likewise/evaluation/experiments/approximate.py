"""002 section 6: Jiang-Conrath, Wikipedia ESA and their hybrid on RDF events of two sources, figures 5 to 11.

The events are those of `datasets.world_events`; the seven subscriptions are the paper's, with cities instead of
stadiums, of which the data know nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.charts import Spec
from likewise.errors import BuildError, LikewiseError
from likewise.evaluation.charts import bars, lines
from likewise.evaluation.datasets.thematic import data_folder
from likewise.evaluation.datasets.world_events import SOURCES, WorldEvent, world_events, write_ntriples
from likewise.evaluation.experiment import Cell, Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.evaluation.quality.ranking import RECALLS, Relevance, best_on_levels, interpolated, max_f1
from likewise.evaluation.quality.statements import (
    TOP,
    StatementMeasures,
    StatementScorer,
    Wanted,
    exact_patterns,
)
from likewise.events import read_events
from likewise.semantics import Measure, Space, find_space, measure

Levels = NDArray[np.float64]
"""A row per subscription with its precision at eleven recall levels; NaN if no event is relevant."""


@dataclass(frozen=True, slots=True)
class Need:
    """A subscription of table 3: its description, its statements, and the meaning of each."""

    text: str
    statements: tuple[Wanted, ...]
    means: tuple[str, ...]


MATCH = ("type", "Football Match")
NEEDS = (
    Need(
        "football matches of Spain in Johannesburg",
        (MATCH, ("team", "Spain national football team"), ("city", "Johannesburg")),
        ("a football match", "Spain plays", "in Johannesburg"),
    ),
    Need(
        "football matches in Johannesburg",
        (MATCH, ("place", "Johannesburg")),
        ("a football match", "in Johannesburg"),
    ),
    Need("events in London", (("type", "Event"), ("place", "London")), ("an event", "in London")),
    Need("friendly events in London", (("type", "Friendly"), ("place", "London")), ("a friendly", "in London")),
    Need(
        "friendly football in London",
        (("type", "Friendly"), ("type", "Football"), ("place", "London")),
        ("a friendly", "a football match", "in London"),
    ),
    Need(
        "football matches in the UK",
        (MATCH, ("place", "United Kingdom")),
        ("a football match", "in United Kingdom"),
    ),
    Need(
        "football matches of South American teams in Europe",
        (MATCH, ("team", "South America"), ("place", "Europe")),
        ("a football match", "South America plays", "in Europe"),
    ),
)

MATCHERS = ("jiang-conrath", "wikipedia esa", "hybrid")
ALSO = ("wordnet esa", "concept", "sentence", "evidence")
"""More measures in figure 5: WordNet's definitions, its synonyms, the sentence encoder, and our default."""
TOPS = range(1, 7)

PAPER_F1: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "encyclopaedia": {
        "jiang-conrath": (0.7006, 0.8, 0.6231),
        "wikipedia esa": (0.4426, 0.8, 0.3059),
        "hybrid": (0.7545, 0.9, 0.6494),
    },
    "database": {
        "jiang-conrath": (0.4460, 0.6, 0.3549),
        "wikipedia esa": (0.7073, 0.8, 0.6339),
        "hybrid": (0.7633, 0.8, 0.7298),
    },
}
"""Maximal F1, recall and precision of tables 5 and 8, on the events of Wikipedia and of Freebase."""

PAPER_NEEDS: Mapping[str, Sequence[tuple[int, int | None]]] = {
    "encyclopaedia": ((1, 1), (2, 2), (219, 5), (29, 6), (2, 2), (505, 603), (20, 123_774)),
    "database": ((1, 1), (2, None), (29, 5), (0, None), (0, None), (34, 1_398), (2, 219_600)),
}
"""Relevant events and exact patterns of tables 4 and 7."""

PAPER_PATTERNS = {"encyclopaedia": 125_000, "database": 220_000}

PAPER_SETS: Mapping[str, Mapping[str, int]] = {
    "encyclopaedia": {
        "events": 20_000, "types": 4_950, "properties": 1_500, "values": 500_000, "triples an event": 65,
    },
    "database": {"events": 85_000, "types": 850, "properties": 1_250, "values": 1_200_000, "triples an event": 22},
}  # fmt: skip
"""Tables 1 and 6."""

KNOWS = ("seeds", "share", "measures", "tops")
GUIDE = """\
Seven subscriptions in free words against football matches and historic
events, written as RDF by two sources that name types, properties and values
in their own way (002 section 6). Ranks the events by Jiang-Conrath, by
Wikipedia ESA and by the hybrid of both. Shows precision at eleven recall
levels, the maximal F1, the effect of m, and how many exact patterns one
subscription replaces, compared with the paper's figures.

--set seeds=1,2     who writes which event; figures are means (default 1,2,3)
--set share=0.2     a part of all events (default 1, or 0.1 with --quick)
--set tops=1,5,20   the values of m for figure 10 (default 1 to 6)
--set "measures=evidence;sentence"
                    what figure 5 also compares: wordnet esa; concept;
                    sentence; evidence (default all, one with --quick)

Needs the spaces wikipedia and wordnet, and events/football-results.csv and
events/wikidata_historicEvents.json in the data folder. --out also keeps the
events as N-Triples.

  likewise evaluate approximate --quick
  likewise evaluate approximate --out charts"""


class World:
    """One event set of one seed, read back from RDF, and its truth."""

    def __init__(self, name: str, events: Sequence[WorldEvent], folder: Path, *, seed: int) -> None:
        self.name = name
        self.events = events
        path = write_ntriples(events, folder / f"events-{name}-{seed}.nt")
        self.scorer = StatementScorer(list(read_events(path)), [need.statements for need in NEEDS])

    @cached_property
    def truth(self) -> Relevance:
        """Which events are relevant to which subscription."""
        return np.array([[event.answers(need.means) for event in self.events] for need in NEEDS])

    def levels(self, measures: StatementMeasures, *, top: int = TOP) -> Levels:
        """Precision at eleven recall levels, for each need."""
        scores = self.scorer.score(measures, top=top)
        nothing = np.full(len(RECALLS), np.nan)
        return np.stack(
            [interpolated(*row) if row[1].any() else nothing for row in zip(scores, self.truth, strict=True)]
        )

    def maximal(self, measures: StatementMeasures) -> float:
        """The mean of the maximal F1 of each subscription."""
        scores = self.scorer.score(measures)
        return float(np.mean([max_f1(*row) for row in zip(scores, self.truth, strict=True) if row[1].any()]))

    def pairs(self, need: Need) -> dict[str, set[tuple[str, str]]]:
        """Properties and values of relevant events, by their meanings."""
        pairs: dict[str, set[tuple[str, str]]] = {}
        relevant = self.truth[NEEDS.index(need)]
        for number in np.flatnonzero(relevant).tolist():
            for statement in self.events[number].statements:
                for meaning in statement.means & set(need.means):
                    pairs.setdefault(meaning, set()).add((statement.property, statement.object))
        return pairs


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Figures 5 to 11 and tables 1 and 4 to 8; GUIDE lists the options of `--set`."""
    experiment.check(settings)
    seeds = settings.numbers("seeds", (1,) if settings.quick else (1, 2, 3))
    share = float(settings.options.get("share", "0.1" if settings.quick else "1"))
    if not 0 < share <= 1:
        raise BuildError(f"share must be above 0 and at most 1, not {share:g}", hint="for example --set share=0.2")
    tops = settings.numbers("tops", TOPS)
    if min(tops) < 1:
        raise BuildError(f"top {min(tops)} leaves no properties", hint="give 1 or more; the paper has 5")
    matchers = make_matchers(settings, _also(settings))
    with tempfile.TemporaryDirectory() as temporary:
        folder = settings.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        worlds = list(make_worlds(settings, seeds, share=share, folder=folder))
    return Figures(worlds, matchers, settings).reports(tops)


def make_worlds(settings: ExperimentSettings, seeds: Iterable[int], *, share: float, folder: Path) -> Iterator[World]:
    """Both sources for every seed."""
    for seed in seeds:
        for name, events in world_events(settings.data or data_folder(), seed=seed, share=share).items():
            settings.say(f"seed {seed}: {len(events):,} events of the {name}")
            yield World(name, events, folder, seed=seed)


def make_matchers(settings: ExperimentSettings, also: Sequence[str]) -> dict[str, StatementMeasures]:
    """The three measures of the paper, and others that are installed."""
    named = {name: path for path in settings.spaces for name in ("wordnet", "wikipedia") if name in str(path)}
    spaces = {name: find_space(named.get(name, name)) for name in ("wordnet", "wikipedia")}
    similar, esa = measure("jiang-conrath"), measure("esa", spaces=[spaces["wikipedia"]])
    matchers = {
        "jiang-conrath": StatementMeasures.of(similar),
        "wikipedia esa": StatementMeasures.of(esa),
        "hybrid": StatementMeasures.hybrid(esa, similar),
    }
    for name in also:
        try:
            matchers[name] = StatementMeasures.of(_other(name, list(spaces.values())))
        except LikewiseError as error:
            settings.say(f"{name} skipped: {error.message}")
    return matchers


def _other(name: str, spaces: Sequence[Space]) -> Measure:
    return measure("esa", spaces=spaces[:1]) if name == "wordnet esa" else measure(name, spaces=spaces)


def _also(settings: ExperimentSettings) -> list[str]:
    names = settings.names("measures", ALSO[:1] if settings.quick else ALSO)
    if unknown := set(names) - set(ALSO):
        raise BuildError(f"approximate compares no measure {min(unknown)!r}", hint=f"known: {'; '.join(ALSO)}")
    return names


class Figures:
    """The paper's figures and tables over all seeds."""

    def __init__(
        self, worlds: Sequence[World], matchers: Mapping[str, StatementMeasures], settings: ExperimentSettings
    ) -> None:
        self.worlds = worlds
        self.matchers = matchers
        self.settings = settings
        self.sources = [source.name for source in SOURCES]
        self._levels: dict[tuple[str, str, int], Levels] = {}

    def reports(self, tops: Sequence[int]) -> list[ExperimentReport]:
        """All reports in the order of the paper; charts are written to the folder of the settings."""
        return [
            self.event_sets(),
            *map(self.subscriptions, self.sources),
            *map(self.maxima, self.sources),
            self.measures(),
            self.histogram(),
            self.curves(),
            self.effect_of_m(tops),
        ]

    def of(self, source: str) -> list[World]:
        """The event sets of one source."""
        return [world for world in self.worlds if world.name == source]

    def levels(self, source: str, name: str, *, top: int = TOP) -> Levels:
        """Precision of every subscription at the recall levels, the mean over seeds."""
        if (source, name, top) not in self._levels:
            self.settings.say(f"{source}: {name}, m = {top}")
            levels = np.stack([world.levels(self.matchers[name], top=top) for world in self.of(source)])
            known = ~np.isnan(levels).all(axis=0)
            mean = np.full(levels.shape[1:], np.nan)
            mean[known] = np.nanmean(levels[:, known], axis=0)
            self._levels[source, name, top] = mean
        return self._levels[source, name, top]

    def average(self, source: str, name: str, *, top: int = TOP) -> NDArray[np.float64]:
        """The curve of a matcher: the mean over the subscriptions with relevant events."""
        levels = self.levels(source, name, top=top)
        curves = levels[~np.isnan(levels).any(axis=1)]
        return np.asarray(curves.mean(axis=0)) if len(curves) else np.zeros(len(RECALLS))

    def event_sets(self) -> ExperimentReport:
        """Tables 1 and 6."""
        rows: list[Row] = []
        for source in self.sources:
            world = self.of(source)[0]
            _, properties = world.scorer.terms.attributes
            _, values = world.scorer.terms.values
            ours: dict[str, Cell] = {
                "events": len(world.events),
                "types": len(world.scorer.values_of("type")),
                "properties": len(properties),
                "values": len(values),
                "triples an event": round(world.scorer.per_event),
            }
            rows.append({"source": source, **ours})
            rows.append({"source": f"  the paper's {_of_paper(source)}", **PAPER_SETS[source]})
        return ExperimentReport("Event sets [002 tables 1 and 6]", rows)

    def subscriptions(self, source: str) -> ExperimentReport:
        """Tables 4 and 7: relevant events and the exact patterns that a subscription replaces."""
        worlds = self.of(source)
        rows: list[Row] = []
        total = 0
        for number, need in enumerate(NEEDS):
            patterns = round(np.mean([exact_patterns(world.pairs(need), need.means) for world in worlds]))
            total += patterns
            answers = round(np.mean([world.truth[number].sum() for world in worlds]))
            relevant, paper = PAPER_NEEDS[source][number]
            row: dict[str, Cell] = {"subscription": f"{number + 1} {need.text}"}
            row |= {"relevant": answers, "exact patterns": patterns}
            row |= {"relevant (paper)": relevant, "exact patterns (paper)": paper}
            rows.append(row)
        notes = [
            f"exact patterns replaced: {total:,} (the paper: about {PAPER_PATTERNS[source]:,})",
            f"means over {len(worlds)} seeds; a pattern takes one pair of property and value for each statement",
        ]
        return ExperimentReport(f"Subscriptions, {source} [002 tables 3 and {_tables(source)[0]}]", rows, notes)

    def maxima(self, source: str) -> ExperimentReport:
        """Tables 5 and 8."""
        rows: list[Row] = []
        for name in MATCHERS:
            f1, recall, precision = best_on_levels(self.average(source, name))
            row: dict[str, Cell] = {"matcher": name, "maximal F1": f1, "recall": recall, "precision": precision}
            columns = ("F1 (paper)", "recall (paper)", "precision (paper)")
            row |= dict(zip(columns, PAPER_F1[source][name], strict=True))
            row["mean maximum"] = float(np.mean([w.maximal(self.matchers[name]) for w in self.of(source)]))
            rows.append(row)
        notes = ["maximal F1 on the averaged curve; mean maximum: the mean of the subscriptions' maximal F1"]
        return ExperimentReport(f"Maximal F1, {source} [002 table {_tables(source)[1]}]", rows, notes)

    def measures(self) -> ExperimentReport:
        """Figure 5: the same measure for properties and values."""
        rows: list[Row] = []
        curves: list[Row] = []
        for name in (name for name in self.matchers if name != "hybrid"):
            average = self.average("encyclopaedia", name)
            rows.append({"measure": name, "maximal F1": best_on_levels(average)[0], **_by_recall(average)})
            curves += _points(name, average)
        hybrid = self.average("encyclopaedia", "hybrid")
        rows.append(
            {"measure": "hybrid, for comparison", "maximal F1": best_on_levels(hybrid)[0], **_by_recall(hybrid)}
        )
        self._draw("figure-5", _curve_chart(curves, "One measure for all, encyclopaedia [002 figure 5]"))
        notes = ["the paper: Jiang-Conrath is best, then Wikipedia ESA; it gives no numbers"]
        return ExperimentReport("One measure for properties and values [002 figure 5]", rows, notes)

    def histogram(self) -> ExperimentReport:
        """Figure 6: the distribution of both measures over [0, 1]."""
        terms, measures = self.of("encyclopaedia")[0].scorer.terms, self.matchers["hybrid"]
        matrices = {
            "properties, jiang-conrath": measures.ranking.matrix(*terms.attributes),
            "values, wikipedia esa": measures.values.matrix(*terms.values),
        }
        edges = np.linspace(0, 1, 11)
        shares = {name: np.histogram(scores, edges)[0] / scores.size for name, scores in matrices.items()}
        rows: list[Row] = [
            {"relatedness": f"{low:.1f} to {low + 0.1:.1f}", **{name: float(s[i]) for name, s in shares.items()}}
            for i, low in enumerate(edges[:-1])
        ]
        tall = [{"relatedness": row["relatedness"], "of": name, "share": row[name]} for row in rows for name in shares]
        title = "How both measures spread [002 figure 6]"
        self._draw("figure-6", bars(tall, name="relatedness", value="share", colour="of", title=title))
        low = {name: float(share[0]) for name, share in shares.items()}
        note = "; ".join(f"{name}: {share:.0%} below 0.1" for name, share in low.items())
        return ExperimentReport(title, rows, [f"{note} (the paper: quite different distributions)"])

    def curves(self) -> ExperimentReport:
        """Figures 7, 8, 9 and 11."""
        wanted = {
            "figure-7": ("encyclopaedia", None, "Average curve, encyclopaedia [002 figure 7]"),
            "figure-8": ("encyclopaedia", 3, "Subscription 3, encyclopaedia [002 figure 8]"),
            "figure-9": ("encyclopaedia", 6, "Subscription 6, encyclopaedia [002 figure 9]"),
            "figure-11": ("database", None, "Average curve, database [002 figure 11]"),
        }
        rows: list[Row] = []
        for file, (source, number, title) in wanted.items():
            points: list[Row] = []
            for name in MATCHERS:
                curve = self.average(source, name) if number is None else self.levels(source, name)[number - 1]
                if not np.isnan(curve).any():
                    rows.append({"figure": file.replace("-", " "), "matcher": name, **_by_recall(curve)})
                    points += _points(name, curve)
            self._draw(file, _curve_chart(points, title))
        notes = [
            "columns are recall levels, cells the interpolated precision",
            "the paper: the hybrid is above both everywhere; subscription 3 (properties) needs Jiang-Conrath, and "
            "subscription 6 (background knowledge) needs Wikipedia ESA",
        ]
        return ExperimentReport("Precision by recall [002 figures 7, 8, 9 and 11]", rows, notes)

    def effect_of_m(self, tops: Sequence[int]) -> ExperimentReport:
        """Figure 10."""
        rows: list[Row] = []
        points: list[Row] = []
        for top in tops:
            average = self.average("encyclopaedia", "hybrid", top=top)
            rows.append({"m": top, "maximal F1": best_on_levels(average)[0], **_by_recall(average)})
            points += _points(f"m = {top}", average)
        self._draw("figure-10", _curve_chart(points, "Effect of m on the hybrid, encyclopaedia [002 figure 10]"))
        note = "the paper: better with a larger m, with diminishing returns; it uses 5"
        return ExperimentReport("Effect of m in Top-m [002 figure 10]", rows, [note])

    def _draw(self, name: str, spec: Spec) -> None:
        self.settings.draw(f"approximate-{name}", spec)


def _of_paper(source: str) -> str:
    return "Wikipedia" if source == "encyclopaedia" else "Freebase"


def _tables(source: str) -> tuple[int, int]:
    return (4, 5) if source == "encyclopaedia" else (7, 8)


def _by_recall(precision: NDArray[np.float64]) -> dict[str, Cell]:
    return {f"{recall:.1f}": round(float(value), 3) for recall, value in zip(RECALLS, precision, strict=True)}


def _points(name: str, precision: NDArray[np.float64]) -> list[Row]:
    return [
        {"matcher": name, "recall": float(recall), "precision": float(value)}
        for recall, value in zip(RECALLS, precision, strict=True)
    ]


def _curve_chart(points: Sequence[Row], title: str) -> Spec:
    return lines(points, x="recall", y="precision", colour="matcher", title=title, domain=(0, 1))


experiment = Experiment(
    "approximate", "002: Jiang-Conrath, ESA and hybrid on RDF events, figures 5 to 11", run, KNOWS, GUIDE
)
