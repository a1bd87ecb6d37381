"""ESA on rows that can be counted by hand."""

from __future__ import annotations

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from likewise.semantics import Esa, EsaEuclidean, Space, write_space


@pytest.fixture
def two(tmp_path: Path) -> Space:
    """Three concepts; car is in the first two, bus in the second, the third has neither."""
    write_space(tmp_path / "s", [("A", "car car road"), ("B", "car bus"), ("C", "cow")])
    return Space.open(tmp_path / "s")


def test_the_papers_weighting_by_hand(two: Space) -> None:
    """tf = 0.5 + 0.5 f/max and idf = log(N/df) [000 eq 2-4]; the idf of each row cancels in the cosine."""
    measure = Esa(two, weighting="augmented")
    car = np.array([0.5 + 0.5 * 2 / 2, 0.5 + 0.5 * 1 / 1])
    expected = car[1] / sqrt(car @ car)
    assert measure.matrix(["car"], ["bus"])[0, 0] == pytest.approx(expected)


def test_a_phrase_is_the_sum_of_its_words(two: Space) -> None:
    measure = Esa(two, weighting="augmented", unit_words=False)
    car, bus = np.array([1.0, 1.0]) * log(3 / 2), np.array([0.0, 1.0]) * log(3 / 1)
    both = car + bus
    expected = both @ car / sqrt(both @ both) / sqrt(car @ car)
    assert measure.matrix(["car bus"], ["car"])[0, 0] == pytest.approx(expected)


def test_unit_words_count_alike_in_a_phrase(two: Space) -> None:
    measure = Esa(two, weighting="augmented")
    car, bus = np.array([1.0, 1.0]) / sqrt(2), np.array([0.0, 1.0])
    both = car + bus
    assert measure.matrix(["car bus"], ["car"])[0, 0] == pytest.approx(both @ car / sqrt(both @ both))


def test_euclidean_relatedness_by_hand(two: Space) -> None:
    """1 / (1 + distance) [000 eq 5, 6]."""
    car, bus = np.array([1.0, 1.0]) * log(3 / 2), np.array([0.0, 1.0]) * log(3 / 1)
    expected = 1 / (1 + sqrt(((car - bus) ** 2).sum()))
    assert EsaEuclidean(two, weighting="augmented").matrix(["car"], ["bus"])[0, 0] == pytest.approx(expected)


def test_pruning_keeps_the_strongest_postings(two: Space) -> None:
    """With one posting each, car is all A and bus is all B."""
    assert Esa(two, pruning=1).matrix(["car"], ["bus"])[0, 0] == 0
    assert Esa(two, pruning=None).matrix(["car"], ["bus"])[0, 0] > 0


def test_terms_that_share_no_concept_are_0(two: Space) -> None:
    assert Esa(two).matrix(["cow"], ["bus"])[0, 0] == 0


def test_reasons_name_the_shared_concepts_and_add_up_to_the_score(tiny_space: Space) -> None:
    measure = Esa(tiny_space)
    reasons = measure.reason("parking", "garage", limit=100)
    assert {each.concept for each in reasons} == {"Car park", "Garage"}
    score = measure.matrix(["parking"], ["garage"])[0, 0]
    assert sum(each.weight for each in reasons) == pytest.approx(float(score))


def test_parking_is_nearer_to_garage_than_to_energy(tiny_space: Space) -> None:
    """The example of 000 sec 3.1."""
    scores = Esa(tiny_space).matrix(["parking"], ["garage", "energy"])[0]
    assert scores[0] > scores[1]


def test_normalised_distance_orders_pairs_as_the_cosine_does(tiny_space: Space) -> None:
    words = ["garage", "energy", "computer", "office", "building"]
    cosine = Esa(tiny_space).matrix(["laptop", "electricity"], words)
    distance = EsaEuclidean(tiny_space, normalise=True).matrix(["laptop", "electricity"], words)
    np.testing.assert_allclose(distance, 1 / (1 + np.sqrt(2 - 2 * cosine)), atol=1e-5)
