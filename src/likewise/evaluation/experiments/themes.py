"""Effect of themes on matching: heat maps as [000 figures 7 to 10], the effect of each change to 000, and controls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likewise.charts import Spec
from likewise.errors import BuildError
from likewise.evaluation.charts import heat_map
from likewise.evaluation.datasets.thematic import DatasetRecipe, ThematicDataset, build_thematic
from likewise.evaluation.experiment import Experiment, ExperimentReport, ExperimentSettings, Row
from likewise.evaluation.experiments.matching import make_laboratory
from likewise.evaluation.quality.approaches import Laboratory
from likewise.evaluation.quality.ranking import max_f1
from likewise.evaluation.quality.scoring import Tabled, TermsOfData, batches_of, scores_of
from likewise.matching import Matcher
from likewise.semantics import Measure, measure

SIZES = (1, 2, 3, 5, 7, 10, 15, 30)
QUICK_SIZES = (1, 3, 10)
SAMPLES = 2
KNOWS = ("sizes", "samples", "seeds", "mapped")
SEEDS = (4, 5, 6)
"""The seeds of the map; the measure was chosen on seeds 1 to 3."""
GOOD_EVENT_TAGS = range(2, 8)
GOOD_SUBSCRIPTION_TAGS = range(2, 16)
"""The sizes that the paper recommends [000 sec 5.3.3]: few tags for events, more for subscriptions."""

STEP = (3, 7)
"""The theme sizes of events and of subscriptions at which the changes to 000 are compared."""

MEASURES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "thematic": ("thematic", {}),
    "thematic-euclidean": ("thematic-euclidean", {}),
    "thematic, all postings": ("thematic", {"pruning": None}),
    "thematic-euclidean, length 1": ("thematic-euclidean", {"normalise": True}),
}
MAPPED = ("thematic", "thematic-euclidean")
"""The measures with a map: ours, and the formula as printed."""

FIELDS = (
    ("fitting", ("land transport", "protection of nature")),
    ("fitting", ("transport", "energy", "environment")),
    ("fitting", ("city", "sensors", "buildings", "vehicles")),
    ("foreign", ("opera", "poetry", "cinema")),
    ("foreign", ("football", "cricket", "tennis")),
    ("foreign", ("insects", "botany")),
    ("unknown words", ("xqzvk", "blorptangle")),
)
"""Themes given to all events and subscriptions, to see whether the choice matters; the first is the paper's."""


@dataclass(frozen=True, slots=True)
class ThemeCell:
    """One combination of sizes: F1 and its gains, the time to relate all terms, and events a second.

    A spread is the sample error of the paper: the standard deviation between samples of the same seed.
    """

    measure: str
    event_tags: int
    subscription_tags: int
    f1: float
    spread: float
    gain: float
    """The gain over the same measure without themes, on the same seeds."""
    over_esa: float
    """The gain over `esa`, which uses no themes, on the same seeds."""
    over_best: float
    """The gain over the best measure without themes, of all formulas and prunings tried, on the same seeds."""
    seconds: float
    rate: float = 0.0
    """Events per processor second, matched with all subscriptions, with all terms compared anew."""
    rate_spread: float = 0.0
    faster: float = 0.0
    """The rate, divided by that of `esa` without themes on the same seeds."""


class Found(NamedTuple):
    """One sub-experiment, with the figures of a cell."""

    f1: float
    gain: float
    over_esa: float
    over_best: float
    seconds: float
    rate: float
    faster: float


class ThemedRun(NamedTuple):
    """One run over all events: F1, processor seconds to compare all terms, and events per second."""

    f1: float
    seconds: float
    rate: float


class Bench:
    """The F1 of measures on one data set, under any themes."""

    def __init__(self, data: ThematicDataset, measures: Mapping[str, Measure], esa: Measure) -> None:
        self.data = data
        self.measures = measures
        self._terms = TermsOfData.of(data.events, data.profiles)
        encoder = Matcher()
        self._vocabulary, self._encoded = encoder.vocabulary, list(batches_of(encoder, data.events))
        self.plain = {name: self.try_out(measure).f1 for name, measure in measures.items()}
        """F1 of each measure without themes."""
        # The first run loads the space, so that rates are comparable.
        self.esa, _, _ = self.try_out(esa)
        self.esa_rate = self.try_out(esa).rate
        self.best = max(self.esa, *self.plain.values())

    def try_out(self, measure: Measure, *, subscribed: Sequence[str] = (), published: Sequence[str] = ()) -> ThemedRun:
        """Mean maximal F1 with these themes of subscriptions and of events, and the times."""
        begin = time.process_time()
        table = Tabled(measure, self._terms, subscription_theme=subscribed, event_theme=published)
        related = time.process_time()
        matcher = Matcher(table, approach="approximate", vocabulary=self._vocabulary)
        scores = scores_of(matcher, self._encoded, self.data.subscriptions, count=len(self.data.events))
        rate = len(self.data.events) / max(1e-9, time.process_time() - begin)
        f1 = float(np.mean([max_f1(*row) for row in zip(scores, self.data.truth, strict=True)]))
        return ThemedRun(f1, related - begin, rate)

    def sample(self, name: str, sizes: tuple[int, int], samples: int) -> list[Found]:
        """Runs with random themes as in the paper, where one contains the other [000 sec 5.2.4]."""
        runs = []
        for sample in range(samples):
            published, subscribed = self.data.themes(*sizes, sample=sample)
            f1, spent, rate = self.try_out(self.measures[name], subscribed=subscribed, published=published)
            gains = (f1 - self.plain[name], f1 - self.esa, f1 - self.best)
            runs.append(Found(f1, *gains, spent, rate, rate / self.esa_rate))
        return runs


def run(settings: ExperimentSettings) -> list[ExperimentReport]:
    """Maps, steps and controls; `--set` takes sizes (1,3,10), samples, seeds (4,5,6) and mapped (names by ;)."""
    experiment.check(settings)
    sizes = settings.numbers("sizes", QUICK_SIZES if settings.quick else SIZES)
    samples = int(settings.options.get("samples", SAMPLES))
    seeds = settings.numbers("seeds", SEEDS[:1] if settings.quick else SEEDS)
    mapped = settings.names("mapped", MAPPED)
    if unknown := set(mapped) - set(MEASURES):
        raise BuildError(f"themes maps no measure {min(unknown)!r}", hint=f"known: {'; '.join(MEASURES)}")
    benches = list(_benches(settings, seeds))
    steps, controls = _steps(benches, samples), _controls(benches)
    cells = list(grid(benches, mapped, sizes=sizes, samples=samples, say=settings.say))
    _draw(cells, settings)
    return [_table(cells), _papers(cells, benches), steps, controls, ExperimentReport("Cells", list(map(_row, cells)))]


def _benches(settings: ExperimentSettings, seeds: Sequence[int]) -> Iterator[Bench]:
    laboratory = make_laboratory(settings)
    measures = make_measures(laboratory)
    for seed in seeds:
        recipe = DatasetRecipe(seed=seed, events=1500) if settings.quick else DatasetRecipe(seed=seed)
        bench = Bench(build_thematic(recipe, data=settings.data), measures, laboratory.measure("wikipedia"))
        settings.say(f"seed {seed} without themes: esa {bench.esa:.3f}, thematic {bench.plain['thematic']:.3f}")
        yield bench


def make_measures(laboratory: Laboratory) -> dict[str, Measure]:
    """All measures compared, over the Wikipedia space."""
    space = laboratory.spaces["wikipedia"]
    return {name: measure(base, spaces=[space], **options) for name, (base, options) in MEASURES.items()}


def grid(
    benches: Sequence[Bench],
    mapped: Sequence[str],
    *,
    sizes: Sequence[int],
    samples: int,
    say: Callable[[str], None],
) -> Iterator[ThemeCell]:
    """A cell for every measure and combination of sizes, over all data sets and samples."""
    for name in mapped:
        for event_tags in sizes:
            for subscription_tags in sizes:
                cell_sizes = event_tags, subscription_tags
                runs = np.array([bench.sample(name, cell_sizes, samples) for bench in benches])
                mean = Found(*runs.mean(axis=(0, 1)).tolist())
                error = Found(*np.sqrt(runs.var(axis=1).mean(axis=0)).tolist())
                say(f"{name}, {event_tags} and {subscription_tags} tags: {mean.f1:.3f} ({mean.gain:+.3f})")
                yield ThemeCell(
                    name,
                    *cell_sizes,
                    mean.f1,
                    error.f1,
                    gain=mean.gain,
                    over_esa=mean.over_esa,
                    over_best=mean.over_best,
                    seconds=float(runs[:, :, Found._fields.index("seconds")].min()),
                    rate=mean.rate,
                    rate_spread=error.rate,
                    faster=mean.faster,
                )


def regions(cells: Sequence[ThemeCell]) -> dict[str, list[ThemeCell]]:
    """The parts of the map that the paper discusses."""
    return {
        "all": list(cells),
        "good region (2-7 event tags, 2-15 and more for subscriptions)": [
            c
            for c in cells
            if c.event_tags in GOOD_EVENT_TAGS
            and c.subscription_tags in GOOD_SUBSCRIPTION_TAGS
            and c.subscription_tags > c.event_tags
        ],
        "more subscription tags": [c for c in cells if c.subscription_tags > c.event_tags],
        "diagonal": [c for c in cells if c.subscription_tags == c.event_tags],
        "more event tags": [c for c in cells if c.subscription_tags < c.event_tags],
    }


def _table(cells: Sequence[ThemeCell]) -> ExperimentReport:
    rows: list[Row] = []
    for name in dict.fromkeys(cell.measure for cell in cells):
        for region, part in regions([cell for cell in cells if cell.measure == name]).items():
            if part:
                rows.append({"measure": name, "region": region, **_summary(part)})
    notes = [
        "gain: over the same measure without themes; over esa: over the cosine that knows no themes",
        "over the best: over whichever of all these is best without themes, a measure that keeps all postings too",
        "above: the share of the cells that are better than that, on the mean of all seeds and samples",
    ]
    return ExperimentReport("Thematic matching by region of the theme sizes", rows, notes)


PAPER: Mapping[str, str] = {
    "mean F1": "0.71 where it is above 0.62, its esa",
    "cells above esa": "more than 70 %",
    "sample error of F1": "0.07",
    "events a second": "320, 202 to 838",
    "esa, events a second": "202",
    "cells faster than esa": "more than 92 %",
    "sample error of events a second": "about 10",
}
"""Values of figures 7 to 10 from the text of 000 section 5.3."""


def _papers(cells: Sequence[ThemeCell], benches: Sequence[Bench]) -> ExperimentReport:
    """Figures 7 to 10 as one number each, compared with the paper's."""
    rows: list[Row] = []
    for name in dict.fromkeys(cell.measure for cell in cells):
        part = [cell for cell in cells if cell.measure == name]
        rates = [cell.rate for cell in part]
        ours: dict[str, str | float] = {
            "mean F1": float(np.mean([cell.f1 for cell in part])),
            "cells above esa": f"{np.mean([cell.over_esa > 0 for cell in part]):.0%}",
            "sample error of F1": float(np.mean([cell.spread for cell in part])),
            "events a second": f"{np.mean(rates):,.0f}, {min(rates):,.0f} to {max(rates):,.0f}",
            "esa, events a second": f"{np.mean([bench.esa_rate for bench in benches]):,.0f}",
            "cells faster than esa": f"{np.mean([cell.faster > 1 for cell in part]):.0%}",
            "sample error of events a second": f"{np.mean([cell.rate_spread for cell in part]):,.0f}",
        }
        rows += [{"measure": name, "what": what, "ours": ours[what], "paper": PAPER[what]} for what in ours]
    notes = ["sample error: the standard deviation between themes of the same sizes on the same data set"]
    return ExperimentReport("Compared with the paper [000 figures 7 to 10]", rows, notes)


def _summary(part: Sequence[ThemeCell]) -> Row:
    f1 = np.array([cell.f1 for cell in part])
    return {
        "cells": len(part),
        "mean F1": float(f1.mean()),
        "lowest": float(f1.min()),
        "highest": float(f1.max()),
        "gain": float(np.mean([cell.gain for cell in part])),
        "above itself without themes": float(np.mean([cell.gain > 0 for cell in part])),
        "over esa": float(np.mean([cell.over_esa for cell in part])),
        "above esa": float(np.mean([cell.over_esa > 0 for cell in part])),
        "over the best": float(np.mean([cell.over_best for cell in part])),
        "above the best": float(np.mean([cell.over_best > 0 for cell in part])),
    }


def _steps(benches: Sequence[Bench], samples: int) -> ExperimentReport:
    rows: list[Row] = [{"measure": "esa", "without themes": float(np.mean([bench.esa for bench in benches]))}]
    for name in MEASURES:
        runs = np.array([row for bench in benches for row in bench.sample(name, STEP, samples)])
        plain = float(np.mean([bench.plain[name] for bench in benches]))
        gain = float(runs[:, 1].mean())
        rows.append({"measure": name, "without themes": plain, "with themes": float(runs[:, 0].mean()), "gain": gain})
    return ExperimentReport(f"With {STEP[0]} event tags and {STEP[1]} subscription tags", rows)


def _controls(benches: Sequence[Bench]) -> ExperimentReport:
    rows: list[Row] = []
    for kind, theme in FIELDS:
        row: dict[str, str | float] = {"theme": ", ".join(theme), "field": kind}
        for name in MAPPED:
            gains = [
                bench.try_out(bench.measures[name], subscribed=theme, published=theme).f1 - bench.plain[name]
                for bench in benches
            ]
            row[f"gain of {name}"] = float(np.mean(gains))
        rows.append(row)
    return ExperimentReport("Which tags, the same for all events and subscriptions", rows)


def _row(cell: ThemeCell) -> Row:
    return {
        "measure": cell.measure,
        "event tags": cell.event_tags,
        "subscription tags": cell.subscription_tags,
        "F1": cell.f1,
        "±": cell.spread,
        "gain": cell.gain,
        "over esa": cell.over_esa,
        "over the best": cell.over_best,
        "seconds": cell.seconds,
        "events/s": cell.rate,
        "events/s ±": cell.rate_spread,
        "times esa": cell.faster,
    }


def _draw(cells: Sequence[ThemeCell], settings: ExperimentSettings) -> None:
    if settings.out is None:
        return
    for name in dict.fromkeys(cell.measure for cell in cells):
        own = [cell for cell in cells if cell.measure == name]
        plain = float(np.mean([cell.f1 - cell.gain for cell in own]))
        rows = [_row(cell) for cell in own]
        charts = {
            "f1": _map(rows, "F1", f"Mean maximal F1 of {name} by theme sizes ({plain:.2f} without themes)", plain),
            "f1-error": _map(rows, "±", f"Sample error of F1, {name}"),
            "rate": _map(rows, "events/s", f"Events a second, {name}", _esa_rate(own), form=",.0f"),
            "rate-error": _map(
                rows, "events/s ±", f"Sample error of events a second, {name} [000 figure 10]", form=",.0f"
            ),
            "cost": _map(rows, "seconds", f"Seconds to relate all terms, {name}"),
        }
        for content, spec in charts.items():
            settings.draw(f"{_file(name)}-{content}", spec)


def _map(rows: Sequence[Row], value: str, title: str, middle: float | None = None, *, form: str = ".2f") -> Spec:
    """A heat map around a baseline, with as much room below it as above, or else around the median."""
    values = [float(row[value] or 0) for row in rows]
    centre = float(np.median(values)) if middle is None else middle
    spec = heat_map(rows, x="event tags", y="subscription tags", value=value, title=title, middle=centre)
    spec["layer"][1]["encoding"]["text"]["format"] = form
    if middle is not None:
        reach = max(abs(value - middle) for value in values) or 0.01
        spec["layer"][0]["encoding"]["color"]["scale"]["domain"] = [middle - reach, middle + reach]
    return spec


def _esa_rate(cells: Sequence[ThemeCell]) -> float | None:
    rates = [cell.rate / cell.faster for cell in cells if cell.faster]
    return float(np.mean(rates)) if rates else None


def _file(name: str) -> str:
    """`themes` for the measure of that approach, so that its chart keeps its name; for others their own."""
    return "themes" if name == "thematic" else f"themes-{name.replace(', ', '-').replace(' ', '-')}"


GUIDE = """\
Thematic matching over the numbers of event tags and subscription tags, drawn
as in 000 section 5.2.4. Maps of F1, events a second, and the sample error of
both (000 figures 7 to 10), compared with the numbers in the paper's text; the
effect of each change to the paper's formula; and tags of unrelated fields.

--set sizes=1,3,10     numbers of tags (default 1,2,3,5,7,10,15,30)
--set samples=5        themes for each pair of sizes (default 2; paper: 5)
--set seeds=4,5        data sets (default 4,5,6)
--set "mapped=thematic"
                       measures to map (default thematic; thematic-euclidean)

Needs the space wikipedia, and EuroVoc and the appliances in the data folder.

  likewise evaluate themes --quick
  likewise evaluate themes --out charts"""

experiment = Experiment("themes", "000: F1, events a second and sample errors over theme sizes", run, KNOWS, GUIDE)
