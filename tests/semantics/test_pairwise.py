"""Pairs by themselves are the diagonal of the matrix, for every measure."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import MissingError
from likewise.semantics import Combined, Competitors, Esa, EsaEuclidean, Space, WordNet, measure

TERMS = ["parking", "garage", "energy", "laptop computer", "ParkingSpaces", "zzyzx", "", "of", "room 112", "room 113"]
OTHERS = Competitors.of(["garage", "electricity", "computer"])
NAMES = [
    "esa",
    "esa-euclidean",
    "thematic",
    "thematic-euclidean",
    "jiang-conrath",
    "hybrid",
    "concept",
    "embedding",
    "combined",
    "esa+coded",
    "esa+coded+opposed",
    "esa+contrast",
    "thematic+opposed+rank",
]


@pytest.mark.parametrize("themes", [((), ()), (("car",), ("energy", "power"))], ids=["no theme", "themes"])
@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_the_diagonal_of_the_matrix(
    name: str, themes: tuple[tuple[str, ...], tuple[str, ...]], tiny_space: Space, wordnet: WordNet
) -> None:
    try:
        made = measure(name, spaces=[tiny_space], competitors=OTHERS, background=OTHERS)
    except MissingError as error:
        pytest.skip(str(error))
    left = [a for a in TERMS for _ in TERMS]
    right = TERMS * len(TERMS)
    options = {"subscription_theme": themes[0], "event_theme": themes[1]}
    whole = made.matrix(TERMS, TERMS, **options)
    assert made.pairwise(left, right, **options) == pytest.approx(whole.ravel(), abs=1e-6)
    # In another order the same pairs have the same scores.
    turned = made.pairwise(left[::-1], right[::-1], **options)
    assert turned == pytest.approx(whole.ravel()[::-1], abs=1e-6)


def test_a_combination_of_parts_is_the_diagonal_too(tiny_space: Space) -> None:
    both = Combined([Esa(tiny_space), EsaEuclidean(tiny_space)], weights=[2, 1], power=1)
    left, right = ["parking", "energy", "laptop"], ["garage", "electricity", "laptops"]
    assert both.pairwise(left, right) == pytest.approx(np.diag(both.matrix(left, right)), abs=1e-6)
    assert both.pairwise(left, right)[2] == 1


def test_more_pairs_than_fit_together(tiny_space: Space) -> None:
    esa = Esa(tiny_space)
    words = ["parking", "garage", "energy", "laptop", "computer"]
    left, right = words * 1000, (words[1:] + words[:1]) * 1000
    found = esa.pairwise(left, right)
    assert found[:5] == pytest.approx(np.diag(esa.matrix(left[:5], right[:5])))
    assert (found.reshape(-1, 5) == found[:5]).all()


def test_no_pairs_no_scores(tiny_space: Space) -> None:
    assert Esa(tiny_space).pairwise([], []).shape == (0,)
