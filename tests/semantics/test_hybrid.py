"""The hybrid of 002: ranks lift properties, values are plain ESA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from likewise.errors import BuildError
from likewise.semantics import Hybrid, Matrix, Measure


class Table(Measure):
    """A measure with given scores."""

    name = "table"
    symmetric = True

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        self._scores = scores

    def matrix(self, left: Sequence[str], right: Sequence[str], **themes: Sequence[str]) -> Matrix:
        return np.array([[self._scores.get((a, b), 0.0) for b in right] for a in left], np.float32)


PROPERTIES = ["place", "date", "team", "score", "city", "referee"]
ESA = Table({("venue", name): 0.1 for name in PROPERTIES} | {("venue", "city"): 0.3})
SCORES = [0.9, 0.1, 0.2, 0.3, 0.8, 0.0]
SIMILARITY = Table({("venue", name): score for name, score in zip(PROPERTIES, SCORES, strict=True)})


def test_property_relatedness_by_hand() -> None:
    """fP = min(1, (5 - rank + 1) * ESA) [002 eq 14]; the sixth property is not among the top 5 [eq 15]."""
    scores = Hybrid(ESA, SIMILARITY).property_matrix(["venue"], PROPERTIES)[0]
    ranks = {"place": 1, "city": 2, "score": 3, "team": 4, "date": 5}
    expected = {name: min(1.0, (5 - rank + 1) * (0.3 if name == "city" else 0.1)) for name, rank in ranks.items()}
    assert dict(zip(PROPERTIES, scores.round(5).tolist(), strict=True)) == pytest.approx(expected | {"referee": 0.0})


def test_without_lift_the_top_properties_keep_their_relatedness() -> None:
    scores = Hybrid(ESA, SIMILARITY, top=2, lifted=False).property_matrix(["venue"], PROPERTIES)[0]
    assert scores.tolist() == pytest.approx([0.1, 0, 0, 0, 0.3, 0])  # place and city are the two most similar


def test_values_are_plain_esa() -> None:
    np.testing.assert_array_equal(
        Hybrid(ESA, SIMILARITY).matrix(["venue"], PROPERTIES), ESA.matrix(["venue"], PROPERTIES)
    )


def test_equal_similarities_share_the_better_rank() -> None:
    tie = Table({("a", "b"): 0.5, ("a", "c"): 0.5})
    lifted = Hybrid(Table({("a", "b"): 0.1, ("a", "c"): 0.1}), tie, top=2).property_matrix(["a"], ["b", "c"])
    np.testing.assert_allclose(lifted, [[2 * 0.1, 2 * 0.1]])


def test_the_same_property_is_1() -> None:
    assert Hybrid(ESA, SIMILARITY).property_matrix(["Venues"], ["venue"])[0, 0] == 1


def test_no_event_properties_give_an_empty_matrix() -> None:
    assert Hybrid(ESA, SIMILARITY).property_matrix(["venue"], []).shape == (1, 0)


def test_a_top_of_nothing_is_refused() -> None:
    with pytest.raises(BuildError):
        Hybrid(ESA, SIMILARITY, top=0)
