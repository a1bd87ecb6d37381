"""Lists behave like a dict of Python lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from likewise.matching.index.lists import Lists, grown

STEPS = st.lists(st.tuples(st.sampled_from(["append", "discard", "clear"]), st.integers(0, 5), st.integers(0, 9)))


@given(STEPS)
def test_lists_hold_what_python_lists_would(steps):
    lists, plain = Lists(np.int32), {}
    for what, number, value in steps:
        mine = plain.setdefault(number, [])
        if what == "append":
            lists.append(number, value)
            mine.append(value)
        elif what == "discard":
            assert lists.discard(number, value) == (value in mine)
            if value in mine:
                mine.remove(value)
        else:
            lists.clear(number)
            mine.clear()
    for number, mine in plain.items():
        assert sorted(lists[number].tolist()) == sorted(mine)


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 99)), max_size=40))
def test_sorted_lists_stay_sorted_with_their_records(records):
    lists = Lists(np.float64, np.int32)
    for key, value in records:
        lists.insert_sorted(3, key, value)
    begin = int(lists.start[3])
    values = lists.fields[1][begin : begin + len(records)].tolist()
    assert lists[3].tolist() == sorted(key for key, _ in records)
    assert sorted(zip(lists[3].tolist(), values, strict=True)) == sorted(records)


def test_an_ordered_discard_keeps_the_order():
    lists = Lists(np.float64, np.int32)
    for key in (1.0, 2.0, 3.0):
        lists.insert_sorted(0, key, int(key))
    assert lists.discard(0, 1, field=1, ordered=True)
    assert lists[0].tolist() == [2.0, 3.0]


def test_freed_blocks_are_used_again():
    lists = Lists(np.int32)
    for _ in range(1000):
        lists.set(0, range(10))
        lists.clear(0)
    assert lists.nbytes < 1000


def test_growth_fills_only_what_is_new():
    assert grown(np.array([1, 2]), 3, fill=9).tolist() == [1, 2, 9, 9]
