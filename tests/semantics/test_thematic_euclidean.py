"""The projection of 000 as printed, on rows that can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.semantics import EsaEuclidean, Space, ThematicEuclidean, write_space

WORDS = ["park", "garage", "car", "energy", "power", "computer", "office", "building", "temperature", "zzyzx"]


@pytest.fixture
def space(tmp_path: Path) -> Space:
    """`city` is the theme: it keeps A, B and C, and takes D and E away."""
    texts = ["city park bench", "city park car car", "city car", "park tree", "tree"]
    write_space(tmp_path / "s", list(zip("ABCDE", texts, strict=True)))
    return Space.open(tmp_path / "s")


def test_projection_by_hand(space: Space) -> None:
    """000 Algorithm 1: in the basis {A, B, C} park has the idf log(3/2), not log(5/3); D is gone."""
    rows = ThematicEuclidean(space, weighting="augmented").project(["park"], ["city"]).toarray()
    tf_a, tf_b = 0.5 + 0.5 * 1 / 1, 0.5 + 0.5 * 1 / 2
    np.testing.assert_allclose(rows, [[tf_a * log(3 / 2), tf_b * log(3 / 2), 0, 0, 0]], rtol=1e-6)


def test_each_side_is_projected_by_its_own_theme(space: Space) -> None:
    measure = ThematicEuclidean(space, weighting="augmented")
    park = np.array([1.0, 0.75, 0, 0, 0]) * log(3 / 2)
    car = np.array([0, 1.0, 1.0, 0, 0]) * log(5 / 2)
    expected = 1 / (1 + sqrt(((park - car) ** 2).sum()))
    score = measure.matrix(["park"], ["car"], subscription_theme=["city"], event_theme=[])[0, 0]
    assert score == pytest.approx(expected)


def test_an_empty_theme_filters_nothing(tiny_space: Space) -> None:
    plain = EsaEuclidean(tiny_space, pruning=None).matrix(WORDS, WORDS)
    np.testing.assert_allclose(ThematicEuclidean(tiny_space).matrix(WORDS, WORDS), plain, atol=1e-6)


def test_a_term_outside_the_theme_is_0_to_others(space: Space) -> None:
    measure = ThematicEuclidean(space)
    assert measure.matrix(["tree"], ["park"], subscription_theme=["city"])[0, 0] == 0
    assert measure.matrix(["tree"], ["tree"], subscription_theme=["city"])[0, 0] == 1


def test_a_theme_of_unknown_words_leaves_nothing(space: Space) -> None:
    measure = ThematicEuclidean(space)
    assert not measure.basis(["zzyzx"]).any()
    assert measure.matrix(["park"], ["car"], subscription_theme=["zzyzx"])[0, 0] == 0


def test_the_basis_does_not_depend_on_the_order_of_tags(space: Space) -> None:
    measure = ThematicEuclidean(space)
    np.testing.assert_array_equal(measure.basis(["city", "tree"]), measure.basis(["tree", "city", "tree"]))
    assert measure.basis(["city", "bench"]).tolist() == [True, True, True, False, False]


def test_reasons_lie_inside_both_themes(space: Space) -> None:
    reasons = ThematicEuclidean(space).reason("park", "car", subscription_theme=["city"], event_theme=["bench", "car"])
    assert [each.concept for each in reasons] == ["B"]


@given(
    left=st.lists(st.sampled_from(WORDS), max_size=4),
    right=st.lists(st.sampled_from(WORDS), max_size=4),
    subscription_theme=st.lists(st.sampled_from(WORDS), max_size=3),
    event_theme=st.lists(st.sampled_from(WORDS), max_size=3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whole_matrices_agree_with_algorithm_1_pair_by_pair(
    tiny_space: Space, left: list[str], right: list[str], subscription_theme: list[str], event_theme: list[str]
) -> None:
    measure = ThematicEuclidean(tiny_space, weighting="augmented")
    scores = measure.matrix(left, right, subscription_theme=subscription_theme, event_theme=event_theme)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            one, two = _project(tiny_space, a, subscription_theme), _project(tiny_space, b, event_theme)
            expected = 1 / (1 + float(np.linalg.norm(one - two))) if one.any() and two.any() else 0.0
            assert scores[i, j] == pytest.approx(1.0 if a == b else expected, abs=1e-5)


def _project(space: Space, word: str, theme: Sequence[str]) -> np.ndarray:
    """000 Algorithm 1 as printed, for one word."""
    tf = space.tf_matrix([word], weighting="augmented").toarray()[0].astype(float)
    basis = space.matrix([" ".join(theme)]).toarray()[0] > 0 if theme else np.ones(space.concepts, bool)
    inside = basis & (tf > 0)
    if not inside.any():
        return np.zeros(space.concepts)
    return np.where(inside, tf * log(basis.sum() / inside.sum()), 0.0)
