"""The engine: subscribe, publish, notifications with their mapping."""

import pytest

from likewise.engine import Engine
from likewise.errors import BuildError, LikewiseError, MissingError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile, Subscription
from likewise.testing import ManualClock

EVENT = Event.of(
    {
        "type": "increased energy consumption event",
        "measurement unit": "kilowatt hour",
        "device": "computer",
        "office": "room 112",
    },
    id="e1",
    theme=("energy", "appliances", "building"),
)


def test_the_example_of_thematic_event_processing_made_exact():
    """000 sections 3.3 to 3.5."""
    engine = Engine()
    engine.subscribe(
        "usage: {power, computers} {type= increased energy consumption event, device= computer, office= room 112}"
    )
    [told] = engine.publish(EVENT)
    assert (told.subscription, told.score, told.event.id) == ("usage", 1.0, "e1")
    pairs = [(c.predicate.attribute, c.tuple) for c in told.match.mapping.correspondences]
    assert pairs == [
        ("type", ("type", "increased energy consumption event")),
        ("device", ("device", "computer")),
        ("office", ("office", "room 112")),
    ]
    assert told.match.mapping.probability == 1.0


def test_an_unmet_predicate_means_silence():
    engine = Engine()
    engine.subscribe("{device= laptop, office= room 112}")
    assert engine.publish(EVENT) == []


def test_operators_and_ranges():
    engine = Engine()
    engine.subscribe("free: {slots > 0}\nsome: {slots in [1, 3)}\nnotfull: {state != full}")
    assert {told.subscription for told in engine.publish({"slots": 3, "state": "full"})} == {"free"}
    assert {told.subscription for told in engine.publish({"slots": 2, "state": "open"})} == {"free", "some", "notfull"}


def test_events_without_a_time_get_the_clocks():
    clock = ManualClock(5_000_000)
    engine = Engine(clock=clock)
    engine.subscribe("any: {a = 1}")
    [told] = engine.publish({"a": 1})
    assert told.event.span == (5_000_000, 5_000_000)


def test_unsubscribed_is_silent_and_its_name_is_free_again():
    engine = Engine()
    engine.subscribe("s: {a = 1}")
    engine.unsubscribe("s")
    assert engine.publish({"a": 1}) == []
    assert engine.subscribe("s: {a = 2}") == ["s"]
    assert engine.publish({"a": 1}) == []


def test_subscribing_is_all_or_nothing():
    engine = Engine()
    bad = Subscription("bad", Profile((Predicate("a", Operator.GT, "text"),)))
    with pytest.raises(BuildError):
        engine.subscribe([Subscription("good", Profile((Predicate("a", Operator.EQ, 1),))), bad])
    assert engine.subscriptions == {}
    assert engine.publish({"a": 1}) == []


def test_clear_errors():
    engine = Engine()
    engine.subscribe("s: {a = 1}")
    with pytest.raises(BuildError, match="already"):
        engine.subscribe("s: {a = 2}")
    with pytest.raises(BuildError, match="no subscription"):
        engine.unsubscribe("t")
    with pytest.raises(MissingError, match="~"):
        engine.subscribe("t: {a~ = b~}")
    with pytest.raises(LikewiseError):
        Engine(approach="aproximate")
    assert list(engine.subscriptions) == ["s"]


def test_batches_keep_the_order_of_events():
    engine = Engine()
    engine.subscribe("s: {a > 0}")
    told = engine.publish_batch([{"a": n} for n in (3, -1, 2, 1)])
    assert [dict(one.event.tuples)["a"] for one in told] == [3, 2, 1]
