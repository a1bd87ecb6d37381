"""Small and large products have the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from likewise.semantics.space import vectors
from likewise.semantics.space.vectors import dense_product


def some(rows: int, columns: int, seed: int) -> csr_matrix:
    return csr_matrix(random_array((rows, columns), density=0.2, rng=seed, dtype=np.float32))


def test_compiled_and_interpreted_products_are_equal_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = some(7, 50, 1), some(50, 9, 2)
    small = dense_product(left, right)
    monkeypatch.setattr(vectors, "MANY", 0)
    np.testing.assert_array_equal(dense_product(left, right), small)
    np.testing.assert_allclose(small, left.toarray() @ right.toarray(), rtol=1e-5)


def test_the_interpreted_loop_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = some(3, 20, 3), some(20, 4, 4)
    monkeypatch.setattr(vectors, "MANY", 0)
    monkeypatch.setattr(vectors, "_scatter", lambda: vectors._add_products)
    np.testing.assert_allclose(dense_product(left, right), left.toarray() @ right.toarray(), rtol=1e-5)


def test_nothing_times_nothing() -> None:
    assert dense_product(some(0, 5, 1), some(5, 3, 2)).shape == (0, 3)
    assert dense_product(csr_matrix((2, 5), dtype=np.float32), some(5, 3, 2)).tolist() == [[0, 0, 0], [0, 0, 0]]
