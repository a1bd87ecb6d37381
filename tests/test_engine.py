"""The engine: subscribe, publish, notifications with their mapping."""

import math
import random

import pytest

from likewise.engine import Engine
from likewise.errors import BuildError, LikewiseError, MissingError
from likewise.events import Event
from likewise.language import Operator, Predicate, Profile, Subscription
from likewise.semantics import Evidence
from likewise.testing import ManualClock, TableMeasure

MINUTES = 4 * 60_000_000
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
    [notification] = engine.publish(EVENT)
    assert (notification.subscription, notification.score, notification.event.id) == ("usage", 1.0, "e1")
    pairs = [(c.predicate.attribute, c.tuple) for c in notification.match.mapping.correspondences]
    assert pairs == [
        ("type", ("type", "increased energy consumption event")),
        ("device", ("device", "computer")),
        ("office", ("office", "room 112")),
    ]
    assert notification.match.mapping.probability == 1.0


def test_a_name_in_a_dictionary_is_any_text():
    engine = Engine()
    assert engine.subscribe({"hot room": "{temp > 30}", "a: b": "{temp > 40}"}) == ["hot room", "a: b"]
    assert [notification.subscription for notification in engine.publish({"temp": 35})] == ["hot room"]


def test_an_unmet_predicate_means_silence():
    engine = Engine()
    engine.subscribe("{device= laptop, office= room 112}")
    assert engine.publish(EVENT) == []


def test_operators_and_ranges():
    engine = Engine()
    engine.subscribe("free: {slots > 0}\nsome: {slots in [1, 3)}\nnotfull: {state != full}")
    assert {notification.subscription for notification in engine.publish({"slots": 3, "state": "full"})} == {"free"}
    assert {notification.subscription for notification in engine.publish({"slots": 2, "state": "open"})} == {
        "free",
        "some",
        "notfull",
    }


def test_events_without_a_time_get_the_clocks():
    clock = ManualClock(5_000_000)
    engine = Engine(clock=clock)
    engine.subscribe("any: {a = 1}")
    [notification] = engine.publish({"a": 1})
    assert notification.event.span == (5_000_000, 5_000_000)


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
        engine.subscribe("t: {a~ = b~} approach approximate")
    with pytest.raises(LikewiseError):
        Engine(approach="aproximate")
    assert list(engine.subscriptions) == ["s"]


def test_batches_keep_the_order_of_events():
    engine = Engine()
    engine.subscribe("s: {a > 0}")
    notifications = engine.publish_batch([{"a": n} for n in (3, -1, 2, 1)])
    assert [dict(one.event.tuples)["a"] for one in notifications] == [3, 2, 1]


def test_patterns_and_single_events_side_by_side():
    engine = Engine(clock=ManualClock())
    names = engine.subscribe(
        "open: {type = window open}\nbreakin: open as w then {type = presence} as p within 10 minutes"
    )
    assert names == ["open", "breakin"]
    minute = 60_000_000
    [first] = engine.publish(Event("1", (("type", "window open"),), (), 0, 0))
    assert first.subscription == "open"
    [second] = engine.publish(Event("2", (("type", "presence"),), (), minute, minute))
    assert (second.subscription, [event.id for event in second.events], second.score) == ("breakin", ["1", "2"], 1.0)
    engine.unsubscribe("breakin")
    engine.publish(Event("3", (("type", "window open"),), (), 2 * minute, 2 * minute))
    assert engine.publish(Event("4", (("type", "presence"),), (), 3 * minute, 3 * minute)) == []


def test_an_absence_is_reported_when_its_window_ends():
    engine = Engine()
    engine.subscribe("left_open: {type = open} as o then not {type = closed} within 5 minutes")
    engine.publish(Event("1", (("type", "open"),), (), 0, 0))
    assert engine.advance(4 * 60_000_000) == []
    assert [notification.subscription for notification in engine.advance(6 * 60_000_000)] == ["left_open"]


def test_a_pattern_competes_in_the_same_vocabulary():
    measure = TableMeasure({("laptop", "computer"): 0.6, ("server", "computer"): 0.9})
    engine = Engine(measure=measure, approach="contrast", temperature=0.1, threshold=0.1)
    engine.subscribe("single: {device~ = laptop~}")
    [alone] = engine.publish({"device": "computer"})
    engine.subscribe("both: {device~ = server~} then {device~ = server~} within 1 minute")
    assert engine.publish({"device": "computer"}) == []
    assert alone.score == pytest.approx(0.6)
    assert "server" in engine.matcher.competitors[1].terms


def test_the_default_is_evidence():
    """Codes differ or not, and an attribute beside a value that is meant need not be the same."""
    engine = Engine(measure=Evidence(encoder=False, wordnet=False))
    engine.subscribe("a: {device~ = laptop~}\nb: {device~ = room 112~}")
    [found] = engine.publish({"device name": "laptop"})
    assert found.subscription == "a"
    assert str(found.match.approach) == "evidence"
    assert engine.publish({"device": "room 113"}) == []


def test_a_restored_engine_continues_as_if_it_had_never_stopped():
    text = "single: {type = open}\nleft_open: {type = open} as o then not {type = closed} within 5 minutes"
    events = [
        Event(str(n), (("type", "open" if n % 3 else "closed"),), (), n * MINUTES, n * MINUTES) for n in range(20)
    ]
    whole, first = Engine(), Engine()
    whole.subscribe(text)
    first.subscribe(text)
    expected = [one.subscription for event in events for one in whole.publish(event)]
    found = [one.subscription for event in events[:10] for one in first.publish(event)]
    second = Engine.restore(first.snapshot())
    found += [one.subscription for event in events[10:] for one in second.publish(event)]
    assert found == expected
    assert len({*found}) == 2
    assert second.subscriptions == whole.subscriptions
    assert [one.score for one in second.advance(10**12)] == [one.score for one in whole.advance(10**12)] != []


def test_bytes_that_are_no_snapshot_are_refused():
    for data in (b"", b"\x01", Engine().snapshot()[:-3], Engine().detector.snapshot()):
        with pytest.raises(LikewiseError, match="not a snapshot"):
            Engine.restore(data)


def test_refused_events_reach_the_caller():
    refused = []
    engine = Engine(refuse=refused.append)
    engine.subscribe("p: {a = 1} then {a = 2} within 1 minute")
    engine.publish_batch([Event("1", (("a", 1),), (), 10, 10), Event("2", (("a", 2),), (), 5, 5)])
    assert [(one.event.id, one.reason) for one in refused] == [("2", "it is too late")]


def test_subscriptions_as_a_list_or_a_dictionary_of_texts() -> None:
    engine = Engine(approach="exact")
    assert engine.subscribe(["{a = 1}", "b: {b = 2}", "{c = 3}"]) == ["s1", "b", "s3"]
    assert engine.subscribe({"d": "{d = 4}"}) == ["d"]
    assert [found.subscription for found in engine.publish({"b": 2, "d": 4})] == ["b", "d"]
    for strange in (7, [{"type": "x"}], None):
        with pytest.raises(BuildError, match="is not a subscription"):
            engine.subscribe(strange)  # type: ignore[arg-type]


def test_a_pattern_may_follow_a_subscription_by_meaning_without_any_space() -> None:
    """The measure that the first had made was taken for one that compares the values of events, and there is none."""
    engine = Engine(spaces=())
    engine.subscribe("hot: {what~ = heat~}")
    engine.subscribe("fire: {what~ = heat~} then {what~ = smoke~} within 1 minute")
    found = [each.subscription for what in ("heat", "smoke") for each in engine.publish({"what": what})]
    assert found == ["hot", "fire"]
    explained = engine.explain("fire", {"what": "smoke"})
    assert repr(explained).startswith("<PatternExplanation: ")
    assert len(repr(explained)) < 120


PLACES = ("cookroom", "galley", "kitchenette", "office", "bathroom", "atelier")
KINDS = ("leakage of water", "flood", "smoke", "fumes", "blaze", "fire alarm", "open window")
WISHES = """
leak: {room~ = kitchen~, event~ = 'water leak'~}
fire: {event~ = fire~} threshold 0.2
smoke: {room~ = office~, event~ = smoke~} threshold 0.1
danger: {event~ = smoke~} as first then {event~ = fire~} as second within 1 minute threshold 0.05
both: {room~ = kitchen~} as where and {event~ = 'water leak'~} as what within 1 minute threshold 0.1
"""


@pytest.mark.parametrize("seed", range(3))
def test_explanations_explain_the_score_that_was_given(seed: int) -> None:
    """Also after the stream became known, other subscriptions came to compete, and some left."""
    draw = random.Random(seed)
    engine = Engine()
    engine.subscribe(WISHES)
    notifications = []
    for number in range(4):
        events = [
            Event.of({"room": draw.choice(PLACES), "what happened": draw.choice(KINDS)}, id=f"{number}.{at}").stamped(
                (number * 80 + at) * 20_000_000
            )
            for at in range(80)
        ]
        scores = {name: engine.explain(name, events[0]).score for name in engine.profiles} if number else {}
        batch = engine.publish_batch(events)
        for found in batch:
            if found.event is events[0] and found.match is not None and scores:
                assert scores[found.subscription] == pytest.approx(found.score, abs=1e-5)
        notifications += batch
        engine.subscribe(f"more{number}: {{event~ = '{draw.choice(KINDS)}'~, room~ = {draw.choice(PLACES)}~}}")
        if number == 2:
            engine.unsubscribe("more0")
    matches = [found for found in notifications if found.match is not None]
    patterns = [found for found in notifications if found.detection is not None]
    for found in draw.sample(matches, 60):
        assert found.match.explain().score == pytest.approx(found.score, abs=1e-5)
    for found in patterns:
        probabilities = [line.probability for line in found.detection.trace]
        assert math.prod(probabilities) == pytest.approx(found.score, rel=1e-5)
    # The test is worth nothing if all scores are the same.
    assert len({round(found.score, 4) for found in matches}) > 10
    assert len({round(found.score, 4) for found in patterns}) > 10


def test_the_parts_of_a_pattern_are_explained_with_its_options() -> None:
    engine = Engine()
    engine.subscribe("p: {event~ = fire~} as a then {event~ = smoke~} as b within 1 minute threshold 0.01")
    explanation = engine.explain("p", {"event": "fumes"})
    assert [part.threshold for _, part in explanation.parts] == [0.01, 0.01]
