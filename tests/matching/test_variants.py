"""The hybrid approach ranks attributes within each event [002 eq 14, 15]."""

import pytest

from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher
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
