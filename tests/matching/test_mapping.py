"""Mappings are the k best and their probabilities are probabilities."""

from itertools import product
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.language import Operator, Predicate
from likewise.matching.match import best_assignments, mappings_of, row_probabilities, total_weight

ENTRIES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])


@st.composite
def matrices(draw):
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return np.array(draw(st.lists(ENTRIES, min_size=rows * columns, max_size=rows * columns))).reshape(rows, columns)


def every_mapping(matrix, *, distinct):
    rows, columns = matrix.shape
    for choice in product(range(columns), repeat=rows):
        weight = float(np.prod([matrix[i, j] for i, j in enumerate(choice)]))
        if weight > 0 and not (distinct and len(set(choice)) < rows):
            yield choice, weight


@given(matrices(), st.integers(1, 6), st.booleans())
def test_the_k_best_are_the_k_best(matrix, k, distinct):
    weights = sorted((w for _, w in every_mapping(matrix, distinct=distinct)), reverse=True)
    found = best_assignments(matrix, k, distinct=distinct)
    assert [w for _, w in found] == pytest.approx(weights[:k])
    assert len({choice for choice, _ in found}) == len(found)


@given(matrices(), st.booleans())
def test_probabilities_of_all_valid_mappings_sum_to_one(matrix, distinct):
    total = total_weight(matrix, distinct=distinct)
    every = dict(every_mapping(matrix, distinct=distinct))
    assert isclose(total, sum(every.values()), abs_tol=1e-12)
    if every:
        predicates = tuple(Predicate(f"p{i}", Operator.EQ, "x") for i in range(len(matrix)))
        tuples = tuple((f"t{j}", "x") for j in range(matrix.shape[1]))
        found = mappings_of(predicates, tuples, matrix, k=len(every), distinct=distinct)
        assert sum(mapping.probability for mapping in found) == pytest.approx(1.0)


@given(matrices())
def test_every_answered_predicate_shares_out_one(matrix):
    sums = row_probabilities(matrix).sum(axis=1)
    assert sums == pytest.approx(matrix.any(axis=1).astype(float))


def test_correspondences_by_hand():
    predicates = (Predicate("device", Operator.EQ, "laptop"), Predicate("office", Operator.EQ, "room"))
    tuples = (("device", "computer"), ("office", "room"))
    mapping, second = mappings_of(predicates, tuples, np.array([[0.6, 0.2], [0.0, 1.0]]), k=5)
    assert [c.probability for c in mapping.correspondences] == pytest.approx([0.6 / 0.8, 1.0])
    assert (mapping.probability, second.probability) == pytest.approx((0.6 / 0.8, 0.2 / 0.8))


def test_an_event_without_tuples_has_no_mapping():
    assert mappings_of((Predicate("a", Operator.EQ, 1),), (), np.zeros((1, 0))) == ()


def test_many_tuples_with_distinct_stay_quick_and_sum_to_at_most_one():
    matrix = np.full((8, 30), 0.5)
    found = mappings_of(
        tuple(Predicate(f"p{i}", Operator.EQ, "x") for i in range(8)),
        tuple((f"t{j}", "x") for j in range(30)),
        matrix,
        k=3,
        distinct=True,
    )
    assert len(found) == 3
    assert sum(mapping.probability for mapping in found) <= 1.0
