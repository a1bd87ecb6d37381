"""The index of many profiles gives what scoring all of them gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.events import Event
from likewise.language import Operator, Options, Predicate, Profile
from likewise.matching import Aggregation, Matcher
from likewise.matching.index.sparse import access_of
from likewise.matching.index.terms import FLOOR, Neighbours, TermColumns
from likewise.matching.settings import Approach, Settings
from likewise.testing import TableMeasure

TERMS = ["alpha", "beta", "gamma", "delta", "epsilon"]
TERM = st.sampled_from(TERMS)
VALUE = TERM | st.integers(0, 2)
PREDICATES = st.builds(
    Predicate, TERM, st.sampled_from([Operator.EQ, Operator.EQ, Operator.NE]), VALUE, st.booleans(), st.booleans()
) | st.builds(Predicate, TERM, st.sampled_from([Operator.GT, Operator.LE]), st.integers(0, 2), st.booleans())
PROFILES = st.lists(st.builds(lambda p: Profile(tuple(p)), st.lists(PREDICATES, min_size=1, max_size=3)), max_size=6)
EVENTS = st.lists(st.builds(lambda t: Event("e", tuple(t)), st.lists(st.tuples(TERM, VALUE), max_size=5)), max_size=5)
SCORES = st.sampled_from([0.0, 0.02, 0.1, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
TABLES = st.dictionaries(st.tuples(TERM, TERM), SCORES, max_size=14)


def scores(matcher, events):
    found = matcher.score_batch(matcher.encode(events))
    return {(e, p): round(s, 5) for e, p, s in zip(*(column.tolist() for column in found), strict=True)}


@settings(max_examples=200, deadline=None)
@given(PROFILES, EVENTS, TABLES, st.sampled_from(list(Aggregation)), st.sampled_from([0.21, 0.5, 0.8]), st.booleans())
def test_indexed_and_scored_profiles_agree(profiles, events, table, how, threshold, contrast):
    approach = "contrast" if contrast else "approximate"
    both = [
        Matcher(
            TableMeasure(table),
            approach=approach,
            threshold=threshold,
            aggregation=how,
            temperature=0.3 if contrast else None,
            attribute_bits=2.0 if contrast else 0.0,
            dense=dense,
        )
        for dense in (0, 10_000)
    ]
    for matcher in both:
        # The first profile opens the dense group; the index begins with the next.
        for profile in [Profile((Predicate("x", Operator.EQ, 1),)), *profiles]:
            matcher.add(profile)
    assert scores(both[0], events) == scores(both[1], events)


def agreed(matchers, events):
    first, *others = [scores(matcher, events) for matcher in matchers]
    return all(first == other for other in others)


@settings(max_examples=50, deadline=None)
@given(PROFILES, EVENTS, TABLES, st.randoms())
def test_adding_and_removing_while_running(profiles, events, table, chance):
    all_of_them = [
        Matcher(TableMeasure(table), approach="contrast", threshold=0.3, temperature=0.3, dense=dense)
        for dense in (0, 4, 10_000)
    ]
    for matcher in all_of_them:
        matcher.add(Profile((Predicate("x", Operator.EQ, 1),)))
    for profile in profiles:
        handle = {matcher.add(profile) for matcher in all_of_them}
        assert len(handle) == 1
        assert agreed(all_of_them, events)
        if chance.random() < 0.5:
            for matcher in all_of_them:
                matcher.remove(min(handle))
        assert agreed(all_of_them, events)


def test_with_an_index_nothing_is_scored_for_every_event_any_more():
    """Rows for the first profiles would have to be worked out for every new tuple of the stream."""
    matcher = Matcher(TableMeasure({}), approach="approximate", threshold=0.5, dense=100)
    for number in range(130):
        matcher.add(Profile((Predicate("kind", Operator.EQ, f"thing {number}", True, True),)))
    kept = {kind.__name__: group.conditions.used for (_, _, kind), group in matcher._groups._groups.items()}
    assert kept == {"DenseGroup": 0, "SparseGroup": 130}
    events = [Event.of({"kind": f"thing {number}"}) for number in range(130)]
    assert set(scores(matcher, events)) == {(number, number) for number in range(130)}


def test_only_profiles_that_words_lead_to_are_verified():
    """A thousand interests in other things cost nothing."""
    measure = TableMeasure({("laptop", "computer"): 0.8})
    matcher = Matcher(measure, approach="approximate", dense=0)
    for n in range(1000):
        matcher.add(Profile((Predicate("device", Operator.EQ, f"thing {n}", True, True),)))
    handle = matcher.add(Profile((Predicate("device", Operator.EQ, "laptop", True, True),)))
    before = matcher.compared
    [match] = matcher.match(Event.of({"device": "computer"}))
    assert match.subscription == handle
    assert matcher.compared - before == 1
    assert match.matrix.tolist() == [[pytest.approx(0.8)]]


def test_access_bounds_by_hand():
    def geometric(threshold, length):
        return access_of(Settings(Approach("approximate"), threshold, 1, Aggregation.GEOMETRIC), length)

    assert geometric(0.5, 1) == (1, pytest.approx(0.5, abs=1e-5))
    assert geometric(0.5, 3) == (2, pytest.approx((0.5**3) ** 0.5, abs=1e-5))
    assert geometric(0.9, 3) == (1, pytest.approx(0.9**3, abs=1e-5))
    cautious = access_of(Settings(Approach("approximate"), 0.5, 1, Aggregation.CAUTIOUS), 3)
    assert cautious == (1, pytest.approx(0.5 ** (6 / 4), abs=1e-5)), "b**(1 + 3) = 0.5**6"
    mean = access_of(Settings(Approach("approximate"), 0.5, 1, Aggregation.MEAN), 3)
    assert mean == (3, pytest.approx(0.5, abs=1e-5))


def test_a_profile_that_takes_everything_is_scored_and_not_indexed():
    matcher = Matcher(TableMeasure({}), approach="approximate", dense=0)
    loose = Profile((Predicate("a", Operator.EQ, "b", True, True),))
    for threshold in (0.5, 0.5, 0.0):
        matcher.add(loose, options=Options(threshold=threshold))
    kinds = [type(entry.group).__name__ for entry in matcher._registrations.values()]
    assert kinds == ["SparseGroup", "SparseGroup", "DenseGroup"]


def test_neighbours_keep_what_is_near_and_grow_with_the_columns():
    measure = TableMeasure({("a", "x"): 0.5, ("b", "x"): FLOOR / 2, ("c", "x"): 0.3})
    columns = TermColumns(measure)
    near = Neighbours(columns)
    for term in ("a", "b"):
        columns.add(term)
    [place] = near.rows([7], ["x"])
    assert near.lists[place].tolist() == [0]
    columns.add("c")
    assert near.rows([7], ["x"]).tolist() == [place]
    assert near.lists[place].tolist() == [0, 2]
    near.contest(np.array([place]), np.array([False, False, True]), 1)
    assert near.rival[place] == pytest.approx(0.3)


@pytest.mark.parametrize("dense", [0, 10_000])
def test_a_matcher_with_changing_subscriptions_does_not_grow(dense):
    matcher = Matcher(TableMeasure({("new 7", "old"): 0.9}), approach="approximate", dense=dense)
    matcher.add(Profile((Predicate("x", Operator.EQ, 1),)))
    for n in range(300):
        handle = matcher.add(Profile((Predicate("a", Operator.EQ, f"new {n % 10}", True, True),)))
        found = matcher.match(Event.of({"a": "old"}))
        assert [m.subscription for m in found] == ([handle] if n % 10 == 7 else [])
        matcher.remove(handle)
    assert all(len(group.conditions) <= 2 for group in matcher._groups)


@pytest.mark.parametrize(
    ("dense", "approach"),
    [(0, "approximate"), (10_000, "approximate"), (0, "contrast"), (10_000, "contrast"), (0, "exact")],
)
def test_words_of_subscriptions_that_left_take_no_room(dense, approach):
    """Eight thousand come and go, fifty at a time, each with words of its own."""
    measure = TableMeasure({("old name", "name"): 0.9, ("old value", "value"): 0.9})
    matcher = Matcher(measure, approach=approach, threshold=0.3, dense=dense, temperature=0.5)
    matcher.add(Profile((Predicate("x", Operator.EQ, 1),)))
    faithful = matcher.add(Profile((Predicate("old name", Operator.EQ, "old value", True, True),)))
    handles, counts = [], []
    for n in range(8_000):
        late = Predicate(f"name {n}", Operator.EQ, f"value {n}", n % 3 > 0, n % 5 > 0)
        handles.append(matcher.add(Profile((late, Predicate(f"size {n}", Operator.GT, n)))))
        if len(handles) > 50:
            matcher.remove(handles.pop(0))
        if n % 500 == 0:
            found = matcher.match(Event.of({"name": "value", f"name {n}": f"value {n}", f"size {n}": n + 1}))
            assert [m.subscription for m in found] == (
                [handles[-1]] if approach == "exact" else [handles[-1], faithful]
            )
        if n % 2000 == 1999:
            groups = matcher._groups
            columns = [c for g in groups for c in (g._rivals._columns[0], g._rivals._columns[1])]
            counts.append((matcher.vocabulary.numbers, sum(map(len, columns)), len(matcher._handle_of)))
            assert matcher.vocabulary.held < 500
            assert all(len(g.conditions) < 200 for g in groups)
    assert counts[-1][0] < 1_000
    assert counts[-1][1] < 15_000
    assert counts[-1][1] <= 1.2 * counts[1][1], counts
    assert len(matcher._handle_of) <= 128
