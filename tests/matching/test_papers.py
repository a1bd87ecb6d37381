"""The papers' own examples, by meaning, on the whole WordNet space."""

from pathlib import Path

import pytest

from likewise.engine import Engine
from likewise.events import Event
from likewise.semantics import Space, find_space


@pytest.fixture(scope="module")
def space(shelf: Path) -> Space:
    return find_space(shelf / "wordnet")


def test_energy_usage_is_mapped_as_in_thematic_event_processing(space):
    """000 sections 3.3 to 3.5."""
    engine = Engine(spaces=[space], approach="thematic", threshold=0.0)
    engine.subscribe("s: {power, computers} {type= increased energy usage event~, device~= laptop~, office= room 112}")
    event = {
        "type": "increased energy consumption event",
        "measurement unit": "kilowatt hour",
        "device": "computer",
        "office": "room 112",
    }
    [told] = engine.publish(Event.of(event, theme=("energy", "appliances", "building")))
    answers = {c.predicate.attribute: c.tuple[0] for c in told.match.mapping.correspondences}
    assert answers == {"type": "type", "device": "device", "office": "office"}


def test_a_vacancy_answers_an_empty_slot(space):
    """004 section 3."""
    engine = Engine(spaces=[space])
    engine.subscribe("sarah: {empty parking slot~ > 0}")
    assert [told.subscription for told in engine.publish({"parking vacancy": 3, "colour": 7})] == ["sarah"]
    assert engine.publish({"parking vacancy": 0}) == []
    [told] = engine.publish({"parking vacancy": 3})
    assert told.match.mapping.correspondences[0].tuple == ("parking vacancy", 3)


def test_spains_match_comes_first(space):
    """002 examples 2 and 3."""
    engine = Engine(spaces=[space], approach="approximate", aggregation="mean", threshold=0.0)
    engine.subscribe('s: {type~= "Soccer Match"~, place~= "South Africa"~, team~= "Spain"~}')
    final = {
        "type": "Football Match",
        "name": "2010 FIFA World Cup Final",
        "referee": "Howard Webb",
        "location": ["FNB Stadium", "Johannesburg"],
        "team": ["Spain national football team", "Netherlands national football team"],
    }
    other = {"type": "Football Match", "location": "Berlin", "team": ["Italy national football team"]}
    concert = {"type": "Concert", "location": "Madrid", "artist": "Orchestra"}
    events = [Event.of(one, id=name) for name, one in (("other", other), ("final", final), ("concert", concert))]
    ranked = sorted(engine.publish_batch(events), key=lambda told: -told.score)
    assert ranked[0].event.id == "final"
