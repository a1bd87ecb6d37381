"""Rows of terms are read once, pruned alike everywhere, and forgotten when they are too many."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.semantics import Space
from likewise.semantics.space import vectors as vectors_module
from likewise.semantics.space.vectors import Vectors, norms, unit


def test_rows_agree_with_the_space(tiny_space: Space) -> None:
    terms = ["parking", "laptop computer", "zzyzx", "energy energy"]
    np.testing.assert_allclose(Vectors(tiny_space).rows(terms).toarray(), tiny_space.matrix(terms).toarray())


def test_ties_at_the_cut_go_to_the_first_concepts(tiny_space: Space) -> None:
    """energy stands once in each of four concepts, so all its weights are equal."""
    vectors = Vectors(tiny_space, weighting="augmented", pruning=2)
    whole = tiny_space.matrix(["energy"], weighting="augmented")
    assert set(whole.data.tolist()) == {whole.data[0]}
    assert sorted(vectors.rows(["energy"]).indices.tolist()) == sorted(whole.indices.tolist())[:2]


def test_too_many_postings_are_forgotten_without_harm(tiny_space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "KEPT_POSTINGS", 3)
    vectors = Vectors(tiny_space)
    terms = ["car", "energy", "computer", "garage", "car"]
    for _ in range(2):
        np.testing.assert_allclose(vectors.rows(terms).toarray(), tiny_space.matrix(terms).toarray())
        np.testing.assert_allclose(vectors.rows(["car"]).toarray(), tiny_space.matrix(["car"]).toarray())


def test_unit_rows_have_length_1_and_empty_rows_stay_empty(tiny_space: Space) -> None:
    rows = unit(Vectors(tiny_space).rows(["car", "zzyzx", "energy", ""]))
    np.testing.assert_allclose(norms(rows), [1, 0, 1, 0], rtol=1e-6)
