"""The index finds exactly what the matrices say."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile, Range
from likewise.matching.definition import combined_matrix
from likewise.matching.encoding import TupleVocabulary
from likewise.matching.index.exact import ExactIndex

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 1.5])
VALUES = NUMBERS | st.booleans() | st.sampled_from(["x", "y", "X_y"])
ORDERS = st.sampled_from([Operator.LT, Operator.LE, Operator.GT, Operator.GE])
EQUALITIES = st.builds(Predicate, NAMES, st.sampled_from([Operator.EQ, Operator.NE]), VALUES)
INEQUALITIES = st.builds(Predicate, NAMES, ORDERS, NUMBERS)
RANGES = st.builds(
    lambda name, low, width, closed: Predicate(name, Operator.IN, Range(low, low + width, closed, closed)),
    NAMES,
    NUMBERS,
    st.integers(1, 4),
    st.booleans(),
)
PROFILES = st.builds(
    lambda predicates: Profile(tuple(predicates)),
    st.lists(EQUALITIES | INEQUALITIES | RANGES, min_size=1, max_size=4),
)
EVENTS = st.builds(lambda tuples: Event("e", tuple(tuples)), st.lists(st.tuples(NAMES, VALUES), max_size=6))


def expected(profiles, events):
    return {
        (e, p)
        for e, event in enumerate(events)
        for p, profile in enumerate(profiles)
        if event.tuples and combined_matrix(profile, event).max(axis=1).all()
    }


def found(index, vocabulary, events):
    which, profiles = index.match(vocabulary.encode(events))
    pairs = list(zip(which.tolist(), profiles.tolist(), strict=True))
    assert len(pairs) == len(set(pairs)), "a profile is reported once per event"
    return set(pairs)


def build(profiles):
    vocabulary = TupleVocabulary()
    index = ExactIndex(vocabulary)
    for slot, profile in enumerate(profiles):
        index.add(slot, profile)
    return vocabulary, index


@settings(max_examples=150, deadline=None)
@given(st.lists(PROFILES, max_size=8), st.lists(EVENTS, max_size=8))
def test_index_equals_matrices(profiles, events):
    vocabulary, index = build(profiles)
    assert found(index, vocabulary, events) == expected(profiles, events)


@settings(max_examples=50, deadline=None)
@given(st.lists(PROFILES, min_size=2, max_size=8), st.lists(EVENTS, max_size=8), st.randoms())
def test_removed_profiles_are_silent_and_come_back(profiles, events, chance):
    vocabulary, index = build(profiles)
    index.match(vocabulary.encode(events))
    out = set(chance.sample(range(len(profiles)), len(profiles) // 2))
    for slot in out:
        index.remove(slot)
    want = expected(profiles, events)
    assert found(index, vocabulary, events) == {(e, p) for e, p in want if p not in out}
    for slot in out:
        index.add(slot, profiles[slot])
    assert found(index, vocabulary, events) == want


def test_more_matches_than_the_output_holds_are_all_given():
    profiles = [Profile((Predicate("a", Operator.GT, -n),)) for n in range(5000)]
    vocabulary, index = build(profiles)
    assert len(found(index, vocabulary, [Event("e", (("a", 1),)), Event("f", (("a", 2),))])) == 10_000


def test_profiles_wait_at_their_rarest_predicate():
    common = Predicate("type", Operator.EQ, "reading")
    profiles = [Profile((common, Predicate("room", Operator.EQ, f"room {n}"))) for n in range(1000)]
    vocabulary, index = build(profiles)
    at_common = index._postings[vocabulary.hold_key("type", "reading")[1]]
    assert len(at_common) <= 1


@pytest.mark.parametrize(
    "predicate",
    [
        Predicate("a", Operator.GT, "text"),
        Predicate("a", Operator.IN, Range(1, "x")),
        Predicate("a", Operator.IN, Range(3, 1)),
        Predicate("a", Operator.IN, Range(1, 1, low_closed=False)),
        Predicate("a", Operator.EQ, Range(1, 2)),
    ],
)
def test_what_can_never_hold_fails_when_built(predicate):
    with pytest.raises(BuildError):
        build([Profile((predicate,))])


def test_cost_follows_candidates_not_subscriptions():
    """Every key list stays short although there are many profiles."""
    chance = random.Random(3)
    profiles = [
        Profile(tuple(Predicate(f"a{i}", Operator.EQ, chance.randrange(500)) for i in chance.sample(range(10), 3)))
        for _ in range(5000)
    ]
    _, index = build(profiles)
    assert int(np.max(index._postings.length)) <= 5
