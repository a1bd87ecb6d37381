"""Figures of a ranking on tiny fixtures, and laws that hold for any ranking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from likewise.evaluation.quality.ranking import curve, curve_max_f1, global_f1, interpolated, max_f1, quality

ROWS = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float32, n, elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])),
        hnp.arrays(np.bool_, n).filter(lambda row: bool(row.any())),
    )
)


def test_max_f1_is_the_best_threshold() -> None:
    """Delivering three of four: precision 2/3, recall 2/2."""
    scores = np.array([0.9, 0.8, 0.7, 0.1])
    relevant = np.array([True, False, True, False])
    assert max_f1(scores, relevant) == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))


def test_equal_scores_are_delivered_together() -> None:
    scores = np.array([0.5, 0.5])
    assert max_f1(scores, np.array([True, False])) == pytest.approx(2 * 0.5 / 1.5)


def test_an_event_that_scores_nothing_is_not_delivered() -> None:
    assert max_f1(np.zeros(3), np.array([True, True, True])) == 0.0


def test_interpolated_precision_is_the_best_at_that_recall_or_beyond() -> None:
    """Ranked: wrong, right, right. Recall 1/2 at precision 1/2, recall 1 at precision 2/3."""
    made = interpolated(np.array([0.9, 0.8, 0.7]), np.array([False, True, True]))
    assert made == pytest.approx([2 / 3] * 11)


def test_recall_that_is_never_reached_has_no_precision() -> None:
    made = interpolated(np.array([0.9, 0.0]), np.array([True, True]))
    assert made.tolist() == [1.0] * 6 + [0.0] * 5


def test_one_threshold_cannot_serve_two_scales() -> None:
    scores = np.array([[0.9, 0.5], [0.4, 0.1]], dtype=np.float32)
    relevant = np.array([[True, False], [True, False]])
    assert quality(scores, relevant).mean_max_f1 == 1.0
    best, threshold = global_f1(scores, relevant)
    assert best == pytest.approx((2 / 3 + 1) / 2)
    assert threshold == pytest.approx(0.4)


def test_a_measure_that_finds_nothing_scores_nothing() -> None:
    nothing = quality(np.zeros((2, 3), dtype=np.float32), np.ones((2, 3), dtype=np.bool_))
    assert (nothing.mean_max_f1, nothing.curve_max_f1, nothing.global_f1) == (0.0, 0.0, 0.0)


@given(ROWS)
def test_any_rescaling_that_keeps_the_order_keeps_max_f1(row: tuple[np.ndarray, np.ndarray]) -> None:
    scores, relevant = row
    assert max_f1(scores, relevant) == pytest.approx(max_f1(np.sqrt(scores) / 3, relevant))


@given(ROWS)
def test_recall_never_falls_as_the_threshold_falls(row: tuple[np.ndarray, np.ndarray]) -> None:
    made = curve(*row)
    assert (np.diff(made.recall) >= 0).all()
    assert (np.diff(made.thresholds) < 0).all()


@given(ROWS)
def test_no_single_threshold_beats_each_subscriptions_own(row: tuple[np.ndarray, np.ndarray]) -> None:
    scores, relevant = np.stack([row[0], row[0][::-1]]), np.stack([row[1], row[1]])
    made = quality(scores, relevant)
    assert made.global_f1 <= made.mean_max_f1 + 1e-9
    assert 0 <= curve_max_f1(scores, relevant) <= 1
