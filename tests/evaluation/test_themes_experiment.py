"""The map of theme sizes: its cells, comparisons and charts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.tiny import knowing, tiny

from likewise.charts import Spec
from likewise.errors import BuildError, LikewiseError
from likewise.evaluation import experiment
from likewise.evaluation.datasets.thematic import DatasetRecipe, build_thematic
from likewise.evaluation.experiment import ExperimentSettings
from likewise.evaluation.experiments import themes
from likewise.evaluation.experiments.themes import Bench, ThemeCell
from likewise.evaluation.quality.approaches import Laboratory
from likewise.semantics import Measure
from likewise.testing import TableMeasure


class Clearer(TableMeasure):
    """Relates nothing without a theme on both sides, and everything with them."""

    def __init__(self, known: TableMeasure) -> None:
        super().__init__({})
        self._known = known

    def matrix(self, mine, theirs, *, subscription_theme=(), event_theme=()):  # type: ignore[no-untyped-def]
        source = self._known if subscription_theme and event_theme else super()
        return source.matrix(mine, theirs)


def cell(event_tags: int, subscription_tags: int, *, gain: float = 0.0, name: str = "thematic") -> ThemeCell:
    gains = (gain, gain - 0.1, gain - 0.2)
    return ThemeCell(name, event_tags, subscription_tags, 0.5 + gain, 0.0, *gains, 1.0, rate=200.0, faster=2.0)


@pytest.fixture(scope="module")
def bench() -> Bench:
    data = tiny()
    known = knowing(data)
    measures: dict[str, Measure] = dict.fromkeys(themes.MEASURES, Clearer(known))
    return Bench(data, measures, known)


def test_regions_split_the_map() -> None:
    cells = [cell(e, s) for e in (1, 3, 10) for s in (1, 3, 10)]
    parts = themes.regions(cells)
    sizes = {name: len(part) for name, part in parts.items()}
    assert sizes["more subscription tags"] + sizes["diagonal"] + sizes["more event tags"] == sizes["all"] == 9
    [good] = [part for name, part in parts.items() if name.startswith("good")]
    assert [(c.event_tags, c.subscription_tags) for c in good] == [(3, 10)]


def test_the_grid_covers_every_combination_of_every_measure(bench: Bench) -> None:
    cells = list(themes.grid([bench], ["thematic", "thematic-euclidean"], sizes=(1, 5), samples=2, say=lambda _: None))
    assert [(c.event_tags, c.subscription_tags) for c in cells] == 2 * [(1, 1), (1, 5), (5, 1), (5, 5)]
    assert [c.measure for c in cells] == 4 * ["thematic"] + 4 * ["thematic-euclidean"]


def test_gains_are_over_the_same_measure_without_themes_and_over_esa(bench: Bench) -> None:
    """This measure relates nothing without themes; with them it equals the other one, which replaces ESA here."""
    [single_cell] = themes.grid([bench], ["thematic"], sizes=(3,), samples=2, say=lambda _: None)
    assert single_cell.f1 == pytest.approx(bench.esa)
    assert single_cell.gain > 0.1
    assert single_cell.gain == pytest.approx(bench.esa - bench.plain["thematic"])
    assert single_cell.over_esa == single_cell.over_best == pytest.approx(0, abs=1e-9)
    assert single_cell.spread == pytest.approx(0, abs=1e-9)


def test_the_table_counts_the_cells_above(bench: Bench) -> None:
    rows = themes._table([cell(1, 2, gain=0.19), cell(1, 3, gain=0.05), cell(2, 2, gain=-0.1)]).rows
    more = next(row for row in rows if row["region"] == "more subscription tags")
    assert (more["above itself without themes"], more["above esa"], more["above the best"]) == (1.0, 0.5, 0.0)
    assert more["mean F1"] == pytest.approx(np.mean([0.69, 0.55]))


def test_controls_compare_fitting_foreign_and_unknown_tags(bench: Bench) -> None:
    rows = themes._controls([bench]).rows
    assert {row["field"] for row in rows} == {"fitting", "foreign", "unknown words"}
    assert all(row["gain of thematic"] > 0 for row in rows)


def test_the_maps_are_drawn_by_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, Spec] = {}
    monkeypatch.setattr(experiment, "save", lambda spec, path: drawn.setdefault(path.stem, spec))
    themes._draw([cell(1, 2), cell(1, 2, name="thematic-euclidean")], ExperimentSettings(out=tmp_path))
    maps = ("f1", "f1-error", "rate", "rate-error", "cost")
    assert list(drawn) == [
        f"{name}-{map_name}" for name in ("themes", "themes-thematic-euclidean") for map_name in maps
    ]
    colours = {name: spec["layer"][0]["encoding"]["color"]["scale"] for name, spec in drawn.items()}
    assert colours["themes-rate"]["domainMid"] == 100.0


def test_sample_errors_are_between_samples_of_one_data_set(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The difference between data sets is no sample error: F1 0.4, 0.6 and 0.9, 0.9 give sqrt((0.01 + 0) / 2)."""
    rows = iter([[0.4, 0.6], [0.9, 0.9]])

    def sample(*_: object) -> list[themes.Found]:
        return [themes.Found(f1, 0, 0, 0, seconds=1, rate=1000 * f1, faster=f1) for f1 in next(rows)]

    monkeypatch.setattr(bench, "sample", sample)
    [single_cell] = themes.grid([bench, bench], ["thematic"], sizes=(3,), samples=2, say=lambda _: None)
    assert single_cell.f1 == pytest.approx(0.7)
    assert single_cell.spread == pytest.approx(0.005**0.5)
    assert (single_cell.rate, single_cell.rate_spread) == pytest.approx((700, 1000 * 0.005**0.5))


def test_rates_are_set_beside_the_paper(bench: Bench) -> None:
    rows = {row["what"]: row for row in themes._papers([cell(1, 2, gain=0.2), cell(2, 2)], [bench]).rows}
    assert rows["events a second"]["ours"] == "200, 200 to 200"
    assert rows["cells above esa"]["ours"] == "50%"
    assert rows["cells faster than esa"]["ours"] == "100%"
    assert rows["esa, events a second"]["paper"] == "202"


@pytest.mark.parametrize(("options", "what"), [({"colour": "blue"}, "colour"), ({"mapped": "telepathy"}, "telepathy")])
def test_unknown_options_and_measures_are_refused(options: dict[str, str], what: str) -> None:
    with pytest.raises(BuildError, match=what):
        themes.run(ExperimentSettings(options=options))


@pytest.fixture(scope="module")
def real() -> Bench:
    """One seed and a fifth of the events; docs/quality.md has the whole run."""
    try:
        laboratory = Laboratory()
        chosen = themes.make_measures(laboratory)
        data = build_thematic(DatasetRecipe(seed=4, events=3000))
    except LikewiseError as error:
        pytest.skip(error.message)
    return Bench(data, {name: chosen[name] for name in themes.MAPPED}, laboratory.measure("wikipedia"))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 5), (3, 7), (5, 15)])
def test_themes_gain_in_the_good_region(real: Bench, sizes: tuple[int, int]) -> None:
    """Issue 4: at least 0.65, and better than the measure without themes and than plain ESA."""
    found = np.mean(real.sample("thematic", sizes, 3), axis=0)
    assert found[0] >= 0.65
    assert found[1] > 0.01
    assert found[2] > 0.02


@pytest.mark.slow
def test_tags_of_the_field_gain_more_than_foreign_ones(real: Bench) -> None:
    rows = themes._controls([real]).rows
    gains = {
        kind: np.mean([row["gain of thematic"] for row in rows if row["field"] == kind])
        for kind in ("fitting", "foreign")
    }
    assert gains["fitting"] > gains["foreign"]
    [unknown] = [row for row in rows if row["field"] == "unknown words"]
    assert unknown["gain of thematic"] == pytest.approx(0, abs=1e-9)
