"""The index of many profiles gives what scoring all of them gives."""

import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.calibration import MEANT_IN_STREAM
from likewise.errors import MissingError
from likewise.events import Event
from likewise.language import Operator, Options, Predicate, Profile
from likewise.matching import Aggregation, Background, Commonness, Matcher, joint
from likewise.matching.index.sparse import access_of
from likewise.matching.index.sparse_kernel import FLOOR, RATIO, RATIO_BY_CHANCE, STEPS
from likewise.matching.index.terms import Neighbours, TermColumns
from likewise.matching.settings import Approach, Settings
from likewise.semantics import Evidence
from likewise.testing import TableMeasure

TERMS = ["alpha", "beta", "gamma", "delta", "epsilon"]
TERM = st.sampled_from(TERMS)
VALUE = TERM | st.integers(0, 2)
PREDICATES = st.builds(
    Predicate, TERM, st.sampled_from([Operator.EQ, Operator.EQ, Operator.NE]), VALUE, st.booleans(), st.booleans()
) | st.builds(Predicate, TERM, st.sampled_from([Operator.GT, Operator.LE]), st.integers(0, 2), st.booleans())
PROFILES = st.lists(st.builds(lambda p: Profile(tuple(p)), st.lists(PREDICATES, min_size=1, max_size=5)), max_size=6)
EVENTS = st.lists(st.builds(lambda t: Event("e", tuple(t)), st.lists(st.tuples(TERM, VALUE), max_size=5)), max_size=5)
SCORES = st.sampled_from([0.0, 0.001, 0.004, 0.02, 0.1, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
TABLES = st.dictionaries(st.tuples(TERM, TERM), SCORES, max_size=14)


def scores(matcher, events):
    found = matcher.score_batch(matcher.encode(events))
    return {(e, p): round(s, 5) for e, p, s in zip(*(column.tolist() for column in found), strict=True)}


@settings(max_examples=200, deadline=None)
@given(
    PROFILES,
    EVENTS,
    TABLES,
    st.sampled_from([*Aggregation, Aggregation.JOINT, Aggregation.JOINT]),
    st.sampled_from([0.21, 0.5, 0.8]),
    st.booleans(),
    EVENTS,
)
def test_indexed_and_scored_profiles_agree(profiles, events, table, how, threshold, contrast, sample):
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
    for matcher in both:
        matcher.learn(Background.of(sample))
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


def test_no_score_is_above_the_bound_for_any_stream():
    """The kernel rules profiles out by it before it computes how common their answers are."""
    rng, meant, near = np.random.default_rng(4), MEANT_IN_STREAM, 0
    for _ in range(3_000):
        count, limit = int(rng.integers(2, 6)), float(rng.choice([0.2, 0.5, 0.8]))
        entries = rng.random(count) ** rng.choice([0.05, 0.3, 5.0], count)
        shares = rng.random(count) ** rng.choice([0.1, 1.0, 10.0])
        steps = (entries * STEPS).astype(int)
        most = meant * (1 - limit) * RATIO[steps].prod() + (1 - meant) * RATIO_BY_CHANCE[steps].prod()
        if float(joint(entries, Commonness.seen(shares.tolist(), [True] * count))) >= limit:
            assert most >= limit * (1 - meant)
            near += most < 3 * limit * (1 - meant)
    assert near > 50, "too few close calls to say anything"


def test_a_hardly_related_value_counts_where_the_others_leave_little_doubt():
    """An index lists only values that are somewhat related, and must compare the others here."""
    measure = TableMeasure({("delta", "epsilon"): FLOOR / 2})
    asked = [Predicate(name, Operator.EQ, name, True, True) for name in ("alpha", "beta", "gamma")]
    event = Event.of({"alpha": "alpha", "beta": "beta", "gamma": "gamma", "delta": "epsilon"})
    rare = Background.of([Event.of({"other": f"thing {n}"}) for n in range(40)])
    found = []
    for dense in (0, 10_000):
        matcher = Matcher(measure, approach="approximate", aggregation="joint", threshold=0.5, dense=dense)
        matcher.add(Profile((Predicate("x", Operator.EQ, 1),)))
        matcher.add(Profile((*asked, Predicate("delta", Operator.EQ, "delta", True, True))))
        matcher.add(Profile((*asked, Predicate("delta", Operator.EQ, "other", True, True))))
        assert scores(matcher, [event]) == {}, "in an unknown stream it does not"
        matcher.learn(rare)
        found.append(scores(matcher, [event]))
        assert matcher.is_indexed == (not dense)
    assert found[0] == found[1]
    assert set(found[0]) == {(0, 1)}


WORDS = """car, auto, automobile, truck, lorry, bus, train, ship, boat, lift, elevator, stairs, lamp, light, heater,
    oven, stove, fridge, refrigerator, laptop, computer, server, printer, phone, telephone, camera, television, TV,
    sofa, couch, chair, table, desk, hall, lobby, room, chamber, kitchen, garage, parking lot, car park, garden, yard,
    roof, cellar, basement, rain, storm, wind, snow, hail, fog, noise, sound, smoke, fire, flood, fault, error, failure,
    outage, repair, delay, temp, temperature, humidity, pressure, supply air temperature, return air temperature, SAT,
    open door, closed door, energy consumption, power usage, electricity, water, gas, oil, Spain, Ireland, France"""
NAMES = "type, kind, device, appliance, place, location, room, country, cause, state"


def random_profiles(count, chance):
    values, names = WORDS.replace("\n", " ").split(", "), NAMES.split(", ")
    return [
        Profile(
            tuple(
                Predicate(
                    name, Operator.EQ, chance.choice(values).strip(), chance.random() < 0.8, chance.random() < 0.9
                )
                for name in chance.sample(names, chance.choice([1, 2, 2, 3, 3, 4, 5]))
            )
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("known", [False, True])
def test_the_index_finds_what_scoring_all_finds(known):
    """Three thousand random subscriptions and two hundred events, by the default score."""
    try:
        evidence = Evidence(encoder=False)
    except MissingError as error:
        pytest.skip(error.message)
    chance = random.Random(3)
    profiles = random_profiles(3_000, chance)
    values, names = WORDS.replace("\n", " ").split(", "), NAMES.split(", ")
    events = [
        Event(str(n), tuple((name, chance.choice(values).strip()) for name in chance.choices(names, k=8)))
        for n in range(200)
    ]
    background = Background.of(events[:80]) if known else None
    indexed, scored = (Matcher(evidence, background=background, dense=dense) for dense in (0, sys.maxsize))
    for profile in profiles:
        assert indexed.add(profile) == scored.add(profile)
    wanted, found = scores(scored, events), scores(indexed, events)
    assert len(wanted) > 1_000, "too few matches to say anything"
    assert len(wanted.keys() & found.keys()) >= 0.999 * len(wanted)
    assert len(found.keys() - wanted.keys()) <= 0.001 * len(wanted)
    assert max(abs(wanted[pair] - found[pair]) for pair in wanted.keys() & found.keys()) < 1e-4


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
            counts.append((matcher.vocabulary.most_used, sum(map(len, columns)), len(matcher._handle_of)))
            assert matcher.vocabulary.held < 500
            assert all(len(g.conditions) < 200 for g in groups)
    assert counts[-1][0] < 1_000
    assert counts[-1][1] < 15_000
    assert counts[-1][1] <= 1.2 * counts[1][1], counts
    assert len(matcher._handle_of) <= 128
