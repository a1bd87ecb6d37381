"""Effect of theme sizes on thematic matching: a heat map as in [000 figure 7], and one of cost as in [000 figure 9]."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from likewise.errors import BuildError
from likewise.evaluation.approaches import Laboratory
from likewise.evaluation.charts import heat_map, save
from likewise.evaluation.experiment import Experiment, Report, Row, Settings
from likewise.evaluation.matching import make_laboratory
from likewise.evaluation.ranking import quality
from likewise.evaluation.scoring import Scorer
from likewise.evaluation.thematic_dataset import Recipe, ThematicDataset, build_thematic

SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30)
QUICK_SIZES = (1, 3, 10, 30)
SAMPLES = 5
GOOD_EVENT_TAGS = range(2, 8)
GOOD_SUBSCRIPTION_TAGS = range(2, 16)
"""The sizes that the paper recommends [000 sec 5.3.3]: few tags for events, more for subscriptions."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of sizes: mean and spread of F1 over its samples, and the time to relate all terms."""

    event_tags: int
    subscription_tags: int
    f1: float
    spread: float
    curve: float
    seconds: float


def run(settings: Settings) -> list[Report]:
    """The grid of sizes; `--set` takes sizes (1,3,10), samples and seed."""
    options = dict(settings.options)
    usual = QUICK_SIZES if settings.quick else SIZES
    sizes = [int(size) for size in options.pop("sizes", ",".join(map(str, usual))).split(",")]
    samples = int(options.pop("samples", 1 if settings.quick else SAMPLES))
    seed = int(options.pop("seed", 1))
    if options:
        raise BuildError(f"themes knows no option {min(options)!r}", hint="sizes, samples, seed")
    recipe = Recipe(seed=seed, events=1500) if settings.quick else Recipe(seed=seed)
    data, laboratory = build_thematic(recipe, data=settings.data), make_laboratory(settings)
    baselines = {name: _baseline(data, laboratory, name) for name in ("euclidean", "wikipedia")}
    cells = list(grid(data, laboratory, sizes=sizes, samples=samples, say=settings.say))
    _draw(cells, baselines["euclidean"], settings)
    return [_table(cells, baselines), Report("Cells", [_row(cell) for cell in cells])]


def grid(
    data: ThematicDataset,
    laboratory: Laboratory,
    *,
    sizes: Sequence[int],
    samples: int,
    say: Callable[[str], None],
) -> Iterator[Cell]:
    """F1 of the thematic measure for every combination of sizes; one theme contains the other."""
    scorer = Scorer(data.events, data.profiles)
    measure = laboratory.measure("thematic")
    for event_tags in sizes:
        for subscription_tags in sizes:
            found, spent = [], []
            for sample in range(samples):
                theirs, mine = data.themes(event_tags, subscription_tags, sample=sample)
                begin = time.perf_counter()
                attributes, values = (
                    measure.matrix(side.wanted, side.said, subscription_theme=mine, event_theme=theirs)
                    for side in (scorer.attributes, scorer.values)
                )
                spent.append(time.perf_counter() - begin)
                made = quality(scorer.score(attributes, values), data.truth)
                found.append((made.mean_max_f1, made.curve_max_f1))
            f1, curve = np.array(found).T
            say(f"{event_tags} event tags, {subscription_tags} subscription tags: {f1.mean():.3f}")
            yield Cell(
                event_tags, subscription_tags, float(f1.mean()), float(f1.std()), float(curve.mean()), min(spent)
            )


def regions(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The parts of the map that the paper speaks of."""
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


def _table(cells: Sequence[Cell], baselines: dict[str, float]) -> Report:
    rows: list[Row] = []
    for name, part in regions(cells).items():
        if part:
            f1 = np.array([cell.f1 for cell in part])
            rows.append(
                {
                    "region": name,
                    "cells": len(part),
                    "mean F1": float(f1.mean()),
                    "lowest": float(f1.min()),
                    "highest": float(f1.max()),
                    "above the Euclidean baseline": float((f1 > baselines["euclidean"]).mean()),
                    "above cosine ESA": float((f1 > baselines["wikipedia"]).mean()),
                    "target": 0.65 if name.startswith("good") else None,
                }
            )
    notes = [f"without themes: Euclidean {baselines['euclidean']:.3f}, cosine {baselines['wikipedia']:.3f}"]
    return Report("Thematic matching by region of the theme sizes", rows, notes)


def _row(cell: Cell) -> Row:
    return {
        "event tags": cell.event_tags,
        "subscription tags": cell.subscription_tags,
        "F1": cell.f1,
        "±": cell.spread,
        "curve": cell.curve,
        "seconds": cell.seconds,
    }


def _baseline(data: ThematicDataset, laboratory: Laboratory, name: str) -> float:
    scorer = Scorer(data.events, data.profiles)
    measure = laboratory.measure(name)
    sides = [measure.matrix(side.wanted, side.said) for side in (scorer.attributes, scorer.values)]
    return quality(scorer.score(sides[0], sides[1]), data.truth).mean_max_f1


def _draw(cells: Sequence[Cell], baseline: float, settings: Settings) -> None:
    if settings.out is None:
        return
    rows = [_row(cell) for cell in cells]
    sizes = {"x": "event tags", "y": "subscription tags"}
    middle = float(np.median([cell.seconds for cell in cells]))
    charts = {
        "themes-f1": heat_map(rows, **sizes, value="F1", title="Mean maximal F1 by theme sizes", middle=baseline),
        "themes-cost": heat_map(
            rows, **sizes, value="seconds", title="Seconds to relate all terms once, by theme sizes", middle=middle
        ),
    }
    for name, spec in charts.items():
        for ending in ("html", "png", "svg"):
            save(spec, settings.out / f"{name}.{ending}")


experiment = Experiment("themes", "F1 and cost of thematic matching over sizes of both themes", run)
