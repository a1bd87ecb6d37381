"""The default: evidence for and against, one scale, one threshold, and the words of the stream if they are given."""

from __future__ import annotations

import pickle

import pytest

from likewise.engine import Engine
from likewise.errors import BuildError, MissingError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Aggregation, Commonness, Matcher
from likewise.matching.settings import aggregate
from likewise.semantics import Competitors, Evidence, Model, WordNet
from likewise.testing import TableMeasure

BACKGROUND = Competitors.of(["Spain", "Kingdom of Spain", "Eire", "Ireland", "country"])


@pytest.fixture(scope="module")
def plain() -> Evidence:
    """Evidence of WordNet and the glossary alone: the same on every machine that has WordNet."""
    try:
        WordNet.load()
    except MissingError as error:
        pytest.skip(error.message)
    return Evidence(encoder=False)


def wants(attribute: str, value: str) -> Profile:
    return Profile((Predicate(attribute, Operator.EQ, value, True, True),))


def score(matcher: Matcher, profile: Profile, **said: str) -> float:
    return matcher.explain(profile, Event.of(said)).score


@pytest.mark.parametrize(
    ("wanted", "said", "matches"),
    [
        ("car", "automobile", True),
        ("supply air temperature", "SAT", True),
        ("temperature", "temperature reading", True),
        ("increased noise", "decreased noise", False),
        ("desk 1", "desk 2", False),
        ("fire", "fire drill", False),
        ("fault", "no fault", False),
    ],
)
def test_evidence_decides(plain: Evidence, wanted: str, said: str, matches: bool) -> None:
    matcher = Matcher(plain)
    matcher.add(wants("type", wanted))
    assert bool(matcher.match(Event.of({"type": said, "place": "hall"}))) == matches


def test_the_default_needs_no_space_and_has_one_threshold(plain: Evidence) -> None:
    for matcher in (Matcher(), Matcher(plain), Matcher(plain, background=BACKGROUND)):
        chosen = matcher.settings(wants("type", "lift"))
        assert (str(chosen.approach), chosen.threshold, chosen.aggregation, chosen.power) == (
            "evidence", 0.5, "joint", 1.0)  # fmt: skip


def test_a_score_is_the_joint_probability_of_its_predicates(plain: Evidence) -> None:
    matcher = Matcher(plain)
    both = Profile((*wants("type", "lift").predicates, *wants("place", "hall").predicates))
    one = score(matcher, wants("type", "lift"), type="elevator", place="entrance")
    two = score(matcher, wants("place", "hall"), type="elevator", place="entrance")
    assert score(matcher, both, type="elevator", place="entrance") == pytest.approx(
        aggregate([one, two], Aggregation.JOINT), abs=1e-6
    )


def test_predicates_that_are_likely_make_each_other_likelier() -> None:
    both = aggregate([0.6, 0.7], Aggregation.JOINT)
    assert 0.6 * 0.7 < both < 0.6
    assert aggregate([0.6], Aggregation.JOINT) == pytest.approx(0.6), "one alone keeps its probability"
    assert aggregate([1.0, 1.0], Aggregation.JOINT) == pytest.approx(1)
    assert aggregate([0.9, 0.0], Aggregation.JOINT) == 0
    exact = Commonness.unknown([True, False])
    assert aggregate([0.6, 1.0], Aggregation.JOINT, commonness=exact) == pytest.approx(0.6), "exact ones tell nothing"


@pytest.mark.parametrize("dense", [0, 1024])
def test_an_exact_predicate_changes_no_score(plain: Evidence, dense: int) -> None:
    matcher = Matcher(plain, threshold=0.01, dense=dense)
    room = Predicate("room", Operator.EQ, "112")
    matcher.add(wants("type", "lift"), key="one")
    matcher.add(Profile((*wants("type", "lift").predicates, room)), key="two")
    found = {match.subscription: match.score for match in matcher.match(Event.of({"type": "elevator", "room": "112"}))}
    assert found["two"] == pytest.approx(found["one"], abs=1e-6)


def test_an_attribute_is_likelier_beside_a_value_that_is_meant(plain: Evidence) -> None:
    alone = float(plain.matrix(["size"], ["weight"])[0, 0])
    beside = score(Matcher(plain, competitors=Competitors.of(())), wants("size", "large"), weight="large")
    odds = 2 ** Model.shipped().attribute_bits * alone / (1 - alone)
    assert beside == pytest.approx(odds / (1 + odds), abs=1e-5)


def test_the_evidence_is_told_in_bits(plain: Evidence) -> None:
    matcher = Matcher(plain)
    handle = matcher.add(wants("type", "asylum"), key="mine")
    text = matcher.explain(handle, Event.of({"type": "refuge"})).text(full=True)
    assert "in WordNet (asylum, refuge)" in text
    refused = matcher.explain(wants("type", "open door"), Event.of({"type": "closed door"})).text(full=True)
    assert "words that exclude each other" in refused


def test_a_measure_of_ones_own_is_no_evidence() -> None:
    own = TableMeasure({("laptop", "computer"): 0.6})
    assert str(Matcher(own).settings(wants("a", "b")).approach) == "approximate"
    with pytest.raises(BuildError, match="evidence"):
        Matcher(own, approach="evidence").add(wants("a", "b"))


def test_the_papers_approaches_know_no_evidence() -> None:
    table = TableMeasure({("increased noise", "decreased noise"): 0.9})
    plain = Matcher(table, approach="approximate")
    assert score(plain, wants("type", "increased noise"), type="decreased noise") == pytest.approx(0.9)


def test_the_kernel_and_the_explanation_agree(plain: Evidence) -> None:
    for dense in (0, 1024):
        engine = Engine(matcher=Matcher(plain, background=BACKGROUND, threshold=0.02, dense=dense))
        engine.subscribe("first: {x = 1}\nmine: {country~ = Ireland~}\nother: {country~ = Spain~}")
        found = engine.publish({"country": "Kingdom of Spain"})
        assert found
        for each in found:
            assert each.match is not None
            assert each.match.explain().score == pytest.approx(each.score, abs=1e-6)


def test_a_sibling_has_the_same_background(plain: Evidence) -> None:
    matcher = Matcher(plain, background=BACKGROUND)
    wanted = wants("country", "Ireland")
    assert score(matcher.sibling(), wanted, country="Eire") == score(matcher, wanted, country="Eire")


def test_a_background_is_a_plain_value(plain: Evidence) -> None:
    """It goes to other processes as it is, and they score alike."""
    again = pickle.loads(pickle.dumps(BACKGROUND))
    assert again == BACKGROUND
    wanted = wants("country", "Ireland")
    one, other = Matcher(plain, background=BACKGROUND), Matcher(plain, background=again)
    assert score(one, wanted, country="Eire") == score(other, wanted, country="Eire")


def test_a_background_is_refused_where_it_would_count_for_nothing(plain: Evidence) -> None:
    with pytest.raises(BuildError, match="background"):
        Matcher(plain, approach="approximate", background=BACKGROUND)
    with pytest.raises(BuildError, match="background"):
        Matcher(TableMeasure({}), background=BACKGROUND).add(wants("a", "b"))
