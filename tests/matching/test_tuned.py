"""What someone gets who chooses nothing: codes and opposites apart, and the words of the stream if they are given."""

from __future__ import annotations

import pickle

import pytest

from likewise.engine import Engine
from likewise.errors import BuildError, MissingError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher
from likewise.semantics import Competitors, WordNet
from likewise.testing import TableMeasure

NEAR = TableMeasure(
    {
        ("increased noise", "decreased noise"): 0.9,
        ("increased noise", "rising noise"): 0.8,
        ("desk 1", "desk 2"): 0.9,
        ("Ireland", "Eire"): 0.6,
        ("Ireland", "Kingdom of Spain"): 0.65,
        ("Spain", "Kingdom of Spain"): 0.9,
    }
)
BACKGROUND = Competitors.of(["Spain", "Kingdom of Spain", "Eire", "Ireland"])


@pytest.fixture(autouse=True)
def _wordnet() -> None:
    try:
        WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)


def wants(attribute: str, value: str) -> Profile:
    return Profile((Predicate(attribute, Operator.EQ, value, True, True),))


def score(matcher: Matcher, profile: Profile, **said: str) -> float:
    return matcher.explain(profile, Event.of(said)).score


@pytest.mark.parametrize(
    ("wanted", "said", "why"),
    [
        ("increased noise", "decreased noise", "increased and decreased are opposites"),
        ("desk 1", "desk 2", "1 and 2 are different codes"),
    ],
)
def test_what_is_held_apart_does_not_match_and_is_told(wanted: str, said: str, why: str) -> None:
    matcher = Matcher(NEAR)
    handle = matcher.add(wants("type", wanted), key="mine")
    event = Event.of({"type": said, "place": "hall"}, id="e")
    assert matcher.match(event) == []
    explained = matcher.explain(handle, event)
    assert f"type: {said} is no answer, since {why}" in explained.text()
    assert explained.as_dict()["steps"][0]["apart"].endswith(why)


def test_what_matches_has_nothing_held_apart() -> None:
    matcher = Matcher(NEAR)
    matcher.add(wants("type", "increased noise"))
    [match] = matcher.match(Event.of({"type": ["rising noise", "decreased noise"]}))
    assert [step.apart for step in match.explain().steps] == [""]


def test_the_papers_approaches_hold_nothing_apart() -> None:
    plain = Matcher(NEAR, approach="approximate")
    assert score(plain, wants("type", "increased noise"), type="decreased noise") == pytest.approx(0.9)


def test_a_background_tells_a_synonym_from_a_sibling_for_a_lone_subscription() -> None:
    lone, informed = Matcher(NEAR), Matcher(NEAR, background=BACKGROUND)
    wanted = wants("country", "Ireland")
    assert score(lone, wanted, country="Eire") < score(lone, wanted, country="Kingdom of Spain")
    assert score(informed, wanted, country="Eire") > score(informed, wanted, country="Kingdom of Spain")


def test_the_kernel_and_the_explanation_agree_with_a_background() -> None:
    engine = Engine(matcher=Matcher(NEAR, background=BACKGROUND, threshold=0.1))
    engine.subscribe("mine: {country~ = Ireland~}\nother: {country~ = Spain~}")
    told = engine.publish({"country": "Kingdom of Spain"})
    assert told
    for each in told:
        assert each.match is not None
        assert each.match.explain().score == pytest.approx(each.score, abs=1e-6)


def test_a_sibling_has_the_same_background() -> None:
    matcher = Matcher(NEAR, background=BACKGROUND)
    wanted = wants("country", "Ireland")
    assert score(matcher.sibling(), wanted, country="Eire") == score(matcher, wanted, country="Eire")


def test_a_background_is_a_plain_value() -> None:
    """It goes to other processes as it is, and they score alike."""
    again = pickle.loads(pickle.dumps(BACKGROUND))
    assert again == BACKGROUND
    wanted = wants("country", "Ireland")
    one, other = Matcher(NEAR, background=BACKGROUND), Matcher(NEAR, background=again)
    assert score(one, wanted, country="Eire") == score(other, wanted, country="Eire")


def test_a_background_is_refused_where_it_would_count_for_nothing() -> None:
    with pytest.raises(BuildError, match="background"):
        Matcher(NEAR, approach="approximate", background=BACKGROUND)
    Matcher(NEAR, approach="tuned", background=BACKGROUND)


def test_a_background_has_a_usual_threshold_of_its_own() -> None:
    class Named(TableMeasure):
        name = "combined"

    assert Matcher(Named({})).settings(wants("a", "b")).threshold == 0.37
    assert Matcher(Named({}), background=BACKGROUND).settings(wants("a", "b")).threshold == 0.27


def test_phrases_that_share_words_are_compared_by_what_differs() -> None:
    class Named(TableMeasure):
        name = "combined"

    table = {
        ("ozone event", "noise event"): 0.64,
        ("ozone", "noise"): 0.0,
        ("ozone event", "smog event"): 0.64,
        ("ozone", "smog"): 0.5,
    }
    known, own = Matcher(Named(table)), Matcher(TableMeasure(table))
    wanted = wants("type", "ozone event")
    assert score(known, wanted, type="noise event") == 0.0
    assert score(known, wanted, type="smog event") == pytest.approx((0.64 * 0.5**0.5) ** 0.5, abs=1e-6)
    assert score(own, wanted, type="noise event") == pytest.approx(0.64), "it may not know single words"


def test_one_predicate_that_nothing_answers_well_is_not_hidden_by_others() -> None:
    """Geometric 0.1 ** (1/4) = 0.56; cautious sqrt(0.56 * 0.1) = 0.24."""
    matcher = Matcher(TableMeasure({("laptop", "lamp"): 0.1}), threshold=0.3)
    exact = tuple(Predicate(name, Operator.EQ, "x") for name in "abc")
    profile = Profile((*exact, Predicate("device", Operator.EQ, "laptop", False, True)))
    event = Event.of({"a": "x", "b": "x", "c": "x", "device": "lamp"})
    matcher.add(profile)
    assert matcher.match(event) == []
    explained = matcher.explain(profile, event)
    assert explained.score == pytest.approx((0.1**0.25 * 0.1) ** 0.5, abs=1e-6)
    assert explained.enough == pytest.approx(0.3 ** (2 * 4 / 5), abs=1e-6), "x**(1/4) * x = 0.3**2"
