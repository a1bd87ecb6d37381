"""Rank correlation by hand and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from likewise.errors import BuildError
from likewise.evaluation.experiments.relatedness import spearman


def test_by_hand() -> None:
    """d = (1, -1, 0), so 1 - 6 * 2 / (3 * 8) = 0.5."""
    assert spearman([1, 2, 3], [2, 1, 3]) == pytest.approx(1 - 6 * 2 / (3 * 8))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3))
def test_it_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(side, float) for side in zip(*pairs, strict=True))
    if len(set(a)) > 1 and len(set(b)) > 1:
        assert spearman(a, b) == pytest.approx(float(spearmanr(a, b).statistic), abs=1e-9)
    else:
        assert spearman(a, b) == 0


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(BuildError):
        spearman([1, 2], [1])


def test_nothing_agrees_with_nothing() -> None:
    assert spearman([], []) == 0
