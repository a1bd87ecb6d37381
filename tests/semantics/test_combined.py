"""Combined measures."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import BuildError
from likewise.semantics import Combined, Competitors, Contrast, Esa, EsaEuclidean, Space

WORDS = ["garage", "energy", "laptop"]


def test_the_mean_of_square_roots_by_hand(tiny_space: Space) -> None:
    parts = [Esa(tiny_space), EsaEuclidean(tiny_space)]
    expected = sum(np.sqrt(part.matrix(["parking"], WORDS)) for part in parts) / 2
    np.testing.assert_allclose(Combined(parts).matrix(["parking"], WORDS), expected, rtol=1e-6)


def test_weights_and_power_by_hand(tiny_space: Space) -> None:
    parts = [Esa(tiny_space), EsaEuclidean(tiny_space)]
    one, two = (part.matrix(["parking"], WORDS) for part in parts)
    combined = Combined(parts, weights=[3, 1], power=1)
    np.testing.assert_allclose(combined.matrix(["parking"], WORDS), (3 * one + two) / 4, rtol=1e-6)


def test_it_is_symmetric_only_if_all_parts_are(tiny_space: Space) -> None:
    esa = Esa(tiny_space)
    assert Combined([esa, esa]).symmetric
    assert not Combined([esa, Contrast(esa, Competitors.of([]))]).symmetric


def test_reasons_of_all_parts_add_up_to_the_score(tiny_space: Space) -> None:
    combined = Combined([Esa(tiny_space), Esa(tiny_space, weighting="augmented")])
    reasons = combined.reason("parking", "garage", limit=100)
    score = combined.matrix(["parking"], ["garage"])[0, 0]
    assert sum(each.weight for each in reasons) == pytest.approx(float(score), rel=1e-5)


@pytest.mark.parametrize("options", [{"weights": [1]}, {"weights": [0, 0]}, {"weights": [2, -1]}, {"power": 0}])
def test_weights_that_make_no_mean_are_refused(tiny_space: Space, options: dict[str, object]) -> None:
    with pytest.raises(BuildError):
        Combined([Esa(tiny_space)] * 2, **options)


def test_nothing_cannot_be_combined() -> None:
    with pytest.raises(BuildError):
        Combined([])
