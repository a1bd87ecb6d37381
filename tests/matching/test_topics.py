"""Topics: taxonomies are read, terms are classified, and only shared topics are compared."""

import json

import pytest

from likewise.calibration import TOPICS_OF_EVENTS
from likewise.errors import InputError, MissingError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile
from likewise.matching import Matcher, Taxonomy, Topic
from likewise.matching.topics import Classifier, Clusters
from likewise.testing import TableMeasure

TRANSPORT, ENERGY = Topic("transport"), Topic("energy", "power and fuel")
MEASURE = TableMeasure(
    {
        (TRANSPORT.text.strip(), "car"): 0.6,
        (TRANSPORT.text.strip(), "vehicle"): 0.5,
        (ENERGY.text, "laptop"): 0.4,
        (ENERGY.text, "kilowatt"): 0.3,
        ("car", "vehicle"): 0.9,
        ("car", "kilowatt"): 0.8,
    }
)


def about(value):
    return Profile((Predicate("thing", Operator.EQ, value, False, True),))


def test_only_pairs_that_share_a_topic_are_compared():
    matcher = Matcher(MEASURE, approach="clustered", taxonomy=Taxonomy((TRANSPORT, ENERGY)))
    matcher.add(about("car"), key="car")
    assert [m.score for m in matcher.match(Event.of({"thing": "vehicle"}))] == [pytest.approx(0.9)]
    before = matcher.compared
    assert matcher.match(Event.of({"thing": "kilowatt"})) == []
    assert matcher.compared == before
    assert len(matcher.match(Event.of({"thing": ["vehicle", "kilowatt"]}))) == 1


def test_terms_and_numbers_without_topics_are_compared_with_all():
    matcher = Matcher(MEASURE, approach="clustered", taxonomy=Taxonomy((TRANSPORT, ENERGY)))
    matcher.add(Profile((Predicate("thing", Operator.GT, 2, True),)), key="more")
    assert [m.subscription for m in matcher.match(Event.of({"thing": 3}))] == ["more"]
    clusters = Clusters(Classifier(MEASURE, Taxonomy((TRANSPORT, ENERGY))))
    assert clusters.meet(["unheard"], ["car", "laptop"]).all()
    assert clusters.meet(["car"], ["laptop"]).tolist() == [[False]]


def test_a_term_has_at_most_so_many_topics():
    many = Taxonomy(tuple(Topic(f"t{n}") for n in range(20)))
    measure = TableMeasure({(f"t{n} t{n}", "x"): 0.1 + n / 100 for n in range(20)})
    found = Classifier(measure, many).topics_of(["x"], most=TOPICS_OF_EVENTS)
    assert found[0].tolist() == [False] * (20 - TOPICS_OF_EVENTS) + [True] * TOPICS_OF_EVENTS


def test_taxonomies_from_json_iptc_and_skos(tmp_path):
    plain, iptc, skos = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.ttl"
    plain.write_text('{"sport": "games"}')
    iptc.write_text(json.dumps({"conceptSet": [{"prefLabel": {"en-GB": "sport"}, "definition": {"en-GB": "games"}}]}))
    skos.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        '<http://x/1> skos:prefLabel "sport"@en, "deporte"@es ; skos:definition "games"@en .'
    )
    for path in (plain, iptc, skos):
        assert Taxonomy.from_file(path).topics == (Topic("sport", "games"),)


def test_clear_errors(tmp_path):
    bad, empty = tmp_path / "bad.json", tmp_path / "empty.json"
    bad.write_text("[1]")
    empty.write_text("{}")
    with pytest.raises(InputError, match="taxonomy"):
        Taxonomy.from_file(bad)
    with pytest.raises(InputError, match="no topics"):
        Taxonomy.from_file(empty)
    with pytest.raises(MissingError):
        Taxonomy.from_file(tmp_path / "none.json")
    with pytest.raises(MissingError, match="taxonomy"):
        Taxonomy.default({"LIKEWISE_DATA": str(tmp_path)})
