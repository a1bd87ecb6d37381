"""Whole-matrix scores: by hand on one event, and equal to the matcher on many."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.tiny import knowing, laboratory, tiny

from likewise.evaluation.quality.approaches import APPROACHES, Trial
from likewise.evaluation.quality.scoring import Scorer
from likewise.evaluation.quality.tuning import score_all
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Background, Matcher
from likewise.semantics import Evidence

EVENT = Event.of({"device": "computer", "office": "room 112"}, id="e1")
LAPTOP = Predicate("device", Operator.EQ, "laptop", True, True)
ROOM = Predicate("office", Operator.EQ, "room 112")


def test_a_score_is_the_geometric_mean_of_the_best_tuples() -> None:
    """Device is device (1), a laptop is a computer to 0.25, the office is exact: (1 * 0.25 * 1) ** (1 / 2)."""
    scorer = Scorer([EVENT], [Profile((LAPTOP, ROOM))])
    values = np.array([[0.25, 0.1], [0.0, 1.0]], np.float32)
    assert scorer.score(scorer.attributes.exact, values).tolist() == [[0.5]]
    assert scorer.score(scorer.attributes.exact, values, mean="mean")[0, 0] == pytest.approx((0.25 + 1) / 2)


def test_light_attributes_count_less() -> None:
    scorer = Scorer([EVENT], [Profile((LAPTOP,))])
    attributes, values = np.array([[0.0, 0.25]], np.float32), np.array([[0.0, 1.0]], np.float32)
    assert scorer.score(attributes, values)[0, 0] == pytest.approx(0.25)
    assert scorer.score(attributes, values, attribute_weight=0.5)[0, 0] == pytest.approx(0.5)


def test_an_exact_part_is_compared_exactly_whatever_the_measure_says() -> None:
    scorer = Scorer([EVENT], [Profile((Predicate("device", Operator.EQ, "laptop", True, False),))])
    everything = np.ones((1, 2), np.float32)
    assert scorer.score(everything, everything).tolist() == [[0.0]]


def test_alone_only_a_profiles_own_terms_are_adjusted() -> None:
    scorer = Scorer([EVENT], [Profile((LAPTOP,)), Profile((ROOM,))])
    seen = []

    def adjust(matrix: np.ndarray) -> np.ndarray:
        seen.append(matrix.shape)
        return matrix

    scorer.score_alone(scorer.attributes.exact, scorer.values.exact, adjust)
    assert seen == [(1, 2)] * 4


@pytest.mark.parametrize("degree", [1.0, 0.5])
def test_the_matcher_gives_the_same_scores(degree: float) -> None:
    data = tiny().approximated(degree)
    measure = knowing(data)
    scorer = Scorer(data.events, data.profiles)
    sides = [measure.matrix(side.wanted, side.said) for side in (scorer.attributes, scorer.values)]
    expected = scorer.score(sides[0], sides[1])
    found = score_all(Matcher(measure, approach="approximate"), data.events, data.subscriptions)
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["default (glossary only)", "default + background (glossary only)"])
def test_the_rows_called_default_are_what_a_matcher_does_by_default(name: str) -> None:
    data = tiny()
    trial = Trial(data, laboratory(data))
    [approach] = [each for each in APPROACHES if each.name == name]
    background = Background.of(data.events) if "background" in name else None
    matcher = Matcher(Evidence(encoder=False, wordnet=False), background=background)
    assert score_all(matcher, data.events, data.subscriptions) == pytest.approx(trial.scores(approach), abs=1e-5)
