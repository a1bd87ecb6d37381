"""The kernel gives what the matrices give, for every kind of predicate, theme and contrast."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import BuildError, MissingError
from likewise.events import Event
from likewise.language import Operator, Options, Predicate, Profile, Range
from likewise.matching import Aggregation, Commonness, Matcher
from likewise.matching.definition import combined_matrix
from likewise.matching.settings import aggregate, compared_by_meaning
from likewise.semantics import contrasted
from likewise.testing import TableMeasure

TERMS = ["alpha", "beta", "gamma", "delta", "epsilon"]
TERM = st.sampled_from(TERMS)
VALUE = TERM | st.integers(0, 2) | st.booleans()
PREDICATES = st.builds(
    Predicate, TERM, st.sampled_from([Operator.EQ, Operator.NE]), VALUE, st.booleans(), st.booleans()
) | st.builds(Predicate, TERM, st.sampled_from([Operator.GT, Operator.LE]), st.integers(0, 2), st.booleans())
PROFILES = st.lists(st.builds(lambda p: Profile(tuple(p)), st.lists(PREDICATES, min_size=1, max_size=3)), max_size=5)
EVENTS = st.lists(st.builds(lambda t: Event("e", tuple(t)), st.lists(st.tuples(TERM, VALUE), max_size=5)), max_size=5)
TABLES = st.dictionaries(st.tuples(TERM, TERM), st.floats(0, 1, width=32), max_size=12)


def plain_scores(profiles, events, relate, how):
    """Scores the slow way: one matrix for each pair."""
    out = {}
    for e, event in enumerate(events):
        for p, profile in enumerate(profiles):
            best = combined_matrix(profile, event, relate).max(axis=1) if event.tuples else np.zeros(1)
            commonness = Commonness.unknown([compared_by_meaning(each) for each in profile.predicates])
            score = aggregate(best.tolist(), how, commonness=commonness) if event.tuples else 0.0
            if score > 0:
                out[e, p] = score
    return out


def kernel_scores(matcher, events):
    found = matcher.score_batch(matcher.encode(events))
    return {(e, p): s for e, p, s in zip(*(column.tolist() for column in found), strict=True)}


@settings(max_examples=150, deadline=None)
@given(PROFILES, EVENTS, TABLES, st.sampled_from(list(Aggregation)))
def test_the_kernel_equals_the_matrices(profiles, events, table, how):
    measure = TableMeasure(table)
    matcher = Matcher(measure, approach="approximate", threshold=0.0, aggregation=how)
    for profile in profiles:
        matcher.add(profile)
    want = plain_scores(profiles, events, measure.matrix, how)
    got = kernel_scores(matcher, events)
    assert {k for k, s in want.items() if s > 1e-6} <= got.keys() <= want.keys()
    assert all(got[pair] == pytest.approx(want[pair], abs=1e-6) for pair in got)


@settings(max_examples=60, deadline=None)
@given(PROFILES, EVENTS, TABLES)
def test_contrast_equals_its_formula(profiles, events, table):
    measure = TableMeasure(table)
    matcher = Matcher(measure, approach="contrast", threshold=0.0, temperature=0.3)
    for profile in profiles:
        matcher.add(profile)
    attributes = {p.attribute for f in profiles for p in f.predicates if p.attribute_approximate}
    values = {
        p.value
        for f in profiles
        for p in f.predicates
        if p.value_approximate and isinstance(p.value, str) and p.operator in (Operator.EQ, Operator.NE)
    }

    def against(rivals):
        def relate(mine, theirs):
            best = measure.matrix(sorted(rivals), theirs).max(axis=0, initial=0)
            return contrasted(measure.matrix(mine, theirs).T, best, 0.3).T

        return relate

    from likewise.matching.definition import attribute_matrix, value_matrix

    got = kernel_scores(matcher, events)
    for e, event in enumerate(events):
        for p, profile in enumerate(profiles):
            if event.tuples:
                matrix = attribute_matrix(profile, event, against(attributes)) * value_matrix(
                    profile, event, against(values)
                )
                want = aggregate(matrix.max(axis=1).tolist(), Aggregation.GEOMETRIC)
                assert got.get((e, p), 0.0) == pytest.approx(want, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(PROFILES, EVENTS, TABLES, st.randoms())
def test_adding_and_removing_while_running(profiles, events, table, chance):
    """Scores are those of a fresh matcher with the same profiles."""
    matcher = Matcher(TableMeasure(table), approach="contrast", threshold=0.0, temperature=0.2)
    live = {}
    for profile in profiles:
        live[matcher.add(profile)] = profile
        kernel_scores(matcher, events)
        if live and chance.random() < 0.4:
            gone = chance.choice(sorted(live))
            matcher.remove(gone)
            del live[gone]
    fresh = Matcher(TableMeasure(table), approach="contrast", threshold=0.0, temperature=0.2)
    names = {fresh.add(profile): handle for handle, profile in live.items()}
    want = {(e, names[p]): s for (e, p), s in kernel_scores(fresh, events).items()}
    assert kernel_scores(matcher, events) == want


def test_numeric_operators_with_an_approximate_attribute():
    """The parking example [004 sec 3]."""
    matcher = Matcher(TableMeasure({("empty parking slot", "parking vacancy"): 0.7}), approach="approximate")
    matcher.add(Profile((Predicate("empty parking slot", Operator.GT, 0, True),)), key="sarah")
    [match] = matcher.match(Event.of({"parking vacancy": 3}))
    assert (match.subscription, match.score) == ("sarah", pytest.approx(0.7))
    assert match.mapping.correspondences[0].tuple == ("parking vacancy", 3)
    assert matcher.match(Event.of({"parking vacancy": 0})) == []
    assert matcher.match(Event.of({"parking vacancy": "3"})) == []


def test_thresholds_hold_per_subscription():
    matcher = Matcher(TableMeasure({("laptop", "computer"): 0.6}), approach="approximate", threshold=0.7)
    laptop = Profile((Predicate("device", Operator.EQ, "laptop", False, True),))
    matcher.add(laptop, key="strict")
    matcher.add(laptop, key="loose", options=Options(threshold=0.6))
    assert [m.subscription for m in matcher.match(Event.of({"device": "computer"}))] == ["loose"]
    assert {m.subscription for m in matcher.match(Event.of({"device": "laptops"}))} == {"strict", "loose"}


def test_aggregations_hold_per_subscription():
    matcher = Matcher(TableMeasure({("laptop", "computer"): 0.36}), approach="approximate", threshold=0.1)
    both = Profile((Predicate("device", Operator.EQ, "laptop", False, True), Predicate("room", Operator.EQ, 1)))
    for how in ("none", *Aggregation):
        matcher.add(both, key=how, options=Options(aggregation=None if how == "none" else how))
    found = {m.subscription: m for m in matcher.match(Event.of({"device": "computer", "room": 1}))}
    scores = {key: match.score for key, match in found.items()}
    assert scores == pytest.approx(
        {"none": 0.6, "product": 0.36, "geometric": 0.6, "mean": 0.68, "cautious": (0.6 * 0.36) ** 0.5, "joint": 0.36}
    )
    assert {key: match.explain().score for key, match in found.items()} == pytest.approx(scores)
    with pytest.raises(BuildError, match="aggregation 'sum'"):
        matcher.add(both, options=Options(aggregation="sum"))
    with pytest.raises(BuildError, match="allows unanswered predicates"):
        matcher.add(both, options=Options(approach="exact", aggregation="mean"))
    with pytest.raises(BuildError, match="aggregation 'sum'"):
        Matcher(aggregation="sum")


@pytest.mark.parametrize("approach", ["approximate", "contrast"])
def test_events_are_ranked_for_one_subscription_whatever_its_threshold(approach):
    measure = TableMeasure({("laptop", "computer"): 0.6, ("laptop", "screen"): 0.3})
    matcher = Matcher(measure, approach=approach, temperature=0.3)
    wish = Profile((Predicate("device", Operator.EQ, "laptop", False, True),))
    handle = matcher.add(wish, options=Options(threshold=0.9), key="mine")
    events = [Event.of({"device": one}, id=one) for one in ("screen", "spoon", "laptop", "computer")]
    ranked = matcher.rank(handle, events)
    assert [match.event.id for match in ranked] == ["laptop", "computer", "screen"]
    assert [match.score for match in ranked] == pytest.approx([1.0, 0.6, 0.3])
    assert {match.subscription for match in ranked} == {"mine"}
    assert [m.event.id for m in matcher.rank(wish, events, limit=1)] == ["laptop"]
    assert len(matcher) == 1
    assert matcher.competitors[1].terms == (("laptop",) if approach == "contrast" else ())


def test_top_k_mappings_and_their_probabilities():
    measure = TableMeasure({("team", "club"): 0.5, ("Spain", "Spain national team"): 0.8, ("Spain", "Ireland"): 0.4})
    matcher = Matcher(measure, approach="approximate", threshold=0.1, top_k=3)
    matcher.add(Profile((Predicate("team", Operator.EQ, "Spain", True, True),)))
    [match] = matcher.match(Event.of({"club": ["Spain national team", "Ireland"]}))
    assert [m.probability for m in match.mappings] == pytest.approx([0.8 / 1.2, 0.4 / 1.2])
    assert match.score == pytest.approx(0.5 * 0.8)


def test_distinct_lets_a_tuple_answer_one_predicate_only():
    measure = TableMeasure({("a", "x"): 0.9, ("b", "x"): 0.8, ("b", "y"): 0.5})
    profile = Profile((Predicate("k", Operator.EQ, "a", False, True), Predicate("k", Operator.EQ, "b", False, True)))
    event = Event.of({"k": ["x", "y"]})
    for distinct, second in ((False, 0.8), (True, 0.5)):
        matcher = Matcher(measure, approach="approximate", threshold=0.1, distinct=distinct, aggregation="product")
        matcher.add(profile)
        [match] = matcher.match(event)
        assert match.score == pytest.approx(0.9 * second)
        assert match.mapping.correspondences[1].similarity == pytest.approx(second)


class Themed(TableMeasure):
    """Related only when both themes agree."""

    def matrix(self, subscription_terms, event_terms, *, subscription_theme=(), event_theme=()):
        whole = super().matrix(subscription_terms, event_terms)
        return whole if set(subscription_theme) & set(event_theme) else np.floor(whole)


def test_themes_of_both_sides_reach_the_measure():
    matcher = Matcher(Themed({("laptop", "computer"): 0.9}), approach="thematic")
    for theme in ("energy", "food"):
        matcher.add(Profile((Predicate("device", Operator.EQ, "laptop", False, True),), (theme,)), key=theme)
    device = {"device": "computer"}
    batch = [Event.of(device, theme=["energy"]), Event.of(device, theme=["Food", "x"]), Event.of(device)]
    assert [[m.subscription for m in matches] for matches in matcher.match_batch(batch)] == [["energy"], ["food"], []]


def test_scores_are_never_nan():
    class Broken(TableMeasure):
        def matrix(self, subscription_terms, event_terms, **themes):
            return np.full((len(subscription_terms), len(event_terms)), np.nan, dtype=np.float32)

    matcher = Matcher(Broken({}), approach="approximate", threshold=0.0)
    matcher.add(Profile((Predicate("a", Operator.EQ, "b", True, True),)))
    assert matcher.match(Event.of({"a": "b"})) == []


def test_a_forgetful_vocabulary_changes_no_score():
    measure = TableMeasure({("laptop", "computer"): 0.6})
    matcher = Matcher(measure, approach="approximate", threshold=0.1)
    matcher.vocabulary.capacity = 10
    matcher.add(Profile((Predicate("device", Operator.EQ, "laptop", False, True),)))
    for n in range(50):
        [match] = matcher.match(Event.of({"device": "computer", "reading": n + 0.5}))
        assert match.score == pytest.approx(0.6)
    assert matcher.vocabulary.generation > 2


def test_clear_errors_when_built():
    loose = Profile((Predicate("a", Operator.EQ, "b", True, True),))
    with pytest.raises(MissingError, match="space"):
        Matcher(approach="thematic").add(loose)
    with pytest.raises(BuildError, match="threshold"):
        Matcher(TableMeasure({})).add(loose, options=Options(threshold=1.5))
    with pytest.raises(BuildError, match="predicate"):
        Matcher().add(Profile(()))
    with pytest.raises(BuildError, match="top"):
        Matcher().add(loose, options=Options(top_k=0, approach="exact"))
    matcher = Matcher(TableMeasure({}))
    with pytest.raises(BuildError):
        matcher.add(Profile((Predicate("a", Operator.EQ, "b", True), Predicate("a", Operator.IN, Range(3, 1), True))))
    assert len(matcher) == 0
    assert matcher.match(Event.of({"a": "b"})) == []


def test_true_and_1_are_two_predicates():
    matcher = Matcher(TableMeasure({}), approach="approximate")
    for key, value in (("one", 1), ("true", True)):
        matcher.add(Profile((Predicate("a", Operator.EQ, value, True),)), key=key)
    assert [m.subscription for m in matcher.match(Event.of({"a": 1}))] == ["one"]
    assert [m.subscription for m in matcher.match(Event.of({"a": True}))] == ["true"]
