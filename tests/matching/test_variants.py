"""The hybrid approach ranks attributes within each event [002 eq 14, 15]."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher, Taxonomy, Topic
from likewise.semantics import Hybrid
from likewise.testing import TableMeasure

ESA = TableMeasure({("team", "club"): 0.2, ("team", "place"): 0.15, ("Spain", "Spain national football team"): 0.7})
SIMILAR = TableMeasure({("team", "club"): 0.9, ("team", "place"): 0.3})


def test_the_rank_among_the_events_attributes_lifts_relatedness():
    """club is first of three: min(1, (5 - 1 + 1) * 0.2) = 1; place is second: (5 - 2 + 1) * 0.15 = 0.6."""
    matcher = Matcher(Hybrid(ESA, SIMILAR), approach="hybrid", threshold=0.1)
    matcher.add(Profile((Predicate("team", Operator.EQ, "Spain", True, True),)))
    event = Event.of({"club": "Spain national football team", "place": "Johannesburg", "referee": "Howard Webb"})
    [match] = matcher.match(event)
    assert match.score == pytest.approx(1.0 * 0.7)
    [other] = matcher.match(Event.of({"club": "Barcelona", "place": "Spain"}))
    assert other.score == pytest.approx(0.6 * 1.0)
    [alone] = matcher.match(Event.of({"place": "Spain"}))
    assert alone.score == pytest.approx(5 * 0.15)


def test_the_mean_forgives_a_statement_that_nothing_answers():
    """002 eq 11: the mean over the subscription's statements."""
    matcher = Matcher(Hybrid(ESA, SIMILAR), approach="hybrid", threshold=0.3)
    matcher.add(
        Profile((Predicate("team", Operator.EQ, "Spain", True, True), Predicate("x", Operator.EQ, "y", True, True)))
    )
    [match] = matcher.match(Event.of({"team": "Spain"}))
    assert match.score == pytest.approx((1 + 0) / 2)
    assert len(match.mapping.correspondences) == 1


def test_events_are_ranked_for_a_subscription():
    """002 examples 2 and 3: the match of Spain comes before the others."""
    place = {("place", "location"): 0.5, ("type", "type"): 1.0, ("Soccer Match", "Football Match"): 0.8}
    values = {("South Africa", "Johannesburg"): 0.4, ("Spain", "Spain national football team"): 0.7}
    other = {("Spain", "Netherlands national football team"): 0.1, ("South Africa", "Madrid"): 0.05}
    measure = Hybrid(TableMeasure(place | values | other), TableMeasure(place))
    matcher = Matcher(measure, approach="hybrid", threshold=0.0)
    matcher.add(
        Profile(
            (
                Predicate("type", Operator.EQ, "Soccer Match", True, True),
                Predicate("place", Operator.EQ, "South Africa", True, True),
                Predicate("team", Operator.EQ, "Spain", True, True),
            )
        )
    )
    final = {"type": "Football Match", "location": ["FNB Stadium", "Johannesburg"], "referee": "Howard Webb"}
    teams = ["Spain national football team", "Netherlands national football team"]
    events = [
        Event.of({"type": "Football Match", "location": "Madrid", "team": teams[1]}, id="friendly"),
        Event.of(final | {"team": teams}, id="final"),
        Event.of({"type": "Concert", "location": "Johannesburg"}, id="concert"),
    ]
    ranked = sorted((m for matches in matcher.match_batch(events) for m in matches), key=lambda m: -m.score)
    assert ranked[0].event.id == "final"


def test_a_measure_without_ranks_is_refused():
    with pytest.raises(BuildError, match="hybrid"):
        Matcher(TableMeasure({}), approach="hybrid").add(Profile((Predicate("a", Operator.EQ, "b", True, True),)))


TERM = st.sampled_from(["alpha", "beta", "gamma", "delta"])
VALUE = TERM | st.integers(0, 2)
PREDICATE = st.builds(Predicate, TERM, st.just(Operator.EQ), VALUE, st.booleans(), st.booleans())
PROFILE = st.builds(lambda p: Profile(tuple(p)), st.lists(PREDICATE, min_size=1, max_size=3))
EVENT = st.builds(lambda t: Event("e", tuple(t)), st.lists(st.tuples(TERM, VALUE), min_size=1, max_size=4))
SCORE = st.sampled_from([0.0, 0.02, 0.1, 0.15, 0.3, 0.6, 0.9])
TOPICS = Taxonomy((Topic("one"), Topic("two"), Topic("three")))
TABLE = st.dictionaries(st.tuples(TERM | st.sampled_from(["one one", "two two", "three three"]), TERM), SCORE)


@pytest.mark.parametrize("approach", ["hybrid", "clustered", "hybrid+contrast", "clustered+contrast"])
@settings(max_examples=60, deadline=None)
@given(st.lists(PROFILE, max_size=6), st.lists(EVENT, max_size=4), TABLE, TABLE)
def test_indexed_and_scored_profiles_agree(approach, profiles, events, related, similar):
    found = []
    for dense in (0, 10_000):
        measure = TableMeasure(related)
        matcher = Matcher(
            {"hybrid": Hybrid(measure, TableMeasure(similar)), "clustered": measure},
            approach=approach,
            threshold=0.3,
            temperature=0.3,
            taxonomy=TOPICS,
            dense=dense,
        )
        for profile in [Profile((Predicate("x", Operator.EQ, 1),)), *profiles]:
            matcher.add(profile)
        scores = matcher.score_batch(matcher.encode(events))
        found.append({(e, p): round(s, 5) for e, p, s in zip(*(c.tolist() for c in scores), strict=True)})
        assert all(m.score > 0 for matches in matcher.match_batch(events) for m in matches)
    assert found[0] == found[1]


def test_a_number_has_no_topic_that_a_word_could_meet():
    measure = TableMeasure({("one one", "alpha"): 0.9, ("two two", "beta"): 0.9, ("alpha", "beta"): 0.8})
    for dense in (0, 10_000):
        matcher = Matcher(measure, approach="clustered", threshold=0.3, taxonomy=TOPICS, dense=dense)
        matcher.add(Profile((Predicate("x", Operator.EQ, 1),)))
        handle = matcher.add(Profile((Predicate("name", Operator.EQ, "alpha", False, True),)))
        event = Event.of({"name": "beta", "reading": 7})
        assert matcher.match(event) == []
        assert not matcher.explain(handle, event).matched
