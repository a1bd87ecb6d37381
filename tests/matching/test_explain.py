"""Explanations add up, name what failed and say what would have been enough."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.charts import waterfall, waterfall_rows
from likewise.errors import BuildError
from likewise.events import Event
from likewise.language import Operator, Options, Predicate, Profile
from likewise.matching import Aggregation, Match, Matcher, Taxonomy, Topic
from likewise.semantics import Evidence
from likewise.testing import TableMeasure

MEASURE = TableMeasure({("laptop", "computer"): 0.6, ("device", "machine"): 0.5, ("desk", "lamp"): 0.1})
PROFILE = Profile(
    (
        Predicate("device", Operator.EQ, "laptop", True, True),
        Predicate("office", Operator.EQ, "room 112"),
    )
)
EVENT = Event.of({"machine": "computer", "office": "Room 112"}, id="e1")


def test_a_match_explains_itself():
    matcher = Matcher(MEASURE, approach="approximate", threshold=0.5)
    matcher.add(PROFILE, key="usage")
    [match] = matcher.match(EVENT)
    why = match.explain()
    first, second = why.steps
    assert why.matched
    assert why.score == pytest.approx((0.5 * 0.6 * 1.0) ** 0.5) == pytest.approx(match.score)
    assert (first.answer, first.attribute_similarity, first.value_similarity) == (
        ("machine", "computer"),
        pytest.approx(0.5),
        pytest.approx(0.6),
    )
    assert first.running == pytest.approx(0.3)
    assert second.attribute_exact
    assert second.value_exact
    assert [one.concept for one in first.shared] == ["laptop / computer"]
    assert why.text().splitlines() == [
        "usage matches e1 with 55 %",
        "  • device~ = laptop~  ↔  machine: computer  30 %, through laptop / computer",
        "  • office = room 112  ↔  office: Room 112  100 %, exact",
    ]
    assert why.summary == (
        '"computer" answers device~ = laptop~ (through laptop / computer), "Room 112" answers office = room 112 (exact)'
    )
    assert why.as_dict()["steps"][0]["answer"] == ("machine", "computer")


def test_a_non_match_names_what_failed_and_what_would_do():
    matcher = Matcher(MEASURE, approach="approximate", threshold=0.7)
    handle = matcher.add(PROFILE, key="usage")
    assert matcher.match(EVENT) == []
    why = matcher.explain(handle, EVENT)
    assert not why.matched
    assert why.steps[why.failing].predicate == "device~ = laptop~"
    assert why.enough == pytest.approx(0.7**2)
    assert why.text().startswith("usage does not match e1: 55 %, threshold 70 %\n  ✗ device~ = laptop~")
    assert "30.0 %, 49.0 % would have been enough" in why.text()
    assert why.summary == '"computer" answers device~ = laptop~ with only 30 %'


def test_nothing_would_do_when_several_fail():
    matcher = Matcher(MEASURE, approach="approximate")
    why = matcher.explain(PROFILE, Event.of({"colour": "red"}, id="e2"))
    assert (why.score, why.enough) == (0.0, None)
    assert "no tuple answers it" in why.text()
    assert why.why_not == "device~ = laptop~ is not answered, and other predicates are too low as well"


def test_what_themes_changed():
    class Themed(TableMeasure):
        def matrix(self, subscription_terms, event_terms, *, subscription_theme=(), event_theme=()):
            whole = super().matrix(subscription_terms, event_terms)
            return whole if subscription_theme else whole / 2

    matcher = Matcher(Themed({("laptop", "computer"): 0.8}), approach="thematic")
    profile = Profile((Predicate("device", Operator.EQ, "laptop", False, True),), ("energy",))
    [step] = matcher.explain(profile, Event.of({"device": "computer"})).steps
    assert (step.similarity, step.without_themes) == (pytest.approx(0.8), pytest.approx(0.4))


def test_topics_that_do_not_meet_are_said():
    topics = Taxonomy((Topic("transport"), Topic("energy")))
    measure = TableMeasure(
        {("transport transport", "car"): 0.6, ("energy energy", "kilowatt"): 0.6, ("car", "kilowatt"): 0.9}
    )
    matcher = Matcher(measure, approach="clustered", taxonomy=topics)
    why = matcher.explain(
        Profile((Predicate("x", Operator.EQ, "car", False, True),)), Event.of({"x": "kilowatt"}, id="e")
    )
    assert not why.matched
    assert "share no topic" in why.why_not


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["laptop", "desk", "tree"]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["computer", "lamp", "tree", "desk"]), min_size=1, max_size=3),
    st.sampled_from(list(Aggregation)),
    st.sampled_from(["approximate", "contrast", "exact"]),
    st.sampled_from([0.0, 3.0]),
)
def test_explained_scores_are_the_kernels(mine, theirs, how, approach, bits):
    """The plain matrices and the kernel agree, with every option."""
    matcher = Matcher(MEASURE, approach=approach, aggregation=how, threshold=0.0, temperature=0.3, attribute_bits=bits)
    predicates = (Predicate("device", Operator.EQ, value, True, True) for value in mine)
    handle = matcher.add(Profile(tuple(predicates)))
    event = Event.of({"machine": theirs}, id="e")
    found = matcher.match(event)
    why = matcher.explain(handle, event)
    assert why.score == pytest.approx(found[0].score if found else 0.0, abs=1e-6)
    assert why.matched == bool(found)


def test_a_better_answer_has_the_longer_bar():
    matcher = Matcher(MEASURE, approach="approximate")
    why = matcher.explain(PROFILE, EVENT)
    rows = waterfall_rows(why)
    lengths = [step.similarity for step in why.steps]
    assert [row["similarity"] for row in rows] == pytest.approx([*lengths, why.score])
    assert [row["running"] for row in rows] == pytest.approx([0.3, why.score, why.score])
    assert waterfall(why)["data"]["values"] == rows


def test_options_speak_for_a_profile_that_is_not_registered():
    matcher = Matcher(MEASURE, approach="approximate")
    assert not matcher.explain(PROFILE, EVENT, options=Options(threshold=0.9)).matched


def test_a_match_made_by_hand_cannot_explain():
    with pytest.raises(BuildError):
        Match("s", EVENT, 1.0, profile=PROFILE).explain()


@pytest.mark.parametrize("dense", [0, 10_000])
def test_an_explanation_does_not_prepare_the_terms_of_all_subscriptions(dense):
    """They are prepared in the matcher; doing it again for every pair of terms took seconds."""
    prepared = []

    class Counted(Evidence):
        def prepare(self, subscription_terms, *, subscription_theme=()):
            prepared.append(len(subscription_terms))
            return super().prepare(subscription_terms, subscription_theme=subscription_theme)

    matcher = Matcher(Counted(encoder=False, wordnet=False), dense=dense)
    for n in range(200):
        matcher.add(Profile((Predicate(f"kind {n}", Operator.EQ, f"thing {n}", True, True),)))
    [match] = matcher.match(Event.of({"kind 7": "thing 7", "room": "hall"}))
    prepared.clear()
    assert match.explain().score == pytest.approx(match.score, abs=1e-6)
    assert 0 < max(prepared) < 10
