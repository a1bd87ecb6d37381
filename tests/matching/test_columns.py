"""Columns are held while they are needed, and given again afterwards."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.matching.index import terms
from likewise.matching.index.terms import FLOOR, Neighbours, Relations, TermColumns
from likewise.semantics import Measure


class Lengths(Measure):
    """Relatedness that a term tells by itself: the number in its name."""

    name, symmetric = "lengths", False

    def matrix(self, subscription_terms, event_terms, **_):
        one = np.array([[int(term.split()[1]) % 97 / 97 for term in subscription_terms]], dtype=np.float32)
        return np.repeat(one.T, len(event_terms), axis=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("addlook"), st.integers(0, 300)), max_size=60), st.randoms())
def test_rows_are_right_whatever_moved(steps, chance):
    """With slices of a few terms, every held term is where its column says, with its own score."""
    small = {"PAGE": 8, "BULK": 32, "STEP": 3}
    before = {name: getattr(terms, name) for name in small}
    for name, value in small.items():
        setattr(terms, name, value)
    try:
        columns = TermColumns(Lengths())
        table, near = Relations(columns), Neighbours(columns)
        held = {}
        for what, number in steps:
            for n in range(number, number + 10):
                if f"term {n}" not in held:
                    held[f"term {n}"] = columns.add(f"term {n}")
            for term in [term for term in held if chance.random() < 0.5]:
                columns.release(held.pop(term))
            held = {term: columns.number(term) for term in held}
            for move in columns.make_room():
                for old, new in zip(move.old.tolist(), move.new.tolist(), strict=True):
                    assert move.table[old] == new
                    assert columns.terms[new] == columns.terms[old] or old not in held.values()
                held = {term: int(move.table[column]) for term, column in held.items()}
            assert all(columns.terms[column] == term for term, column in held.items())
            if what in "lok":
                at = int(table.rows([0], ["x"])[0])
                row = table.table[at]
                place = int(near.rows([0], ["x"])[0])
                columns_near = near.lists[place].tolist()
                assert columns_near == sorted(set(columns_near))
                for term, column in held.items():
                    want = np.float32(int(term.split()[1]) % 97 / 97)
                    assert row[column] == want
                    assert (column in columns_near) == (want >= FLOOR)
        assert len(columns) < 2500
    finally:
        for name, value in before.items():
            setattr(terms, name, value)
