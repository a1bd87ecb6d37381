"""Paper 004's experiment: times, pairs that clusters leave out, and quality by degree of approximation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.tiny import laboratory, tiny

from likewise.charts import Spec
from likewise.errors import BuildError
from likewise.evaluation import experiment
from likewise.evaluation.experiment import ExperimentSettings
from likewise.evaluation.experiments import clusters
from likewise.evaluation.experiments.clusters import TimedWorld
from likewise.events import Event
from likewise.matching import Taxonomy, Topic
from likewise.testing import TableMeasure

KNOWN = TableMeasure(
    {
        ("parking", "car park"): 0.8,
        ("traffic traffic", "parking"): 0.9,
        ("traffic traffic", "car park"): 0.9,
        ("energy energy", "kettle"): 0.9,
        ("parking", "kettle"): 0.1,
    }
)


def world() -> TimedWorld:
    events = [Event.of({"type": "car park"}), Event.of({"type": "kettle"})]
    taxonomy = Taxonomy((Topic("traffic"), Topic("energy")))
    return TimedWorld(events, [(("type", "parking"),)], lambda: KNOWN, taxonomy)


def test_subscriptions_have_the_predicates_asked_for() -> None:
    seeds = [tuple((f"attribute {number}", f"value {number}") for number in range(10))]
    made = TimedWorld([], seeds, lambda: KNOWN).profiles(4, count=6)
    assert len(set(made)) == 6
    assert {len(profile.predicates) for profile in made} == {4}
    assert all(p.attribute_approximate and p.value_approximate for profile in made for p in profile.predicates)
    assert made == TimedWorld([], seeds, lambda: KNOWN).profiles(4, count=6)


def test_clusters_compare_only_what_shares_a_topic() -> None:
    """One of two events is about energy, but the subscription is not."""
    made = world()
    costs = {name: made.cost(name, made.profiles(1), k=2, turns=1) for name in ("clustered", "approximate")}
    assert costs["clustered"].compared == 0.5
    assert costs["approximate"].compared == 1.0


def test_figures_4_and_5_have_a_row_for_each_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: dict[str, Spec] = {}
    monkeypatch.setattr(experiment, "save", lambda spec, path: drawn.setdefault(path.stem, spec))
    settings = ExperimentSettings(out=tmp_path)
    by_k = clusters.by_k(world(), [1, 3], settings)
    by_predicates = clusters.by_predicates(world(), [1], settings)
    assert [row["k"] for row in by_k.rows] == [1, 3]
    assert [row["predicates"] for row in by_predicates.rows] == [1]
    assert {row["pairs compared"] for row in by_k.rows} == {0.5}
    assert {name: len(spec["data"]["values"]) for name, spec in drawn.items()} == {
        "clusters-figure-4": 2 * 2,
        "clusters-figure-5": 2 * 1,
    }


def test_exact_subscriptions_are_answered_exactly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(experiment, "save", lambda _, path: drawn.append(path.name))
    data = tiny()
    report = clusters.by_degree([data], laboratory(data), [0.0, 1.0], ExperimentSettings(out=tmp_path))
    exact, approximate = report.rows
    assert exact["all pairs: precision"] == exact["all pairs: recall"] == exact["all pairs: F1"] == 1.0
    assert approximate["all pairs: F1"] < 1.0
    assert (exact["precision (paper)"], approximate["precision (paper)"]) == (None, 0.91)
    assert {name for name in drawn if name.endswith(".svg")} == {f"clusters-figure-6{part}.svg" for part in "abc"}


@pytest.mark.parametrize("options", [{"ks": "0"}, {"degrees": "2"}, {"predicates": "0,1"}, {"colour": "blue"}], ids=str)
def test_wrong_options_are_refused_before_the_work(options: dict[str, str]) -> None:
    with pytest.raises(BuildError):
        clusters.run(ExperimentSettings(options=options))
