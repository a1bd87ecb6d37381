"""The matching experiment on a tiny data set: each approach does what its name says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.tiny import laboratory, tiny

from likewise.errors import BuildError, MissingError
from likewise.evaluation.experiment import ExperimentSettings, find_experiment
from likewise.evaluation.experiments import matching
from likewise.evaluation.experiments.matching import Usual
from likewise.evaluation.quality.approaches import APPROACHES, Laboratory, Trial, choose
from likewise.evaluation.quality.ranking import quality
from likewise.matching import Approach, default_threshold

needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("LIKEWISE_DATA", "no-data")) / "eurovoc").is_dir(),
    reason="EuroVoc is not there: set LIKEWISE_DATA to the data folder",
)


@pytest.fixture(scope="module")
def trial() -> Trial:
    data = tiny()
    return Trial(data, laboratory(data))


def f1(trial: Trial, name: str, *, alone: bool = False) -> float:
    approach = next(approach for approach in APPROACHES if approach.name == name)
    return quality(trial.scores(approach, alone=alone), trial.data.truth).mean_max_f1


def test_the_thesaurus_of_the_expansion_knows_it_all(trial: Trial) -> None:
    assert f1(trial, "concept (same thesaurus)") == pytest.approx(1.0)


def test_contrast_tells_synonyms_from_siblings_when_others_compete(trial: Trial) -> None:
    assert f1(trial, "exact") < f1(trial, "approximate (Wikipedia)") < f1(trial, "contrast (Wikipedia)")


def test_contrast_alone_has_nothing_to_compare_with(trial: Trial) -> None:
    assert f1(trial, "contrast (Wikipedia)", alone=True) < f1(trial, "contrast (Wikipedia)")


def test_ranks_need_no_competitors(trial: Trial) -> None:
    assert f1(trial, "rank (both)") >= f1(trial, "approximate (both)")
    assert f1(trial, "rank (both)", alone=True) == f1(trial, "rank (both)")


@pytest.mark.parametrize("approach", APPROACHES, ids=lambda approach: approach.name)
def test_every_score_is_a_number_from_0_to_1(trial: Trial, approach: matching.Approach) -> None:
    scores = trial.scores(approach)
    assert scores.shape == trial.data.truth.shape
    assert np.isfinite(scores).all()
    assert 0 <= scores.min() <= scores.max() <= 1 + 1e-6


def test_clusters_only_leave_pairs_out(trial: Trial) -> None:
    clustered, plain = (
        next(approach for approach in APPROACHES if approach.name == name)
        for name in ("clustered (004)", "approximate (Wikipedia)")
    )
    left, all_of_them = trial.scores(clustered), trial.scores(plain)
    assert ((left == all_of_them) | (left == 0)).all()
    assert (left > 0).mean() <= trial.compared(clustered) <= 1
    assert trial.compared(plain) == 1.0


def test_the_hybrid_follows_the_rank_within_the_event(trial: Trial) -> None:
    """All properties of an event share one rank in this measure, so fP = min(1, 5 * ESA) for each."""
    assert 0 < f1(trial, "hybrid (002)") <= 1


def test_an_approach_that_cannot_run_says_why() -> None:
    bare = Laboratory(wordnet="no such space", wikipedia="no such space")
    why = bare.missing(next(approach for approach in APPROACHES if approach.measure == "wordnet"))
    assert why is not None
    assert "no such space" in why


def test_unknown_approaches_are_refused() -> None:
    with pytest.raises(MissingError, match="no approach"):
        choose(["telepathy"])


def test_unknown_options_are_refused() -> None:
    for name in ("matching", "themes"):
        with pytest.raises(BuildError, match="colour"):
            find_experiment(name).run(ExperimentSettings(options={"colour": "blue"}))


def test_the_worst_subscriptions_come_with_their_extremes(trial: Trial) -> None:
    approach = next(approach for approach in APPROACHES if approach.name == "approximate (both)")
    report = matching.worst_subscriptions(trial, approach, count=3)
    assert len(report.rows) == 3
    assert report.rows[0]["F1"] <= report.rows[1]["F1"] <= report.rows[2]["F1"]
    assert "~" in str(report.rows[0]["subscription"])


@needs_data
def test_a_quick_run_reports_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "QUICK", replace(matching.QUICK, events=400))
    settings = ExperimentSettings(
        quick=True, out=tmp_path, options={"approach": "exact;concept (same", "degrees": "1.0"}
    )
    reports = matching.run(settings)
    whole = {row["approach"]: row for row in reports[0].rows}
    assert whole["concept (same thesaurus)"]["together"] > whole["exact"]["together"]
    assert (tmp_path / "matching-100.html").stat().st_size > 10_000
    assert (tmp_path / "matching-100.png").read_bytes().startswith(b"\x89PNG")


def test_seeds_that_had_no_part_in_choices_are_told_apart(trial: Trial) -> None:
    [approach] = choose(["exact"])
    good, bad = (quality(trial.data.truth * score, trial.data.truth) for score in (np.float32(1), np.float32(0)))
    results = [matching.Result(approach, 1.0, seed, False, figures, figures) for seed, figures in ((1, good), (4, bad))]
    [row] = matching.summary(results, 1.0).rows
    assert (row["together"], row["held out"], row["alone held out"]) == (0.5, 0.0, 0.0)
    assert "held out" not in matching.summary(results[:1], 1.0).rows[0]


def test_the_worst_are_shown_of_those_named(trial: Trial) -> None:
    assert [approach.name for approach in matching._named(APPROACHES, ["exact", "hybrid (002)"])] == [
        "exact",
        "hybrid (002)",
    ]
    assert matching._named(APPROACHES, ["telepathy"]) == [APPROACHES[-1]]


def test_what_the_usual_threshold_lets_through_is_told(trial: Trial) -> None:
    """At a threshold of 0.5: one of two delivered events is right, and one of two right ones is delivered."""
    scores, truth = np.array([[0.9, 0.5, 0.1]], np.float32), np.array([[True, False, True]])
    usual = Usual.of(scores, np.float32(0.1) * scores, truth, threshold=0.5)
    made = quality(scores, truth)
    results = [matching.Result(choose(["default (both)"])[0], 1.0, 1, False, made, made, usual=usual)]
    [row] = matching.at_usual(results).rows
    assert (row["together precision"], row["together recall"], row["together F1"]) == (0.5, 0.5, 0.5)
    assert (row["at"], row["alone recall"], row["~"]) == (0.5, 0.0, "100%")


def test_only_what_can_be_chosen_by_name_has_a_usual_threshold(trial: Trial) -> None:
    usual = {approach.name: trial.laboratory.usual_threshold(approach) for approach in APPROACHES}
    assert usual["rank (both)"] is None
    assert (
        usual["hybrid (002)"]
        == default_threshold(Approach.parse("hybrid"), "hybrid")
        != default_threshold(Approach.parse("hybrid"), "another")
    )


def test_an_answer_that_is_neither_yes_nor_no_is_refused() -> None:
    with pytest.raises(BuildError, match="typed is 'true'"):
        matching.run(ExperimentSettings(options={"typed": "true"}))
