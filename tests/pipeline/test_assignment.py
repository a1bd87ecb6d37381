"""One partner for each term, and how sure it is: in process; `test_join` has the same on Spark."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import BuildError
from likewise.pipeline import join_tables
from likewise.pipeline.joins.rivals import margins, one_to_one
from likewise.semantics.nearest import Bar, Pairs, near_pairs
from likewise.testing import TableMeasure

SCORES = {("coffee machine", "washer"): 0.6, ("coffee machine", "brewer"): 0.7, ("laundry", "washer"): 0.9}
LEFT, RIGHT = ["coffee machine", "laundry", "sofa"], ["brewer", "washer"]


CELLS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 8))


def table(**columns: list[str]) -> pa.Table:
    return pa.table(columns)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 8)), max_size=12, unique_by=lambda cell: cell[:2]
    )
)
def test_the_sum_of_scores_is_the_greatest_of_all_assignments(cells: list[tuple[int, int, int]]) -> None:
    """Compared with every way to put four on the left beside four on the right."""
    ordered = sorted(cells)
    left, right, scores = (np.array([cell[at] for cell in ordered], np.int64) for at in range(3))
    found = one_to_one(Pairs(left, right, (scores / 8).astype(np.float32)))
    known = {(left, right): score / 8 for left, right, score in ordered}
    most = max(sum(known.get((left, right), 0) for left, right in enumerate(order)) for order in permutations(range(4)))
    assert float(found.relatedness.sum()) == pytest.approx(most)
    assert len(set(found.left.tolist())) == len(set(found.right.tolist())) == len(found.left)


def test_a_margin_is_the_distance_to_the_best_other_partner() -> None:
    measure = TableMeasure(SCORES)
    pairs = near_pairs(measure, LEFT, RIGHT, Bar(0.5))
    found = margins(pairs, near_pairs(measure, LEFT, RIGHT, Bar(0.0, 2)))
    columns = zip(pairs.left, pairs.right, found.tolist(), strict=True)
    by_pair = {(LEFT[left], RIGHT[right]): round(margin, 3) for left, right, margin in columns}
    assert by_pair == {
        ("coffee machine", "brewer"): 0.1,
        ("coffee machine", "washer"): -0.1,
        ("laundry", "washer"): 0.9,
    }


def test_tables_are_joined_one_to_one_with_margins() -> None:
    left, right = table(device=LEFT), table(name=RIGHT)
    options: dict[str, Any] = {"on": ("device", "name"), "measure": TableMeasure(SCORES), "with_margin": True}
    found = join_tables(left, right, one_to_one=True, threshold=0.5, **options).to_pylist()
    assert [(row["device"], row["name"]) for row in found] == [("coffee machine", "brewer"), ("laundry", "washer")]
    assert [round(row["margin"], 3) for row in found] == [0.1, 0.9]
    with pytest.raises(BuildError, match="one_to_one chooses the partners"):
        join_tables(left, right, one_to_one=True, best=1, **options)
